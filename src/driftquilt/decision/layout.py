"""The label of each row of a table, and which rows are past, current and held out.

Text, whole numbers and booleans are labels; floats are if they are whole and few. Rows without a
label (null or NaN), and segments after the current one, are left out. The last share of the
current segment's rows is held out: nothing is trained on it, it is only for measuring.

    classes  (k,)  sorted
    codes    (n,)  places in `classes`, -1 where missing; as narrow as they can be

>>> table = pa.table({"bought": ["no", "yes", "no", "yes", None, "no"]})
>>> labels = read_labels(table, "bought")
>>> labels.classes, labels.codes
(array(['no', 'yes'], dtype='<U3'), array([ 0,  1,  0,  1, -1,  0], dtype=int8))
>>> layout = lay_out(labels, pa.array(["may", "may", "june", "june", "june", "june"]), holdout=0.4)
>>> layout.names, layout.of(0).tolist(), layout.current.tolist(), layout.held_out.tolist()
(['may', 'june'], [0, 1], [2, 3], [5])
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from driftquilt.core.segment import count_rows
from driftquilt.data.column_types import (
    BLOCK,
    blocks,
    find_column,
    is_category,
    is_text,
    present,
)
from driftquilt.data.labels import Codes, distinct_ints, read_segments
from driftquilt.data.labels import read_labels as read_classes
from driftquilt.errors import InputError
from driftquilt.text import suggest

Rows = NDArray[np.integer[Any]]

_MAX_FLOATS = 20  # different values of a float column that may be classes
_FEW = 50  # rows, or classes, that may all differ
_ROWS_OF_TEXT, _ROWS_OF_NUMBER = 2, 20  # that a class has on average, where there are many


@dataclass(frozen=True, eq=False)
class Labels:
    """The classes, and the code of each row: its place in `classes`, -1 where missing."""

    name: str
    classes: NDArray[Any]
    codes: Codes

    def of(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return the labels of some rows, none of which is missing."""
        labels: NDArray[Any] = self.classes[self.codes[rows]]
        return labels

    def count(self, rows: NDArray[Any]) -> NDArray[np.intp]:
        """Return how many of some rows have each class."""
        return count_rows(self.codes[rows], len(self.classes))

    def present(self, rows: NDArray[Any]) -> NDArray[np.intp]:
        """Return the codes of the classes that some of these rows have."""
        return np.flatnonzero(self.count(rows))

    def to_fit(self, codes: Codes) -> Any:
        """Return labels of these codes as a classifier takes them, with no object per row."""
        if self.classes.dtype.kind in "biuf":
            return self.classes[codes]
        return pa.DictionaryArray.from_arrays(pa.array(codes), self.classes.tolist())


def read_labels(table: pa.Table, name: str) -> Labels:
    """Read classes and codes; `InputError` if there are not two classes."""
    column = clean_labels(table, name)
    valid = present(column)
    known = column if valid.all() else column.filter(pa.array(valid))
    if pa.types.is_boolean(known.type):
        known = known.to_numpy()
    classes, codes = read_classes(known, len(known))
    if len(classes) == 1:
        raise InputError(
            f"the label {name!r} is {classes[0]} in every row that has one; there is nothing to "
            "predict, give a label with at least two classes"
        )
    if not valid.all():
        all_codes = np.full(len(column), -1, dtype=codes.dtype)
        all_codes[valid] = codes
        codes = all_codes
    return Labels(name, classes, codes)


