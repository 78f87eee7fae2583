"""One JSON line per finished cell, in a file that survives being killed.

A line is written and synced before the next cell counts as done. A line that a crash tore off
is dropped when the file is opened again, so a run goes on where it stopped, without losing or
repeating a cell.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import IO, NamedTuple, Self

from driftquilt import __version__
from driftquilt.errors import InputError
from driftquilt.files import lock_file

__all__ = ["Cell", "Result", "ResultFile", "read_results"]


class Cell(NamedTuple):
    """One method on one segment of one stream, with one seed."""

    dataset: str
    method: str
    segment: int
    seed: int


@dataclass(frozen=True)
class Result:
    """What came out of a cell.

    Seconds count from the drift to the new model; `training_` seconds are those of the training
    that made it, as the paper reports them, and what remains is the search. `data` begins the
    stream's checksum. `selected` and `usage` are None for methods that do not choose segments;
    `equals` are all sets of segments that did as well, where every one was tried.
    """

    dataset: str
    method: str
    segment: int
    seed: int
    data: str
    protocol: str
    accuracy: float
    f1: float
    seconds: float
    cpu_seconds: float
    training_seconds: float
    training_cpu_seconds: float
    epochs: int | None
    usage: float | None
    selected: list[int] | None
    equals: list[list[int]] | None = None
    version: str = __version__

    @property
    def cell(self) -> Cell:
        return Cell(self.dataset, self.method, self.segment, self.seed)


def read_results(path: Path) -> list[Result]:
    """All whole lines of a results file; none if there is no file."""
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")
    return [_parse(line, path, number) for number, line in enumerate(lines[:-1], start=1)]


class ResultFile:
    """A results file that is being added to, by one run at a time."""

    def __init__(self, path: Path, protocol: str, data: Mapping[str, str]) -> None:
        self.path = path
        self._file = _open(path)
        try:
            self.results = read_results(path)
            self._expect(protocol, data)
        except InputError:
            self._file.close()
            raise

    def add(self, results: Iterable[Result]) -> None:
        """Append lines and wait until they are on the disk."""
        for result in results:
            self._file.write((json.dumps(asdict(result)) + "\n").encode())
            self.results.append(result)
        self._file.flush()
        os.fsync(self._file.fileno())

    def _expect(self, protocol: str, data: Mapping[str, str]) -> None:
        for result in self.results:
            found, wanted = (result.protocol, result.version), (protocol, __version__)
            if found != wanted:
                raise InputError(
                    f"{self.path} holds results of protocol and version {found}, but this run has "
                    f"{wanted}; choose another folder"
                )
            if result.data != data.get(result.dataset, result.data):
                raise InputError(
                    f"{self.path} holds results of {result.dataset} as it was before its rows "
                    "changed; choose another folder"
                )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _open(path: Path) -> IO[bytes]:
    """The file with a torn last line cut off, at its end, and locked while it is open."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.open("a+b")
    try:
        _lock(file)
    except BlockingIOError as error:
        file.close()
        raise InputError(
            f"{path} is being written by another run; wait for its end or choose another folder"
        ) from error
    file.seek(0)
    whole = file.read().rfind(b"\n") + 1
    file.truncate(whole)
    return file


def _lock(file: IO[bytes]) -> None:
    """Until the file is closed or the process is gone; a file system may have no locks."""
    try:
        lock_file(file.fileno())
    except OSError as error:
        if isinstance(error, BlockingIOError):
            raise


def _parse(line: bytes, path: Path, number: int) -> Result:
    try:
        record = json.loads(line)
        return Result(**{field.name: record[field.name] for field in fields(Result)})
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path}, line {number} is not a result ({type(error).__name__}: {error}); take the "
            "line out, or move the file away to start again"
        ) from error
