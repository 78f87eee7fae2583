"""What "better" means: one metric, for any scikit-learn scorer and for any model's answers.

A `Metric` scores class probabilities that were computed before, so models of every kind, blends
and held-out predictions are judged in the same way. Higher is always better: losses are negated,
as in scikit-learn.

Predictions are scored for many draws of the rows at once. Rows are drawn, or left out, by counts:
how often each draw has each row. So a bootstrap, a jackknife and a single score are one
computation. Metrics that are not computed here go through `Metric.score`, one draw at a time.

    y         (n,)    places in `classes`
    chances   (n, C)  probabilities
    counts    (b, n)  how often each of b draws has each row

    scoring                   what is scored
    "log_loss"                the probability of the true class (the default)
    "accuracy", "roc_auc", "average_precision", "f1", "balanced_accuracy", ...
                              any name that scikit-learn's `get_scorer` knows
    "precision_at_100"        precision among the 100 rows most likely to be positive
    "precision_at_5%"         the same for a share of the rows
    {("yes", "no"): 5, ...}   the cost of answering "no" where "yes" is true; others cost nothing
    a callable                a scikit-learn scorer, called as scorer(estimator, X, y)

Of two classes, the second in sorted order is the positive one, as in scikit-learn.

A `NumberMetric` does the same for predictions that are numbers: `find_number_metric`.

>>> y, chances = np.array([0, 1, 1]), np.array([[0.9, 0.1], [0.4, 0.6], [0.7, 0.3]])
>>> round(find_metric("accuracy").score(y, chances, np.array(["no", "yes"])), 3)
0.667
>>> costs = {("yes", "no"): 5.0, ("no", "yes"): 1.0}      # so a chance of 30 % is a "yes"
>>> find_metric(costs).decide(chances, np.array(["no", "yes"])).tolist()
[0, 1, 1]
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
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import get_scorer, get_scorer_names

from driftquilt.data.labels import codes_by_name
from driftquilt.errors import InputError
from driftquilt.text import json_safe, suggest

__all__ = [
    "Codes",
    "Floats",
    "Metric",
    "NumberMetric",
    "NumberPredictions",
    "Predictions",
    "Scoring",
    "amount",
    "confusion_counts",
    "figure",
    "find_metric",
    "find_number_metric",
    "is_fast",
    "is_one_sided",
    "metric_words",
    "scoring_from_json",
    "scoring_to_json",
    "shown_score",
    "shown_value",
    "tune_threshold",
    "weigh",
    "weighted_scores",
]

Codes = NDArray[np.integer[Any]]
Floats = NDArray[np.float64]
Scoring: TypeAlias = "str | Mapping[tuple[Any, Any], float] | Callable[..., float] | Metric"

_TWO = 2
#: Probabilities are at least this: a model that was sure and wrong once does not lose everything.
LOWEST = 1e-7
_COST = "cost"
_ALIASES = {"log_loss": "neg_log_loss"}
_OF_MANY = {
    "f1": "f1_macro",
    "roc_auc": "roc_auc_ovr",
    "precision": "precision_macro",
    "recall": "recall_macro",
}
_OF_NUMBERS = {
    "mae": "neg_mean_absolute_error",
    "rmse": "neg_root_mean_squared_error",
    "mse": "neg_mean_squared_error",
    "mape": "neg_mean_absolute_percentage_error",
}
_PINBALL = "pinball"
_DIGITS = 4  # of a figure in the unit of the label
_WORDS = {
    "roc_auc": "AUC",
    "f1": "F1",
    "cost": "mean cost",
    "r2": "R2",
    "neg_root_mean_squared_error": "RMSE",
    "pinball": "pinball loss",
}
# Of numbers: their figures have the unit of the label, or its square.
_IN_UNITS = (
    "neg_mean_absolute_error", "neg_root_mean_squared_error", "neg_mean_squared_error",
    "neg_median_absolute_error", "pinball",
)  # fmt: skip
_LEVELS = np.array([0.1, 0.5, 0.9])  # of the lower end, the answer and the upper end
_N_THRESHOLDS = 99
_MOST = 2.0**53  # rows
_FROM_CONFUSION = ("f1", "balanced_accuracy", "precision", "recall")
_ONE_SIDED = 0.8  # of the rows
_RANKED = ("roc_auc", "average_precision")
_TOP = re.compile(r"precision_at_(\d+(?:\.\d+)?)(%?)")


@dataclass(frozen=True)
class Metric:
    """A named score of class probabilities; higher is better.

    `scorer` is called with a classifier, the rows and their labels, as those of scikit-learn.
    With `costs`, answers are the cheapest ones and not the most probable. `uses_answers` says
    that answers are scored, as by F1, and not probabilities, as by log loss.
    """

    name: str
    scorer: Callable[[Any, NDArray[Any], NDArray[Any]], float]
    costs: Mapping[tuple[Any, Any], float] | None = None
    uses_answers: bool = False

    @property
    def is_named(self) -> bool:
        """Whether a name or costs stand for it; others are code."""
        made = (_by_name, _precision_at)
        is_made = isinstance(self.scorer, partial) and self.scorer.func in made
        return self.costs is not None or is_made

    @property
    def is_loss(self) -> bool:
        """Whether the score is a negated loss or cost, to be shown without its sign."""
        return _is_loss(self.name)

    @property
    def is_log_loss(self) -> bool:
        """Whether it is the log loss, by either of its names."""
        return _ALIASES.get(self.name, self.name) == "neg_log_loss"

    @property
    def top(self) -> tuple[float, bool] | None:
        """Of precision among the top rows: how many those are, and whether it is in percent."""
        found = _TOP.fullmatch(self.name)
        return None if found is None else (float(found[1]), bool(found[2]))

    def score(self, y: NDArray[Any], chances: NDArray[Any], classes: NDArray[Any]) -> float:
        """Return the score of the labels `classes[y]` under probabilities of shape (n, C).

        It is NaN where the metric is not defined, such as AUC of rows that lack a class.
        """
        p = np.clip(np.asarray(chances, dtype=np.float64), LOWEST, None)
        p /= p.sum(axis=1, keepdims=True)
        ranks = self.name.startswith(("roc_auc", "average_precision"))
        if len(y) == 0 or (ranks and len(np.unique(y)) < len(classes)):
            return math.nan
        labels = np.asarray(classes)
        return float(self.scorer(_Answers(labels, self.decide(p, labels)), p, labels[y]))

    def decide(self, chances: NDArray[Any], classes: NDArray[Any]) -> NDArray[np.intp]:
        """Return the code of each row's answer: the most probable class, or the cheapest one."""
        if self.costs is not None:
            chances = -chances @ self.cost_matrix(classes)
        codes: NDArray[np.intp] = chances.argmax(axis=1)
        return codes

    def cost_matrix(self, classes: NDArray[Any]) -> NDArray[np.float64]:
        """Return what each answer (column) costs for each true class (row); labels may be text."""
        return _cost_matrix(self.costs or {}, np.asarray(classes))