def clean_labels(table: pa.Table, name: str) -> pa.ChunkedArray:
    """Return the label column as text, whole numbers or booleans, null where missing."""
    column = find_column(table, name, "label column")
    kind = column.type
    if pa.types.is_dictionary(kind) and not is_category(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if column.null_count == len(column):
        raise InputError(f"the label {name!r} is missing in all {len(column)} rows")
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return _whole(name, column.cast(pa.float64()))
    if is_text(kind) or is_category(kind) or pa.types.is_integer(kind):
        column = column.cast(pa.large_string()) if "view" in str(kind) else column
        _refuse_ids(name, column)
        return column
    if pa.types.is_boolean(kind):
        return column
    raise InputError(
        f"the label {name!r} holds {kind}; a label is text, a whole number or a boolean, turn it "
        "into one of them"
    )


def _whole(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    values = set[float]()
    for block in blocks(column):
        values.update(v for v in block.unique().to_pylist() if v is not None and v == v)  # noqa: PLR0124
        if len(values) > _MAX_FLOATS:
            raise InputError(
                f"the label {name!r} holds numbers such as {min(values):g} and {max(values):g}, "
                f"more than {_MAX_FLOATS} different ones: it looks like an amount (regression), "
                "but tables are decided for classes; bin it, for example into low, middle and "
                "high, or train a QuiltRegressor in Python"
            )
    if not values:
        raise InputError(f"the label {name!r} is missing in all {len(column)} rows")
    odd = [value for value in values if not value.is_integer()]
    if odd:
        raise InputError(
            f"the label {name!r} holds {min(odd):g}, which is not a whole number; write its "
            f"{len(values)} different values as text if they are classes, or bin them"
        )
    missing = pa.scalar(None, pa.float64())
    return pc.if_else(pc.is_nan(column), missing, column).cast(pa.int64())


def _refuse_ids(name: str, column: pa.ChunkedArray) -> None:
    """Refuse labels with too many values in the first block, numbers sooner than text."""
    first = column.slice(0, BLOCK).drop_null()
    n_distinct = len(first.unique())
    n_min = _ROWS_OF_NUMBER if pa.types.is_integer(column.type) else _ROWS_OF_TEXT
    if n_distinct > max(_FEW, len(first) / n_min):
        raise InputError(
            f"the label {name!r} has {n_distinct} different values in the first {len(first)} rows: "
            "it looks like an id or an amount (regression), but tables are decided for classes; "
            "name a column with few of them, bin it, for example into low, middle and high, or "
            "train a QuiltRegressor in Python"
        )


@dataclass(frozen=True, eq=False)
class Layout:
    """Row numbers by segment, each in order of the table; the current segment comes last.

    `n_unlabelled` and `later` say what was left out; `without_labels` are the last segments of
    the table if none of their rows has a label.
    """

    names: Sequence[Hashable]
    rows: Rows
    ends: Rows  # of each segment in `rows`
    n_held_out: int
    n_unlabelled: int
    later: Sequence[Hashable]
    without_labels: Sequence[Hashable] = ()

    def of(self, segment: int) -> Rows:
        """Return the rows of a segment."""
        return self.rows[self.ends[segment - 1] if segment else 0 : self.ends[segment]]

    @property
    def n_past(self) -> int:
        """Number of past segments."""
        return len(self.names) - 1

    @property
    def current(self) -> Rows:
        """Rows of the current segment that may be trained on."""
        return self.rows[self.ends[-2] : self.ends[-1] - self.n_held_out]

    @property
    def held_out(self) -> Rows:
        """The last rows of the current segment."""
        return self.rows[self.ends[-1] - self.n_held_out :]

    @property
    def trained(self) -> Rows:
        """Rows that may be trained on: past and current."""
        return self.rows[: self.ends[-1] - self.n_held_out]


def lay_out(labels: Labels, segments: Any, *, current: Any = None, holdout: float = 0.3) -> Layout:
    """Lay out the rows; `current` names the current segment, None means the last one."""
    if type(holdout) not in (int, float) or not 0 <= holdout < 1:
        raise InputError(f"holdout is {holdout!r}; give a share from 0 to below 1")
    names, codes = read_segments(segments, len(labels.codes))
    rows = np.arange(len(labels.codes), dtype=np.int32)
    without_labels, n_unlabelled = list[Hashable](), int(np.count_nonzero(labels.codes < 0))
    if n_unlabelled:
        rows = rows[labels.codes >= 0]
        names, codes, without_labels = _without_gaps(names, codes[rows])
    at = _find(names, without_labels, current)
    if at < len(names) - 1:
        rows, codes = rows[codes <= at], codes[codes <= at]
    if np.any(codes[1:] < codes[:-1]):
        rows = rows[np.argsort(codes, kind="stable")]
    ends = np.cumsum(count_rows(codes, at + 1))
    n_held_out = int(holdout * (ends[-1] - (ends[-2] if at else 0)))
    later = names[at + 1 :]
    return Layout(names[: at + 1], rows, ends, n_held_out, n_unlabelled, later, without_labels)


def spread(rows: Rows, limit: int) -> Rows:
    """Return at most `limit` of the rows, evenly spaced."""
    if len(rows) <= limit:
        return rows
    return rows[np.arange(limit) * len(rows) // limit]


def _without_gaps(
    names: Sequence[Hashable], codes: Codes
) -> tuple[list[Hashable], Codes, list[Hashable]]:
    """Return names and codes in order of first appearance among these rows, and the names after."""
    values, first, codes = distinct_ints(codes)
    order = np.argsort(first)
    place = np.argsort(order).astype(np.int32)
    after = names[int(values[-1]) + 1 :]  # the codes were in order of first appearance before, too
    return [names[value] for value in values[order]], place[codes], [*after]


def _find(names: Sequence[Hashable], without_labels: Sequence[Hashable], current: Any) -> int:
    """Return the place of the current segment."""
    at = len(names) - 1 if current is None else _find_named(names, without_labels, str(current))
    if at == 0:
        raise InputError(
            f"there is no segment before the current one, {names[0]}: no past to select from; cut "
            "the rows into more segments, or name a later one"
        )
    return at


def _find_named(names: Sequence[Hashable], without_labels: Sequence[Hashable], current: str) -> int:
    texts = [str(name) for name in names]
    if current in texts:
        return texts.index(current)
    if current in map(str, without_labels):
        raise InputError(
            f"the segment {current!r} has no labels, so that no model can be trained for it; "
            f"the last with labels is {texts[-1]}"
        )
    raise InputError(f"no segment is called {current!r}; {suggest(current, texts[::-1])}")
