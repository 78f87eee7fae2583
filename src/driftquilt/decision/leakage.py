"""Columns that reveal the segment: what a model learns from them holds in no other segment.

Examples are a month, a date as text, a running number: hardly any value occurs in two segments.
Numbers reveal the segment if the ranges of all segments lie apart, but for a few rows at their
ends; text does if the sets of values do. Of dates the day of the year is learned, which comes back
after a year; so they reveal the segment until most days have come twice, for a year and a half.

>>> from driftquilt.decision.layout import Labels
>>> from driftquilt.decision.layout import lay_out
>>> table = pa.table({"id": range(40), "x": [1.5, 2.5] * 20, "month": ["may"] * 20 + ["june"] * 20})
>>> labels = Labels("y", np.array([0, 1]), np.tile(np.array([0, 1], dtype=np.int32), 20))
>>> names = find_leaking_columns(table, lay_out(labels, table["month"]))
>>> names
['id', 'month']
>>> leakage_warning(names)
"columns 'id', 'month' reveal the segment: hardly any value occurs in two segments, so what is \
learned from them does not carry over; leave them out with --drop id,month"
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from driftquilt.data.arrow import note_read
from driftquilt.data.column_types import (
    ColumnFacts,
    blocks,
    describe,
    features,
    is_text,
    present,
)
from driftquilt.decision.layout import Layout, Rows, clean_labels, spread

_FEW = 10  # rows of a segment, too few to judge
_SAMPLE = 200  # rows of a segment whose numbers are looked at
_ENDS = (0.025, 0.975)  # of a range
_HARDLY = 0.05  # of all rows
_MAX_VALUES = 100_000  # different texts in memory
_YEAR, _COMES_BACK = 365.25, 548  # days


def find_leaking_columns(columns: pa.Table, layout: Layout) -> list[str]:
    """Return the columns that reveal the segment; each has a type that can be learned from."""
    return _find(columns, np.split(layout.rows, layout.ends[:-1]))


def find_leaking_columns_in_stream(
    table: pa.Table, label: str, seals: Sequence[int], drop: Iterable[str] = ()
) -> list[str]:
    """Return the same for a table that a stream learned, sealing a segment after these rows."""
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


def leakage_warning(names: Sequence[str]) -> str:
    """Return the warning about these columns, at least one."""
    one = len(names) == 1
    columns = f"{'column' if one else 'columns'} {', '.join(map(repr, names))}"
    them = "it" if one else "them"
    return (
        f"{columns} {'reveals' if one else 'reveal'} the segment: hardly any value occurs in two "
        f"segments, so what is learned from {them} does not carry over; leave {them} out with "
        f"--drop {shlex.quote(','.join(names))}"
    )


def note_leakage(facts: Iterable[ColumnFacts], names: Sequence[str]) -> tuple[ColumnFacts, ...]:
    """Return the same facts, with a note on the columns named."""
    note = "reveals the segment: hardly any value occurs in two segments; leave it out"
    return tuple(replace(fact, note=note) if fact.name in names else fact for fact in facts)


def _is_set(kind: pa.DataType) -> bool:
    return is_text(kind) or pa.types.is_dictionary(kind) or pa.types.is_boolean(kind)


def _ranges_lie_apart(column: pa.ChunkedArray, samples: Sequence[Rows]) -> bool:
    by_segment = [_numbers(_take(column, rows)) for rows in samples]
    if len(by_segment[-1]) == 0:
        return False
    if _is_day(column.type) and np.ptp(np.concatenate(by_segment)) > _COMES_BACK:
        by_segment = [days % _YEAR for days in by_segment]
    ends = [np.quantile(numbers, _ENDS) for numbers in by_segment if len(numbers)]
    low, high = np.array(sorted(map(tuple, ends))).T
    return len(low) > 1 and bool((low[1:] > high[:-1]).all())


def _take(column: pa.ChunkedArray, rows: Rows) -> pa.ChunkedArray:
    """Return some rows, in rising order, chunk by chunk: a mapped column is not copied."""
    parts, start = [], 0
    for chunk in column.chunks:
        a, b = np.searchsorted(rows, (start, start + len(chunk)))
        parts.append(chunk.take(pa.array(rows[a:b] - start)))
        note_read(chunk.nbytes, b - a)
        start += len(chunk)
    return pa.chunked_array(parts, column.type)


def _numbers(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """Return the finite values as numbers, of dates the days."""
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
        unique, n_each = np.unique(pairs, return_counts=True)
        for pair, n in zip(unique.tolist(), n_each.tolist(), strict=True):
            code, segment = divmod(pair, n_segments)
            counts = tally.setdefault(values[code], {})
            n_strays -= _strays(counts)
            counts[segment] = counts.get(segment, 0) + n
            n_strays += _strays(counts)
        if n_strays > _HARDLY * len(of_row) or len(tally) > _MAX_VALUES:
            return False
    n_rows = sum(sum(counts.values()) for counts in tally.values())
    homes = {max(counts, key=lambda segment: counts[segment]) for counts in tally.values()}
    return len(homes) > 1 and n_segments - 1 in homes and n_strays <= _HARDLY * n_rows


def _strays(counts: dict[int, int]) -> int:
    """Count rows outside of the segment that has most of a value; more rows never lessen it."""
    return sum(counts.values()) - max(counts.values(), default=0)


def _encode(block: pa.Array) -> tuple[list[Any], NDArray[np.int64]]:
    """Return the different values, and the place of each row's among them, -1 where missing."""
    encoded = block.dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return encoded.dictionary.to_pylist(), codes.astype(np.int64)
