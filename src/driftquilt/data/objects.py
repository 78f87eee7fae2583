"""A column of Python objects, all of one kind, becomes numbers, text or moments.

    numbers, and time spans in seconds  (n,)  float64, NaN where missing
    text                                (n,)  object array of str, None where missing
    dates, times of day                 `moments.Moments`

What kind a value is goes by its class alone: text that looks like a number or a date is text.

>>> read_objects("lent", [dt.timedelta(minutes=1), None])
array([60., nan])
>>> read_objects("lent", ["a day", dt.timedelta(1)])
Traceback (most recent call last):
driftquilt.errors.InputError: column 'lent' mixes time spans and text: row 1 holds \
datetime.timedelta(days=1), row 0 holds 'a day'; make all of it one kind
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from numbers import Complex, Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftquilt.data.moments import Moments, from_objects, seconds
from driftquilt.errors import InputError

__all__ = ["is_missing", "kind_of", "read_number", "read_objects", "read_span"]

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
_SHOWN = 40  # characters of a value that an error message quotes


def is_missing(value: Any) -> bool:
    """None, NaN, NaT or pandas.NA."""
    if type(value).__name__ in _MISSING_TYPES:
        return True
    return isinstance(value, float | np.generic | Decimal) and bool(value != value)  # noqa: PLR0124


def kind_of(type_: type) -> str:
    """What values of this class are: "numbers", "text", "dates", …; "nothing" or "objects"."""
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
    """A time span in seconds, NaN if it is missing."""
    if is_missing(value):
        return np.nan
    if isinstance(value, np.timedelta64):
        return float(seconds(np.array([value]))[0])
    fraction = value.microseconds * 1000 + getattr(value, "nanoseconds", 0)  # pandas has these
    return float(value.days * 86_400 + value.seconds + fraction / 10**9)


def _read_text(value: Any) -> str | None:
    return None if is_missing(value) else str.__str__(value)


def _find_kinds(values: list[Any], kinds: dict[type, str]) -> dict[str, int]:
    """The kinds that are there, and the first row of each; NaN is missing among all kinds."""
    first: dict[str, int] = {}
    for row, value in enumerate(values):
        kind = kinds[type(value)]
        if kind not in first and not is_missing(value):
            first[kind] = row
    return first


def _mix(name: str, values: list[Any], first: dict[str, int]) -> InputError:
    one, other = [kind for kind in _KINDS if kind in first][:2]
    told = " and ".join((one, other))
    rows = [f"row {first[kind]} holds {_shown(values[first[kind]])}" for kind in (one, other)]
    return InputError(f"column {name!r} mixes {told}: {', '.join(rows)}; make all of it one kind")


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
        "value of this argument must be a string or a number (or a date); turn it into one of "
        "these, or drop the column"
    )
