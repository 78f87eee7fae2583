"""Cut a table into segments: which segment each row belongs to.

    by_column    the values of a column, in order of first appearance
    by_time      spans of a date or timestamp, such as months
    by_detector  from one drift to the next, as a stream finds them (in `streaming`)

`cut` chooses between them. Each returns one value per row as `QuiltClassifier.fit(...,
segments=...)` takes it: an Arrow array, with no Python object per row. A single segment is
refused: there would be no past.

Months, quarters and years begin where the calendar has them begin; minutes, hours, days and
weeks are counted from midnight of the day of the first row.

>>> table = pa.table({"month": ["may", "may", "june"], "x": [1, 2, 3]})
>>> by_column(table, "month").unique().to_pylist()
['may', 'june']
>>> span, moments = Span.parse("1q"), np.array(["2024-03-05", "2024-04-01"], dtype="M8[m]")
>>> [span.name(number, moments[0]) for number in span.numbers(moments, moments[0])]
['2024-Q1', '2024-Q2']
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from driftquilt.data.calendar import read_times
from driftquilt.data.column_types import blocks, check_table, find_column, is_category, is_text
from driftquilt.data.labels import distinct_ints
from driftquilt.errors import InputError

Segments: TypeAlias = pa.Array | pa.ChunkedArray

_EXPERTS = "experts"  # the default of a stream
_FEW = 20  # segments that may have a single row each
_MAX_SORTED = 5_000_000  # rows; sorting copies the table
_MINUTES = {"min": 1, "h": 60, "d": 24 * 60, "w": 7 * 24 * 60}
_MONTHS = {"mo": 1, "q": 3, "y": 12}
_YEAR_0 = 1970 * 12  # months that numpy counts from, so that spans of 6mo begin in January


@dataclass(frozen=True)
class CutBy:
    """How to cut: by the values of a column, by spans of a time column, or by a detector."""

    segment_by: str | None = None
    time: str | None = None
    every: str | None = None
    detector: str = "adwin"

    def check(self, label: str) -> None:
        """Refuse options that contradict each other, before a file is read."""
        if label in (self.segment_by, self.time):
            raise InputError(f"{label!r} is the label; cut the rows by another column")
        if self.segment_by and self.time:
            raise InputError(
                f"got --segment-by {self.segment_by} and --time {self.time}; give one of them, or "
                "neither to let a detector cut the rows"
            )
        if bool(self.time) != bool(self.every):
            raise InputError("--time and --every belong together, as in --time ts --every 30d")
        if self.every:
            Span.parse(self.every)
        if self.detector == _EXPERTS and not (self.segment_by or self.time):
            raise InputError(
                f"the detector {_EXPERTS!r} compares models that a stream trains on its way, as "
                "`driftquilt run` does; to cut a table none is trained, so name another detector, "
                "such as adwin"
            )


@dataclass(frozen=True, eq=False)
class Cut:
    """The rows in order, the segment of each row, and what the segments are.

    `drop` is the column that the segments came from, which a model must not learn from.
    """

    table: pa.Table
    segments: Segments
    description: str
    drop: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def cut(
    table: pa.Table,
    label: str,
    by: CutBy,
    *,
    drop: Sequence[str] = (),
    seed: int = 0,
    watch: Callable[[int, int], None] | None = None,
) -> Cut:
    """Cut the rows into segments; `watch` gets the rows done and all rows of a detector."""
    if by.segment_by:
        description = f"the values of the column {by.segment_by!r}"
        return Cut(table, by_column(table, by.segment_by), description, (by.segment_by,))
    if by.time and by.every:
        ordered, notes = sort_rows(table, by.time)
        description = f"spans of {by.every} of the column {by.time!r}"
        segments = by_time(ordered, by.time, by.every)
        return Cut(ordered, segments, description, (by.time,), notes)
    from driftquilt.decision.streaming import by_detector  # noqa: PLC0415  loads river

    segments = by_detector(table, label, by.detector, drop=drop, seed=seed, watch=watch)
    description = f"the rows from drift to drift, as {by.detector} finds them"
    return Cut(table, segments, description, notes=_name_times(table))


def _name_times(table: pa.Table) -> tuple[str, ...]:
    """Return a note that the rows could be cut by time, if a column says when they came."""
    is_time = [pa.types.is_date(kind) or pa.types.is_timestamp(kind) for kind in table.schema.types]
    times = [name for name, holds in zip(table.column_names, is_time, strict=True) if holds]
    if not times:
        return ()
    return (
        f"a detector cut the rows, and may miss slow changes; --time {shlex.quote(times[0])} "
        "--every 30d cuts them by time",
    )


def by_column(table: pa.Table, name: str) -> Segments:
    """Return the column itself, as a type that is read without an object per row."""
    check_table(table)
    column = _as_names(name, find_column(table, name, "segment column"))
    _refuse_gaps(name, column)
    seen, n_rows = set[Any](), 0
    for block in blocks(column):
        seen.update(block.unique().to_pylist())
        n_rows += len(block)
        if len(seen) > max(_FEW, n_rows / 2):
            raise InputError(
                f"the segment column {name!r} has {len(seen)} different values in {n_rows} rows: "
                "it looks like an id; name a column whose values last, such as a month, or cut by "
                "time"
            )
    refuse_one(len(seen), f"the column {name!r} is {next(iter(seen))} in every row")
    return column


def by_time(table: pa.Table, column: str, every: str) -> Segments:
    """Return spans such as "1mo" of a date or timestamp, in its time zone; rows are in order.

    Text is read as `read_times` does: 2024-03, 2024-03-05 14:30, 26/04/2016.
    """
    check_table(table)
    span, codes = Span.parse(every), np.empty(table.num_rows, dtype=np.int32)
    place: dict[int, int] = {}
    first, start = None, 0
    for moments in _moments(column, find_times(table, column)):
        first = moments[0] if first is None else first
        codes[start : start + len(moments)] = _number(span.numbers(moments, first), place)
        start += len(moments)
    if len(place) > max(_FEW, len(codes) / 2):
        raise InputError(f"spans of {every} have hardly a row each; choose longer ones")
    refuse_one(len(place), f"all rows lie in one span of {every}")
    return coded(codes, [span.name(number, first) for number in place])


def sort_by_time(table: pa.Table, column: str) -> pa.Table:
    """Return the rows in order of time, with ties as they were; the same table if they are.

    Times are dates, timestamps, numbers, or text that is read as dates, none missing. Sorting is
    for tables that fit in memory.
    """
    check_table(table)
    moments = find_times(table, column)
    tests = (pa.types.is_timestamp, pa.types.is_date, pa.types.is_integer, pa.types.is_floating)
    if not any(test(moments.type) for test in tests):
        raise InputError(
            f"column {column!r} holds {moments.type}, neither dates nor timestamps nor numbers; "
            "turn it into one of them, such as 2024-05-31 14:30"
        )
    _refuse_gaps(column, moments, "every row has its place in time")
    back = next((row for _, row in _blocks_in_time(moments) if row is not None), None)
    if back is None:
        return table
    if table.num_rows > _MAX_SORTED:
        raise InputError(
            f"the rows are not in order of {column!r}: row {back} is {moments[back]}, after "
            f"{moments[back - 1]}; sorting would load all {table.num_rows:,} rows into memory, "
            f"sort the file by {column!r} first"
        )
    order = pc.sort_indices(pa.table({column: moments}), sort_keys=[(column, "ascending")])
    return table.take(order)


def find_times(table: pa.Table, name: str) -> pa.ChunkedArray:
    """Return the column of times, of text the times that it holds."""
    column = find_column(table, name, "time column")
    is_written = is_text(column.type) or is_category(column.type)
    return read_times(name, column) if is_written else column


def sort_rows(table: pa.Table, column: str | None) -> tuple[pa.Table, tuple[str, ...]]:
    """Return the table in order of the column, if one is given, and a note if it was not so."""
    if column is None:
        return table, ()
    ordered = sort_by_time(table, column)
    note = f"the rows were not in order of {column!r} and have been sorted"
    return ordered, () if ordered is table else (note,)


@dataclass(frozen=True)
class Span:
    """A number of units of time: "min", "h", "d", "w", "mo", "q" or "y"."""

    count: int
    unit: str

    @classmethod
    def parse(cls, every: str) -> Span:
        """Read a span such as "30d", "12h", "15min", "1w", "1mo", "1q" or "1y"."""
        units = "|".join([*_MINUTES, *_MONTHS])
        match = re.fullmatch(rf"([0-9]{{1,6}})\s*({units})", str(every).strip())
        if match is None or int(match[1]) == 0:
            raise InputError(f"{every!r} is not a span of time; {_advice(str(every).strip())}")
        return cls(int(match[1]), match[2])

    def numbers(self, moments: NDArray[Any], first: Any) -> NDArray[np.int64]:
        """Return the number of each moment's span; `first` is the moment of the first row."""
        if self.unit in _MONTHS:
            months = moments.astype("M8[M]").astype(np.int64) + _YEAR_0
            return months // (self.count * _MONTHS[self.unit])
        minutes = moments.astype("M8[m]").astype(np.int64) - _midnight(first)
        return minutes // (self.count * _MINUTES[self.unit])

    def name(self, number: int, first: Any) -> str:
        """Return the name of a span: its beginning, as exact as the unit."""
        if self.unit in _MONTHS:
            month = int(number) * self.count * _MONTHS[self.unit] - _YEAR_0
            year, part = str(np.datetime64(month, "M")).rsplit("-", 1)
            quarter = f"{year}-Q{(int(part) + 2) // 3}"
            return {"y": year, "q": quarter, "mo": f"{year}-{part}"}[self.unit]
        begin = _midnight(first) + int(number) * self.count * _MINUTES[self.unit]
        moment = np.datetime64(begin, "m")
        by_day = self.unit in ("d", "w")
        return str(moment.astype("M8[D]") if by_day else moment).replace("T", " ")


