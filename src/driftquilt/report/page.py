"""The values of a report; `html` renders them and computes nothing.

A page has one `Drift` for each model that was trained for a new current segment: the selection with
its scores, and the accuracy of the model and of others.

>>> Page("Churn", ("Two of three months were kept.",), ()).drifts
()
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from driftquilt.decision.decision import Origin
from driftquilt.decision.measure import MethodScore
from driftquilt.quilt.explanation import KEPT_FROM, SegmentUse, Selection
from driftquilt.quilt.method import QuiltModel, TriedBound

if TYPE_CHECKING:
    from driftquilt.paper.protocol import Outcome

__all__ = ["AccuracyLines", "ColumnNote", "Drift", "Page", "drifts_of", "mean_accuracies"]


@dataclass(frozen=True)
class Drift:
    """A model for a new current segment: what it was trained on, and its accuracy.

    `accuracies` are those on held-out rows by method, ours first. `row` is the row of the stream
    after which the current segment begins, if there is a stream. `correct` is the model's accuracy
    on each past segment, where it is known.
    """

    selection: Selection
    accuracies: dict[str, float] = field(default_factory=dict)
    bounds: tuple[TriedBound, ...] = ()
    row: int | None = None
    correct: dict[str, float] = field(default_factory=dict)

    @property
    def name(self) -> Hashable:
        """The name of the current segment."""
        return self.selection.current

    @cached_property
    def uses(self) -> tuple[SegmentUse, ...]:
        """How every past segment was used; a selection computes it each time it is asked."""
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

    `drifts` are the rows at which a drift was detected, whether or not a model followed.
    """

    rows: tuple[int, ...]
    by_method: dict[str, tuple[float | None, ...]]
    window: int
    drifts: tuple[int, ...] = ()


@dataclass(frozen=True)
class ColumnNote:
    """A column of the data: its type, the share of missing values, a remark."""

    name: str
    kind: str
    missing: float
    note: str = ""


@dataclass(frozen=True)
class Page:
    """Everything that a report shows; `cut` describes the segments, if that is known.

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
    methods: tuple[MethodScore, ...] = ()
    origin: Origin | None = None


def drifts_of(outcomes: Iterable[Outcome]) -> list[Drift]:
    """Return a drift per current segment of a comparison; segments without Quilt have none."""
    models: dict[Hashable, QuiltModel] = {}
    accuracies: dict[Hashable, dict[str, float]] = {}
    for outcome in outcomes:
        accuracies.setdefault(outcome.segment, {})[outcome.method] = outcome.accuracy
        if isinstance(outcome.model, QuiltModel):
            models[outcome.segment] = outcome.model
    return [
        Drift(models[name].selection, values, tuple(models[name].tried_bounds()))
        for name, values in accuracies.items()
        if name in models
    ]


def mean_accuracies(drifts: Iterable[Drift]) -> dict[str, float]:
    """Return each method's accuracy, averaged over the drifts that have it."""
    by_method: dict[str, list[float]] = {}
    for drift in drifts:
        for method, accuracy in drift.accuracies.items():
            by_method.setdefault(method, []).append(accuracy)
    return {method: float(np.mean(values)) for method, values in by_method.items()}
