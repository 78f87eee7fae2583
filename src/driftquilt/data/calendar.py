"""Dates, time stamps and times of day become numbers that come back with the calendar.

A moment is six columns, the sine and cosine of its place in the day, in the week and in the
year; a time of day is the first two. A date without a time is midnight. The absolute time is
left out on purpose: it never comes back, and a net would learn the past by heart from it. Clocks
count as written, whatever the time zone.

    Moments.columns(name)  name -> (n,) float64 within [-1, 1], NaN where missing

All depends on the value alone, bit for bit: neither on the other rows nor on the library.

Text is read as times where it has to be (`read_times`): ISO dates and time stamps, 2024-03 and
2024/3/5, and days of other countries if one of them tells whether the day or the month comes first.

So a table's columns may be several to one of the caller's. Columns of two tables are matched as the
caller knows them, by name or by position, and messages speak of those (`find_columns`, `line_up`).
`group` finds which belong together, from the names alone; what holds nothing goes with any kind.

>>> noon = from_objects([dt.datetime(2024, 1, 1, 12), None])  # a Monday
>>> {name: values.round(3).tolist() for name, values in noon.columns("when").items()}
... # doctest: +NORMALIZE_WHITESPACE
{'when (time of day, sin)': [0.0, nan], 'when (time of day, cos)': [-1.0, nan],
 'when (day of week, sin)': [0.0, nan], 'when (day of week, cos)': [1.0, nan],
 'when (day of year, sin)': [0.0, nan], 'when (day of year, cos)': [1.0, nan]}
>>> group(["age", "at (time of day, sin)", "at (time of day, cos)"])
{'age': [0], 'at': [1, 2]}
>>> sources(["age", "at (time of day, sin)", "at (time of day, cos)"])
('age', 'at')
"""

from __future__ import annotations

import contextlib
import datetime as dt
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from driftquilt.errors import InputError
from driftquilt.text import closest

_CYCLES = ("time of day", "day of week", "day of year")
_WAVES = {"sin": np.sin, "cos": np.cos}
PARTS = tuple(f"{cycle}, {wave}" for cycle in _CYCLES for wave in _WAVES)
CLOCK_PARTS = PARTS[:2]  # what a time of day has
_ENDS = tuple(f", {wave})" for wave in _WAVES)

_PER_DAY = {"D": 1, "h": 24, "m": 1440, "s": 86_400}
_PER_DAY |= {"ms": 86_400 * 10**3, "us": 86_400 * 10**6, "ns": 86_400 * 10**9}
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_FINER = ("ps", "fs", "as")  # than a double can tell apart within a day
_CLOCK = r"(?:[ T]+(?P<h>\d{1,2}):(?P<min>\d{2})(?::(?P<s>\d{2})(?:[.,]\d+)?)?"
_CLOCK += r"(?: ?(?P<pm>[AaPp])[Mm])?)?"
_YEAR_FIRST = rf"^\s*(?P<y>\d{{4}})[-/.](?P<a>\d{{1,2}})(?:[-/.](?P<b>\d{{1,2}}){_CLOCK})?\s*$"
_YEAR_LAST = rf"^\s*(?P<a>\d{{1,2}})[-/.](?P<b>\d{{1,2}})[-/.](?P<y>\d{{4}}){_CLOCK}\s*$"
_MONTHS, _YEAR_0 = 12, 1970
_EPOCH = dt.date(1970, 1, 1).toordinal()
_THURSDAY = 3  # 1 January 1970, Mondays being 0
_OWNER = "QuiltClassifier"  # whom scikit-learn's messages speak of
_KINDS = {len(PARTS): "dates", len(CLOCK_PARTS): "times of day"}

T = TypeVar("T")


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
    """Return the column that a part of this name is of; the name itself if it is not a part's."""
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


