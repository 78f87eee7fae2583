"""A batch of rows becomes bytes cheaply, and thousands of small ones become columns at once.

Bytes are what Arrow writes for a batch: a head that says where each buffer lies, then the body.
The schema is kept elsewhere, by number. Most streams are numbers without gaps, and there the
head says nothing that schema and row count do not: such a batch is *packed*, its body alone,

    each column's values, one column after the other, each padded to 8 bytes

which makes a single row of ten floats 88 bytes instead of 712, and lets a run of batches with
equal row counts be read as one matrix of bytes, (batches, bytes), a column being a slice of it.

Every piece carries a CRC-32, checked before it is read.

>>> import pyarrow as pa
>>> layout = Layout(1, pa.schema({"x": pa.float32(), "y": pa.int64()}))
>>> batch = pa.record_batch({"x": pa.array([0.5, 1.5], pa.float32()), "y": [0, 1]})
>>> (piece,) = layout.encode(batch, n_before=40)
>>> piece.last, piece.packed, len(piece.data)
(42, True, 24)
>>> (back,) = decode([piece], {1: layout}, n_before=40)
>>> back.equals(batch)
True
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, groupby, islice
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import types

from driftquilt.errors import InputError

__all__ = ["Layout", "Piece", "decode"]

_LARGEST = 1 << 29  # bytes; SQLite takes a blob of up to 1e9
_AT_ONCE = 1 << 14  # packed pieces read together
_HEAD = 8  # a mark, then the length of the head as an int32


class Piece(NamedTuple):
    """Some rows as bytes; `last` counts the stream's rows up to and with its last one."""

    last: int
    layout: int
    packed: bool
    crc: int
    data: Any  # bytes, or anything that shows its bytes as a buffer


class Layout:
    """How batches of one schema lie in bytes."""

    def __init__(self, number: int, schema: pa.Schema) -> None:
        self.number = number
        self.schema = schema
        self._dtypes = _dtypes(schema)
        self._length = (0, 0)  # rows and bytes of the last packed batch: most are alike

    def encode(self, batch: pa.RecordBatch, n_before: int) -> list[Piece]:
        """The batch as one piece, as many as its size takes, or none if it has no rows."""
        if not batch.num_rows:
            return []
        message = memoryview(batch.serialize())
        if len(message) > _LARGEST:
            return self._encode_halves(batch, n_before)
        body = message[_HEAD + int.from_bytes(message[4:_HEAD], "little") :]
        # A column with gaps would have a bitmap too, and the body would be longer.
        packed = bool(self._dtypes) and len(body) == self._packed_length(batch.num_rows)
        data = body if packed else message
        last = n_before + batch.num_rows
        return [Piece(last, self.number, packed, _crc(last, self.number, packed, data), data)]

    def unpack(self, bodies: list[Any], n_rows: int) -> pa.RecordBatch:
        """Packed batches of `n_rows` rows each as one."""
        if {len(body) for body in bodies} != {self._starts(n_rows)[-1]}:
            raise ValueError("some open rows are missing")
        table = np.frombuffer(b"".join(bodies), dtype=np.uint8).reshape(len(bodies), -1)
        columns = []
        for dtype, start in zip(self._dtypes, self._starts(n_rows)[:-1], strict=True):
            part = np.ascontiguousarray(table[:, start : start + n_rows * dtype.itemsize])
            columns.append(pa.array(part.reshape(-1).view(dtype)))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def unwrap(self, message: Any, n_rows: int) -> pa.RecordBatch:
        """A batch that is not packed."""
        batch = pa.ipc.read_record_batch(pa.py_buffer(message), self.schema)
        if batch.num_rows != n_rows:
            raise ValueError("some open rows are missing")
        return batch

    def _packed_length(self, n_rows: int) -> int:
        if self._length[0] != n_rows:
            self._length = (n_rows, self._starts(n_rows)[-1])
        return self._length[1]

    def _starts(self, n_rows: int) -> list[int]:
        """Where each column begins, and the length of all."""
        return list(accumulate((-(-n_rows * d.itemsize // 8) * 8 for d in self._dtypes), initial=0))

    def _encode_halves(self, batch: pa.RecordBatch, n_before: int) -> list[Piece]:
        half = batch.num_rows // 2
        if not half:
            raise InputError(
                f"row {n_before} takes more than {_LARGEST >> 20} MiB; a store does not keep such "
                "rows, so keep what is large in a file and its path in the row"
            )
        first = self.encode(batch.slice(0, half), n_before)
        return first + self.encode(batch.slice(half), n_before + half)


def decode(
    pieces: Iterable[Piece], layouts: Mapping[int, Layout], n_before: int
) -> Iterator[pa.RecordBatch]:
    """The rows of all pieces in order, small packed ones joined; `ValueError` for damage."""
    counted = _count(pieces, n_before)
    for (number, packed, n_rows), group in groupby(counted, key=lambda pair: pair[1]):
        if number not in layouts:
            raise ValueError(f"the schema {number} of open rows is missing")
        layout, bodies = layouts[number], (piece.data for piece, _ in group)
        at_once = max(1, _AT_ONCE // n_rows) if packed else 1
        while some := list(islice(bodies, at_once)):
            yield layout.unpack(some, n_rows) if packed else layout.unwrap(some[0], n_rows)


def _count(pieces: Iterable[Piece], n_before: int) -> Iterator[tuple[Piece, tuple[int, bool, int]]]:
    for piece in pieces:
        if _crc(piece.last, piece.layout, piece.packed, piece.data) != piece.crc:
            raise ValueError(
                f"rows {n_before} to {piece.last - 1}, of the open segment, do not have their "
                "checksum"
            )
        yield piece, (piece.layout, bool(piece.packed), piece.last - n_before)
        n_before = piece.last


def _crc(last: int, layout: int, packed: bool, data: Any) -> int:
    return zlib.crc32(data, zlib.crc32(b"%d %d %d" % (last, layout, packed)))


def _dtypes(schema: pa.Schema) -> list[np.dtype[Any]]:
    """The bytes of each column's values as numpy sees them; none if some have no fixed width."""
    if not all(types.is_integer(t) or types.is_floating(t) for t in schema.types):
        return []
    return [np.dtype(t.to_pandas_dtype()) for t in schema.types]
