"""What a metric says of probabilities, against scikit-learn and by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    f1_score,
    log_loss,
    roc_auc_score,
)

from driftquilt.errors import InputError
from driftquilt.quilt.metrics import Predictions, find_metric, scoring_to_json, shown_score

Answers = tuple[NDArray[Any], NDArray[Any]]
LABELS = np.array(["no", "yes"])


@pytest.fixture
def answers() -> Answers:
    rng = np.random.default_rng(0)
    y = (rng.random(300) < 0.3).astype(np.int64)
    positive = np.clip(0.3 + 0.3 * (y - 0.3) + rng.normal(scale=0.2, size=300), 0.01, 0.99)
    return y, np.column_stack([1 - positive, positive])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("log_loss", lambda y, p: -log_loss(y, p)),
        ("neg_log_loss", lambda y, p: -log_loss(y, p)),
        ("roc_auc", lambda y, p: roc_auc_score(y, p[:, 1])),
        ("average_precision", lambda y, p: average_precision_score(y, p[:, 1])),
        ("f1", lambda y, p: f1_score(y, p.argmax(axis=1))),
        ("balanced_accuracy", lambda y, p: balanced_accuracy_score(y, p.argmax(axis=1))),
        ("precision_at_20", lambda y, p: y[np.argsort(-p[:, 1])[:20]].mean()),
        ("precision_at_5%", lambda y, p: y[np.argsort(-p[:, 1])[:15]].mean()),
    ],
)
def test_score_is_that_of_scikit_learn_whatever_the_labels_are(
    answers: Answers, name: str, expected: Callable[..., float]
) -> None:
    y, p = answers
    metric = find_metric(name)
    assert metric.score(y, p, LABELS) == pytest.approx(expected(y, p))
    assert metric.score(y, p, np.array([3, 7])) == pytest.approx(expected(y, p))


@pytest.mark.parametrize("name", ["log_loss", "roc_auc", "f1", "average_precision", "accuracy"])
def test_metrics_take_three_classes(name: str) -> None:
    rng = np.random.default_rng(1)
    y = rng.integers(3, size=200)
    p = rng.dirichlet(np.ones(3), size=200) + np.eye(3)[y]
    assert math.isfinite(find_metric(name).score(y, p, np.array(["a", "b", "c"])))


def test_a_ranking_of_one_class_is_not_defined() -> None:
    p = np.full((5, 2), 0.5)
    for name in ("roc_auc", "average_precision"):
        assert math.isnan(find_metric(name).score(np.zeros(5, dtype=int), p, LABELS))
    assert math.isnan(find_metric("log_loss").score(np.zeros(0, dtype=int), p[:0], LABELS))


def test_costs_choose_the_cheapest_answer_and_are_counted() -> None:
    metric = find_metric({("yes", "no"): 10.0, ("no", "yes"): 1.0})
    p = np.array([[0.95, 0.05], [0.8, 0.2], [0.1, 0.9]])
    assert metric.decide(p, LABELS).tolist() == [0, 1, 1]
    assert metric.score(np.array([1, 0, 1]), p, LABELS) == pytest.approx(-11 / 3)
    assert metric.is_loss


def test_a_scorer_of_your_own_sees_your_labels(answers: Answers) -> None:
    y, p = answers

    def share_of_yes(estimator: Any, X: Any, y: Any) -> float:
        assert set(y) <= {"no", "yes"}
        return float((estimator.predict(X) == "yes").mean())

    metric = find_metric(share_of_yes)
    assert metric.score(y, p, LABELS) == pytest.approx((p[:, 1] > 0.5).mean())
    assert metric.name == "share_of_yes"


@pytest.mark.parametrize(
    "name", ["accuracy", "f1", "roc_auc", "log_loss", "precision_at_5", "cost"]
)
def test_a_scorer_of_your_own_is_not_taken_for_the_metric_of_its_name(
    answers: Answers, name: str
) -> None:
    def scorer(_: Any, X: Any, y: Any) -> float:
        return len(X) / len(y) / 8

    scorer.__name__ = name
    y, p = answers
    metric = find_metric(scorer)
    assert metric.name == f"own {name}"
    assert not metric.is_loss
    assert shown_score(metric, y, Predictions.of(p), LABELS) == 1 / 8


def test_only_a_name_or_costs_can_be_written_down() -> None:
    assert find_metric("f1").is_named
    assert find_metric({("yes", "no"): 1.0}).is_named
    own = partial(max, key=None)
    assert not find_metric(own).is_named
    assert scoring_to_json(own) is None


@pytest.mark.parametrize(
    ("scoring", "named"),
    [("roc_ac", "roc_auc"), ({}, "cost matrix"), ({("a", "b"): math.nan}, "cost matrix")],
)
def test_bad_metrics_are_refused_by_name(scoring: Any, named: str) -> None:
    with pytest.raises(InputError, match=named):
        find_metric(scoring)


def test_costs_of_unknown_labels_and_precision_of_three_classes_are_refused() -> None:
    p = np.full((4, 2), 0.5)
    with pytest.raises(InputError, match="yse"):
        find_metric({("yse", "no"): 1.0}).score(np.array([0, 1, 0, 1]), p, LABELS)
    with pytest.raises(InputError, match="two classes"):
        find_metric("precision_at_2").score(np.array([0, 1, 2]), np.eye(3), np.array([0, 1, 2]))