def read_times(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the times that a column of text holds; `InputError` if a text is none.

    >>> read_times("day", pa.chunked_array([["26/04/2016", "1/5/2016"]])).to_pylist()
    [datetime.datetime(2016, 4, 26, 0, 0), datetime.datetime(2016, 5, 1, 0, 0)]
    >>> read_times("day", pa.chunked_array([["04/05/2016"]]))
    Traceback (most recent call last):
    driftquilt.errors.InputError: column 'day' holds dates such as '04/05/2016', and none tells \
whether the day or the month comes first; write them as 2024-05-31
    """
    texts = column.cast(pa.large_string())  # categories too
    for kind in (pa.timestamp("us"), pa.timestamp("us", "UTC")):
        with contextlib.suppress(pa.ArrowInvalid):
            return texts.cast(kind)
    joined = pa.concat_arrays(texts.chunks)
    numbers, month, day = _extract(joined, _YEAR_LAST), "a", "b"
    if np.isnan(numbers["y"]).all():
        numbers = _extract(joined, _YEAR_FIRST)
    elif _is_day_first(name, joined, numbers):
        month, day = day, month
    moments = _join(numbers, month, day)
    odd = np.isnat(moments) & joined.is_valid().to_numpy(zero_copy_only=False)
    if odd.any():
        raise InputError(
            f"column {name!r} holds {joined[int(odd.argmax())].as_py()!r}, which is not a date, or "
            "not written as the others are; write dates as 2024-05-31, 2024-05 or 31/05/2024"
        )
    return pa.chunked_array([pa.array(moments)])


def _extract(texts: pa.Array, pattern: str) -> dict[str, NDArray[np.float64]]:
    """Return the numbers that the groups of a pattern find, NaN where it does not match."""
    found = pc.extract_regex(texts, pattern)
    numbers = dict[str, NDArray[np.float64]]()
    for name in [field.name for field in found.type]:
        part = pc.struct_field(found, name)
        part = pc.if_else(pc.equal(part, ""), pa.scalar(None, part.type), part)
        part = pc.match_substring_regex(part, "[Pp]") if name == "pm" else part
        numbers[name] = part.cast(pa.float64()).to_numpy(zero_copy_only=False)
    return numbers


def _is_day_first(name: str, texts: pa.Array, numbers: dict[str, NDArray[np.float64]]) -> bool:
    """Return whether the day stands before the month; `InputError` if no row or two rows tell."""
    late = {part: numbers[part] > _MONTHS for part in ("a", "b")}
    shown = {part: texts[int(rows.argmax())].as_py() for part, rows in late.items() if rows.any()}
    if len(shown) > 1:
        raise InputError(
            f"column {name!r} holds {shown['a']!r}, where the day comes first, and "
            f"{shown['b']!r}, where the month does; write them as 2024-05-31"
        )
    if not shown:
        example = texts[int((~np.isnan(numbers["y"])).argmax())].as_py()
        raise InputError(
            f"column {name!r} holds dates such as {example!r}, and none tells whether the day or "
            "the month comes first; write them as 2024-05-31"
        )
    return "a" in shown


def _join(numbers: dict[str, NDArray[np.float64]], month: str, day: str) -> NDArray[Any]:
    """Return the moments of such numbers; NaT where they are missing or no date."""
    whole = {
        name: np.nan_to_num(part, nan=float(name == day)).astype(np.int64)
        for name, part in numbers.items()
    }
    months = (whole["y"] - _YEAR_0) * _MONTHS + whole[month] - 1
    days = months.astype("M8[M]").astype("M8[D]") + (whole[day] - 1)
    is_half = ~np.isnan(numbers["pm"])  # of a day: 12 AM is midnight, 12 PM noon
    hour = np.where(is_half, whole["h"] % 12 + 12 * whole["pm"], whole["h"])
    seconds = (hour * 60 + whole["min"]) * 60 + whole["s"]
    exists = ~np.isnan(numbers["y"]) & (days.astype("M8[M]").astype(np.int64) == months)
    exists &= (whole[month] >= 1) & (whole[month] <= _MONTHS) & (seconds < _PER_DAY["s"])
    exists &= ~is_half | (whole["h"] >= 1) & (whole["h"] <= 12)  # noqa: PLR2004
    moments = days.astype("M8[us]") + seconds.astype("m8[s]").astype("m8[us]")
    return np.where(exists, moments, np.datetime64("NaT", "us"))


def from_arrow(values: Any) -> Moments:
    """Read an Arrow array of dates, time stamps or times of day, by the clock of its zone."""
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


class Header(Protocol):
    """What `Frame` and `ArrowFrame` have in common."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns."""

    @property
    def named(self) -> bool:
        """Whether the names are the caller's."""

    def kind(self, name: str) -> str:
        """Return what the column holds: "numbers", "text" or "nothing"."""


def check_columns(names: Iterable[Any], shape: tuple[int, ...]) -> tuple[str, ...]:
    """Return the names as text, if a table can have them and this shape."""
    names = tuple(str(name) for name in names)
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(f"X has several columns named {twice} (as text); rename or drop them")
    shape = tuple(map(int, shape))
    for count, unit in zip(shape, ("sample(s)", "feature(s)"), strict=True):
        if count == 0:
            raise InputError(
                f"Found array with 0 {unit} (shape={shape}) while a minimum of 1 is required."
            )
    return names


def flatten(columns: Iterable[Mapping[str, T]]) -> dict[str, T]:
    """Columns by name, given what each column of the caller's became."""
    flat: dict[str, T] = {}
    for made in columns:
        for name, values in made.items():
            if name in flat:
                raise InputError(
                    f"column {source(name)!r} holds dates, which become columns such as {name!r}, "
                    "but there is a column of that name; rename one of them"
                )
            flat[name] = values
    return flat


def group(names: Sequence[str]) -> dict[str, list[int]]:
    """Return the caller's columns, and the places of what each became, in the order of `PARTS`."""
    places: dict[str, dict[str, int]] = {}
    for place, name in enumerate(names):
        places.setdefault(source(name), {})[name] = place
    groups: dict[str, list[int]] = {}
    for name, members in places.items():
        parts = _find_parts(name, members)
        groups.update({name: parts} if parts else {one: [at] for one, at in members.items()})
    return dict(sorted(groups.items(), key=lambda item: min(item[1])))


def sources(names: Sequence[str]) -> tuple[str, ...]:
    """Return the caller's columns."""
    return tuple(group(names))


def find_columns(table: Header, names: Sequence[str], *, named: bool) -> list[int]:
    """Where in `table` the columns of these names stand.

    They are found by position where they or this table's are made up.
    """
    if tuple(names) == table.columns:
        return list(range(len(names)))
    place: dict[int, int] = {}
    for name, wanted, there in _pair(table, group(names), named=named):
        place.update(zip(wanted, _match(table, name, wanted, there), strict=True))
    return [place[at] for at in range(len(names))]


def line_up(first: Header, second: Header) -> list[int]:
    """Where in `second`, whose rows are to go below `first`, the columns of `first` stand."""
    known = sources(first.columns)
    extra = [name for name in sources(second.columns) if name not in known]
    if extra and first.named and second.named:
        raise InputError(
            f"the new rows have columns that the rows before have not: {extra}; drop them, or "
            "fit again on all rows"
        )
    return find_columns(second, first.columns, named=first.named)


def _pair(
    table: Header, wanted: dict[str, list[int]], *, named: bool
) -> list[tuple[str, list[int], list[int]]]:
    """Each of the caller's columns, the places of its parts, and their places in `table`."""
    there = group(table.columns)
    if named and table.named:
        lacking = [name for name in wanted if name not in there]
        if lacking:
            raise _lacking(lacking, [name for name in there if name not in wanted])
        return [(name, places, there[name]) for name, places in wanted.items()]
    if len(wanted) != len(there):
        raise InputError(
            f"X has {len(there)} features, but {_OWNER} is expecting {len(wanted)} features as "
            "input"
        )
    return list(zip(wanted, wanted.values(), there.values(), strict=True))


def _find_parts(name: str, members: Mapping[str, int]) -> list[int]:
    """Return the places of a date's parts; none if these are columns of the caller's own."""
    for parts in (PARTS, CLOCK_PARTS):
        if len(members) == len(parts):
            made = [part_name(name, part) for part in parts]
            return [members[part] for part in made] if set(made) == set(members) else []
    return []


def _match(table: Header, name: str, wanted: list[int], there: list[int]) -> list[int]:
    if len(wanted) == len(there):
        return there
    now = table.kind(table.columns[there[0]])
    if now == "nothing":
        return there[:1] * len(wanted)
    now = _KINDS.get(len(there), now)
    before = _KINDS.get(len(wanted), f"not {now}")
    raise InputError(
        f"column {name!r} was {before} at fit and is {now} now; make it the same in both"
    )


def _lacking(lacking: list[str], others: list[str]) -> InputError:
    pairs = [(name, closest(name, others)) for name in lacking]
    parts = [
        f"{name!r} (did you mean {near[0]!r}?)" if near else repr(name) for name, near in pairs
    ]
    return InputError(f"X lacks columns that were there at fit: {', '.join(parts)}; add them")
