"""One row at a time: what `Encoder.transform` makes of a table, without the table.

    RowEncoder(encoder)(row)  (n_features_out,)  float32

A row is a dictionary of what `read_row` gives: numbers as floats, text as strings, missing as
None. A column that the row lacks is missing; one that the encoder does not know is left out.

>>> from driftquilt.inputs.encoder import Encoder
>>> from driftquilt.inputs.table import read_table
>>> encoder = Encoder.fit(read_table({"age": [20.0, 40.0], "city": ["Oslo", "Rome"]}))
>>> RowEncoder(encoder)(read_row({"age": 40, "city": "Rome", "shoes": 44}))
array([1., 0., 1.], dtype=float32)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from itertools import count
from numbers import Real
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from driftquilt.errors import InputError
from driftquilt.inputs.columns import FLOAT32_MAX, is_missing
from driftquilt.inputs.encoder import Encoder
from driftquilt.inputs.features import Numbers

__all__ = ["Row", "RowEncoder", "Value", "read_row"]

Value: TypeAlias = float | str | None
Row: TypeAlias = dict[str, Value]


def read_row(row: Any) -> Row:
    """Plain values of a row; `InputError` for what is neither a number nor text nor missing."""
    if not isinstance(row, Mapping):
        raise InputError(
            f"a row is a dictionary of column and value, but got a {type(row).__name__}"
        )
    read = {
        name if type(name) is str else str(name): _read_value(name, value)
        for name, value in row.items()
    }
    if len(read) < len(row):
        raise InputError(f"two columns of a row have the same name: {sorted(map(str, row))}")
    return read


def _read_value(name: Any, value: Any) -> Value:
    if type(value) is str:
        return value
    if type(value) is not float:
        if is_missing(value):
            return None
        if isinstance(value, str):
            return str.__str__(value)
        if not isinstance(value, Real | Decimal | np.bool_) or isinstance(value, np.timedelta64):
            raise InputError(
                f"column {name!r} holds a {type(value).__name__}, but a value is a string or a "
                "number; turn it into numbers, such as the hour of a date, or drop the column"
            )
    try:
        number = float(value)
    except OverflowError:  # an int beyond float64
        number = math.inf
    if number != number:  # noqa: PLR0124
        return None
    if not abs(number) <= FLOAT32_MAX:
        raise InputError(
            f"column {name!r} holds {number}, beyond float32 (at most 3.4e38); put None (missing) "
            "or a bound in its place"
        )
    return number


class RowEncoder:
    """An encoder for rows that come one by one."""

    def __init__(self, encoder: Encoder) -> None:
        self._numbers: list[str] = []
        self._text: list[tuple[str, dict[Value, int]]] = []
        at, places, flags, flagged = 0, [], [], []
        for column in encoder.columns:
            if isinstance(column, Numbers):
                places.append(at)
                if column.missing:
                    flags.append(at + 1)
                    flagged.append(len(self._numbers))
                self._numbers.append(column.name)
            else:
                self._text.append((column.name, dict(zip(column.categories, count(at)))))
            at += len(column.features)
        numbers = [column for column in encoder.columns if isinstance(column, Numbers)]
        self._mean = np.array([column.mean for column in numbers])
        self._std = np.array([column.std for column in numbers])
        self._places = np.array(places, dtype=np.intp)
        self._flags = np.array(flags, dtype=np.intp)
        self._flagged = np.array(flagged, dtype=np.intp)
        self.width = at

    def __call__(self, row: Row) -> NDArray[np.float32]:
        out = np.zeros(self.width, dtype=np.float32)
        values = np.array([self._number(row, name) for name in self._numbers], dtype=np.float64)
        with np.errstate(over="ignore"):  # far from all that was seen at fit; clipped
            scaled = np.clip((values - self._mean) / self._std, -FLOAT32_MAX, FLOAT32_MAX)
        missing = np.isnan(scaled)
        scaled[missing] = 0
        out[self._places] = scaled
        out[self._flags] = missing[self._flagged]
        for name, codes in self._text:
            place = codes.get(row.get(name))
            if place is not None:
                out[place] = 1
        return out

    @staticmethod
    def _number(row: Row, name: str) -> float:
        value = row.get(name)
        if value is None:
            return math.nan
        if isinstance(value, str):
            raise InputError(
                f"column {name!r} holds the text {value!r}, but it has held numbers so far"
            )
        return value
