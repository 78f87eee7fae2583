"""Which rows of a table are past, current and held out.

Rows without a label, and segments after the current one, are left out. The last share of the
current segment's rows is held out: nothing is trained on it, it is only for measuring.

>>> import pyarrow as pa
>>> from driftquilt.decision.labels import read_labels
>>> labels = read_labels(pa.table({"bought": ["no", "yes", "no", "yes", None, "no"]}), "bought")
>>> layout = lay_out(labels, pa.array(["may", "may", "june", "june", "june", "june"]), holdout=0.4)
>>> layout.names, layout.of(0).tolist(), layout.current.tolist(), layout.held_out.tolist()
(['may', 'june'], [0, 1], [2, 3], [5])
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftquilt.core.segment import count_rows
from driftquilt.data.labels import Codes, distinct_ints, read_segments
from driftquilt.decision.labels import AnyLabels
from driftquilt.errors import InputError
from driftquilt.text import suggest

Rows = NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class Layout:
    """Row numbers by segment, each in order of the table; the current segment comes last.

    `n_unlabelled` and `later` say what was left out; `without_labels` are the last segments of
    the table if none of their rows has a label and the current one was not named.
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


def lay_out(
    labels: AnyLabels, segments: Any, *, current: Any = None, holdout: float = 0.3
) -> Layout:
    """Lay out the rows; `current` names the current segment, None means the last one."""
    if type(holdout) not in (int, float) or not 0 <= holdout < 1:
        raise InputError(f"holdout is {holdout!r}; give a share from 0 to below 1")
    known = labels.known
    names, codes = read_segments(segments, len(known))
    rows = np.arange(len(known), dtype=np.int32)
    without_labels, n_unlabelled = list[Hashable](), int(np.count_nonzero(~known))
    if n_unlabelled:
        rows = rows[known]
        names, codes, without_labels = _without_gaps(names, codes[rows])
    at = _find(names, without_labels, current)
    if at < len(names) - 1:
        rows, codes = rows[codes <= at], codes[codes <= at]
    if np.any(codes[1:] < codes[:-1]):
        rows = rows[np.argsort(codes, kind="stable")]
    ends = np.cumsum(count_rows(codes, at + 1))
    n_held_out = int(holdout * (ends[-1] - (ends[-2] if at else 0)))
    later = [*names[at + 1 :]]
    if current is not None:
        later, without_labels = [*later, *without_labels], []
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
