"""Rows come in: each batch is checked against the columns so far and becomes bytes.

Two batches of a stream may differ: a column appears, vanishes, or holds integers first and
floats later. Their rows still form one table, whose schema has every column in order of first
appearance, each with the narrowest type that holds all its values (`driftquilt.data.column_types`).
Categories (Arrow dictionaries) are kept as their values.

Bytes are what Arrow writes for a batch: a head that says where each buffer lies, then the body.
The schema is kept elsewhere, by number. Most streams are numbers without gaps, and there the
head says nothing that schema and row count do not: such a batch is *packed*, its body alone,

    each column's values, one column after the other, each padded to 8 bytes

which makes a single row of ten floats 88 bytes instead of 712, and lets a run of batches with
equal row counts be read as one matrix of bytes, (batches, bytes), a column being a slice of it.
Every block of bytes carries a CRC-32, checked before it is read. Bytes are a copy: what a caller
does to its arrays afterwards changes nothing here.

Both stores hold their open rows this way, so they take and refuse the same batches.

>>> import pyarrow as pa
>>> rows = OpenRows({})
>>> blocks, new = rows.take(pa.record_batch({"age": [20, 40]}), n_before=0)
>>> new.number, rows.schema.names, blocks[0].last, blocks[0].packed, len(blocks[0].data)
(1, ['age'], 2, True, 16)
>>> more, new = rows.take(pa.record_batch({"age": [0.5]}), n_before=2)
>>> rows.table(blocks + more, n_before=0)["age"].to_pylist()
[20.0, 40.0, 0.5]
>>> unify(pa.schema({"age": pa.int32()}), pa.schema({"city": pa.string(), "age": pa.float32()}))
age: double
city: string
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate, groupby, islice
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import types

from driftquilt.data.column_types import (
    common_type,
    fit_columns,
    is_number,
    is_text,
    join_batches,
)
from driftquilt.errors import InputError

__all__ = ["BlockLayout", "OpenRows", "RowBlock", "decode", "fit", "gather", "plain", "unify"]

_LARGEST = 1 << 29  # bytes; SQLite takes a blob of up to 1e9
_AT_ONCE = 1 << 14  # packed blocks read together
_HEAD = 8  # a mark, then the length of the head as an int32
_MANY_ROWS, _MANY_BYTES = 1 << 20, 1 << 30  # Arrow's text holds up to 2 GiB in one piece


class OpenRows:
    """The columns so far; `layouts` are those of the open segment, and 0 for all before it."""

    def __init__(self, layouts: dict[int, BlockLayout]) -> None:
        self._layouts = dict(layouts)
        self._by_schema = {_key(found.schema): found for n, found in layouts.items() if n}
        self._given: pa.Schema | None = None  # of the last batch that could be taken as it was
        self._latest: BlockLayout | None = None
        self.columns = pa.schema([])
        for layout in self._layouts.values():
            self.columns = unify(self.columns, layout.schema)

    @property
    def schema(self) -> pa.Schema:
        """Of the open rows."""
        schema = pa.schema([])
        for number, layout in self._layouts.items():
            schema = unify(schema, layout.schema) if number else schema
        return schema

    def take(
        self, batch: pa.RecordBatch, n_before: int
    ) -> tuple[list[RowBlock], BlockLayout | None]:
        """Return the batch as bytes, and its layout if new; `InputError` changes nothing."""
        if not isinstance(batch, pa.RecordBatch):
            raise InputError(
                f"a store takes a pyarrow.RecordBatch, not {type(batch).__name__}; make one with "
                "pyarrow.record_batch"
            )
        if self._latest is not None and batch.schema.equals(self._given):
            return self._latest.encode(batch, n_before), None
        fitting = plain(batch)
        known = self._by_schema.get(_key(fitting.schema))
        layout = known or BlockLayout(1 + max(self._layouts, default=0), fitting.schema)
        columns = self.columns if known else unify(self.columns, layout.schema)
        blocks = layout.encode(fitting, n_before)
        self._remember(layout, columns)
        self._latest, self._given = layout, batch.schema
        if batch.schema.types != fitting.schema.types:  # categories: to be decoded every time
            self._latest = None
        return blocks, None if known else layout

    def rows(self, blocks: Iterable[RowBlock], n_before: int) -> Iterator[pa.RecordBatch]:
        """Return the rows of the blocks under one schema, in large batches."""
        return gather(decode(blocks, self._layouts, n_before), self.schema)

    def table(self, blocks: Iterable[RowBlock], n_before: int) -> pa.Table:
        return pa.Table.from_batches(self.rows(blocks, n_before), self.schema)

    def after_seal(self) -> OpenRows:
        """For the next segment, which has to get on with the columns so far."""
        return OpenRows({0: BlockLayout(0, self.columns)})

    def _remember(self, layout: BlockLayout, columns: pa.Schema) -> None:
        self._layouts[layout.number] = layout
        self._by_schema[_key(layout.schema)] = layout
        self.columns = columns


def _key(schema: pa.Schema) -> bytes:
    key: bytes = schema.serialize().to_pybytes()
    return key


class RowBlock(NamedTuple):
    """Some rows as bytes; `last` counts the stream's rows up to and with its last one."""

    last: int
    layout: int
    packed: bool
    crc: int
    data: Any  # bytes, or anything that shows its bytes as a buffer


