"""Columns that come and go become one schema; numbers stay numbers and text stays text.

Two batches of a stream may differ: a column appears, vanishes, or holds integers first and
floats later. Their rows still form one table, whose schema has every column in order of first
appearance, each with the narrowest type that holds all its values:

    int8 + int32     -> int32            uint32 + int8   -> int64
    float32 + double -> double           any int + float -> double (above 2⁵³ it rounds)
    bool + number    -> that number      any text + text -> large_string
    null + anything  -> that thing       anything else   -> no such type

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

from driftquilt.errors import InputError

__all__ = ["fit", "gather", "plain", "unify"]

_MANY_ROWS, _MANY_BYTES = 1 << 20, 1 << 30  # Arrow's text holds up to 2 GiB in one piece
_SIGNED = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


def unify(held: pa.Schema, given: pa.Schema) -> pa.Schema:
    """One schema for the rows of both; `InputError` if a column cannot be both."""
    columns = dict(zip(held.names, held.types, strict=True))
    for name, kind in zip(given.names, given.types, strict=True):
        before = columns.get(name, kind)
        both = _promote(before, kind)
        if both is None:
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


def _promote(held: Any, given: Any) -> Any:
    """The narrowest type for both, None if there is none."""
    if held == given or types.is_null(given):
        return held
    if types.is_null(held):
        return given
    if _is_number(held) and _is_number(given):
        return _wider(held, given)
    return pa.large_string() if _is_text(held) and _is_text(given) else None


def _wider(a: Any, b: Any) -> Any:
    if types.is_boolean(a) or types.is_boolean(b):
        number = b if types.is_boolean(a) else a
        return pa.float32() if types.is_float16(number) else number  # Arrow casts none to float16
    if types.is_floating(a) != types.is_floating(b):
        return pa.float64()
    if types.is_floating(a) or types.is_signed_integer(a) == types.is_signed_integer(b):
        return a if a.bit_width >= b.bit_width else b
    signed, unsigned = (a, b) if types.is_signed_integer(a) else (b, a)
    return _SIGNED.get(max(signed.bit_width, 2 * unsigned.bit_width), pa.float64())


def _is_number(kind: Any) -> bool:
    return bool(types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))


def _is_text(kind: Any) -> bool:
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def _say(kind: Any) -> str:
    if _is_number(kind):
        return f"numbers ({kind})"
    return f"text ({kind})" if _is_text(kind) else str(kind)


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
