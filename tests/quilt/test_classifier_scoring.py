"""A metric chooses the bound and the blend, and changes nothing where it is the log loss."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from driftquilt import QuiltClassifier
from driftquilt.core.segment import Segment, cut
from driftquilt.errors import InputError
from driftquilt.learners.mlp import MLP
from driftquilt.quilt.blending import Judge, choose_by_score
from driftquilt.quilt.executor import Threads
from driftquilt.quilt.method import DEFAULT, Quilt
from driftquilt.quilt.metrics import find_metric
from driftquilt.search.bayes import Bayes

CLASSES = np.array(["no", "yes"])
QUILT = replace(DEFAULT, learner=MLP(hidden_units=16, learning_rate=0.02), executor=Threads(1))
SMALL: dict[str, Any] = {"hidden_units": 8, "random_state": 0, "n_jobs": 1}


def judge(name: str) -> Judge:
    return Judge(find_metric(name), CLASSES)


@pytest.fixture(scope="module")
def months() -> tuple[list[Segment], Segment]:
    """Five months, two of them turned round; about a quarter of the last one is of class 1."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1000, 3)).astype(np.float32)
    month = np.repeat(np.arange(5), 200)
    y = ((X[:, 0] + 0.5 * X[:, 1] > 0.7) ^ np.isin(month, (0, 2))).astype(np.int64)
    return cut(X, y, month, list("abcde"))


@pytest.fixture(scope="module")
def table() -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    month = np.repeat(["April", "May", "June"], [120, 120, 60])
    return X, np.where((X[:, 0] > 0.5) ^ (month == "April"), "yes", "no"), month


def test_candidates_that_cannot_be_told_apart_lean_to_the_past_and_undefined_ones_never_win() -> (
    None
):
    clear = np.array([[0.9, 0.9, 0.9], [0.5, 0.5, 0.5]])
    assert choose_by_score(clear) == 0
    unsure = np.array([[0.9, math.nan, 0.9], [0.5, 0.5, math.nan]])  # one block has all positives
    assert choose_by_score(unsure) == 1
    undefined = np.array([[0.9, 0.9, 0.9], [math.nan] * 3])
    assert choose_by_score(undefined) == 0
    assert choose_by_score(np.full((3, 4), math.nan)) == 2


def test_a_judge_scores_all_rows_and_those_without_each_block() -> None:
    y = np.array([0, 1] * 20)
    chances = np.column_stack([1 - 0.1 * y, 0.1 * y])  # ranked perfectly, never above one half
    scores = judge("roc_auc").scores(y, chances)
    assert scores.tolist() == [1.0] * 9
    assert judge("f1").scores(y, chances)[0] == 1.0  # by the best threshold
    assert judge("accuracy").scores(y, chances)[0] == 0.5
    costs = Judge(find_metric({("yes", "no"): 20.0, ("no", "yes"): 1.0}), CLASSES)
    assert costs.scores(y, chances)[0] == 0.0  # 10 % is a yes


@pytest.mark.parametrize("blend", [True, False])
def test_the_choice_is_that_of_the_best_out_of_fold_score(
    months: tuple[list[Segment], Segment], blend: bool
) -> None:
    history, current = months
    quilt = replace(QUILT, blend=blend, judge=judge("roc_auc"))
    model = quilt.adapt(history, current.take(slice(None, 60)))
    winners = [line for line in model.tried_bounds() if line.won]
    places = {
        [b.disparity_max for b in model.tried_bounds() if b.fold == line.fold].index(
            line.disparity_max
        )
        for line in winners
    }
    assert len(places) == 1  # one candidate for all folds
    assert [use.used for use in model.selection][::2][:2] == [False, False]


def test_folds_that_tried_different_bounds_choose_each_for_itself(
    months: tuple[list[Segment], Segment],
) -> None:
    history, current = months
    search = Bayes(n_random=2, n_guided=0)
    quilt = Quilt(QUILT.learner, n_folds=2, max_epochs=8, search=search, judge=judge("roc_auc"))
    model = quilt.adapt(history, current.take(slice(None, 60)))
    assert len(model.selection.folds) == 2


def test_the_log_loss_by_either_name_and_a_metric_without_a_past_change_nothing(
    table: tuple[Any, Any, Any],
) -> None:
    X, y, month = table
    plain = QuiltClassifier(**SMALL).fit(X, y, segments=month).predict_proba(X)
    for name in ("log_loss", "neg_log_loss"):
        same = QuiltClassifier(**SMALL, scoring=name).fit(X, y, segments=month)
        assert same.predict_proba(X).tobytes() == plain.tobytes()
    alone = QuiltClassifier(**SMALL).fit(X, y).predict_proba(X)
    by_auc = QuiltClassifier(**SMALL, scoring="roc_auc").fit(X, y).predict_proba(X)
    assert by_auc.tobytes() == alone.tobytes()


def test_current_rows_of_one_class_leave_the_choice_to_the_past(
    table: tuple[Any, Any, Any],
) -> None:
    X, y, month = table
    kept = (month != "June") | (y == "no")
    clf = QuiltClassifier(**SMALL, scoring="roc_auc").fit(X[kept], y[kept], segments=month[kept])
    assert clf.selection_.blend[0] > 0.2


@pytest.mark.parametrize(
    "scoring", ["roc_auc", "precision_at_10%", {("yes", "no"): 5.0, ("no", "yes"): 1.0}], ids=str
)
def test_a_metric_survives_clone_and_the_model_file_and_engines_agree(
    table: tuple[Any, Any, Any], tmp_path: Path, scoring: Any
) -> None:
    X, y, month = table
    clf = clone(QuiltClassifier(**SMALL, scoring=scoring)).fit(X, y, segments=month)
    clf.save(tmp_path / "model.safetensors")
    loaded = QuiltClassifier.load(tmp_path / "model.safetensors")
    assert loaded.get_params() == clf.get_params()
    assert loaded.scoring == scoring
    assert loaded.predict_proba(X).tobytes() == clf.predict_proba(X).tobytes()
    assert loaded.threshold_ is None
    as_value = QuiltClassifier(**SMALL, scoring=find_metric(scoring), engine="processes")
    again = as_value.fit(X, y, segments=month)
    assert again.predict_proba(X).tobytes() == clf.predict_proba(X).tobytes()
    again.save(tmp_path / "again.safetensors")
    assert QuiltClassifier.load(tmp_path / "again.safetensors").scoring == scoring


def test_a_scorer_is_code_and_not_saved(table: tuple[Any, Any, Any], tmp_path: Path) -> None:
    X, y, month = table

    def misses_none(model: Any, X: Any, y: Any) -> float:
        return float((model.predict(X) == "yes")[y == "yes"].all())

    clf = QuiltClassifier(**SMALL, scoring=misses_none).fit(X, y, segments=month)
    clf.save(tmp_path / "model.safetensors")
    assert QuiltClassifier.load(tmp_path / "model.safetensors").scoring is None


@pytest.mark.parametrize(
    ("scoring", "named"),
    [("roc_acu", "roc_auc"), ({("yes", "maybe"): 1.0}, "maybe"), (3, "scoring")],
)
def test_a_metric_that_makes_no_sense_is_refused(
    table: tuple[Any, Any, Any], scoring: Any, named: str
) -> None:
    X, y, month = table
    with pytest.raises(InputError, match=named):
        QuiltClassifier(**SMALL, scoring=scoring).fit(X, y, segments=month)
