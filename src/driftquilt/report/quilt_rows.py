"""The values behind tables and pictures, gathered from outcomes.

>>> from driftquilt.datasets.synthetic import sine
>>> from driftquilt.experiments.compare import compare
>>> from driftquilt.methods.naive import FullData
>>> rows = quilt_rows(compare(sine(2, 200), {"all data": FullData(max_epochs=2)}))
>>> [(row.name, row.shares, list(row.accuracies)) for row in rows]
[(0, {}, ['all data']), (1, {}, ['all data'])]
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

import numpy as np

from driftquilt.experiments.compare import Outcome
from driftquilt.methods.quilt import QuiltModel

__all__ = ["QuiltRow", "mean_accuracies", "quilt_rows"]


@dataclass(frozen=True)
class QuiltRow:
    """One current segment: the share of epochs that used each past one, and accuracies."""

    name: Hashable
    shares: dict[Hashable, float] = field(default_factory=dict)
    accuracies: dict[str, float] = field(default_factory=dict)

    @property
    def kept(self) -> list[Hashable]:
        """The past segments that at least one epoch used."""
        return [name for name, share in self.shares.items() if share > 0]


def quilt_rows(outcomes: Iterable[Outcome]) -> list[QuiltRow]:
    """One row per current segment, in order of appearance."""
    rows: dict[Hashable, QuiltRow] = {}
    for outcome in outcomes:
        row = rows.setdefault(outcome.segment, QuiltRow(outcome.segment))
        row.accuracies[outcome.method] = outcome.accuracy
        if isinstance(outcome.model, QuiltModel):
            row.shares.update({use.name: use.share for use in outcome.model.selection})
    return list(rows.values())


def mean_accuracies(rows: Iterable[QuiltRow]) -> dict[str, float]:
    """Each method's accuracy, averaged over the segments."""
    by_method: dict[str, list[float]] = {}
    for row in rows:
        for method, accuracy in row.accuracies.items():
            by_method.setdefault(method, []).append(accuracy)
    return {method: float(np.mean(values)) for method, values in by_method.items()}
