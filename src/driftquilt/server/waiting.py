"""Predicted rows that wait for their labels, on disk: an id outlives a crash.

Rows are written down as the request that brought them, in files of about `CHUNK` rows each, one
after the other (`waiting_file`).

A row's id is the number of its file and its place there, `"6af31f-a03"`; numbers begin at `first`,
and none before `born` ever was. When more rows or bytes wait than may, the oldest file goes, and
the rows in it are forgotten. Which rows have their label is not known here but in the store, in
the very step that learns them (`mark`); a file whose rows all have theirs goes too, but not before
the store has said that they are safe (`settle`).

`add` only queues a record and is quick; `write` makes durable what is queued, on a thread of its
own. Ids are good when `write` has returned. A file that could not be written is not written to
again: what was safe in it stays, and the rows that follow begin another.
"""

from __future__ import annotations

import base64
import logging
import os
import re
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from driftquilt.errors import StoreError
from driftquilt.server.limits import MAX_ID_LETTERS
from driftquilt.server.waiting_file import (
    Body,
    Spot,
    WaitingFile,
    make_record,
    read_record,
    scan,
)
from driftquilt.store.files import DISK

__all__ = ["CHUNK", "WaitingRows"]

_log = logging.getLogger("driftquilt.server")

CHUNK = 16_384
_SLOTS = 1_024  # places for marks in the store; numbers of files are never further apart
_PREFIX = "labelled."
_FILE = re.compile(r"[0-9a-f]{8,}\.rows")
_PLACES: list[str] = []