def coded(codes: NDArray[np.int32], names: Sequence[str]) -> Segments:
    """Return the names of the codes, without an object per row."""
    return pa.DictionaryArray.from_arrays(pa.array(codes), list(names))


def refuse_one(n_segments: int, reason: str) -> None:
    """Refuse a cut into a single segment."""
    if n_segments < 2:  # noqa: PLR2004
        raise InputError(
            f"there is only one segment: {reason}; without a past there is nothing to select, cut "
            "the rows another way"
        )


def _as_names(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the column, cast if a classifier would make a Python object of each of its values."""
    kind, types = column.type, pa.types
    if types.is_dictionary(kind):
        return column if is_category(kind) else _as_names(name, column.cast(kind.value_type))
    if types.is_timestamp(kind):
        return column.cast(pa.timestamp("us", kind.tz), safe=False)
    if types.is_integer(kind) or types.is_floating(kind) or types.is_date(kind):
        return column.cast(pa.float32()) if types.is_float16(kind) else column
    if types.is_string(kind) or types.is_large_string(kind):
        return column
    try:
        return column.cast(pa.large_string())
    except pa.ArrowNotImplementedError as error:
        raise InputError(
            f"the segment column {name!r} holds {kind}, which cannot name a segment; use text, "
            "numbers or dates"
        ) from error


def _refuse_gaps(
    name: str, column: pa.ChunkedArray, reason: str = "every row belongs to a segment"
) -> None:
    start = 0
    for block in blocks(column):
        missing = np.flatnonzero(block.is_null(nan_is_null=True).to_numpy(zero_copy_only=False))
        if len(missing):
            raise InputError(
                f"column {name!r} is missing in row {start + missing[0]}; {reason}, fill it in or "
                "drop such rows"
            )
        start += len(block)


def _moments(name: str, column: pa.ChunkedArray) -> Iterator[NDArray[Any]]:
    """Yield local times in the column's own time zone, block by block, checked for order."""
    if not (pa.types.is_timestamp(column.type) or pa.types.is_date(column.type)):
        raise InputError(
            f"column {name!r} holds {column.type}, neither dates nor timestamps; turn it into "
            "dates, or cut by its values"
        )
    _refuse_gaps(name, column)
    for block, back in _blocks_in_time(column):
        if back is not None:
            raise InputError(
                f"the rows are not in order of time: column {name!r}, row {back} is "
                f"{column[back]}, after {column[back - 1]}; sort them first (sort_by_time)"
            )
        is_zoned = getattr(block.type, "tz", None) is not None
        yield (pc.local_timestamp(block) if is_zoned else block).to_numpy(zero_copy_only=False)


def _blocks_in_time(column: pa.ChunkedArray) -> Iterator[tuple[pa.Array, int | None]]:
    """Yield the column block by block, and the first row in each that is before the row above."""
    last, start = None, 0
    for block in blocks(column):
        moments = block.to_numpy(zero_copy_only=False)
        before = np.concatenate([moments[:1] if last is None else [last], moments[:-1]])
        back = np.flatnonzero(moments < before)
        yield block, start + int(back[0]) if len(back) else None
        last, start = moments[-1], start + len(moments)


def _number(numbers: NDArray[np.int64], place: dict[int, int]) -> NDArray[np.int32]:
    """Return codes in order of first appearance; `place` remembers them from block to block."""
    values, first, places = distinct_ints(numbers)
    codes = np.empty(len(values), dtype=np.int32)
    for at in np.argsort(first):
        codes[at] = place.setdefault(int(values[at]), len(place))
    return codes[places]


def _advice(every: str) -> str:
    """Return what to write instead; a lone m may be minutes or months."""
    short = re.fullmatch(r"([1-9][0-9]{0,5})\s*m", every, re.IGNORECASE)
    if short is not None:
        n = short[1]
        return f"give a number and a unit, such as {n}min (minutes) or {n}mo (months)"
    return (
        "give a number and a unit, such as 30d; the units are min (minutes), h (hours), d (days), "
        "w (weeks), mo (months), q (quarters) and y (years)"
    )


def _midnight(moment: Any) -> int:
    """Return the minutes to the beginning of the moment's day."""
    return int(np.datetime64(moment, "D").astype("M8[m]").astype(np.int64))
