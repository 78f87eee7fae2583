"""Which segment does each row of a table belong to? Three ways to cut one into segments.

    by_column    its values, in order of first appearance
    by_time      spans of a date or timestamp, such as months
    by_detector  from one drift to the next, as a stream would have found them

All give one value per row as `QuiltClassifier.fit(..., segments=...)` takes it: an Arrow array,
with no Python object per row. A cut into one segment is refused: there would be no past.

>>> table = pa.table({"month": ["may", "may", "june"], "x": [1, 2, 3]})
>>> by_column(table, "month").unique().to_pylist()
['may', 'june']
>>> by_column(table, "mont")
Traceback (most recent call last):
driftquilt.errors.InputError: there is no segment column 'mont' in the table; did you mean \
'month'? There are 'month', 'x'
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from driftquilt.data.labels import distinct_ints
from driftquilt.decision.columns import blocks, check_table, find_column, is_text_kind
from driftquilt.decision.labelled import labelled_rows
from driftquilt.decision.spans import Span
from driftquilt.detectors.named import make_detector
from driftquilt.errors import InputError
from driftquilt.stream.guard import Guard
from driftquilt.stream.learning import Learning

__all__ = ["Segments", "by_column", "by_detector", "by_time", "sort_by_time"]

Segments: TypeAlias = pa.Array | pa.ChunkedArray

_FEW = 20  # segments that may have a single row each
_MOST_SORTED = 5_000_000  # rows; sorting copies the table
_PROGRESS = 1_000  # rows from one call to the next


def by_column(table: pa.Table, name: str) -> Segments:
    """The column itself, in a kind that is read without an object per row."""
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
    _refuse_one(len(seen), f"the column {name!r} is {next(iter(seen))} in every row")
    return column


def by_time(table: pa.Table, column: str, every: str) -> Segments:
    """Spans such as "1mo" of a date or timestamp, in its own time zone; rows are in its order."""
    check_table(table)
    span, codes = Span.parse(every), np.empty(table.num_rows, dtype=np.int32)
    place: dict[int, int] = {}
    first, start = None, 0
    for moments in _moments(column, find_column(table, column, "time column")):
        first = moments[0] if first is None else first
        codes[start : start + len(moments)] = _number(span.numbers(moments, first), place)
        start += len(moments)
    if len(place) > max(_FEW, len(codes) / 2):
        raise InputError(f"spans of {every} have hardly a row each; choose longer ones")
    _refuse_one(len(place), f"all rows lie in one span of {every}")
    return _coded(codes, [span.name(number, first) for number in place])


def by_detector(
    table: pa.Table,
    label: str,
    detector: Any = "adwin",
    *,
    drop: Iterable[str] = (),
    guard: Guard | None = None,
    seed: int = 0,
    watch: Callable[[int, int], None] | None = None,
) -> Segments:
    """From drift to drift of an online net that predicts each row and then learns it.

    Rows without a label are not learned; they belong where they lie. `watch` is told the rows
    done and all rows, now and then.
    """
    check_table(table)
    learning = Learning(make_detector(detector, seed), seed, n_recent=1)
    guard, begins, last_drift = Guard() if guard is None else guard, [0], 0
    for row, x, y in labelled_rows(table, label, drop):
        fired = learning.learn(x, y)
        n_current = row + 1 - begins[-1]
        if fired and guard.accepts_drift(n_current, row + 1 - last_drift):
            learning.begin_segment(drift=True)
            begins.append(row + 1)
            last_drift = row + 1
        elif fired:
            learning.detector = learning.detector.fresh()
        if watch is not None and row % _PROGRESS == 0:
            watch(row, table.num_rows)
    return _between([begin for begin in begins if begin < table.num_rows], table.num_rows)


def sort_by_time(table: pa.Table, column: str) -> pa.Table:
    """The rows in order of time, those of one moment as they were; the same table if they are.

    Times are dates, timestamps or numbers, none missing. Sorting is for tables that fit in memory.
    """
    check_table(table)
    moments = find_column(table, column, "time column")
    _refuse_orderless(column, moments)
    _refuse_gaps(column, moments, "every row has its place in time")
    back = _first_backward(moments)
    if back is None:
        return table
    if table.num_rows > _MOST_SORTED:
        raise InputError(
            f"the rows are not in order of {column!r}: row {back} is {moments[back]}, after "
            f"{moments[back - 1]}; there are {table.num_rows:,} rows, and sorting would load them "
            f"all, sort the file by {column!r} before"
        )
    return table.take(pc.sort_indices(table, sort_keys=[(column, "ascending")]))


def _as_names(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column, cast if a classifier would make a Python object of each of its values."""
    kind, types = column.type, pa.types
    if types.is_dictionary(kind):
        return column if is_text_kind(kind) else _as_names(name, column.cast(kind.value_type))
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
    name: str, column: pa.ChunkedArray, why: str = "every row belongs to a segment"
) -> None:
    start = 0
    for block in blocks(column):
        missing = np.flatnonzero(block.is_null(nan_is_null=True).to_numpy(zero_copy_only=False))
        if len(missing):
            raise InputError(
                f"column {name!r} is missing in row {start + missing[0]}; {why}, fill it in or "
                "drop such rows"
            )
        start += len(block)


