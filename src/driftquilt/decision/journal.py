"""The file that a replay writes as it goes: one JSON record per line, by rising row.

    {"record": "replay", …}     first: which rows are replayed, so that a resume can check them
    {"event": "DriftFound", …}  whatever the stream tells, as `Event.to_json` puts it
    {"record": "selection", …}  after a promotion: what the new model was trained on, and why
    {"record": "accuracy", …}   every so many rows, after all else that happened up to that row

A kill may tear off the end, between any two lines or inside of one. What is left up to the last
accuracy, or up to the row before the last event, is complete; the rest is cut off and told
again by the stream, which lost nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driftquilt.errors import InputError

__all__ = ["FORMAT", "Journal", "JournalFile", "Line", "read_lines"]

#: Raised when files of the version before can no longer be read.
FORMAT = 1

Line = dict[str, Any]


@dataclass(frozen=True)
class Journal:
    """What a file tells that is resumed: up to which row all is there, and how far it had come."""

    complete_to: int = 0
    accuracy: Line | None = None  # the last
    n_drifts: int = 0


class JournalFile:
    """A file that is being added to."""

    def __init__(self, path: Path, header: Line, n_rows: int) -> None:
        """Begin the file, or go on with it where a stream of `n_rows` rows stands."""
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        if n_rows and not _has_header(path):
            raise InputError(
                f"the stream has learned {n_rows} rows, but {path} tells of none: they were not "
                "replayed to this folder; give the folder they were, or begin a new stream"
            )
        self.begun, end = _resume(path, header, n_rows) if _has_header(path) else (Journal(), 0)
        self._file = path.open("r+b" if path.exists() else "w+b")
        self._file.truncate(end)
        self._file.seek(end)
        if end == 0:
            self.write([header])

    def write(self, lines: Sequence[Line]) -> None:
        """Append lines, and wait until they are on the disk."""
        if lines:
            text = "".join(f"{json.dumps(line, allow_nan=False)}\n" for line in lines)
            self._file.write(text.encode())
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


def read_lines(path: Path) -> Iterator[tuple[Line, int, int]]:
    """Whole lines, each with where in the file it begins and ends."""
    with path.open("rb") as file:
        place = 0
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            yield _parse(line, path, number), place, place + len(line)
            place += len(line)


def _has_header(path: Path) -> bool:
    return path.exists() and next(read_lines(path), None) is not None


def _resume(path: Path, header: Line, n_rows: int) -> tuple[Journal, int]:
    """What the file tells up to the stream's last row, and where to cut it off."""
    at_row: list[Line] = []  # the lines of the last row
    accuracy, n_drifts, begin, end = None, 0, 0, 0
    for line, place, after in read_lines(path):
        if place == 0:
            _expect_same(path, line, header)
        if line["row"] > n_rows:
            _expect_begun(path, n_rows, line)
            break
        if at_row and at_row[-1]["row"] != line["row"]:
            n_drifts, begin, at_row = n_drifts + _count_drifts(at_row), place, []
        at_row.append(line)
        end = after
        accuracy = line if line.get("record") == "accuracy" else accuracy
    row = at_row[-1]["row"]
    if at_row[-1].get("record") in ("accuracy", "replay"):
        return Journal(row, accuracy, n_drifts + _count_drifts(at_row)), end
    return Journal(row - 1, accuracy, n_drifts), begin


def _count_drifts(lines: Sequence[Line]) -> int:
    return sum(line.get("event") == "DriftFound" for line in lines)


def _expect_same(path: Path, found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    for name, value in wanted.items():
        if found.get(name) != value:
            raise InputError(
                f"{path} tells of other rows: its {name} is {found.get(name)!r}, but now it is "
                f"{value!r}; give the same table and settings, or another folder"
            )


def _expect_begun(path: Path, n_rows: int, line: Line) -> None:
    if n_rows == 0:
        raise InputError(
            f"{path} tells of row {line['row']}, but the stream is new; go on with the stream that "
            "wrote it, or give another folder"
        )


def _parse(line: bytes, path: Path, number: int) -> Line:
    try:
        record = json.loads(line)
        if not isinstance(record, dict) or type(record["row"]) is not int:
            raise ValueError("it is no record with a row")
    except (ValueError, KeyError) as error:
        raise InputError(
            f"{path}, line {number} is damaged ({error!r}); move the file away and replay anew"
        ) from error
    return record
