"""The values of the paper's figures, one series of points per line."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Mapping, Sequence

import numpy as np

from driftquilt.core.selection import Scores
from driftquilt.paper.plan import EXPERIMENTS, METHODS
from driftquilt.paper.results import Result

__all__ = ["accuracy_curves", "case_study_curves", "cost_curves"]

Points = dict[str, list[tuple[float, float]]]


def accuracy_curves(results: Sequence[Result], dataset: str) -> Points:
    """Accuracy on each segment in turn, averaged over seeds: Quilt and its bounds."""
    hidden = set(METHODS).difference(EXPERIMENTS["selection"].methods, ["quilt_default"])
    return _curves(results, dataset, lambda r: r.accuracy, hidden)


def cost_curves(results: Sequence[Result], dataset: str) -> Points:
    """CPU seconds of the training that made the model, by number of segments."""
    curves = _curves(results, dataset, lambda r: r.training_cpu_seconds)
    return {name: [(x + 1, y) for x, y in points] for name, points in curves.items()}


def case_study_curves(curves: Mapping[str, Scores]) -> dict[str, Points]:
    """Both scores by epoch, for each of the two past segments."""
    return {
        score: {
            name: list(enumerate(getattr(scores, score).tolist(), start=1))
            for name, scores in curves.items()
        }
        for score in ("disparity", "gain")
    }


def _curves(
    results: Sequence[Result],
    dataset: str,
    metric: Callable[[Result], float],
    hidden: Container[str] = (),
) -> Points:
    values: dict[str, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))
    for result in results:
        if result.dataset == dataset and result.method not in hidden:
            values[result.method][result.segment].append(metric(result))
    order = [m for m in METHODS if m in values] + [m for m in values if m not in METHODS]
    return {
        method: [(float(s), float(np.mean(values[method][s]))) for s in sorted(values[method])]
        for method in order
    }
