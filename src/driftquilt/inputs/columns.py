"""One column of any kind becomes numbers with NaN, or text with None.

    numbers  (n,)  float64, NaN where missing: ints, floats, booleans, decimals, nullable ints
    text     (n,)  object array of str, None where missing: strings, categoricals, enums

A column of Python objects is numbers if every value present is a number or a boolean, and
text if every value present is a string, even one that looks like a number. Anything else
(dates, lists, bytes, a mix) is refused, with the column, the row (rows count from 0), and
what to do. So are values that float32 cannot hold.

>>> from decimal import Decimal
>>> read_column("paid", [True, None, Decimal("2.5")])
array([1. , nan, 2.5])
>>> read_column("city", ["Oslo", None, "7"])
array(['Oslo', None, '7'], dtype=object)
"""

from __future__ import annotations

from decimal import Decimal
from numbers import Complex, Real
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from driftquilt.errors import InputError

__all__ = ["FLOAT32_MAX", "as_array", "is_missing", "is_text", "read_column", "refuse_extremes"]

FLOAT32_MAX = float(np.finfo(np.float32).max)
_MISSING_TYPES = {"NoneType", "NAType", "NaTType"}  # None, pandas.NA, pandas.NaT
_SHOWN = 40  # characters of a value that an error message quotes


def is_missing(value: Any) -> bool:
    """None, NaN, NaT or pandas.NA."""
    if type(value).__name__ in _MISSING_TYPES:
        return True
    return isinstance(value, float | np.generic | Decimal) and bool(value != value)  # noqa: PLR0124


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
    series = nw.from_native(values, series_only=True, pass_through=True)
    if isinstance(series, nw.Series) and isinstance(series.dtype, nw.Categorical | nw.Enum):
        values = [None if is_missing(value) else str(value) for value in series.to_list()]
        return np.fromiter(values, dtype=object, count=len(values))
    array = as_array(values)
    if array.ndim != 1:
        raise InputError(
            f"column {name!r} has {array.ndim} dimensions; a column is one value per row"
        )
    if array.dtype.kind in "biuf":
        with np.errstate(over="ignore"):  # a long double may not fit; it is refused as infinite
            numbers = array.astype(np.float64, copy=False)
        refuse_extremes((name,), numbers[:, None])
        return numbers
    if array.dtype.kind == "U":
        return array.astype(object)
    if array.dtype.kind in "mM":  # tolist would turn nanoseconds into plain ints
        raise _refusal(name, 0, array[0])
    return _read_objects(name, array.tolist())


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


def _has_numpy_numbers(dtype: Any) -> bool:
    if isinstance(dtype, nw.Int128 | nw.UInt128):
        return False
    return bool(dtype.is_integer() or dtype.is_float())


def _kind(type_: type) -> str:
    if type_.__name__ in _MISSING_TYPES:
        return "missing"
    if issubclass(type_, str):
        return "text"
    if issubclass(type_, Real | Decimal | np.bool_) and not issubclass(type_, np.timedelta64):
        return "number"
    return "complex" if issubclass(type_, Complex) else "other"


def _read_objects(name: str, values: list[Any]) -> NDArray[Any]:
    kinds = {type_: _kind(type_) for type_ in set(map(type, values))}
    if set(kinds.values()) <= {"missing", "number"}:
        return _read_numbers(name, values)
    odd = [
        row for row, value in enumerate(values) if type(value) is not str and not is_missing(value)
    ]
    first = {kinds[type(values[row])]: row for row in reversed(odd)}  # kind -> its first row
    for kind in first.keys() & {"complex", "other"}:
        raise _refusal(name, first[kind], values[first[kind]])
    texts = (value if type(value) is str else _text(value) for value in values)
    if "number" not in first:
        return np.fromiter(texts, dtype=object, count=len(values))
    number, text = first["number"], next(r for r, v in enumerate(values) if isinstance(v, str))
    raise InputError(
        f"column {name!r} mixes numbers and text: row {number} holds {_shown(values[number])}, "
        f"row {text} holds {_shown(values[text])}; make all of it numbers or all of it strings"
    )


def _read_numbers(name: str, values: list[Any]) -> NDArray[np.float64]:
    numbers = np.fromiter(map(_number, values), dtype=np.float64, count=len(values))
    refuse_extremes((name,), numbers[:, None])
    return numbers


def _text(value: Any) -> str | None:
    return None if is_missing(value) else str.__str__(value)


def _number(value: Any) -> float:
    if is_missing(value):
        return np.nan
    try:
        return float(value)
    except OverflowError:  # an int beyond float64
        return np.inf


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


def _refusal(name: str, row: int, value: Any) -> InputError:
    if isinstance(value, complex | np.complexfloating):
        return InputError(
            f"Complex data not supported: column {name!r}, row {row} holds {value}; "
            "split it into its real and imaginary parts"
        )
    return InputError(
        f"column {name!r}, row {row} holds a {type(value).__name__} ({_shown(value)}), but each "
        "value of this argument must be a string or a number; turn it into numbers, such as "
        "the hour or the weekday of a date, or drop the column"
    )
