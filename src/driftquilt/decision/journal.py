"""The file that a replay writes as it goes: one JSON record per line, by rising row.

    {"record": "replay", …}     first: which rows are replayed, so that a resume can check them
    {"event": "DriftFound", …}  whatever the stream tells, as `Event.to_json` puts it
    {"record": "selection", …}  after a promotion: what the new model was trained on, and why
    {"record": "accuracy", …}   every so many rows, after all else that happened up to that row

A kill may tear off the end, between any two lines or inside of one. What is left up to the last
accuracy or selection, or up to the row before the last event, is complete; the rest is cut off
and told again by the stream, which lost nothing.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from driftquilt.decision.replay_header import Line, expect_same
from driftquilt.errors import InputError

__all__ = ["Journal", "JournalFile", "read_lines"]

#: A record after which nothing more happens in its row.
_LAST = ("replay", "selection", "accuracy")


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
        if n_rows and not _has_header(path):
            raise InputError(
                f"the stream has learned {n_rows} rows, but {path} tells of none: they were not "
                "replayed to this folder; give the folder they were, or begin a new stream"
            )
        self.begun, end = _resume(path, header, n_rows) if _has_header(path) else (Journal(), 0)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("r+b" if path.exists() else "w+b") as file:
            file.truncate(end)
        if end == 0:
            self.write([header])

    def write(self, lines: Sequence[Line]) -> None:
        """Append lines, and wait until they are on the disk."""
        if lines:
            text = "".join(f"{json.dumps(line, allow_nan=False)}\n" for line in lines)
            with self.path.open("ab") as file:
                file.write(text.encode())
                file.flush()
                os.fsync(file.fileno())


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
            expect_same(path, line, header)
        if line["row"] > n_rows:
            _expect_begun(path, n_rows, line)
            break
        if at_row and at_row[-1]["row"] != line["row"]:
            n_drifts, begin, at_row = n_drifts + _count_drifts(at_row), place, []
        at_row.append(line)
        end = after
        accuracy = line if line.get("record") == "accuracy" else accuracy
    row = at_row[-1]["row"]
    if at_row[-1].get("record") in _LAST:
        return Journal(row, accuracy, n_drifts + _count_drifts(at_row)), end
    return Journal(row - 1, accuracy, n_drifts), begin


def _count_drifts(lines: Sequence[Line]) -> int:
    return sum(line.get("event") == "DriftFound" for line in lines)


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
