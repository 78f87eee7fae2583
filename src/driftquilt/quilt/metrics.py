"""What "better" means: one metric, for any scikit-learn scorer and for any model's answers.

A `Metric` scores class probabilities that were computed before, so models of every kind, blends
and held-out predictions are judged in the same way. Higher is always better: losses are negated,
as in scikit-learn.

    scoring                   what is scored
    "log_loss"                the probability of the true class (the default)
    "accuracy", "roc_auc", "average_precision", "f1", "balanced_accuracy", ...
                              any name that scikit-learn's `get_scorer` knows
    "precision_at_100"        precision among the 100 rows most likely to be positive
    "precision_at_5%"         the same for a share of the rows
    {("yes", "no"): 5, ...}   the cost of answering "no" where "yes" is true; others cost nothing
    a callable                a scikit-learn scorer, called as scorer(estimator, X, y)

Of two classes, the second in sorted order is the positive one, as in scikit-learn.

>>> y, chances = np.array([0, 1, 1]), np.array([[0.9, 0.1], [0.4, 0.6], [0.7, 0.3]])
>>> round(find_metric("accuracy").score(y, chances, np.array(["no", "yes"])), 3)
0.667
>>> costs = {("yes", "no"): 5.0, ("no", "yes"): 1.0}      # so a chance of 30 % is a "yes"
>>> find_metric(costs).decide(chances, np.array(["no", "yes"])).tolist()
[0, 1, 1]
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
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import get_scorer, get_scorer_names

from driftquilt.data.labels import codes_by_name
from driftquilt.errors import InputError
from driftquilt.text import json_safe, suggest

__all__ = [
    "Metric",
    "NumberMetric",
    "Scoring",
    "find_metric",
    "find_number_metric",
    "scoring_from_json",
    "scoring_to_json",
]

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
}
_NUMBER_SCORERS = (
    *_OF_NUMBERS.values(),
    "neg_median_absolute_error",
    "neg_mean_absolute_percentage_error",
    "explained_variance",
    "r2",
)
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
        return self.costs is not None or self.name in _ALIASES or self.name.startswith("neg_")

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

    `is_squared` says that large errors count by their square, as with `rmse` and `r2`.
    """

    name: str
    scorer: Callable[[Any, NDArray[Any], NDArray[Any]], float]

    @property
    def is_squared(self) -> bool:
        """Whether it goes by squared errors."""
        return "squared" in self.name or self.name in ("r2", "explained_variance")

    @property
    def is_loss(self) -> bool:
        """Whether the score is a negated loss, to be shown without its sign."""
        return self.name.startswith("neg_")

    def score(self, y: NDArray[Any], predicted: NDArray[Any]) -> float:
        """Return the score of these predictions; NaN without rows."""
        if not len(y):
            return math.nan
        return float(self.scorer(_Numbers(np.asarray(predicted)), np.zeros((len(y), 1)), y))


def find_number_metric(scoring: Any | None) -> NumberMetric:
    """Return the metric of a regression: "mae" (the default), "rmse", "mse", "r2", or a scorer's.

    >>> find_number_metric("mae").score(np.array([1.0, 2.0]), np.array([1.0, 4.0]))
    -1.0
    """
    if scoring is None:
        scoring = "mae"
    if isinstance(scoring, NumberMetric):
        return scoring
    name = _OF_NUMBERS.get(scoring, scoring) if isinstance(scoring, str) else None
    if name is None or name not in _NUMBER_SCORERS:
        raise InputError(
            f"unknown metric of a regression {scoring!r}; "
            f"{suggest(str(scoring), [*_OF_NUMBERS, *_NUMBER_SCORERS])}"
        )
    return NumberMetric(name, get_scorer(name))


class _Numbers(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor that has answered already."""

    def __init__(self, predicted: NDArray[Any]) -> None:
        self.predicted = predicted

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: NDArray[Any]) -> NDArray[Any]:  # noqa: ARG002
        return self.predicted


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
