"""A segment is a run of labelled rows that share one concept; the history is all past ones.

Rows are held as arrays whose first axis counts rows. Labels are class codes `0 … C-1`,
weights are positive and multiply a row's loss. Names are whatever the caller uses to tell
segments apart: months, integers, dates.

    X       (n, ...)  rows, C-contiguous; float32 for tables
    y       (n,)      class codes, int64
    weight  (n,)      float32

Rows need not be in memory. A segment may hold a `Matrix`, which makes rows when they are asked
for: picking some makes those alone, a slice of a segment makes none, and `X` makes them all,
each time anew.

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
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from driftquilt.errors import InputError

__all__ = [
    "History",
    "Matrix",
    "Pick",
    "Segment",
    "count_classes",
    "cut",
    "folds",
    "gather",
    "join",
    "sample",
    "windows",
]


@runtime_checkable
class Matrix(Protocol):
    """Rows that are made when they are asked for, and are the same each time."""

    @property
    def shape(self) -> tuple[int, ...]: ...

    def __len__(self) -> int: ...

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        """Some of the rows, as indexing an array by a slice, a mask or numbers gives them."""

    def __array__(self, dtype: Any = None, *, copy: bool | None = None) -> NDArray[Any]:
        """All of them."""

    def part(self, rows: slice | NDArray[np.intp]) -> Self:
        """Some of the rows, none of which is made yet."""


class _Rows:
    """The attribute `X`: takes an array or a `Matrix`, and gives an array."""

    def __get__(self, segment: Segment | None, owner: type | None = None) -> NDArray[Any]:
        if segment is None:
            raise AttributeError("X belongs to a segment, not to the class")
        return np.ascontiguousarray(segment.rows)

    def __set__(self, segment: Segment, X: NDArray[Any] | Matrix) -> None:
        made = isinstance(X, np.ndarray) or not isinstance(X, Matrix)
        object.__setattr__(segment, "_rows", np.ascontiguousarray(X) if made else X)


@dataclass(frozen=True, eq=False)
class Segment:
    """Labelled rows that belong together in time; arrays become as said above if they are not."""

    name: Hashable
    X: _Rows = _Rows()  # no default, whatever mypy says of the lines below
    y: NDArray[np.int64]  # type: ignore[misc]
    weight: NDArray[np.float32]  # type: ignore[misc]

    def __post_init__(self) -> None:
        object.__setattr__(self, "y", np.ascontiguousarray(self.y, dtype=np.int64))
        object.__setattr__(self, "weight", np.ascontiguousarray(self.weight, dtype=np.float32))

    def __len__(self) -> int:
        return len(self.y)

    @property
    def rows(self) -> NDArray[Any] | Matrix:
        """What the rows are held in; `X` is all of them as an array."""
        held: NDArray[Any] | Matrix = vars(self)["_rows"]
        return held

    def take(self, rows: NDArray[np.bool_] | NDArray[np.intp] | slice) -> Segment:
        """Some of the rows, under the same name; rows that are picked one by one are made."""
        held = self.rows
        if isinstance(rows, slice) and not isinstance(held, np.ndarray):
            return Segment(self.name, held.part(rows), self.y[rows], self.weight[rows])
        return Segment(self.name, held[rows], self.y[rows], self.weight[rows])

    def load(self) -> Segment:
        """The same segment with its rows in memory."""
        return Segment(self.name, self.X, self.y, self.weight)


History: TypeAlias = Sequence[Segment]


def count_classes(history: History, current: Segment) -> int:
    """Number of classes, from the highest code that any row has."""
    return 1 + max(int(segment.y.max()) for segment in (*history, current))


def cut(
    X: NDArray[Any] | Matrix,
    y: NDArray[np.int64],
    codes: NDArray[np.intp],
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
        X = X[order] if isinstance(X, np.ndarray) else X.part(order)
        y, weight, codes = y[order], weight[order], codes[order]
    ends = np.searchsorted(codes, np.arange(len(names)), side="right")
    whole = Segment("", X, y, weight)
    starts = [0, *ends[:-1]]
    segments = [
        Segment(name, part.rows, part.y, part.weight)
        for name, start, end in zip(names, starts, ends, strict=True)
        for part in [whole.take(slice(start, end))]
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
        """The rows as a segment."""
        return self.segment if self.rows is None else self.segment.take(self.rows)


def join(segments: Sequence[Segment]) -> Segment:
    """All rows of the segments, in order, under the name of the last."""
    return gather([Pick(segment) for segment in segments])


def gather(picks: Sequence[Pick]) -> Segment:
    """All rows picked, in order, copied once, under the name of the last segment."""
    last, n_rows = picks[-1].segment, sum(map(len, picks))
    if len(picks) == 1 and picks[0].rows is None:
        return last
    dtypes = {getattr(pick.segment.rows, "dtype", np.dtype(np.float32)) for pick in picks}
    X = np.empty((n_rows, *last.rows.shape[1:]), np.result_type(*dtypes))
    y, weight = np.empty(n_rows, np.int64), np.empty(n_rows, np.float32)
    end = 0
    for pick in picks:
        part = slice(end, end := end + len(pick))
        held, of = pick.segment.rows, pick.segment
        for source, target in ((held, X[part]), (of.y, y[part]), (of.weight, weight[part])):
            if pick.rows is None:
                target[:] = source
            elif isinstance(source, np.ndarray) and source.dtype == target.dtype:
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


def windows(history: History, current: Segment) -> list[Segment]:
    """The stream in windows as long as the current segment, which is the last one.

    A window has the name of its last row's segment.
    """
    segments = [*history, current]
    stream, size = join(segments), len(current)
    bounds = np.cumsum([len(segment) for segment in segments])
    return [
        replace(stream.take(slice(max(end - size, 0), end)), name=segments[number].name)
        for end in reversed(range(len(stream), 0, -size))
        for number in [int(np.searchsorted(bounds, end))]
    ]


def folds(current: Segment, n_folds: int) -> list[tuple[Segment, Segment]]:
    """Training and validation parts of the current segment, one pair per fold.

    One fold is the paper's split: the first half (rounded down) trains, the rest validates.
    With k > 1 folds the rows of each class are dealt out in turn to k parts, and each part
    validates once while the others train.
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
    part = np.empty(len(current), dtype=np.intp)
    part[np.argsort(current.y, kind="stable")] = np.arange(len(current)) % n_folds
    return [(current.take(part != k), current.take(part == k)) for k in range(n_folds)]
