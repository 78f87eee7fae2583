"""Columns that tell the segment: what a model learns from one holds nowhere else.

A month, a date as text, a running number: hardly a value is in two segments. Numbers tell the
segment if the ranges of all segments lie apart, but for a few rows at their ends; text does if
the sets of values do. Of dates the day of the year is learned, which comes back after a year; so
they tell the segment as long as most days have been there once, for a year and a half.

>>> from driftquilt.decision.labels import Labels
>>> from driftquilt.decision.layout import lay_out
>>> table = pa.table({"id": range(40), "x": [1.5, 2.5] * 20, "month": ["may"] * 20 + ["june"] * 20})
>>> labels = Labels("y", np.array([0, 1]), np.tile(np.array([0, 1], dtype=np.int32), 20))
>>> names = find_telling(table, lay_out(labels, table["month"]))
>>> names
['id', 'month']
>>> warning(names)
"columns 'id', 'month' tell the segment: hardly a value is in two of them, so what is learned \
from it does not carry over; leave them out with --drop id,month"
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from driftquilt.data.mapped_memory import note_read
from driftquilt.decision.columns import (
    ColumnFacts,
    blocks,
    describe,
    features,
    is_text_kind,
    present,
)
from driftquilt.decision.labels import clean_labels
from driftquilt.decision.layout import Layout, Rows, spread

__all__ = ["find_telling", "find_telling_in_stream", "remark", "warning"]

_FEW = 10  # rows of a segment, of which nothing is said
_SAMPLE = 200  # rows of a segment whose numbers are looked at
_ENDS = (0.025, 0.975)  # of a range
_HARDLY = 0.05  # of all rows
_MOST_VALUES = 100_000  # different texts that are remembered
_YEAR, _COMES_BACK = 365.25, 548  # days


def find_telling(columns: pa.Table, layout: Layout) -> list[str]:
    """The columns, each a kind that can be learned from, that tell the segment."""
    return _find(columns, np.split(layout.rows, layout.ends[:-1]))


def find_telling_in_stream(
    table: pa.Table, label: str, seals: Sequence[int], drop: Iterable[str] = ()
) -> list[str]:
    """The same of a table that a stream has learned; it sealed a segment after so many rows."""
    learned = np.flatnonzero(present(clean_labels(table, label)))
    columns = features(table, label, drop, facts=describe(table))
    return _find(columns, np.split(learned, seals))


def _find(columns: pa.Table, by_segment: Sequence[Rows]) -> list[str]:
    if len(by_segment[-1]) < _FEW:
        return []
    by_segment = [rows for rows in by_segment if len(rows) >= _FEW]
    of_row = np.full(columns.num_rows, -1, dtype=np.int32)
    for segment, rows in enumerate(by_segment):
        of_row[rows] = segment
    samples = [np.sort(spread(rows, _SAMPLE)) for rows in by_segment]
    return [
        name
        for name in columns.column_names
        if (
            _sets_lie_apart(columns[name], of_row, len(by_segment))
            if _is_set(columns[name].type)
            else _ranges_lie_apart(columns[name], samples)
        )
    ]


def warning(names: Sequence[str]) -> str:
    """What to say of some columns, at least one."""
    shown, dropped = ", ".join(map(repr, names)), shlex.quote(",".join(names))
    one = len(names) == 1
    return (
        f"{'column' if one else 'columns'} {shown} {'tells' if one else 'tell'} the segment: "
        "hardly a value is in two of them, so what is learned from it does not carry over; leave "
        f"{'it' if one else 'them'} out with --drop {dropped}"
    )


def remark(facts: Iterable[ColumnFacts], names: Sequence[str]) -> tuple[ColumnFacts, ...]:
    """The same facts, with a word on the columns named."""
    note = "tells the segment: hardly a value is in two of them; leave it out"
    return tuple(replace(fact, note=note) if fact.name in names else fact for fact in facts)


def _is_set(kind: pa.DataType) -> bool:
    return is_text_kind(kind) or pa.types.is_dictionary(kind) or pa.types.is_boolean(kind)


def _ranges_lie_apart(column: pa.ChunkedArray, samples: Sequence[Rows]) -> bool:
    found = [_numbers(_take(column, rows)) for rows in samples]
    if len(found[-1]) == 0:
        return False
    if _is_day(column.type) and np.ptp(np.concatenate(found)) > _COMES_BACK:
        found = [days % _YEAR for days in found]
    ends = [np.quantile(numbers, _ENDS) for numbers in found if len(numbers)]
    low, high = np.array(sorted(map(tuple, ends))).T
    return len(low) > 1 and bool((low[1:] > high[:-1]).all())


def _take(column: pa.ChunkedArray, rows: Rows) -> pa.ChunkedArray:
    """Some rows, in rising order, chunk by chunk: a column that is mapped is not copied."""
    parts, start = [], 0
    for chunk in column.chunks:
        a, b = np.searchsorted(rows, (start, start + len(chunk)))
        parts.append(chunk.take(pa.array(rows[a:b] - start)))
        note_read(chunk.nbytes, b - a)
        start += len(chunk)
    return pa.chunked_array(parts, column.type)


def _numbers(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """The finite values as numbers, of dates the days."""
    column, types = column.drop_null(), pa.types
    if _is_day(column.type):
        column = column.cast(pa.date32()).cast(pa.int32())
    elif types.is_temporal(column.type):
        column = column.cast(pa.int32() if types.is_time32(column.type) else pa.int64())
    values = column.to_numpy().astype(np.float64)
    finite: NDArray[np.float64] = values[np.isfinite(values)]
    return finite


def _is_day(kind: pa.DataType) -> bool:
    return bool(pa.types.is_date(kind) or pa.types.is_timestamp(kind))


def _sets_lie_apart(column: pa.ChunkedArray, of_row: Rows, n_segments: int) -> bool:
    tally: dict[Any, dict[int, int]] = {}  # rows by value and segment
    n_strays = start = 0
    for block in blocks(column):
        values, codes = _encode(block)
        segments = of_row[start : start + len(block)]
        start += len(block)
        known = (codes >= 0) & (segments >= 0)
        pairs = codes[known] * n_segments + segments[known]
        found, counts = np.unique(pairs, return_counts=True)
        for pair, count in zip(found.tolist(), counts.tolist(), strict=True):
            code, segment = divmod(pair, n_segments)
            of = tally.setdefault(values[code], {})
            n_strays -= _strays(of)
            of[segment] = of.get(segment, 0) + count
            n_strays += _strays(of)
        if n_strays > _HARDLY * len(of_row) or len(tally) > _MOST_VALUES:
            return False
    n_rows = sum(sum(of.values()) for of in tally.values())
    homes = {max(of, key=lambda segment: of[segment]) for of in tally.values()}
    return len(homes) > 1 and n_segments - 1 in homes and n_strays <= _HARDLY * n_rows


def _strays(of: dict[int, int]) -> int:
    """Rows with a value outside of the segment that has most of them; more rows never lessen it."""
    return sum(of.values()) - max(of.values(), default=0)


def _encode(block: pa.Array) -> tuple[list[Any], NDArray[np.int64]]:
    """The different values, and the place of each row's among them, -1 where missing."""
    if pa.types.is_dictionary(block.type):
        block = block.dictionary_decode()
    coded = block.dictionary_encode()
    codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return coded.dictionary.to_pylist(), codes.astype(np.int64)