def find_metric(scoring: Scoring | None) -> Metric:
    """Return the metric that a name, a cost matrix or a callable stands for."""
    if scoring is None:
        scoring = "log_loss"
    if isinstance(scoring, Metric):
        return scoring
    if isinstance(scoring, Mapping):
        return _cost_metric(dict(scoring))
    names = [*_ALIASES, *get_scorer_names()]
    if callable(scoring):
        name = getattr(scoring, "__name__", "score")
        if name in (*names, _COST) or _TOP.fullmatch(name):  # not the metric that is called so
            name = f"own {name}"
        return Metric(name, scoring, None, _is_of_answers(scoring))
    if top := _TOP.fullmatch(scoring):
        return Metric(scoring, partial(_precision_at, float(top[1]), is_share=bool(top[2])))
    if scoring not in names:
        raise InputError(f"unknown metric {scoring!r}; {suggest(scoring, names)}")
    of_answers = _is_of_answers(get_scorer(_ALIASES.get(scoring, scoring)))
    return Metric(scoring, partial(_by_name, scoring), None, of_answers)


@dataclass(frozen=True)
class NumberMetric:
    """A named score of predictions that are numbers; higher is better.

    `is_squared` says that large errors count by their square, as with `rmse` and `r2`;
    `takes_intervals` that the ends of intervals are scored and not only answers.
    """

    name: str

    @property
    def is_squared(self) -> bool:
        """Whether it goes by squared errors."""
        return "squared" in self.name or self.name in ("r2", "explained_variance")

    @property
    def is_loss(self) -> bool:
        """Whether the score is a negated loss, to be shown without its sign."""
        return _is_loss(self.name)

    @property
    def takes_intervals(self) -> bool:
        """Whether it needs intervals for 80 %."""
        return self.name == _PINBALL

    def score(
        self, y: NDArray[Any], predicted: NDArray[Any], ends: NDArray[Any] | None = None
    ) -> float:
        """Return the score of these predictions; NaN without rows, or where it is not defined."""
        if not len(y):
            return math.nan
        everything = np.ones((1, len(y)))
        return float(self.weighted(y, predicted, ends, everything)[0])

    def weighted(
        self,
        y: NDArray[Any],
        predicted: NDArray[Any],
        ends: NDArray[Any] | None,
        counts: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Return the score of each draw of rows; `counts` (b, n) has how often each has each row.

        `ends` (n, 2) are those of intervals for 80 %.
        """
        if self.takes_intervals and ends is None:
            raise InputError("pinball scores intervals, which this model does not give")
        truth, answer = (np.asarray(values, dtype=np.float64) for values in (y, predicted))
        with np.errstate(all="ignore"):  # of draws where it is not defined, and of huge numbers
            return _NUMBER_SCORES[self.name](truth, answer, ends, counts)


def find_number_metric(scoring: Any | None) -> NumberMetric:
    """Return the metric of a regression: "mae" (the default), "rmse", "r2", "pinball" and others.

    Scikit-learn's names do as well. "pinball" is the mean pinball loss of the answer and of the
    ends of an interval for 80 %, as quantiles.

    >>> find_number_metric("mae").score(np.array([1.0, 2.0]), np.array([1.0, 4.0]))
    -1.0
    >>> find_number_metric("mean absolute error").name
    'neg_mean_absolute_error'
    """
    if scoring is None:
        scoring = "mae"
    if isinstance(scoring, NumberMetric):
        return scoring
    name = scoring.strip().lower().replace(" ", "_") if isinstance(scoring, str) else ""
    name = _OF_NUMBERS.get(name, name)
    name = f"neg_{name}" if f"neg_{name}" in _NUMBER_SCORES else name
    if name not in _NUMBER_SCORES:
        raise InputError(
            f"unknown metric of a regression {scoring!r}; "
            f"{suggest(str(scoring), [*_OF_NUMBERS, *_NUMBER_SCORES])}"
        )
    return NumberMetric(name)


def _mean(values: NDArray[np.float64], counts: NDArray[np.float64]) -> NDArray[np.float64]:
    means: NDArray[np.float64] = counts @ values / counts.sum(axis=1)
    return means


def _variance(values: NDArray[np.float64], counts: NDArray[np.float64]) -> NDArray[np.float64]:
    centred = values - values.mean()  # or large numbers would cancel
    spread: NDArray[np.float64] = _mean(centred**2, counts) - _mean(centred, counts) ** 2
    return spread


def _explained(
    lost: NDArray[np.float64], y: NDArray[np.float64], counts: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the share of the variance that is not lost; NaN where there is none."""
    spread = _variance(y, counts)
    return np.where(spread > 0, 1 - lost / spread, np.nan)


def _median(values: NDArray[np.float64], counts: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the median of each draw, between the middle two of an even number of rows."""
    order = np.argsort(values, kind="stable")
    total = np.cumsum(counts[:, order], axis=1)
    ranked, n_rows = values[order], total[:, -1:]
    low = (total < np.floor((n_rows + 1) / 2)).sum(axis=1)
    high = (total < np.floor((n_rows + 2) / 2)).sum(axis=1)
    middles: NDArray[np.float64] = (ranked[low] + ranked[high]) / 2
    return middles


def _pinball(
    y: NDArray[np.float64], p: NDArray[np.float64], ends: Any, counts: NDArray[np.float64]
) -> NDArray[np.float64]:
    off = y[:, None] - np.column_stack([ends[:, 0], p, ends[:, 1]])
    losses = np.maximum(off * _LEVELS, off * (_LEVELS - 1)).mean(axis=1)
    return -_mean(losses, counts)


# Each takes the truth, answers, the ends of intervals, and counts of rows.
_NUMBER_SCORES: dict[str, Callable[..., NDArray[np.float64]]] = {
    "neg_mean_absolute_error": lambda y, p, _, n: -_mean(np.abs(y - p), n),
    "neg_root_mean_squared_error": lambda y, p, _, n: -np.sqrt(_mean((y - p) ** 2, n)),
    "neg_mean_squared_error": lambda y, p, _, n: -_mean((y - p) ** 2, n),
    "neg_median_absolute_error": lambda y, p, _, n: -_median(np.abs(y - p), n),
    "neg_mean_absolute_percentage_error": lambda y, p, _, n: (
        -_mean(np.abs(y - p) / np.maximum(np.abs(y), np.finfo(np.float64).eps), n)
    ),
    "explained_variance": lambda y, p, _, n: _explained(_variance(y - p, n), y, n),
    "r2": lambda y, p, _, n: _explained(_mean((y - p) ** 2, n), y, n),
    _PINBALL: _pinball,
}


def scoring_to_json(scoring: Scoring | None) -> str | list[list[Any]] | None:
    """Return a name, or [true label, answer, cost] for each cost; None for a scorer, which is code.

    >>> scoring_to_json({("yes", "no"): 5.0}), scoring_to_json("f1"), scoring_to_json(max)
    ([['yes', 'no', 5.0]], 'f1', None)
    """
    if scoring is None or isinstance(scoring, str):
        return scoring
    metric = find_metric(scoring)
    if metric.costs is not None:
        return [[*map(json_safe, pair), float(cost)] for pair, cost in metric.costs.items()]
    return metric.name if metric.is_named else None


def scoring_from_json(data: str | list[list[Any]] | None) -> Scoring | None:
    """Return what `scoring_to_json` was given, but for code."""
    if isinstance(data, list):
        return {(truth, answer): cost for truth, answer, cost in data}
    return data


def _is_of_answers(scorer: Any) -> bool:
    """Return whether a scorer of scikit-learn calls `predict`."""
    return getattr(scorer, "_response_method", None) == "predict"


class _Answers(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier that has answered already; the rows it is given are its probabilities."""

    def __init__(self, classes: NDArray[Any], codes: NDArray[np.intp]) -> None:
        self.classes_ = classes
        self.codes = codes

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:
        labels: NDArray[Any] = self.classes_[self.codes[: len(X)]]
        return labels

    def predict_proba(self, X: NDArray[Any]) -> NDArray[Any]:
        return X


def _by_name(name: str, answers: _Answers, chances: NDArray[Any], y: NDArray[Any]) -> float:
    """Score by a scorer of scikit-learn; codes stand for labels, so that 1 is the positive one."""
    known = name if len(answers.classes_) == _TWO else _OF_MANY.get(name, name)
    codes = np.searchsorted(answers.classes_, y)
    if _ALIASES.get(known, known) == "neg_log_loss":  # theirs refuses rows that lack a class
        return float(np.log(chances[np.arange(len(y)), codes]).mean())
    coded = _Answers(np.arange(len(answers.classes_)), answers.codes)
    score: float = get_scorer(known)(coded, chances, codes)
    return score


def _precision_at(
    number: float, answers: _Answers, chances: NDArray[Any], y: NDArray[Any], *, is_share: bool
) -> float:
    """Return the share of positives among the rows with the highest probability of it."""
    if len(answers.classes_) != _TWO:
        raise InputError(f"precision_at_{number:g} takes two classes, not {len(answers.classes_)}")
    n_top = math.ceil(len(y) * number / 100) if is_share else int(number)
    top = np.argsort(-chances[:, 1], kind="stable")[: max(n_top, 1)]
    return float((y[top] == answers.classes_[1]).mean())


def _cost_metric(costs: Mapping[tuple[Any, Any], float]) -> Metric:
    """Return the metric of the mean cost of an answer, negated."""
    pairs = all(isinstance(pair, tuple) and len(pair) == _TWO for pair in costs)
    if not costs or not pairs or not all(math.isfinite(cost) for cost in costs.values()):
        raise InputError(
            f"a cost matrix is {{(true label, answer): cost, ...}} with finite costs; got {costs!r}"
        )

    def mean_cost(answers: _Answers, _: NDArray[Any], y: NDArray[Any]) -> float:
        matrix = _cost_matrix(costs, answers.classes_)
        return -float(matrix[np.searchsorted(answers.classes_, y), answers.codes].mean())

    return Metric(_COST, mean_cost, costs, uses_answers=True)


def _cost_matrix(
    costs: Mapping[tuple[Any, Any], float], classes: NDArray[Any]
) -> NDArray[np.float64]:
    """Return what each answer (column) costs for each true class (row)."""
    names, place = [*map(str, classes.tolist())], codes_by_name(classes.tolist())
    unknown = [label for pair in costs for label in pair if label not in place]
    if unknown:
        raise InputError(
            f"the cost matrix has the label {unknown[0]!r}; {suggest(unknown[0], names)}"
        )
    matrix = np.zeros((len(names), len(names)))
    for (truth, answer), cost in costs.items():
        matrix[place[truth], place[answer]] = cost
    return matrix


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


@dataclass(frozen=True, eq=False)
class NumberPredictions:
    """The numbers that a model says of some rows, and the ends (n, 2) of intervals for 80 %.

    Not every model gives intervals.
    """

    values: Floats
    ends: Floats | None = None

    @classmethod
    def of(cls, outputs: Floats) -> NumberPredictions:
        """Take the columns of (n, 1), or (n, 3) with both ends."""
        return cls(outputs[:, 0], outputs[:, 1:] if outputs.shape[1] > 1 else None)

    def take(self, rows: Any) -> NumberPredictions:
        """Return those of some rows."""
        return NumberPredictions(self.values[rows], None if self.ends is None else self.ends[rows])


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
            return _precisions_at(*metric.top, y, model.chances[:, 1], counts)
    return np.array([_slow_score(metric, y, model, classes, count) for count in counts])


def is_fast(metric: Metric) -> bool:
    """Return whether all draws are scored at once."""
    is_known = metric.name in ("accuracy", *_FROM_CONFUSION, *_RANKED) or metric.is_log_loss
    return is_known or metric.costs is not None or metric.top is not None


def _row_values(
    metric: Metric, y: Codes, model: Predictions, classes: NDArray[Any]
) -> Floats | None:
    """Return the values whose mean is the score; none if the metric is not a mean over rows."""
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


def _precisions_at(number: float, is_share: bool, y: Codes, p: Floats, counts: Floats) -> Floats:
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


def shown_value(metric: str, score: float) -> float:
    """Return a score, of which higher is better, as people expect it: losses without their sign."""
    return -score if _is_loss(metric) else score


def _is_loss(metric: str) -> bool:
    return metric in (_COST, _PINBALL, *_ALIASES) or metric.startswith("neg_")


def metric_words(name: str) -> str:
    """Return a metric's name as people say it.

    >>> metric_words("roc_auc"), metric_words("neg_log_loss"), metric_words("precision_at_5%")
    ('AUC', 'log loss', 'precision at 5%')
    """
    return _WORDS.get(name, name.removeprefix("neg_").replace("_", " "))


def figure(metric: str, value: float | None) -> str:
    """Return a score as people read it: three decimals, or in the unit of the label four digits.

    >>> figure("roc_auc", 0.8125), figure("neg_mean_absolute_error", 38.2066)
    ('0.812', '38.21')
    """
    if value is None or not math.isfinite(value):
        return "unknown"
    return amount(value) if metric in _IN_UNITS else f"{value:.3f}"


def amount(value: float) -> str:
    """Return a number in four digits, with a comma at thousands.

    >>> amount(1234567.8), amount(12.3456), amount(0.00123456), amount(20.0)
    ('1,234,568', '12.35', '0.001235', '20')
    """
    size = abs(value)
    if size and not 1e-6 <= size < 1e15:  # noqa: PLR2004
        return f"{value:.3e}"
    if float(value).is_integer():
        return f"{int(value):,}"
    return f"{value:,.{max(_DIGITS - 1 - math.floor(math.log10(size)), 0)}f}"
