"""A segment is a run of labelled rows that share one concept; the history is all past ones.

Rows are arrays whose first axis counts rows. Labels are class codes `0 … C-1`, or numbers,
weights are positive and multiply a row's loss. Names are whatever identifies a segment to
the caller: months, integers, dates.

    X       (n, ...)  rows, C-contiguous; float32 for tables
    y       (n,)      class codes, int64, or numbers, float64
    weight  (n,)      float32

Paper: "Data Segments" and "Problem Definition" (the split of the current segment).

>>> import numpy as np
>>> X = np.arange(12, dtype=np.float32).reshape(6, 2)
>>> y, codes = np.array([0, 1, 0, 1, 0, 1]), np.array([0, 0, 1, 1, 1, 1])
>>> history, current = cut(X, y, codes, ["may", "june"])
>>> [s.name for s in history], current.name, len(current)
(['may'], 'june', 4)
>>> [(len(train), len(validation)) for train, validation in folds(current, 1)]
[(2, 2)]
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from driftquilt.errors import InputError

__all__ = [
    "History",
    "Pick",
    "Segment",
    "count_classes",
    "count_rows",
    "cut",
    "folds",
    "gather",
    "join",
    "sample",
]

_BLOCK = 2**20


@dataclass(frozen=True, eq=False)
class Segment:
    """Labelled rows that belong together in time; arrays are converted to the types above."""

    name: Hashable
    X: NDArray[Any]
    y: NDArray[Any]
    weight: NDArray[np.float32]

    def __post_init__(self) -> None:
        object.__setattr__(self, "X", np.ascontiguousarray(self.X))
        kind = np.float64 if np.asarray(self.y).dtype.kind == "f" else np.int64
        object.__setattr__(self, "y", np.ascontiguousarray(self.y, dtype=kind))
        object.__setattr__(self, "weight", np.ascontiguousarray(self.weight, dtype=np.float32))

    def __len__(self) -> int:
        return len(self.y)

    @property
    def top_code(self) -> int:
        """The highest class code that a row has."""
        return int(self.y.max())

    def take(self, rows: NDArray[np.bool_] | NDArray[np.intp] | slice) -> Segment:
        """Return some of the rows, under the same name."""
        return Segment(self.name, self.X[rows], self.y[rows], self.weight[rows])


History: TypeAlias = Sequence[Segment]


def count_classes(history: History, current: Segment) -> int:
    """Return the number of classes, from the highest code that any row has."""
    return 1 + max(segment.top_code for segment in (*history, current))


def count_rows(codes: NDArray[np.integer[Any]], n_segments: int) -> NDArray[np.intp]:
    """Rows of each segment, from the code of each row."""
    counts = np.zeros(n_segments, dtype=np.intp)
    for first in range(0, len(codes), _BLOCK):  # numpy makes wider numbers of those it counts
        counts += np.bincount(codes[first : first + _BLOCK], minlength=n_segments)
    return counts


def cut(
    X: NDArray[Any],
    y: NDArray[Any],
    codes: NDArray[np.integer[Any]],
    names: Sequence[Hashable],
    weight: NDArray[np.float32] | None = None,
) -> tuple[list[Segment], Segment]:
    """Rows to segments: `codes[i]` says which of `names` row i belongs to.

    Rows of a segment keep their order and need not be neighbours. The last name is the
    current segment.
    """
    if weight is None:
        weight = np.ones(len(y), dtype=np.float32)
    if np.any(codes[1:] < codes[:-1]):
        order = np.argsort(codes, kind="stable")
        X, y, weight, codes = X[order], y[order], weight[order], codes[order]
    ends = np.searchsorted(codes, np.arange(len(names)), side="right")
    parts = map(slice, [0, *ends[:-1]], ends)
    segments = [
        Segment(name, X[part], y[part], weight[part])
        for name, part in zip(names, parts, strict=True)
    ]
    return segments[:-1], segments[-1]


@dataclass(frozen=True, eq=False)
class Pick:
    """Some rows of a segment, by number, or all of them; nothing is copied yet."""

    segment: Segment
    rows: NDArray[np.intp] | None = None

    def __len__(self) -> int:
        return len(self.segment) if self.rows is None else len(self.rows)

    @property
    def name(self) -> Hashable:
        return self.segment.name

    def load(self) -> Segment:
        """Return the rows as a segment."""
        return self.segment if self.rows is None else self.segment.take(self.rows)


def join(segments: Sequence[Segment]) -> Segment:
    """All rows of the segments, in order, under the name of the last."""
    return gather([Pick(segment) for segment in segments])


def gather(picks: Sequence[Pick]) -> Segment:
    """All rows picked, in order, copied once, under the name of the last segment."""
    last, n_rows = picks[-1].segment, sum(map(len, picks))
    if len(picks) == 1 and picks[0].rows is None:
        return last
    dtype = np.result_type(*{pick.segment.X.dtype for pick in picks})
    X = np.empty((n_rows, *last.X.shape[1:]), dtype)
    y, weight = np.empty(n_rows, last.y.dtype), np.empty(n_rows, np.float32)
    end = 0
    for pick in picks:
        part = slice(end, end := end + len(pick))
        of = pick.segment
        for source, target in ((of.X, X[part]), (of.y, y[part]), (of.weight, weight[part])):
            if pick.rows is None:
                target[:] = source
            elif source.dtype == target.dtype:
                np.take(source, pick.rows, axis=0, out=target, mode="clip")  # "raise" would buffer
            else:
                target[:] = source[pick.rows]
    return Segment(last.name, X, y, weight)


def sample(segment: Segment, n_rows: int, rng: np.random.Generator) -> Pick:
    """So many rows drawn with replacement, in stream order; all if there are no more."""
    if len(segment) <= n_rows:
        return Pick(segment)
    rows = rng.integers(len(segment), size=n_rows)
    rows.sort()
    return Pick(segment, rows)


def folds(
    current: Segment, n_folds: int, *, in_blocks: bool = False
) -> list[tuple[Segment, Segment]]:
    """Training and validation parts of the current segment, one pair per fold.

    One fold is the paper's split: the first half (rounded down) trains, the rest validates.
    With k > 1 folds the rows of each class are dealt out in turn to k parts, and each part
    validates once while the others train. With `in_blocks` the parts are k runs of neighbours in
    time instead: rows that come soon after each other are often alike, so a row says more of
    what is to come if its neighbours did not train.
    """
    n_parts = max(n_folds, 2)
    if len(current) < n_parts:
        raise InputError(
            f"the current segment {current.name!r} has {len(current)} row(s), but it takes at "
            f"least {n_parts} to split it for training and validation (n_folds={n_folds}); wait "
            "for more labelled rows, or let it begin earlier"
        )
    if n_folds == 1:
        middle = len(current) // 2
        return [(current.take(slice(None, middle)), current.take(slice(middle, None)))]
    if in_blocks:
        part = np.arange(len(current)) * n_folds // len(current)
        return [(current.take(part != k), current.take(part == k)) for k in range(n_folds)]
    part = np.empty(len(current), dtype=np.intp)
    part[np.argsort(current.y, kind="stable")] = np.arange(len(current)) % n_folds
    return [(current.take(part != k), current.take(part == k)) for k in range(n_folds)]
