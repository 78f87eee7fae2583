"""The drifts of a comparison: the values behind the quilt and its table.

>>> from driftquilt.paper.datasets.synthetic import sine
>>> from driftquilt.paper.compare import compare
>>> from driftquilt.learners.mlp import MLP
>>> from driftquilt.quilt.method import Quilt
>>> quilt = Quilt(MLP(hidden_units=8), max_epochs=2)
>>> [(drift.name, len(drift.uses), list(drift.accuracies))
...  for drift in drifts_of(compare(sine(2, 200), {"Quilt": quilt}))]
[(0, 0, ['Quilt']), (1, 1, ['Quilt'])]
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

import numpy as np

from driftquilt.paper.compare import Outcome
from driftquilt.quilt.method import QuiltModel
from driftquilt.report.page import Drift

__all__ = ["drifts_of", "mean_accuracies"]


def drifts_of(outcomes: Iterable[Outcome]) -> list[Drift]:
    """One drift per current segment, in order of appearance; those without Quilt have none."""
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
    """Each method's accuracy, averaged over the drifts that have it."""
    by_method: dict[str, list[float]] = {}
    for drift in drifts:
        for method, accuracy in drift.accuracies.items():
            by_method.setdefault(method, []).append(accuracy)
    return {method: float(np.mean(values)) for method, values in by_method.items()}
