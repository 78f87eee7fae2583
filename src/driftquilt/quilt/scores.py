"""Score predictions of the same rows for many draws of them at once.

Rows are drawn, or left out, by counts: how often each draw has each row. So a bootstrap, a
jackknife and a single score are one computation. Scores are those of scikit-learn; metrics that
are not computed here go through `Metric.score`, one draw at a time.

    y         (n,)    places in `classes`
    chances   (n, C)  probabilities
    counts    (b, n)  how often each of b draws has each row

>>> from driftquilt.quilt.metrics import find_metric
>>> y, classes = np.array([0, 1, 0, 1]), np.array(["no", "yes"])
>>> model = Predictions.of(np.array([[0.9, 0.1], [0.6, 0.4], [0.8, 0.2], [0.3, 0.7]]))
>>> shown_score(find_metric("roc_auc"), y, model, classes)
1.0
>>> shown_score(find_metric("f1"), y[:1], model.take([0]), classes) is None  # no "yes" at all
True
>>> weighted_scores(find_metric("f1"), y, model, classes, np.array([[1.0, 1, 1, 1], [1, 0, 1, 1]]))
array([0.66666667, 1.        ])
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftquilt.quilt.metrics import LOWEST, Metric

__all__ = [
    "Codes",
    "Floats",
    "Predictions",
    "confusion_counts",
    "is_fast",
    "is_one_sided",
    "shown_score",
    "tune_threshold",
    "weigh",
    "weighted_scores",
]

Codes = NDArray[np.integer[Any]]
Floats = NDArray[np.float64]

_TWO = 2
_N_THRESHOLDS = 99
_MOST = 2.0**53  # rows
_FROM_CONFUSION = ("f1", "balanced_accuracy", "precision", "recall")
_ONE_SIDED = 0.8  # of the rows
_RANKED = ("roc_auc", "average_precision")


@dataclass(frozen=True, eq=False)
class Predictions:
    """What a model says of some rows: probabilities, and the code of its answer to each.

    Of a model that gave labels only, probabilities are 0 and 1, and `has_chances` is false.
    """

    chances: Floats
    codes: Codes
    has_chances: bool = True

    @classmethod
    def of(cls, chances: NDArray[Any], weights: NDArray[Any] | None = None) -> Predictions:
        """Answer with the most probable class; `weights` of classes multiply probabilities."""
        p = np.asarray(chances, dtype=np.float64)
        return cls(p, (p if weights is None else p * weights).argmax(axis=1))

    @classmethod
    def of_answers(cls, codes: Codes, n_classes: int) -> Predictions:
        """Take answers without probabilities."""
        return cls(np.eye(n_classes)[codes], codes, has_chances=False)

    def take(self, rows: Any) -> Predictions:
        """Return those of some rows."""
        return Predictions(self.chances[rows], self.codes[rows], self.has_chances)


def shown_score(
    metric: Metric, y: Codes, model: Predictions, classes: NDArray[Any]
) -> float | None:
    """Return the score as people expect it: losses and costs without their sign.

    It is None where the metric is not defined: without rows, AUC of rows of one class, recall and
    F1 without a row of the positive class, precision without an answer of it.
    """
    if not len(y):
        return None
    sought = {"f1": y, "recall": y, "precision": model.codes}.get(metric.name)
    if sought is not None and len(classes) == _TWO and not (sought == 1).any():
        return None
    value = float(weighted_scores(metric, y, model, classes, np.ones((1, len(y))))[0])
    if not math.isfinite(value):
        return None
    return -value if metric.is_loss else value


def is_one_sided(counts: NDArray[Any]) -> bool:
    """Return whether so many rows have the same label that accuracy says little.

    `counts` are the rows of each label.
    """
    return bool(0 < counts.sum() * _ONE_SIDED <= counts.max(initial=0))


def weighted_scores(
    metric: Metric, y: Codes, model: Predictions, classes: NDArray[Any], counts: Floats
) -> Floats:
    """Return the score of each draw; NaN where the metric is not defined."""
    values = _row_values(metric, y, model, classes)
    with np.errstate(divide="ignore", invalid="ignore"):
        if values is not None:
            means: Floats = counts @ values / counts.sum(axis=1)
            return means
        if metric.name in _FROM_CONFUSION:
            return _from_confusion(
                metric.name, confusion_counts(y, model.codes, len(classes), counts)
            )
        if metric.name in _RANKED:
            return _ranked(metric.name, y, model.chances, counts)
        if metric.top is not None and len(classes) == _TWO:
            return _precision_at(*metric.top, y, model.chances[:, 1], counts)
    return np.array([_slow_score(metric, y, model, classes, count) for count in counts])


def is_fast(metric: Metric) -> bool:
    """Return whether all draws are scored at once."""
    is_known = metric.name in ("accuracy", *_FROM_CONFUSION, *_RANKED) or metric.is_log_loss
    return is_known or metric.costs is not None or metric.top is not None


def _row_values(
    metric: Metric, y: Codes, model: Predictions, classes: NDArray[Any]
) -> Floats | None:
    """Return the values whose mean is the score; none if the metric is no mean over rows."""
    if metric.costs is not None:
        return -metric.cost_matrix(classes)[y, model.codes]
    if metric.name == "accuracy":
        return np.equal(model.codes, y).astype(np.float64)
    if metric.is_log_loss:
        p = np.clip(model.chances, LOWEST, None)
        logs: Floats = np.log(p[np.arange(len(y)), y] / p.sum(axis=1))
        return logs
    return None


def confusion_counts(y: Codes, codes: Codes, n_classes: int, counts: Floats) -> Floats:
    """Return rows by true class and answer, (b, C, C)."""
    cells, at = np.unique(y.astype(np.int64) * n_classes + codes, return_inverse=True)
    table = np.zeros((len(counts), n_classes * n_classes))
    table[:, cells] = counts @ np.eye(len(cells))[at]
    return table.reshape(-1, n_classes, n_classes)


def _from_confusion(name: str, confusion: Floats) -> Floats:
    """Return what scikit-learn's scorer of that name returns; the mean over more than two classes.

    With two classes it is of the second, but for balanced accuracy.
    """
    right, truth = np.einsum("bcc->bc", confusion), confusion.sum(axis=2)
    answered = confusion.sum(axis=1)
    if name == "balanced_accuracy":
        recall: Floats = np.nanmean(np.where(truth > 0, right / truth, np.nan), axis=1)
        return recall
    below = {"f1": (truth + answered) / 2, "precision": answered, "recall": truth}[name]
    by_class = np.where(below > 0, right / below, 0.0)
    if by_class.shape[1] == _TWO:
        return by_class[:, 1]
    seen = truth + answered > 0
    means: Floats = np.where(seen, by_class, 0.0).sum(axis=1) / seen.sum(axis=1)
    return means


def _ranked(name: str, y: Codes, chances: Floats, counts: Floats) -> Floats:
    """Return the area under a curve; of more than two classes, each against the rest, the mean."""
    area = _auc if name == "roc_auc" else _average_precision
    n_classes = chances.shape[1]
    if n_classes == _TWO:
        return area(y == 1, chances[:, 1], counts)
    areas = [area(y == k, chances[:, k], counts) for k in range(n_classes) if (y == k).any()]
    means: Floats = np.mean(areas, axis=0)
    return means


def _by_rank(positive: NDArray[np.bool_], p: Floats, counts: Floats) -> tuple[Floats, Floats]:
    """Return positive and other rows by rising probability, equal ones together: (b, groups)."""
    order = np.argsort(p, kind="stable")
    first = np.flatnonzero(np.diff(p[order], prepend=-np.inf))
    ranked = counts[:, order]
    yes = np.add.reduceat(ranked * positive[order], first, axis=1)
    return yes, np.add.reduceat(ranked, first, axis=1) - yes


def _auc(positive: NDArray[np.bool_], p: Floats, counts: Floats) -> Floats:
    yes, no = _by_rank(positive, p, counts)
    below = np.cumsum(no, axis=1) - no / 2
    area: Floats = (yes * below).sum(axis=1) / (yes.sum(axis=1) * no.sum(axis=1))
    return area


def _average_precision(positive: NDArray[np.bool_], p: Floats, counts: Floats) -> Floats:
    yes, no = (part[:, ::-1] for part in _by_rank(positive, p, counts))
    n_yes, n_all = np.cumsum(yes, axis=1), np.cumsum(yes + no, axis=1)
    precision = np.where(n_all > 0, n_yes / n_all, 0.0)
    area: Floats = (yes * precision).sum(axis=1) / yes.sum(axis=1)
    return area


def _precision_at(number: float, is_share: bool, y: Codes, p: Floats, counts: Floats) -> Floats:
    order = np.argsort(-p, kind="stable")
    ranked, totals = counts[:, order], counts.sum(axis=1, keepdims=True)
    n_top = np.maximum(np.ceil(totals * number / 100) if is_share else min(number, _MOST), 1)
    before = np.cumsum(ranked, axis=1) - ranked
    taken = np.clip(n_top - before, 0, ranked)
    precision: Floats = (taken * y[order]).sum(axis=1) / taken.sum(axis=1)
    return precision


def _slow_score(
    metric: Metric, y: Codes, model: Predictions, classes: NDArray[Any], count: Floats
) -> float:
    """Score one draw by scikit-learn, which refuses rows that lack a class for some metrics."""
    rows = np.repeat(np.arange(len(y)), count.astype(np.int64))
    chances = np.eye(len(classes))[model.codes] if metric.uses_answers else model.chances
    try:
        return metric.score(y[rows], chances[rows], classes)
    except ValueError:
        return math.nan


def tune_threshold(
    metric: Metric, y: Codes, chances: Floats, classes: NDArray[Any]
) -> float | None:
    """Return the probability from which on the second of two classes is the best answer.

    None means the most probable class: for metrics of probabilities, for accuracy, and for more
    than two classes. Of costs it follows from the matrix; otherwise it is the best of some
    quantiles on these rows, which should be those that the model was not trained on.
    """
    if len(classes) != _TWO or not metric.uses_answers or metric.name == "accuracy":
        return None
    if metric.costs is not None:
        matrix = metric.cost_matrix(classes)
        wrong_yes, wrong_no = matrix[0, 1] - matrix[0, 0], matrix[1, 0] - matrix[1, 1]
        both = wrong_yes + wrong_no
        return float(wrong_yes / both) if min(wrong_yes, wrong_no) >= 0 < both else None
    p = chances[:, 1]
    if len(np.unique(y)) < _TWO:
        return None
    tried = np.unique(np.quantile(p, np.linspace(0.005, 0.995, _N_THRESHOLDS)))
    everything = np.ones((1, len(y)))
    scores = [
        weighted_scores(metric, y, Predictions.of(chances, weigh(t)), classes, everything)[0]
        for t in tried
    ]
    best = np.flatnonzero(np.asarray(scores) == np.nanmax(scores))
    return float(tried[best[np.abs(tried[best] - 0.5).argmin()]])


def weigh(threshold: float) -> Floats:
    """Return weights of two classes by which the second wins from a probability on."""
    return np.array([threshold, 1 - threshold])
