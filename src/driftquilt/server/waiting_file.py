"""A file of rows that wait: the requests that brought them, one record after the other.

    record  CRC-32 of all that follows; length, number of rows, time, type of body; the body

A crash may cut the last record short, and a failing disk may leave one in the middle of nowhere.
What is read back ends before the first record that is not whole.

>>> import io
>>> record = make_record(b"{}", "application/json", n_rows=1, came=0.0)
>>> len(record), read_record(io.BytesIO(record), len(record))
(23, Body(content=b'{}', kind='application/json', n_rows=1, came=0.0))
>>> read_record(io.BytesIO(record[:-1]), len(record) - 1)
"""

from __future__ import annotations

import logging
import struct
import zlib
from array import array
from bisect import bisect_right
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple

from driftquilt.server.bodies import NUMBERS
from driftquilt.server.schemas import ARROW, JSON

__all__ = ["Body", "Spot", "WaitingFile", "make_record", "read_record", "scan"]

_log = logging.getLogger("driftquilt.server")

_CRC = struct.Struct("<I")
_HEAD = struct.Struct("<IIdB")
_KINDS = (JSON, ARROW, NUMBERS)  # by their numbers in a record


class Spot(NamedTuple):
    """Where a row is: its file's number, its record there, its place in that; when it came."""

    number: int
    offset: int
    at: int
    came: float


class Body(NamedTuple):
    """A request's body as it was sent, and when."""

    content: bytes
    kind: str
    n_rows: int
    came: float


@dataclass(eq=False)
class WaitingFile:
    """What is known of a file without reading it."""

    number: int
    offsets: array[int] = field(default_factory=lambda: array("q"))  # of each record
    firsts: array[int] = field(default_factory=lambda: array("q"))  # the place of its first row
    times: array[float] = field(default_factory=lambda: array("d"))  # when it came
    n_rows: int = 0
    n_bytes: int = 0
    safe: tuple[int, int, int] = (0, 0, 0)  # records, rows and bytes that are durable
    broken: bool = False
    labelled: bytearray = field(default_factory=bytearray)
    n_labelled: int = 0
    n_settled: int = 0  # labelled, and the store has it

    def add(self, n_rows: int, n_bytes: int, came: float) -> int:
        first = self.n_rows
        self.offsets.append(self.n_bytes)
        self.firsts.append(first)
        self.times.append(came)
        self.n_rows += n_rows
        self.n_bytes += n_bytes
        return first

    def end_safely(self) -> None:
        """Forget what did not become durable, and take no more."""
        n_records, self.n_rows, self.n_bytes = self.safe
        del self.offsets[n_records:], self.firsts[n_records:], self.times[n_records:]
        self.broken = True

    def find(self, place: int) -> Spot:
        record = bisect_right(self.firsts, place) - 1
        at = place - self.firsts[record]
        return Spot(self.number, self.offsets[record], at, self.times[record])

    def has_label(self, place: int) -> bool:
        return place // 8 < len(self.labelled) and bool(self.labelled[place // 8] >> place % 8 & 1)

    def mark(self, place: int) -> None:
        self.labelled.extend(bytes(max(0, place // 8 + 1 - len(self.labelled))))
        self.labelled[place // 8] |= 1 << place % 8
        self.n_labelled += 1

    def restore(self, bits: bytes) -> None:
        self.labelled = bytearray(bits)
        known = int.from_bytes(bits, "little") & ((1 << self.n_rows) - 1)
        self.n_labelled = self.n_settled = known.bit_count()


def make_record(body: bytes, kind: str, n_rows: int, came: float) -> bytes:
    """A request as it is written down."""
    head = _HEAD.pack(len(body), n_rows, came, _KINDS.index(kind))
    return _CRC.pack(zlib.crc32(body, zlib.crc32(head))) + head + body


def read_record(opened: IO[bytes], n_left: int) -> Body | None:
    """The next record of a file in which so many bytes are left; None if it is not whole."""
    crc, head = opened.read(_CRC.size), opened.read(_HEAD.size)
    if len(head) < _HEAD.size:
        return None
    length, n_rows, came, kind = _HEAD.unpack(head)
    if length > n_left:
        return None
    content = opened.read(length)
    if _CRC.pack(zlib.crc32(content, zlib.crc32(head))) != crc:
        return None
    return Body(content, _KINDS[kind], n_rows, came)


def scan(path: Path) -> WaitingFile:
    """What is in a file, up to the first record that is not whole."""
    file, n_bytes = WaitingFile(int(path.stem, 16)), path.stat().st_size
    with path.open("rb") as opened:
        while (body := read_record(opened, n_bytes - file.n_bytes)) is not None:
            file.add(body.n_rows, _CRC.size + _HEAD.size + len(body.content), body.came)
    file.safe = (len(file.firsts), file.n_rows, file.n_bytes)
    if file.n_bytes < n_bytes:
        _log.warning("%s ends in %d bytes that are no row: cut short", path, n_bytes - file.n_bytes)
    return file
