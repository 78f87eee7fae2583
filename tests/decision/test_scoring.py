"""Scores equal those of scikit-learn, and intervals hold what they promise."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    f1_score,
    log_loss,
    precision_score,
    recall_score,
    roc_auc_score,
)

from driftquilt.decision.scoring import ClassScorer, Trial, describe
from driftquilt.quilt.metrics import Predictions, find_metric, tune_threshold, weighted_scores


def make(n_rows: int = 400, n_classes: int = 2, *, skill: float = 1.0, seed: int = 0) -> Any:
    """Labels, and probabilities with ties that say something of them."""
    rng = np.random.default_rng(seed)
    y = rng.integers(n_classes, size=n_rows)
    logits = np.round(rng.normal(size=(n_rows, n_classes)) + skill * np.eye(n_classes)[y], 1)
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    return y, chances, np.array([f"c{k}" for k in range(n_classes)])


ORACLES: dict[str, Any] = {
    "log_loss": lambda y, p, _: -log_loss(y, p),
    "roc_auc": lambda y, p, _: (
        roc_auc_score(y, p[:, 1]) if p.shape[1] == 2 else roc_auc_score(y, p, multi_class="ovr")
    ),
    "average_precision": lambda y, p, _: average_precision_score(
        y, p[:, 1] if p.shape[1] == 2 else p
    ),
    "f1": lambda y, p, a: f1_score(y, a, average="binary" if p.shape[1] == 2 else "macro"),
    "precision": lambda y, p, a: precision_score(
        y, a, average="binary" if p.shape[1] == 2 else "macro"
    ),
    "recall": lambda y, p, a: recall_score(y, a, average="binary" if p.shape[1] == 2 else "macro"),
    "balanced_accuracy": lambda y, _, a: balanced_accuracy_score(y, a),
    "accuracy": lambda y, _, a: (y == a).mean(),
}


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", ORACLES)
def test_a_score_is_that_of_scikit_learn_also_of_drawn_rows(name: str, n_classes: int) -> None:
    y, chances, classes = make(n_classes=n_classes)
    model, metric = Predictions.of(chances), find_metric(name)
    counts = np.random.default_rng(1).multinomial(len(y), np.full(len(y), 1 / len(y)), size=3)
    scores = weighted_scores(metric, y, model, classes, counts.astype(float))
    for count, score in zip(counts, scores, strict=True):
        rows = np.repeat(np.arange(len(y)), count)
        expected = ORACLES[name](y[rows], chances[rows], model.codes[rows])
        assert score == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("name", ["precision_at_20", "precision_at_5%", "matthews_corrcoef"])
def test_other_metrics_are_those_of_the_library(name: str) -> None:
    y, chances, classes = make()
    metric, everything = find_metric(name), np.ones((1, len(y)))
    (score,) = weighted_scores(metric, y, Predictions.of(chances), classes, everything)
    assert score == pytest.approx(metric.score(y, chances, classes))


@pytest.mark.parametrize("name", ["log_loss", "roc_auc", "f1", "accuracy", "matthews_corrcoef"])
def test_a_much_better_model_is_better_and_its_equal_is_not(name: str) -> None:
    y, chances, classes = make(skill=2.0)
    _, vague, _ = make(skill=0.2, seed=0)
    models = {n: Predictions.of(p) for n, p in {"a": chances, "b": vague, "c": chances}.items()}
    trial = Trial(ClassScorer(find_metric(name), classes), y, models)
    found = trial.compare("a", "b")
    assert (found.verdict, trial.compare("b", "a").verdict) == ("better", "worse")
    assert 0 < found.interval[0] < found.difference < found.interval[1]
    same = trial.compare("a", "c")
    assert (same.verdict, same.difference, same.p_value) == ("no clear difference", 0, 1)
    score = trial.score("a")
    assert score.value is not None
    assert score.interval is not None
    assert score.interval[0] < score.value < score.interval[1]
    assert score.lower_is_better is (name == "log_loss")
    again = Trial(ClassScorer(find_metric(name), classes), y, models)
    assert again.compare("a", "b") == found


@pytest.mark.parametrize("name", ["log_loss", "roc_auc"])
def test_equal_models_are_seldom_told_apart(name: str) -> None:
    n_clear = 0
    for seed in range(60):
        y, chances, classes = make(200, seed=seed)
        rng = np.random.default_rng(seed)
        noisy = [np.exp(np.log(chances) + rng.normal(size=chances.shape)) for _ in range(2)]
        found = [Predictions.of(p / p.sum(axis=1, keepdims=True)) for p in noisy]
        models = {"a": found[0], "b": found[1]}
        trial = Trial(ClassScorer(find_metric(name), classes), y, models)
        n_clear += trial.compare("a", "b").verdict != "no clear difference"
    assert n_clear <= 8  # 5 % of 60 are 3


@pytest.mark.parametrize("name", ["accuracy", "log_loss"])
def test_a_few_rows_have_no_verdict(name: str) -> None:
    for n_rows, expected in ((29, "too few rows"), (30, "better")):
        y, classes = np.arange(n_rows) % 2, np.array(["a", "b"])
        right = np.where(y[:, None] == [0, 1], 0.9, 0.1)
        models = {"a": Predictions.of(right), "b": Predictions.of(1 - right)}
        trial = Trial(ClassScorer(find_metric(name), classes), y, models)
        assert trial.compare("a", "b").verdict == expected


def test_a_metric_that_is_not_defined_has_no_value_and_no_verdict() -> None:
    y, chances, classes = np.zeros(50, dtype=int), np.full((50, 2), 0.5), np.array(["a", "b"])
    models = {"a": Predictions.of(chances), "b": Predictions.of(chances)}
    trial = Trial(ClassScorer(find_metric("roc_auc"), classes), y, models)
    assert trial.score("a").value is None
    assert trial.compare("a", "b").verdict == "no clear difference"
    assert math.isnan(trial.value("a"))


def test_a_threshold_is_tuned_for_answers_and_follows_from_costs() -> None:
    rng = np.random.default_rng(0)
    y = (rng.random(4000) < 0.05).astype(int)
    p = 1 / (1 + np.exp(-(rng.normal(size=4000) + 2.0 * y - 3.9)))
    chances, classes = np.column_stack([1 - p, p]), np.array(["no", "yes"])
    threshold = tune_threshold(find_metric("f1"), y, chances, classes)
    assert threshold is not None
    assert 0.02 < threshold < 0.45
    assert f1_score(y, p > threshold) > f1_score(y, p > 0.5) + 0.1
    costs = find_metric({("yes", "no"): 9.0, ("no", "yes"): 1.0})
    assert tune_threshold(costs, y, chances, classes) == pytest.approx(0.1)
    for name in ("accuracy", "log_loss", "roc_auc"):
        assert tune_threshold(find_metric(name), y, chances, classes) is None


def test_quality_counts_every_row_and_measures_calibration() -> None:
    rng = np.random.default_rng(0)
    p = rng.random(5000)
    y = (rng.random(5000) < p).astype(int)
    honest = describe(y, Predictions.of(np.column_stack([1 - p, p])), np.array([0, 1]))
    assert honest.calibration_error is not None
    assert honest.calibration_error < 0.03
    assert [part.n_rows for part in honest.calibration] == [500] * 10
    assert sum(map(sum, honest.confusion)) == 5000
    shy = 0.5 + (p - 0.5) / 4
    other = describe(y, Predictions.of(np.column_stack([1 - shy, shy])), np.array([0, 1]))
    assert other.calibration_error is not None
    assert other.calibration_error > 0.1
    assert other.auc == pytest.approx(honest.auc)
    answers = describe(y, Predictions.of_answers(y, 2), np.array([0, 1]))
    assert (answers.auc, answers.log_loss, answers.calibration) == (None, None, ())
