"""An Arrow table becomes columns that are read in place, checked once, never copied.

Numbers and categories are seen through views of Arrow's own memory, which may be a file that
was mapped; dates, times and time spans are computed from it for the rows that are asked for.
Kinds without such a view are read at once as `columns` reads them, and refused as it refuses
them: decimals, lists. Arrow's memory does not change, so nothing protects it from the caller.

>>> import pyarrow as pa
>>> table = read_in_place(pa.table({"age": [31, None, 7], "city": ["Oslo", "Rome", None]}))
>>> table.take(slice(1, 3)).columns
(array([nan,  7.]), array(['Rome', None], dtype=object))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from driftquilt.data.columns import FLOAT32_MAX, is_missing, is_text, read_column, refuse_extremes
from driftquilt.data.header import check_columns, flatten
from driftquilt.data.in_place import (
    BLOCK,
    LONGEST_PIECE,
    SMALLEST_PIECE,
    Column,
    Fixed,
    Loaded,
    Made,
    Strings,
    TableInPlace,
)
from driftquilt.data.mapped_memory import note_read
from driftquilt.data.moments import CLOCK_PARTS, PARTS, from_arrow, part_name, seconds
from driftquilt.data.table import as_frame

__all__ = ["has_one_dictionary", "read_in_place"]


def read_in_place(X: Any) -> TableInPlace:
    """A `pyarrow.Table` as it lies in memory; raises `InputError` if it cannot be used."""
    names = check_columns(as_frame(X).columns, X.shape)
    columns = flatten(map(_read_columns, names, X.columns))
    return TableInPlace(tuple(columns), tuple(columns.values()))


def _read_columns(name: str, values: Any) -> dict[str, Column]:
    """What one column of the caller's becomes, by name."""
    kind = values.type
    if pa.types.is_duration(kind):
        return {name: _made(values, _to_seconds)}
    if pa.types.is_time(kind) or pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        parts = CLOCK_PARTS if pa.types.is_time(kind) else PARTS
        return {part_name(name, part): _made(values, partial(_to_part, part)) for part in parts}
    return {name: _read(name, values)}


def _made(values: Any, make: Callable[[Any], NDArray[np.float64]]) -> Column:
    return Column(tuple(Made(chunk, make) for chunk in _few_chunks(values)), is_text=False)


def _to_part(part: str, chunk: Any) -> NDArray[np.float64]:
    return from_arrow(chunk).part(part)


def _to_seconds(chunk: Any) -> NDArray[np.float64]:
    return seconds(chunk.to_numpy(zero_copy_only=False))


def _read(name: str, values: Any) -> Column:
    kind = values.type
    if pa.types.is_boolean(kind) or pa.types.is_float16(kind):
        values = values.cast(pa.uint8() if pa.types.is_boolean(kind) else pa.float32())
    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        chunks = _few_chunks(values)
        column = Column(tuple(map(_view, chunks)), is_text=False)
        if pa.types.is_floating(kind) and any(map(_is_extreme, chunks)):
            for number, block in enumerate(column.blocks()):
                refuse_extremes((name,), block[:, None], first_row=number * BLOCK)
        return column
    if pa.types.is_dictionary(kind):
        chunks = _few_chunks(values) if has_one_dictionary(values) else _shorten(values.chunks)
        return Column(tuple(map(_view_texts, chunks)), is_text=True)
    if _is_string(kind) and values.null_count < len(values):
        return Column(tuple(map(Strings, _few_chunks(values))), is_text=True)
    read = read_column(name, values)
    return Column((Loaded(read),), is_text(read))


def _is_string(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _few_chunks(values: Any) -> list[Any]:
    """The rows in pieces, none very long; one if all are so small that visits would cost more."""
    chunks = [chunk for chunk in values.chunks if len(chunk)]
    if len(chunks) > 1 and len(values) < SMALLEST_PIECE * len(chunks):
        whole = values.combine_chunks()  # still in chunks where one would be too long for Arrow
        chunks = whole.chunks if isinstance(whole, pa.ChunkedArray) else [whole]
    return _shorten(chunks)


def _shorten(chunks: Iterable[Any]) -> list[Any]:
    return [
        chunk.slice(first, LONGEST_PIECE)
        for chunk in chunks
        for first in range(0, len(chunk), LONGEST_PIECE)
    ]


def has_one_dictionary(values: Any) -> bool:
    """Whether all chunks of categories stand for the same texts, so that codes can be joined."""
    found = [chunk.dictionary for chunk in values.chunks]
    return all(each.equals(found[0]) for each in found)


def _view(chunk: Any, texts: NDArray[Any] | None = None) -> Fixed:
    bits, data = chunk.buffers()[:2]
    values = np.frombuffer(data, dtype=chunk.type.to_pandas_dtype())
    valid = np.frombuffer(bits, dtype=np.uint8) if chunk.null_count else None
    return Fixed(values[chunk.offset : chunk.offset + len(chunk)], valid, chunk.offset, texts)


def _view_texts(chunk: Any) -> Fixed:
    texts = [None if is_missing(text) else str(text) for text in chunk.dictionary.to_pylist()]
    return _view(chunk.indices, np.array([*texts, None], dtype=object))


def _is_extreme(chunk: Any) -> bool:
    """Whether some number is too large for a float32."""
    lowest, highest = (bound.as_py() for bound in pc.min_max(chunk).values())
    note_read(chunk.nbytes)
    return lowest is not None and max(highest, -lowest) > FLOAT32_MAX
