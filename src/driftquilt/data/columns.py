"""One column of any kind becomes numbers with NaN, or text with None; dates become several.

    numbers  (n,)  float64, NaN where missing: ints, floats, booleans, decimals, nullable ints;
                   time spans, in seconds
    text     (n,)  object array of str, None where missing: strings, categoricals, enums
    moments  six columns of numbers for dates and time stamps, two for times of day: `moments`

A column of Python objects is numbers if every value present is a number or a boolean, and
text if every value present is a string, even one that looks like a number or a date; likewise
dates, times of day and time spans. Anything else (lists, bytes, a mix) is refused, with the
column, the row (rows count from 0), and what to do. So are values that float32 cannot hold.

>>> import datetime as dt
>>> from decimal import Decimal
>>> read_column("paid", [True, None, Decimal("2.5")])
array([1. , nan, 2.5])
>>> read_column("city", ["Oslo", None, "7"])
array(['Oslo', None, '7'], dtype=object)
>>> {name: values.tolist() for name, values in read_columns("at", [dt.time(0), None]).items()}
{'at (time of day, sin)': [0.0, nan], 'at (time of day, cos)': [1.0, nan]}
"""

from __future__ import annotations

from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from driftquilt.data.moments import Moments, from_arrow, from_datetime64, seconds
from driftquilt.data.objects import is_missing, read_objects
from driftquilt.errors import InputError

__all__ = [
    "FLOAT32_MAX",
    "as_array",
    "is_missing",
    "is_text",
    "read_column",
    "read_columns",
    "refuse_extremes",
]

FLOAT32_MAX = float(np.finfo(np.float32).max)


def is_text(column: NDArray[Any]) -> bool:
    """Whether a column that `read_column` made is text; if not, it is numbers."""
    return column.dtype == object


def as_array(values: Any) -> NDArray[Any]:
    """Make an array of an array, list or series, with no value rounded or turned into text.

    Numbers keep a numeric dtype if they have one; what numpy would mix or nest (`[1, "a"]`,
    `[(2024, 5), (2024, 6)]`) stays an array of objects.
    """
    series = nw.from_native(values, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        if _has_numpy_numbers(series.dtype):
            return series.to_numpy()
        # Not to_numpy: on an Arrow dictionary, narwhals 2.28 gives a null its neighbour's value.
        values = series.to_list()
    if not isinstance(values, list | tuple):
        return np.asarray(values)
    if set(map(type, values)) <= {bool, int, float}:
        return np.asarray(values)
    return np.fromiter(values, dtype=object, count=len(values))


def read_column(name: str, values: Any) -> NDArray[Any]:
    """One column as float64 with NaN, or as str objects with None; `name` is for messages."""
    read = _read(name, values)
    if isinstance(read, Moments):
        raise InputError(f"column {name!r} holds dates or times of day; give numbers")
    return read


def read_columns(name: str, values: Any) -> dict[str, NDArray[Any]]:
    """What one column of the caller's becomes, by name: the column itself, or parts of dates."""
    read = _read(name, values)
    return read.columns(name) if isinstance(read, Moments) else {name: read}


def refuse_extremes(
    names: tuple[str, ...], matrix: NDArray[np.float64], first_row: int = 0
) -> None:
    """Raise if a value of the (n, k) matrix is infinite or beyond float32; NaN may pass."""
    extreme = np.abs(matrix) > FLOAT32_MAX
    if not extreme.any():
        return
    column, row = (int(place) for place in np.argwhere(extreme.T)[0])
    value = float(matrix[row, column])
    where = f"column {names[column]!r}, row {first_row + row} holds {value}"
    if np.isinf(value):
        raise InputError(f"{where}; put NaN (missing) or a bound in place of infinite values")
    raise InputError(f"{where}, beyond float32 (at most 3.4e38); rescale the column")


def _read(name: str, values: Any) -> NDArray[Any] | Moments:
    series = nw.from_native(values, series_only=True, pass_through=True)
    if isinstance(series, nw.Series):
        if isinstance(series.dtype, nw.Datetime | nw.Date | nw.Time):
            return _read_moments(series)
        if isinstance(series.dtype, nw.Categorical | nw.Enum):
            values = [None if is_missing(value) else str(value) for value in series.to_list()]
            return np.fromiter(values, dtype=object, count=len(values))
        if isinstance(series.dtype, nw.Duration):
            values = series.to_numpy()
    array = as_array(values)
    if array.ndim != 1:
        raise InputError(
            f"column {name!r} has {array.ndim} dimensions; a column is one value per row"
        )
    return _read_array(name, array)


def _read_array(name: str, array: NDArray[Any]) -> NDArray[Any] | Moments:
    kind = array.dtype.kind
    if kind == "U":
        return array.astype(object)
    if kind == "M":
        return from_datetime64(array)
    if kind == "m":
        return seconds(array)
    if kind in "biuf":
        with np.errstate(over="ignore"):  # a long double may not fit; it is refused as infinite
            read: NDArray[Any] | Moments = array.astype(np.float64, copy=False)
    else:
        read = read_objects(name, array.tolist())
    if isinstance(read, np.ndarray) and not is_text(read):
        refuse_extremes((name,), read[:, None])
    return read


def _read_moments(series: Any) -> Moments:
    if getattr(series.dtype, "time_zone", None) is not None:
        series = series.dt.replace_time_zone(None)  # leaves the clock as it is
    return from_arrow(series.to_arrow())


def _has_numpy_numbers(dtype: Any) -> bool:
    if isinstance(dtype, nw.Int128 | nw.UInt128):
        return False
    return bool(dtype.is_integer() or dtype.is_float())
