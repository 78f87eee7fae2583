"""One column of any kind becomes numbers with NaN, or text with None; dates become several.

    numbers  (n,)  float64, NaN where missing: ints, floats, booleans, decimals, nullable ints;
                   time spans, in seconds
    text     (n,)  object array of str, None where missing: strings, categoricals, enums
    moments  six columns of numbers for dates and time stamps, two for times of day: `calendar`

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

import datetime as dt
from decimal import Decimal
from numbers import Complex, Real
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from driftquilt.data.calendar import Moments, from_arrow, from_datetime64, from_objects, seconds
from driftquilt.errors import InputError
from driftquilt.text import shown

__all__ = [
    "FLOAT32_MAX",
    "as_array",
    "is_missing",
    "is_text",
    "kind_of",
    "read_column",
    "read_columns",
    "read_number",
    "read_objects",
    "read_span",
    "refuse_extremes",
]

FLOAT32_MAX = float(np.finfo(np.float32).max)

_MISSING_TYPES = {"NoneType", "NAType", "NaTType"}  # None, pandas.NA, pandas.NaT
_KINDS: dict[str, Any] = {
    "time spans": dt.timedelta | np.timedelta64,  # which numpy counts among its integers
    "numbers": Real | Decimal | np.bool_,
    "text": str,
    "dates": dt.date | np.datetime64,
    "times of day": dt.time,
    "complex numbers": Complex,
}
_COMMON = {int: "numbers", bool: "numbers", float: "numbers", str: "text"}


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
    """Return what a column of the caller's becomes, by name: itself, or parts of dates."""
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


def is_missing(value: Any) -> bool:
    """None, NaN, NaT or pandas.NA."""
    if type(value).__name__ in _MISSING_TYPES:
        return True
    return isinstance(value, float | np.generic | Decimal) and bool(value != value)  # noqa: PLR0124


def kind_of(type_: type) -> str:
    """Return what values of this class are: "numbers", "text", "dates", …; "nothing", "objects"."""
    if type_ in _COMMON:  # no search for what nearly all values are
        return _COMMON[type_]
    if type_.__name__ in _MISSING_TYPES:
        return "nothing"
    return next((kind for kind, classes in _KINDS.items() if issubclass(type_, classes)), "objects")


def read_objects(name: str, values: list[Any]) -> NDArray[Any] | Moments:
    """One column; infinite where a number is too large for a float. `name` is for messages."""
    kinds = {type_: kind_of(type_) for type_ in set(map(type, values))}
    if set(kinds.values()) <= {"nothing", "numbers"}:
        return np.fromiter(map(read_number, values), dtype=np.float64, count=len(values))
    first = _find_kinds(values, kinds)
    for kind in first.keys() & {"complex numbers", "objects"}:
        raise _refusal(name, first[kind], values[first[kind]])
    if len(first) > 1:
        raise _mix(name, values, first)
    if "text" in first:
        texts = (value if type(value) is str else _read_text(value) for value in values)
        return np.fromiter(texts, dtype=object, count=len(values))
    if "time spans" in first:
        return np.fromiter(map(read_span, values), dtype=np.float64, count=len(values))
    if not first:  # NaN and NaT
        return np.full(len(values), np.nan)
    return from_objects([None if is_missing(value) else value for value in values])


def read_number(value: Any) -> float:
    """NaN if it is missing, infinite if a float cannot hold it."""
    if is_missing(value):
        return np.nan
    try:
        return float(value)
    except OverflowError:  # an int beyond float64
        return np.inf


def read_span(value: Any) -> float:
    """Return a time span in seconds, NaN if it is missing."""
    if is_missing(value):
        return np.nan
    if isinstance(value, np.timedelta64):
        return float(seconds(np.array([value]))[0])
    fraction = value.microseconds * 1000 + getattr(value, "nanoseconds", 0)  # pandas has these
    return float(value.days * 86_400 + value.seconds + fraction / 10**9)


def _read_text(value: Any) -> str | None:
    return None if is_missing(value) else str.__str__(value)


def _find_kinds(values: list[Any], kinds: dict[type, str]) -> dict[str, int]:
    """Return the kinds that occur, and the first row of each; NaN is missing among all kinds."""
    first: dict[str, int] = {}
    for row, value in enumerate(values):
        kind = kinds[type(value)]
        if kind not in first and not is_missing(value):
            first[kind] = row
    return first


def _mix(name: str, values: list[Any], first: dict[str, int]) -> InputError:
    one, other = [kind for kind in _KINDS if kind in first][:2]
    rows = [f"row {first[kind]} holds {shown(values[first[kind]])}" for kind in (one, other)]
    return InputError(
        f"column {name!r} mixes {one} and {other}: {', '.join(rows)}; make all of it one kind"
    )


def _refusal(name: str, row: int, value: Any) -> InputError:
    if isinstance(value, complex | np.complexfloating):
        return InputError(
            f"Complex data not supported: column {name!r}, row {row} holds {value}; "
            "split it into its real and imaginary parts"
        )
    return InputError(
        f"column {name!r}, row {row} holds a {type(value).__name__} ({shown(value)}), but each "
        "value of this argument must be a string or a number (or a date); turn it into one of "
        "these, or drop the column"
    )