class BlockLayout:
    """How batches of one schema lie in bytes."""

    def __init__(self, number: int, schema: pa.Schema) -> None:
        self.number = number
        self.schema = schema
        self._dtypes = _dtypes(schema)
        self._length = (0, 0)  # rows and bytes of the last packed batch: most are alike

    def encode(self, batch: pa.RecordBatch, n_before: int) -> list[RowBlock]:
        """Return the batch as one block, as many as its size takes, or none if it has no rows."""
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
        return [RowBlock(last, self.number, packed, _crc(last, self.number, packed, data), data)]

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
        """Return a batch that is not packed."""
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

    def _encode_halves(self, batch: pa.RecordBatch, n_before: int) -> list[RowBlock]:
        half = batch.num_rows // 2
        if not half:
            raise InputError(
                f"row {n_before} takes more than {_LARGEST >> 20} MiB; a store does not keep such "
                "rows, so keep what is large in a file and its path in the row"
            )
        first = self.encode(batch.slice(0, half), n_before)
        return first + self.encode(batch.slice(half), n_before + half)


def decode(
    blocks: Iterable[RowBlock], layouts: Mapping[int, BlockLayout], n_before: int
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all blocks in order, small packed ones joined; `ValueError` for damage."""
    counted = _count(blocks, n_before)
    for (number, packed, n_rows), group in groupby(counted, key=lambda pair: pair[1]):
        if number not in layouts:
            raise ValueError(f"the schema {number} of open rows is missing")
        layout, bodies = layouts[number], (block.data for block, _ in group)
        at_once = max(1, _AT_ONCE // n_rows) if packed else 1
        while some := list(islice(bodies, at_once)):
            yield layout.unpack(some, n_rows) if packed else layout.unwrap(some[0], n_rows)


def _count(
    blocks: Iterable[RowBlock], n_before: int
) -> Iterator[tuple[RowBlock, tuple[int, bool, int]]]:
    for block in blocks:
        if _crc(block.last, block.layout, block.packed, block.data) != block.crc:
            raise ValueError(
                f"rows {n_before} to {block.last - 1}, of the open segment, do not have their "
                "checksum"
            )
        yield block, (block.layout, bool(block.packed), block.last - n_before)
        n_before = block.last


def _crc(last: int, layout: int, packed: bool, data: Any) -> int:
    return zlib.crc32(data, zlib.crc32(b"%d %d %d" % (last, layout, packed)))


def _dtypes(schema: pa.Schema) -> list[np.dtype[Any]]:
    """Return the types of columns as numpy sees them; none if one has no fixed width."""
    if not all(types.is_integer(t) or types.is_floating(t) for t in schema.types):
        return []
    return [np.dtype(t.to_pandas_dtype()) for t in schema.types]


def unify(held: pa.Schema, given: pa.Schema) -> pa.Schema:
    """Return one schema for the rows of both; `InputError` if a column cannot be both."""
    columns = dict(zip(held.names, held.types, strict=True))
    for name, kind in zip(given.names, given.types, strict=True):
        before = columns.get(name, kind)
        both = common_type(before, kind, booleans_are_numbers=True)
        if both is None or _mixes_times(before, kind):
            raise InputError(
                f"column {name!r} holds {_describe(kind)} now and held {_describe(before)} before; "
                f"give it as {_describe(before)}, or under another name"
            )
        columns[name] = both
    return pa.schema(columns)


def plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch without metadata and categories; `InputError` if it cannot be kept."""
    names = batch.schema.names
    if not names or len(set(names)) != len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        found = f"has the columns {twice} more than once" if names else "has no columns"
        raise InputError(f"the batch {found}; give each column a name of its own")
    columns = [_decode(name, batch.column(k)) for k, name in enumerate(names)]
    return pa.RecordBatch.from_arrays(columns, names=names)


def fit(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return the rows under a schema that `unify` made of theirs and others."""
    if batch.schema.equals(schema):
        return batch
    return pa.RecordBatch.from_arrays(fit_columns(batch, schema), schema=schema)


def gather(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield the rows of all batches under one schema, a million rows or 1 GiB at a time."""
    return join_batches((fit(batch, schema) for batch in batches), _MANY_BYTES, _MANY_ROWS)


def _mixes_times(held: Any, given: Any) -> bool:
    """Return whether times have two units: the finer one cannot hold all that the other can."""
    return bool(types.is_temporal(held) and types.is_temporal(given) and held != given)


def _describe(kind: Any) -> str:
    if is_number(kind) or types.is_boolean(kind):
        return f"numbers ({kind})"
    return f"text ({kind})" if is_text(kind) else str(kind)


def _decode(name: str, column: Any) -> Any:
    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if _has_dictionary(column.type):
        raise InputError(
            f"column {name!r} has categories inside {column.type}; give their values instead"
        )
    return column


def _has_dictionary(kind: Any) -> bool:
    if types.is_dictionary(kind):
        return True
    inner = getattr(kind, "storage_type", kind)
    return any(_has_dictionary(inner.field(k).type) for k in range(inner.num_fields))
