"""Dates, time stamps and times of day become numbers that come back with the calendar.

A moment is six columns, the sine and cosine of its place in the day, in the week and in the
year; a time of day is the first two. A date without a time is midnight. The absolute time is
left out on purpose: it never comes back, and a net would learn the past by heart from it. Clocks
count as written, whatever the time zone.

    Moments.columns(name)  name -> (n,) float64 within [-1, 1], NaN where missing

All depends on the value alone, bit for bit: neither on the other rows nor on the library.

>>> noon = from_objects([dt.datetime(2024, 1, 1, 12), None])  # a Monday
>>> {name: values.round(3).tolist() for name, values in noon.columns("when").items()}
... # doctest: +NORMALIZE_WHITESPACE
{'when (time of day, sin)': [0.0, nan], 'when (time of day, cos)': [-1.0, nan],
 'when (day of week, sin)': [0.0, nan], 'when (day of week, cos)': [1.0, nan],
 'when (day of year, sin)': [0.0, nan], 'when (day of year, cos)': [1.0, nan]}
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

__all__ = [
    "CLOCK_PARTS",
    "PARTS",
    "Moments",
    "from_arrow",
    "from_datetime64",
    "from_objects",
    "part_name",
    "seconds",
    "source",
]

_CYCLES = ("time of day", "day of week", "day of year")
_WAVES = {"sin": np.sin, "cos": np.cos}
PARTS = tuple(f"{cycle}, {wave}" for cycle in _CYCLES for wave in _WAVES)
CLOCK_PARTS = PARTS[:2]  # what a time of day has
_ENDS = tuple(f", {wave})" for wave in _WAVES)

_PER_DAY = {"D": 1, "h": 24, "m": 1440, "s": 86_400}
_PER_DAY |= {"ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_FINER = ("ps", "fs", "as")  # than a double can tell apart within a day
_EPOCH = dt.date(1970, 1, 1).toordinal()
_THURSDAY = 3  # 1 January 1970, Mondays being 0


@dataclass(frozen=True, eq=False)
class Moments:
    """Days since 1970, None for times of day, and the share of the day gone, NaN if missing."""

    days: NDArray[np.int64] | None
    clock: NDArray[np.float64]

    def columns(self, name: str) -> dict[str, NDArray[np.float64]]:
        """All parts, under the names they have in a table with a column of this name."""
        cycles = _CYCLES[:1] if self.days is None else _CYCLES
        angles = {cycle: self._angle(cycle) for cycle in cycles}
        return {
            part_name(name, f"{cycle}, {wave}"): made(angle)
            for cycle, angle in angles.items()
            for wave, made in _WAVES.items()
        }

    def part(self, part: str) -> NDArray[np.float64]:
        """One of `PARTS`; of times of day, one of `CLOCK_PARTS`."""
        cycle, wave = part.split(", ")
        made: NDArray[np.float64] = _WAVES[wave](self._angle(cycle))
        return made

    def _angle(self, cycle: str) -> NDArray[np.float64]:
        """Place in the cycle, from 0 to below a full turn."""
        if cycle == "time of day" or self.days is None:
            return 2 * np.pi * self.clock
        phase = (self.days + _THURSDAY) % 7 / 7 if cycle == "day of week" else _of_year(self.days)
        return np.where(np.isnan(self.clock), np.nan, 2 * np.pi * phase)


def part_name(name: str, part: str) -> str:
    """How the part of a column of this name is called."""
    return f"{name} ({part})"


def source(name: str) -> str:
    """The column that a part of this name is of; the name itself if it is not a part's."""
    if not name.endswith(_ENDS):
        return name
    stem, _, part = name[:-1].rpartition(" (")
    return stem if part in PARTS else name


def from_datetime64(values: NDArray[Any]) -> Moments:
    """Moments of any unit; NaT is missing."""
    unit = np.datetime_data(values.dtype)[0]
    unit = "ns" if unit in _FINER else unit if unit in _PER_DAY else "D"  # years, months, weeks
    missing = np.isnat(values)
    counts = np.where(missing, 0, values.astype(f"M8[{unit}]").astype(np.int64))
    days, rest = np.divmod(counts, _PER_DAY[unit])
    return Moments(days, np.where(missing, np.nan, rest / _PER_DAY[unit]))


def from_objects(values: Sequence[Any]) -> Moments:
    """Dates and time stamps of Python, numpy or pandas, or times of day; None is missing."""
    pairs = [(0, np.nan) if value is None else _split(value) for value in values]
    clock = np.array([share for _, share in pairs], dtype=np.float64)
    if any(isinstance(value, dt.time) for value in values):
        return Moments(None, clock)
    return Moments(np.array([day for day, _ in pairs], dtype=np.int64), clock)


def from_arrow(values: Any) -> Moments:
    """An Arrow array of dates, time stamps or times of day; a zone's clock is what counts."""
    if pa.types.is_time(values.type):
        counts = values.cast(pa.time64("ns")).cast(pa.int64())
        clock = counts.fill_null(0).to_numpy(zero_copy_only=False) / _PER_DAY["ns"]
        clock[values.is_null().to_numpy(zero_copy_only=False)] = np.nan
        return Moments(None, clock)
    if pa.types.is_timestamp(values.type) and values.type.tz is not None:
        values = pc.local_timestamp(values)
    return from_datetime64(values.to_numpy(zero_copy_only=False))


def seconds(spans: NDArray[Any]) -> NDArray[np.float64]:
    """Time spans (timedelta64 of any unit) in seconds, NaN where missing."""
    unit = np.datetime_data(spans.dtype)[0]
    unit = "ns" if unit in _FINER else unit if unit in _PER_SECOND else "s"  # minutes and up
    missing = np.isnat(spans)
    counts = np.where(missing, 0, spans.astype(f"m8[{unit}]").astype(np.int64))
    whole, rest = np.divmod(counts, _PER_SECOND[unit])  # so that no unit rounds otherwise
    return np.where(missing, np.nan, whole + rest / _PER_SECOND[unit])


def _split(value: Any) -> tuple[int, float]:
    """Day since 1970 and share of the day gone."""
    if isinstance(value, np.datetime64):
        one = from_datetime64(np.array([value]))
        return (0 if one.days is None else int(one.days[0])), float(one.clock[0])
    day = value.toordinal() - _EPOCH if isinstance(value, dt.date) else 0
    if not isinstance(value, dt.datetime | dt.time):
        return day, 0.0
    minutes = value.hour * 60 + value.minute
    fraction = value.microsecond * 1000 + getattr(value, "nanosecond", 0)  # pandas has these too
    return day, ((minutes * 60 + value.second) * 10**9 + fraction) / _PER_DAY["ns"]


def _of_year(days: NDArray[np.int64]) -> NDArray[np.float64]:
    """Whole days since the year began, as a share of that year's days."""
    years = days.astype("M8[D]").astype("M8[Y]")
    first, last = (year.astype("M8[D]").astype(np.int64) for year in (years, years + 1))
    return (days - first) / (last - first)
