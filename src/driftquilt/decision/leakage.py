"""Columns that reveal the segment, and columns that reveal the label.

What a model learns from a column that reveals the segment holds in no other segment. Examples are
a month, a date as text, a running number: hardly any value occurs in two segments. Numbers reveal
the segment if the ranges of all segments lie apart, but for a few rows at their ends; text does if
the sets of values do. Of dates the day of the year is learned, which comes back after a year; so
they reveal the segment until most days have come twice, for a year and a half.

A column that reveals the label is often known only after the label is, such as a final status. It
is found by what it predicts alone: values, or 64 ranges of a number, are ranked by the classes they
have in one half of the rows, and the ranking is measured in the other half (area under the ROC
curve, one class against the others).

>>> from driftquilt.decision.labels import Labels
>>> from driftquilt.decision.layout import lay_out
>>> table = pa.table({"id": range(40), "x": [1.5, 2.5] * 20, "month": ["may"] * 20 + ["june"] * 20})
>>> labels = Labels("y", np.array([0, 1]), np.tile(np.array([0, 1], dtype=np.int32), 20))
>>> names = find_leaking_columns(table, lay_out(labels, table["month"]))
>>> names
['id', 'month']
>>> leakage_warning(names)
"columns 'id', 'month' reveal the segment: hardly any value occurs in two segments, so what is \
learned from them does not carry over; leave them out with --drop id,month"
>>> label_auc(pa.chunked_array([[1.5, 2.5] * 50]), np.tile([0, 1], 50), n_classes=2)
1.0
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
from driftquilt.data.labels import Codes
from driftquilt.decision.labels import clean_labels
from driftquilt.decision.layout import Layout, Rows, spread

_FEW = 10  # rows of a segment, too few to judge
_SAMPLE = 200  # rows of a segment whose numbers are looked at
_ENDS = (0.025, 0.975)  # of a range
_HARDLY = 0.05  # of all rows
_MAX_VALUES = 100_000  # different texts in memory
_YEAR, _COMES_BACK = 365.25, 548  # days
_RANGES = 64  # of a number
_MAX_CLASSES = 10  # told apart, the others are one


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


def label_auc(column: pa.ChunkedArray, codes: Codes, n_classes: int) -> float | None:
    """Return how well the column alone ranks the classes, 0.5 by chance and 1 at best.

    `codes` has the class of each row, none missing. This is the mean over classes, by their rows;
    None if no class has enough rows.
    """
    codes, n_classes = _merge_rare(codes, n_classes)
    bins, n_bins = _bin(column)
    halves = np.random.default_rng(0).random(len(codes)) < 0.5  # noqa: PLR2004
    fitted, judged = (
        np.bincount(bins[half] * n_classes + codes[half], minlength=n_bins * n_classes)
        .reshape(n_bins, n_classes)
        .astype(np.float64)
        for half in (halves, ~halves)
    )
    prior = fitted.sum(axis=0) / max(fitted.sum(), 1)
    chances = (fitted + prior) / (fitted.sum(axis=1, keepdims=True) + 1)
    n_rows = judged.sum(axis=0)
    enough = (np.minimum(n_rows, n_rows.sum() - n_rows) >= _FEW) & (fitted.sum(axis=0) >= _FEW)
    if not enough.any():
        return None
    areas = [_area(chances[:, k], judged[:, k], judged) for k in np.flatnonzero(enough)]
    return float(np.average(areas, weights=n_rows[enough]))


def _merge_rare(codes: Codes, n_classes: int) -> tuple[Codes, int]:
    """Return the codes with the classes beyond the most frequent as one."""
    if n_classes <= _MAX_CLASSES:
        return codes, n_classes
    order = np.argsort(-np.bincount(codes, minlength=n_classes), kind="stable")
    place = np.minimum(np.argsort(order), _MAX_CLASSES)
    return place[codes], _MAX_CLASSES + 1


def _bin(column: pa.ChunkedArray) -> tuple[NDArray[np.int64], int]:
    """Return the place of each row's value, or of its range; missing ones have their own."""
    if _is_set(column.type):
        values, places = _encode(pa.concat_arrays(list(blocks(column))))
        return np.where(places < 0, len(values), places), len(values) + 1
    numbers = to_numbers(column)
    known = np.isfinite(numbers)
    places = np.zeros(len(numbers), dtype=np.int64)
    if known.any():
        ends = np.unique(np.quantile(numbers[known], np.arange(1, _RANGES) / _RANGES))
        places = np.searchsorted(ends, numbers, side="right")
    return np.where(known, places, _RANGES), _RANGES + 1


def _area(
    chance: NDArray[np.float64], ours: NDArray[np.float64], judged: NDArray[np.float64]
) -> float:
    """Return the area under the ROC curve of one class; rows of one bin are ties."""
    order = np.argsort(chance, kind="stable")
    ours, others = ours[order], (judged.sum(axis=1) - ours)[order]
    below = np.cumsum(others) - others / 2
    return float(ours @ below / (ours.sum() * others.sum()))


def _is_set(kind: pa.DataType) -> bool:
    return is_text(kind) or pa.types.is_dictionary(kind) or pa.types.is_boolean(kind)


def _ranges_lie_apart(column: pa.ChunkedArray, samples: Sequence[Rows]) -> bool:
    by_segment = [_finite(take_rows(column, rows)) for rows in samples]
    if len(by_segment[-1]) == 0:
        return False
    if _is_day(column.type) and np.ptp(np.concatenate(by_segment)) > _COMES_BACK:
        by_segment = [days % _YEAR for days in by_segment]
    ends = [np.quantile(numbers, _ENDS) for numbers in by_segment if len(numbers)]
    low, high = np.array(sorted(map(tuple, ends))).T
    return len(low) > 1 and bool((low[1:] > high[:-1]).all())


def take_rows(column: pa.ChunkedArray, rows: Rows) -> pa.ChunkedArray:
    """Return some rows, in rising order, chunk by chunk: a mapped column is not copied."""
    parts, start = [], 0
    for chunk in column.chunks:
        a, b = np.searchsorted(rows, (start, start + len(chunk)))
        parts.append(chunk.take(pa.array(rows[a:b] - start)))
        note_read(chunk.nbytes, b - a)
        start += len(chunk)
    return pa.chunked_array(parts, column.type)


def to_numbers(column: pa.ChunkedArray) -> NDArray[np.float64]:
    """Return the values as numbers, NaN where missing, of dates the days."""
    types = pa.types
    if _is_day(column.type):
        column = column.cast(pa.date32()).cast(pa.int32())
    elif types.is_temporal(column.type):
        column = column.cast(pa.int32() if types.is_time32(column.type) else pa.int64())
    numbers: NDArray[np.float64] = column.to_numpy().astype(np.float64)
    return numbers


def _finite(column: pa.ChunkedArray) -> NDArray[np.float64]:
    numbers = to_numbers(column)
    finite: NDArray[np.float64] = numbers[np.isfinite(numbers)]
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
