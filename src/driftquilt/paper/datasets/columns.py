r"""The feature columns of a user's file: numbers stay, dates become numbers, text becomes codes.

    numbers, booleans         as they are; true is 1
    dates, times, durations   days, dates since 1970
    text                      places in the sorted list of the column's categories

A missing value is NaN, whatever the column. Anything else (lists, binary), a column with nothing
in it, and values that float32 cannot hold are refused. So is a column of numbers with one mark
among them that is none, such as "?": it is meant as missing, and every number would be a category.

>>> import pyarrow as pa
>>> table = pa.table({"age": [31, None], "city": ["Rome", "Oslo"], "paid": [True, False]})
>>> read_features(Path("toy.csv"), table, ["age", "city", "paid"])
(array([[31.,  1.,  1.],
       [nan,  0.,  0.]]), {'city': ('Oslo', 'Rome')})
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from driftquilt.errors import InputError
from driftquilt.paper.datasets.tables import is_numeric

__all__ = ["read_features"]

_FLOAT32_MAX = float(np.finfo(np.float32).max)
_PER_DAY = {"s": 86_400, "ms": 86_400e3, "us": 86_400e6, "ns": 86_400e9}
_MANY = 20  # different numbers, above which they are amounts and not the names of things

_TEXT = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_CLOCK = (pa.types.is_timestamp, pa.types.is_time, pa.types.is_duration)


def read_features(
    path: Path, table: Any, names: Sequence[str]
) -> tuple[NDArray[np.float64], dict[str, tuple[str, ...]]]:
    """The named columns (n, k), and the categories of those that are text."""
    matrix = np.empty((table.num_rows, len(names)))
    categories = {}
    for j, name in enumerate(names):
        where, column = f"{path}: column {name!r}", table[name]
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if any(test(column.type) for test in _TEXT):
            categories[name], matrix[:, j] = _read_text(where, column)
        else:
            matrix[:, j] = _read_amounts(where, column)
        if np.isnan(matrix[:, j]).all():
            raise InputError(f"{where} has no value in any row; drop it")
    return matrix, categories


def _read_amounts(where: str, column: Any) -> NDArray[np.float64]:
    kind = column.type
    if is_numeric(kind):
        values = _as_floats(column)
    elif pa.types.is_date(kind):
        values = _as_floats(column.cast(pa.date32()).cast(pa.int32()))
    elif any(test(kind) for test in _CLOCK):
        whole = pa.int32() if pa.types.is_time32(kind) else pa.int64()
        values = _as_floats(column.cast(whole)) / _PER_DAY[kind.unit]
    else:
        raise InputError(
            f"{where} holds {kind}; turn it into numbers, UTF-8 text or dates, or drop it"
        )
    extreme = np.abs(values) > _FLOAT32_MAX
    if extreme.any():
        row = int(np.argmax(extreme))
        raise InputError(
            f"{where} is {values[row]:g} in row {row} (rows count from 0), which float32 cannot "
            "hold; leave the cell empty or rescale the column"
        )
    return values


def _as_floats(column: Any) -> NDArray[np.float64]:
    values: NDArray[np.float64] = column.cast(pa.float64(), safe=False).to_numpy()
    return values  # null became NaN


def _read_text(where: str, column: Any) -> tuple[tuple[str, ...], NDArray[np.float64]]:
    """The categories in sorted order, and each row's place among them; NaN where missing."""
    encoded = column.cast(pa.large_string()).combine_chunks().dictionary_encode()
    texts = encoded.dictionary.to_pylist()
    order = sorted(range(len(texts)), key=texts.__getitem__)
    categories = tuple(texts[i] for i in order)
    place = np.append(np.argsort(order).astype(np.float64), np.nan)
    codes = place[encoded.indices.fill_null(len(texts)).to_numpy()]
    _refuse_mark(where, categories, codes)
    return categories, codes


def _refuse_mark(where: str, categories: Sequence[str], codes: NDArray[np.float64]) -> None:
    marks = [place for place, text in enumerate(categories) if not _is_number(text)]
    if len(marks) == 1 and len(categories) > _MANY:
        row = int(np.argmax(codes == marks[0]))
        raise InputError(
            f"{where} is numbers, but {categories[marks[0]]!r} in row {row} (rows count from 0); "
            "leave the cell empty where a value is missing"
        )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
