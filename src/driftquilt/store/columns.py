"""Columns that come and go become one schema; numbers stay numbers and text stays text.

Two batches of a stream may differ: a column appears, vanishes, or holds integers first and
floats later. Their rows still form one table, whose schema has every column in order of first
appearance, each with the narrowest type that holds all its values (`driftquilt.data.column_types`).
Categories (Arrow dictionaries) are kept as their values.

>>> import pyarrow as pa
>>> unify(pa.schema({"age": pa.int32()}), pa.schema({"city": pa.string(), "age": pa.float32()}))
age: double
city: string
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
from pyarrow import types

from driftquilt.data.column_types import common_type, is_number, is_text
from driftquilt.errors import InputError

__all__ = ["fit", "gather", "plain", "unify"]

_MANY_ROWS, _MANY_BYTES = 1 << 20, 1 << 30  # Arrow's text holds up to 2 GiB in one piece


def unify(held: pa.Schema, given: pa.Schema) -> pa.Schema:
    """One schema for the rows of both; `InputError` if a column cannot be both."""
    columns = dict(zip(held.names, held.types, strict=True))
    for name, kind in zip(given.names, given.types, strict=True):
        before = columns.get(name, kind)
        both = common_type(before, kind, booleans_are_numbers=True)
        if both is None or _mixes_times(before, kind):
            raise InputError(
                f"column {name!r} holds {_say(kind)} now and held {_say(before)} before; give it "
                f"as {_say(before)}, or under another name"
            )
        columns[name] = both
    return pa.schema(columns)


def plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch without metadata and categories; `InputError` if it cannot be kept."""
    names = batch.schema.names
    if not names or len(set(names)) != len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        found = f"has the columns {twice} more than once" if names else "has no columns"
        raise InputError(f"the batch {found}; give each column a name of its own")
    columns = [_decode(name, batch.column(k)) for k, name in enumerate(names)]
    return pa.RecordBatch.from_arrays(columns, names=names)


def fit(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """The rows under a schema that `unify` made of theirs and others."""
    if batch.schema.equals(schema):
        return batch
    held = dict(zip(batch.schema.names, batch.columns, strict=True))
    columns = [
        _cast(held[name], kind) if name in held else pa.nulls(batch.num_rows, kind)
        for name, kind in zip(schema.names, schema.types, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def gather(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of all batches under one schema, in batches of about a million rows or 1 GiB."""
    waiting, n_rows, n_bytes = list[pa.RecordBatch](), 0, 0
    for batch in batches:
        waiting.append(fit(batch, schema))
        n_rows += batch.num_rows
        n_bytes += waiting[-1].nbytes
        if n_rows >= _MANY_ROWS or n_bytes >= _MANY_BYTES:
            yield from _join(waiting)
            waiting, n_rows, n_bytes = [], 0, 0
    if waiting:
        yield from _join(waiting)


def _join(batches: list[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
    """One batch, or several where Arrow cannot hold a column in one piece."""
    if len(batches) == 1:
        return batches
    joined: list[pa.RecordBatch] = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return joined


def _mixes_times(held: Any, given: Any) -> bool:
    """Return whether times have two units: the finer one cannot hold all that the other can."""
    return bool(types.is_temporal(held) and types.is_temporal(given) and held != given)


def _say(kind: Any) -> str:
    if is_number(kind) or types.is_boolean(kind):
        return f"numbers ({kind})"
    return f"text ({kind})" if is_text(kind) else str(kind)


def _cast(column: Any, kind: Any) -> Any:
    if types.is_null(column.type):
        return pa.nulls(len(column), kind)
    return column if column.type == kind else column.cast(kind, safe=False)


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
