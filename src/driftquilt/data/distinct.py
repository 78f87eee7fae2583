"""The distinct values of a long vector, with neither a sort nor a Python object per row.

    distinct_ints  what `np.unique` gives, in one pass where the numbers lie close together
    distinct_arrow  values in order of first appearance, and the place of each row's among them

>>> values, first, places = distinct_ints(np.array([7, 5, 7]))
>>> values, first, places
(array([5, 7]), array([1, 0]), array([1, 0, 1], dtype=int32))
>>> import pyarrow as pa
>>> distinct_arrow(pa.array(["may", None, "april", "may"]))
(['may', 'april'], array([ 0, -1,  1,  0], dtype=int8))
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Sized
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from driftquilt.data.mapped_memory import note_read

__all__ = ["Codes", "distinct_arrow", "distinct_ints"]

Codes: TypeAlias = NDArray[np.signedinteger[Any]]

_BLOCK = 65_536  # rows at a time, so that what is made on the way stays small
_WIDEST = 2**16  # between the lowest and the highest number, if there is to be no sort


def distinct_ints(
    numbers: NDArray[Any],
) -> tuple[NDArray[Any], NDArray[np.intp], NDArray[np.int32]]:
    """Sorted values of ints or booleans, the first row of each, and each row's place among them."""
    lowest, highest = (int(numbers.min()), int(numbers.max())) if len(numbers) else (0, _WIDEST)
    if highest - lowest >= _WIDEST or highest > np.iinfo(np.intp).max:
        values, row_of, inverse = np.unique(numbers, return_index=True, return_inverse=True)
        return values, row_of, inverse.astype(np.int32)
    first = np.full(highest - lowest + 1, -1, dtype=np.intp)
    for rows in reversed(_blocks(len(numbers))):
        block = numbers[rows][::-1].astype(np.intp) - lowest
        first[block] = np.arange(rows.stop - 1, rows.start - 1, -1)  # of equals, the last stays
    found = np.flatnonzero(first >= 0)
    place = np.zeros(len(first), dtype=np.int32)
    place[found] = np.arange(len(found))
    places = np.empty(len(numbers), dtype=np.int32)
    for rows in _blocks(len(numbers)):
        places[rows] = place[numbers[rows].astype(np.intp) - lowest]
    return numbers[first[found]], first[found], places


def distinct_arrow(values: Any) -> tuple[list[Hashable], Codes] | None:
    """Of an Arrow array of text, dates or categories; -1 is missing. None for other vectors.

    Places are no wider than they need be: there may be very many of very few values.
    """
    pa = sys.modules.get("pyarrow")  # whoever has such an array has imported it
    if pa is None or not isinstance(values, pa.Array | pa.ChunkedArray):
        return None
    is_coded = pa.types.is_dictionary(values.type)
    if not _names_things(pa.types, values.type.value_type if is_coded else values.type):
        return None
    place: dict[Hashable, int] = {}
    codes: Codes = np.empty(len(values), dtype=np.int8)
    for rows in _blocks(len(values)):
        start = rows.start
        for chunk in getattr(values[rows], "chunks", [values[rows]]):
            words, here = _encode(chunk, is_coded=is_coded)
            known = [-1 if word is None else place.setdefault(word, len(place)) for word in words]
            codes = codes.astype(np.promote_types(codes.dtype, _width(place)), copy=False)
            codes[start : start + len(chunk)] = np.array([*known, -1], dtype=codes.dtype)[here]
            start += len(chunk)
            note_read(chunk.nbytes)
    return list(place), codes


def _width(place: Sized) -> np.dtype[Any]:
    """What holds so many places, and -1."""
    return np.min_scalar_type(-max(len(place), 1))


def _blocks(n_rows: int) -> list[slice]:
    return [slice(a, min(a + _BLOCK, n_rows)) for a in range(0, n_rows, _BLOCK)]


def _names_things(types: Any, kind: Any) -> bool:
    tests = (types.is_string, types.is_large_string, types.is_date, types.is_timestamp)
    return any(test(kind) for test in tests)


def _encode(values: Any, *, is_coded: bool) -> tuple[list[Any], NDArray[np.int32]]:
    """The values in order of first appearance, and the place of each row's; -1 is missing."""
    coded = (values.indices if is_coded else values).dictionary_encode()
    found = values.dictionary.take(coded.dictionary) if is_coded else coded.dictionary
    return found.to_pylist(), coded.indices.fill_null(-1).to_numpy()