def _refuse_one(n_segments: int, why: str) -> None:
    if n_segments < 2:  # noqa: PLR2004
        raise InputError(
            f"there is one segment only: {why}; without a past there is nothing to select, cut "
            "the rows another way"
        )


def _refuse_timeless(name: str, column: pa.ChunkedArray) -> None:
    if not (pa.types.is_timestamp(column.type) or pa.types.is_date(column.type)):
        raise InputError(
            f"column {name!r} holds {column.type}, neither dates nor timestamps; turn it into "
            "dates, or cut by its values"
        )


def _refuse_orderless(name: str, column: pa.ChunkedArray) -> None:
    types, kind = pa.types, column.type
    tests = (types.is_timestamp, types.is_date, types.is_integer, types.is_floating)
    if not any(test(kind) for test in tests):
        raise InputError(
            f"column {name!r} holds {kind}, neither dates nor timestamps nor numbers; turn it into "
            "one of them, such as 2024-05-31 14:30"
        )


def _moments(name: str, column: pa.ChunkedArray) -> Iterator[NDArray[Any]]:
    """Moments on the wall of the column's own time zone, block by block, checked for order."""
    _refuse_timeless(name, column)
    _refuse_gaps(name, column)
    last, start = None, 0
    for block in blocks(column):
        moments = block.to_numpy(zero_copy_only=False)
        _refuse_disorder(name, moments, last, start)
        last, start = moments[-1], start + len(moments)
        if getattr(block.type, "tz", None) is not None:
            moments = pc.local_timestamp(block).to_numpy(zero_copy_only=False)
        yield moments


def _first_backward(column: pa.ChunkedArray) -> int | None:
    """The first row whose moment is before that of the row above."""
    last, start = None, 0
    for block in blocks(column):
        moments = block.to_numpy(zero_copy_only=False)
        back = _backwards(moments, last)
        if len(back):
            return start + int(back[0])
        last, start = moments[-1], start + len(moments)
    return None


def _refuse_disorder(name: str, moments: NDArray[Any], last: Any, start: int) -> None:
    back = _backwards(moments, last)
    if len(back):
        row = int(back[0])
        before = moments[row - 1] if row else last
        raise InputError(
            f"the rows are not in order of time: column {name!r}, row {start + row} is "
            f"{moments[row]}, after {before}; sort them first (sort_by_time)"
        )


def _backwards(moments: NDArray[Any], last: Any) -> NDArray[np.intp]:
    """Rows whose moment is before that of the row above."""
    before = np.concatenate([moments[:1] if last is None else [last], moments[:-1]])
    return np.flatnonzero(moments < before)


def _number(numbers: NDArray[np.int64], place: dict[int, int]) -> NDArray[np.int32]:
    """Codes in order of first appearance; `place` remembers them from block to block."""
    values, first, places = distinct_ints(numbers)
    codes = np.empty(len(values), dtype=np.int32)
    for at in np.argsort(first):
        codes[at] = place.setdefault(int(values[at]), len(place))
    return codes[places]


def _between(begins: Sequence[int], n_rows: int) -> Segments:
    _refuse_one(len(begins), f"no drift was found in {n_rows} rows")
    sizes = np.diff([*begins, n_rows])
    ends = begins + sizes - 1
    names = [f"rows {a}-{b}" for a, b in zip(begins, ends.tolist(), strict=True)]
    return _coded(np.repeat(np.arange(len(names), dtype=np.int32), sizes), names)


def _coded(codes: NDArray[np.int32], names: Sequence[str]) -> Segments:
    return pa.DictionaryArray.from_arrays(pa.array(codes), list(names))