class WaitingRows:
    """The rows of one stream, for any thread; one `write` at a time."""

    def __init__(
        self,
        folder: Path,
        most: int,
        state: Mapping[str, Any],
        first: int = 1,
        born: int = 1,
        most_bytes: int = 1 << 28,
    ) -> None:
        self._folder, self._most, self._most_bytes, self._born = folder, most, most_bytes, born
        self._chunk, self._chunk_bytes = min(CHUNK, max(1, most // 8)), most_bytes // 8
        self._lock = threading.Lock()  # of all but the disk
        folder.mkdir(exist_ok=True)
        DISK.sync_folder(folder.parent)
        paths = [path for path in sorted(folder.glob("*.rows")) if _FILE.fullmatch(path.name)]
        self._files = {int(path.stem, 16): scan(path) for path in paths}
        self.restore(state)
        # The last file may have been cut short: it is not written to again.
        last = max([*_marks(state), *self._files], default=first - 1)
        self._current = self._files.setdefault(last + 1, WaitingFile(last + 1))
        self._queue: list[tuple[WaitingFile, bytes]] = []
        self._descriptor = (0, -1)
        self._n_tidy = 0  # files when they were looked through last
        self.n_forgotten = 0

    @property
    def n_rows(self) -> int:
        """Rows that wait."""
        with self._lock:
            return self._n_rows()

    def add(self, body: bytes, kind: str, n_rows: int) -> list[str]:
        """Queue rows; their ids."""
        came = time.time()
        record = make_record(body, kind, n_rows, came)
        with self._lock:
            if self._is_full(self._current):
                number = self._current.number + 1
                self._current = self._files[number] = WaitingFile(number)
            file = self._current
            first = file.add(n_rows, len(record), came)
            self._queue.append((file, record))
        prefix = f"{file.number:x}-"
        return [prefix + place for place in _places(first + n_rows)[first : first + n_rows]]

    def write(self) -> None:
        """Make everything that was queued durable."""
        with self._lock:
            queue, self._queue = self._queue, []
        by_file: dict[WaitingFile, list[bytes]] = {}
        for file, record in queue:
            by_file.setdefault(file, []).append(record)
        whole = [file for file in by_file if not file.broken]
        try:
            for file in whole:
                self._append(file, by_file[file])
            self._tidy()
        except OSError as error:
            with self._lock:
                for file in whole:
                    file.end_safely()
            raise StoreError(f"rows that wait for labels cannot be written: {error}") from error
        if len(whole) < len(by_file):
            raise StoreError("rows that wait for labels came when the disk had just failed")

    def find(self, row_id: str) -> tuple[WaitingFile, int] | str:
        """Where a row waits; or, in a word, why it does not."""
        try:
            number, place = (int(part, 16) for part in row_id[:MAX_ID_LETTERS].split("-"))
        except ValueError:
            return "unknown"
        if row_id != f"{number:x}-{place:x}":  # no row has two ids
            return "unknown"
        with self._lock:
            file = self._files.get(number)
            if file is None:
                return self._why_gone(number, place)
            if place >= file.n_rows:
                return "unknown"
            return "labelled" if file.has_label(place) else (file, place)

    def locate(self, file: WaitingFile, place: int) -> Spot:
        """Where a row that was found is kept."""
        with self._lock:
            return file.find(place)

    def read(self, spot: Spot) -> Body | None:
        """The request that brought a row; None if it is gone meanwhile, or damaged."""
        path = self._path(spot.number)
        try:
            with path.open("rb") as opened:
                opened.seek(spot.offset)
                found = read_record(opened, path.stat().st_size - spot.offset)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StoreError(f"{path} cannot be read: {error}; see to the disk") from error
        if found is None:
            _log.error("%s is damaged: a row that waits is not readable", path)
        return found

    def mark(self, file: WaitingFile, place: int) -> dict[str, Any]:
        """Note that a row has its label; the state to be stored with it."""
        with self._lock:
            file.mark(place)
            self._marked.add(file)
            bits = base64.b64encode(file.labelled).decode()
        return {f"{_PREFIX}{file.number % _SLOTS}": [file.number, bits]}

    def settle(self) -> None:
        """The store has every mark so far."""
        with self._lock:
            for file in self._marked:
                file.n_settled = file.n_labelled
            self._marked.clear()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take the marks that the store has for the only ones."""
        marks = _marks(state)
        with self._lock:
            for number, file in self._files.items():
                file.restore(base64.b64decode(marks.get(number, "")))
            gone = marks.keys() - self._files.keys()
            self._gone = {number: base64.b64decode(marks[number]) for number in gone}
            self._marked: set[WaitingFile] = set()

    def close(self) -> None:
        """Write what is queued and let go."""
        try:
            self.write()
        finally:
            self._let_go()

    def _is_full(self, file: WaitingFile) -> bool:
        return file.n_rows >= self._chunk or file.n_bytes >= self._chunk_bytes or file.broken

    def _n_rows(self) -> int:
        return sum(file.n_rows - file.n_labelled for file in self._files.values())

    def _why_gone(self, number: int, place: int) -> str:
        bits = self._gone.get(number, b"")
        if place // 8 < len(bits) and bits[place // 8] >> place % 8 & 1:
            return "labelled"
        return "forgotten" if self._born <= number < self._current.number else "unknown"

    def _append(self, file: WaitingFile, records: list[bytes]) -> None:
        data = b"".join(records)
        descriptor = self._open(file.number)
        _write_all(descriptor, data)
        os.fdatasync(descriptor)
        with self._lock:
            n_records = file.safe[0] + len(records)
            n_bytes = file.safe[2] + len(data)
            more = n_records < len(file.firsts)
            file.safe = (n_records, file.firsts[n_records] if more else file.n_rows, n_bytes)

    def _tidy(self) -> None:
        """Remove files of which no row waits, and the oldest while too many rows do."""
        with self._lock:
            doomed = self._doomed() if len(self._files) != self._n_tidy else []
        for file in doomed:
            self._path(file.number).unlink(missing_ok=True)
        with self._lock:
            for file in doomed:
                del self._files[file.number]
                self._gone[file.number] = bytes(file.labelled)
                self._gone.pop(file.number - _SLOTS, None)
                self.n_forgotten += file.n_rows - file.n_labelled
            self._n_tidy = len(self._files)

    def _doomed(self) -> list[WaitingFile]:
        n_waiting, doomed = self._n_rows(), []
        n_bytes = sum(file.n_bytes for file in self._files.values())
        for number, file in sorted(self._files.items()):
            if file is self._current or file.n_bytes > file.safe[2]:
                continue
            is_old = self._current.number - number >= _SLOTS
            too_many = n_waiting > self._most or n_bytes > self._most_bytes
            if file.n_settled == file.n_rows or too_many or is_old:
                n_waiting -= file.n_rows - file.n_labelled
                n_bytes -= file.n_bytes
                doomed.append(file)
        return doomed

    def _open(self, number: int) -> int:
        if self._descriptor[0] != number:
            self._let_go()
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            self._descriptor = (number, os.open(self._path(number), flags, 0o600))
            DISK.sync_folder(self._folder)
        return self._descriptor[1]

    def _let_go(self) -> None:
        descriptor, self._descriptor = self._descriptor[1], (0, -1)
        if descriptor >= 0:
            os.close(descriptor)

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:08x}.rows"


def _places(n_rows: int) -> list[str]:
    """Places in a file as ids have them; they are made once."""
    _PLACES.extend(f"{place:x}" for place in range(len(_PLACES), n_rows))
    return _PLACES


def _marks(state: Mapping[str, Any]) -> dict[int, str]:
    """Bits by number of file."""
    return dict(value for name, value in state.items() if name.startswith(_PREFIX))


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
