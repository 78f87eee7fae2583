"""One row at a time: what `Encoder.transform` makes of a table, without the table.

    RowEncoder(encoder)(row)         (n_features_out,)    float32
    RowEncoder(encoder).many(frame)  (n, n_features_out)  float32

A row is a dictionary of what `read_row` gives: numbers as floats, text as strings, missing as
None, dates and times as the numbers that `moments` makes of them, under the same names as in a
table. A column that the row lacks is missing; one that the encoder does not know is left out.

>>> from driftquilt.data.encoder import Encoder
>>> from driftquilt.data.table import read_table
>>> encoder = Encoder.fit(read_table({"age": [20.0, 40.0], "city": ["Oslo", "Rome"]}))
>>> RowEncoder(encoder)(read_row({"age": 40, "city": "Rome", "shoes": 44}))
array([1., 0., 1.], dtype=float32)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from driftquilt.data.columns import FLOAT32_MAX
from driftquilt.data.encoder import Encoder
from driftquilt.data.features import Numbers
from driftquilt.data.header import flatten, group
from driftquilt.data.moments import PARTS, from_objects, part_name
from driftquilt.data.objects import is_missing, kind_of, read_number, read_span
from driftquilt.errors import InputError

if TYPE_CHECKING:
    from driftquilt.data.frame import Frame

__all__ = ["Row", "RowEncoder", "Value", "read_row"]

Value: TypeAlias = float | str | None
Row: TypeAlias = dict[str, Value]


def read_row(row: Any) -> Row:
    """Plain values of a row; `InputError` for what a table could not hold."""
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
    given = zip(read.items(), row.values(), strict=True)
    moments = {n: value for (n, plain), value in given if plain is None and _is_moment(value)}
    if not moments:
        return read
    plain = {name: value for name, value in read.items() if name not in moments}
    return flatten([plain, *(_read_moment(name, value) for name, value in moments.items())])


def _is_moment(value: Any) -> bool:
    return kind_of(type(value)) in ("dates", "times of day") and not is_missing(value)


def _read_moment(name: str, value: Any) -> Row:
    parts = from_objects([value]).columns(name)
    return {part: float(values[0]) for part, values in parts.items()}


def _read_value(name: Any, value: Any) -> Value:
    """The plain value; None for what is missing, and for dates and times."""
    if type(value) is str:
        return value
    if type(value) is not float:
        kind = kind_of(type(value))
        if kind == "text":
            return str.__str__(value)
        if kind in ("nothing", "dates", "times of day"):
            return None
        if kind not in ("numbers", "time spans"):
            raise InputError(
                f"column {name!r} holds a {type(value).__name__}, but a value is a number, a "
                "string, a date or a time; turn it into one of these, or drop the column"
            )
        value = read_span(value) if kind == "time spans" else read_number(value)
    number: float = value
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
        self._text: list[tuple[str, dict[Value, int]]] = []
        self._other = _other_kinds(encoder)
        at, places, flags, flagged = 0, [], [], []
        names: list[str] = []
        for column in encoder.columns:
            if isinstance(column, Numbers):
                places.append(at)
                if column.missing:
                    flags.append(at + 1)
                    flagged.append(len(names))
                names.append(column.name)
            else:
                self._text.append((column.name, dict(zip(column.categories, count(at)))))
            at += len(column.features)
        numbers = [column for column in encoder.columns if isinstance(column, Numbers)]
        self._mean = np.array([column.mean for column in numbers])
        self._std = np.array([column.std for column in numbers])
        self._places = np.array(places, dtype=np.intp)
        self._flags = np.array(flags, dtype=np.intp)
        self._flagged = np.array(flagged, dtype=np.intp)
        self._numbers = tuple(names)
        self.width = at

    def __call__(self, row: Row) -> NDArray[np.float32]:
        if not self._other.keys().isdisjoint(row):
            self._refuse_other_kinds(row)
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

    def scale(
        self,
    ) -> tuple[tuple[str, ...], NDArray[np.float64], NDArray[np.float64]] | None:
        """Names, means and deviations, if that is all there is to it: numbers, none missing."""
        plain = len(self._numbers) == self.width
        return (self._numbers, self._mean, self._std) if plain else None

    def many(self, frame: Frame) -> NDArray[np.float32]:
        """Rows as a matrix (n, width), each as the vector that it would be alone."""
        self.expect(frame)
        with np.errstate(over="ignore"):
            scaled = (frame.select(self._numbers) - self._mean) / self._std
        np.maximum(np.minimum(scaled, FLOAT32_MAX, out=scaled), -FLOAT32_MAX, out=scaled)
        missing = np.isnan(scaled)
        if missing.any():
            scaled[missing] = 0
        if len(self._numbers) == self.width:  # no text, and nothing to say of what is missing
            whole: NDArray[np.float32] = scaled.astype(np.float32, order="C")
            return whole
        out = np.zeros((len(frame), self.width), dtype=np.float32)
        out[:, self._places] = scaled
        out[:, self._flags] = missing[:, self._flagged]
        nothing = [None] * len(frame)
        for name, codes in self._text:
            for at, value in enumerate(frame.texts.get(name, nothing)):
                place = codes.get(value)
                if place is not None:
                    out[at, place] = 1
        return out

    def expect(self, frame: Frame) -> None:
        """Refuse dates where there were none at fit, and the other way round."""
        if not (
            self._other.keys().isdisjoint(frame.names)
            and self._other.keys().isdisjoint(frame.texts)
        ):
            raise InputError(
                next(w for n, w in self._other.items() if n in frame.names or n in frame.texts)
            )

    def _refuse_other_kinds(self, row: Row) -> None:
        for name, why in self._other.items():
            if row.get(name) is not None:
                raise InputError(why)

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


def _other_kinds(encoder: Encoder) -> dict[str, str]:
    """What a row holds where a column is a date and was not at fit, or was; why it is refused."""
    names = [column.name for column in encoder.columns]
    other = {}
    for name, places in group(names).items():
        if len(places) > 1:
            other[name] = f"column {name!r} has held dates or times so far; give it as these"
        else:
            why = f"column {name!r} holds a date or a time, but has held none so far; drop it"
            other[part_name(name, PARTS[0])] = why
    return {name: why for name, why in other.items() if name not in names}
