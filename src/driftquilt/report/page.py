"""What a report says, as values: `html` draws them and computes nothing.

A page has one `Drift` for each time that a model was trained for a new present: the selection
with its scores, and how well the model did beside others.

>>> Page("Churn", ("Two of three months were kept.",), ()).drifts
()
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from functools import cached_property

from driftquilt.decision.origin import Origin
from driftquilt.decision.values import Method
from driftquilt.quilt.explanation import KEPT_FROM, SegmentUse, Selection
from driftquilt.quilt.method import TriedBound

__all__ = ["AccuracyLines", "ColumnNote", "Drift", "Page"]


@dataclass(frozen=True)
class Drift:
    """A model for a new present: what it was trained on, and how well it does.

    `accuracies` are shares of rows that no model had seen, by method, ours first. `row` is the
    row of the stream after which the current segment begins, if there is a stream. `correct` are
    the shares of each past segment's rows that the model predicts right, where they are known.
    """

    selection: Selection
    accuracies: dict[str, float] = field(default_factory=dict)
    bounds: tuple[TriedBound, ...] = ()
    row: int | None = None
    correct: dict[str, float] = field(default_factory=dict)

    @property
    def name(self) -> Hashable:
        """Of the current segment."""
        return self.selection.current

    @cached_property
    def uses(self) -> tuple[SegmentUse, ...]:
        """What became of every past segment; a selection works it out anew each time."""
        return tuple(self.selection)

    @property
    def shares(self) -> dict[Hashable, float]:
        """The share of epochs that used each past segment."""
        return {use.name: use.share for use in self.uses}

    @property
    def kept(self) -> list[Hashable]:
        """The past segments that were kept."""
        return [name for name, share in self.shares.items() if share >= KEPT_FROM]


@dataclass(frozen=True)
class AccuracyLines:
    """Rolling accuracy by method, each value over the `window` rows before `rows`.

    `drifts` are the rows at which a drift was found, whether or not a model followed.
    """

    rows: tuple[int, ...]
    by_method: dict[str, tuple[float | None, ...]]
    window: int
    drifts: tuple[int, ...] = ()


@dataclass(frozen=True)
class ColumnNote:
    """A column of the data: what it was read as, how much of it is missing, what to know of it."""

    name: str
    kind: str
    missing: float
    note: str = ""


@dataclass(frozen=True)
class Page:
    """Everything that a report shows; `cut` says what the segments are, if that is known.

    `methods` are the ways to train that were compared on held-out rows, Quilt first, where one
    model was measured.
    """

    title: str
    sentences: tuple[str, ...]
    drifts: tuple[Drift, ...]
    accuracy: AccuracyLines | None = None
    columns: tuple[ColumnNote, ...] = ()
    warnings: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)
    command: str = ""
    cut: str = ""
    methods: tuple[Method, ...] = ()
    origin: Origin | None = None
