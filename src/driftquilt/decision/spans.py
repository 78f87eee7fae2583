"""Spans of time: which span a moment lies in, and what the span is called.

Months, quarters and years begin where the calendar has them begin; minutes, hours, days and
weeks are counted from midnight of the day that the rows begin with.

>>> span, moments = Span.parse("1q"), np.array(["2024-03-05", "2024-04-01"], dtype="M8[m]")
>>> [span.name(number, moments[0]) for number in span.numbers(moments, moments[0])]
['2024-Q1', '2024-Q2']
>>> span = Span.parse("12h")
>>> [span.name(number, moments[0]) for number in span.numbers(moments, moments[0])]
['2024-03-05 00:00', '2024-04-01 00:00']
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftquilt.errors import InputError

__all__ = ["Span"]

_MINUTES = {"min": 1, "h": 60, "d": 24 * 60, "w": 7 * 24 * 60}
_MONTHS = {"mo": 1, "q": 3, "y": 12}
_YEAR_0 = 1970 * 12  # months that numpy counts from, so that spans of 6mo begin in January


@dataclass(frozen=True)
class Span:
    """So many of a unit: "min", "h", "d", "w", "mo", "q" or "y"."""

    count: int
    unit: str

    @classmethod
    def parse(cls, every: str) -> Span:
        """A span such as "30d", "12h", "15min", "1w", "1mo", "1q" or "1y"."""
        units = "|".join([*_MINUTES, *_MONTHS])
        found = re.fullmatch(rf"([0-9]{{1,6}})\s*({units})", str(every).strip())
        if found is None or int(found[1]) == 0:
            raise InputError(f"{every!r} is no span of time; {_advice(str(every).strip())}")
        return cls(int(found[1]), found[2])

    def numbers(self, moments: NDArray[Any], first: Any) -> NDArray[np.int64]:
        """The number of each moment's span; `first` is the moment that the rows begin with."""
        if self.unit in _MONTHS:
            months = moments.astype("M8[M]").astype(np.int64) + _YEAR_0
            return months // (self.count * _MONTHS[self.unit])
        minutes = moments.astype("M8[m]").astype(np.int64) - _midnight(first)
        return minutes // (self.count * _MINUTES[self.unit])

    def name(self, number: int, first: Any) -> str:
        """What the span of a number is called: its beginning, as exact as the unit."""
        if self.unit in _MONTHS:
            month = int(number) * self.count * _MONTHS[self.unit] - _YEAR_0
            year, part = str(np.datetime64(month, "M")).rsplit("-", 1)
            quarter = f"{year}-Q{(int(part) + 2) // 3}"
            return {"y": year, "q": quarter, "mo": f"{year}-{part}"}[self.unit]
        begin = _midnight(first) + int(number) * self.count * _MINUTES[self.unit]
        moment = np.datetime64(begin, "m")
        by_day = self.unit in ("d", "w")
        return str(moment.astype("M8[D]") if by_day else moment).replace("T", " ")


def _advice(every: str) -> str:
    """What to write in its place; a lone m may be minutes or months."""
    short = re.fullmatch(r"([1-9][0-9]{0,5})\s*m", every, re.IGNORECASE)
    if short is not None:
        n = short[1]
        return f"give a number and a unit, such as {n}min (minutes) or {n}mo (months)"
    return (
        "give a number and a unit, such as 30d; the units are min (minutes), h (hours), d (days), "
        "w (weeks), mo (months), q (quarters) and y (years)"
    )


def _midnight(moment: Any) -> int:
    """Minutes to the beginning of the moment's day."""
    return int(np.datetime64(moment, "D").astype("M8[m]").astype(np.int64))
