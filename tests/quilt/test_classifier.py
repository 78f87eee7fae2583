"""QuiltClassifier does what its docstring says, on every kind of table, label and segment."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import sklearn
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

from driftquilt import QuiltClassifier, TorchLearner
from driftquilt.core.sampling import EVERY_ROW
from driftquilt.errors import InputError
from driftquilt.learners.mlp import MLP
from driftquilt.quilt.executor import Threads
from driftquilt.quilt.method import DEFAULT, PAPER, Quilt
from driftquilt.search.bayes import Bayes
from driftquilt.search.shared import Shared

pd = pytest.importorskip("pandas")

rng = np.random.default_rng(0)
N = 240
X = rng.normal(size=(N, 3))
MONTH = np.repeat(["April", "May", "June"], N // 3)
Y = ((X[:, 0] > 0) ^ (MONTH == "April")).astype(np.int64)  # April was the other way round
NEW = rng.normal(size=(50, 3))

MIXED: dict[str, list[Any]] = {
    "age": [None if i % 11 == 3 else float(v) for i, v in enumerate(X[:, 0])],
    "visits": [int(v) for v in rng.integers(9, size=N)],
    "paid": [bool(v > 0) for v in X[:, 1]],
    "city": [None if i % 7 == 2 else ("Oslo", "Rome", "Bonn")[i % 3] for i in range(N)],
    "plan": [("free", "pro")[i % 2] for i in range(N)],
}
TABLES: dict[str, Callable[[Mapping[str, list[Any]]], Any]] = {
    "numpy": lambda columns: np.array(list(columns.values()), dtype=object).T,
    "pandas": lambda columns: pd.DataFrame(columns).astype({"plan": "category"}),
    "polars": lambda columns: pl.DataFrame(columns).with_columns(pl.col("plan").cast(pl.Enum(
        sorted({"free", "pro", *columns["plan"]})))),
    "pyarrow": lambda columns: pa.table(
        {**columns, "plan": pa.array(columns["plan"]).dictionary_encode()}
    ),
    "dict": dict,
}  # fmt: skip


def quilt(**settings: Any) -> QuiltClassifier:
    small = {"hidden_units": 8, "learning_rate": 0.02, "max_epochs": 8, "random_state": 0}
    return QuiltClassifier(**{**small, **settings})


def fitted(**settings: Any) -> QuiltClassifier:
    return quilt(**settings).fit(X, Y, segments=MONTH)


def weights(clf: QuiltClassifier) -> list[bytes]:
    return [
        tensor.tobytes()
        for model in clf.model_.models
        for _, tensor in sorted(model.tensors().items())
    ]


def same(one: QuiltClassifier, other: QuiltClassifier) -> bool:
    equal: bool = np.array_equal(one.predict_proba(NEW), other.predict_proba(NEW))
    return equal and weights(one) == weights(other)


# Tables, labels, segments


@pytest.mark.parametrize("library", TABLES)
def test_every_library_gives_the_predictions_of_a_dict(library: str) -> None:
    table = TABLES[library](MIXED)
    clf = quilt().fit(table, Y, segments=MONTH)
    reference = quilt().fit(MIXED, Y, segments=MONTH)
    assert np.array_equal(clf.predict_proba(table), reference.predict_proba(MIXED))
    assert np.array_equal(clf.predict(table), reference.predict(MIXED))
    assert clf.score(table, Y) == reference.score(MIXED, Y)


@pytest.mark.parametrize("library", TABLES)
def test_a_category_never_seen_is_no_error_at_predict(library: str) -> None:
    clf = quilt().fit(TABLES[library](MIXED), Y, segments=MONTH)
    rows = {name: values[:5] for name, values in MIXED.items()}
    rows["city"], rows["plan"] = ["Kyiv"] * 5, ["team"] * 5
    probabilities = clf.predict_proba(TABLES[library](rows))
    assert probabilities.shape == (5, 2)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, rtol=1e-5)


def test_columns_are_found_by_name_at_predict() -> None:
    clf = quilt().fit(pd.DataFrame(MIXED), Y, segments=MONTH)
    turned = pd.DataFrame(MIXED)[list(reversed(MIXED))]
    assert np.array_equal(clf.predict_proba(turned), clf.predict_proba(MIXED))
    assert clf.feature_names_in_.tolist() == list(MIXED)


def test_fitting_without_names_forgets_the_names_of_the_fit_before() -> None:
    clf = quilt().fit(pd.DataFrame(X, columns=["a", "b", "c"]), Y)
    assert not hasattr(clf.fit(X, Y), "feature_names_in_")


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        pytest.param(Y, "i", id="int"),
        pytest.param(np.where(Y, "yes", "no"), "U", id="str"),
        pytest.param(np.where(Y, "yes", "no").astype(object), "O", id="object"),
        pytest.param(np.where(Y, "yes", "no").tolist(), "U", id="list"),
        pytest.param(Y.astype(bool), "b", id="bool"),
        pytest.param(pd.Categorical(np.where(Y, "yes", "no")), "U", id="categorical"),
        pytest.param(pl.Series(np.where(Y, "yes", "no"), dtype=pl.Categorical), "U", id="polars"),
    ],
)
def test_labels_come_back_as_they_were_given(labels: Any, kind: str) -> None:
    clf = quilt().fit(X, labels, segments=MONTH)
    answer = clf.predict(NEW)
    assert clf.classes_.dtype.kind == answer.dtype.kind == kind
    assert set(answer.tolist()) <= set(clf.classes_.tolist()) == set(labels)
    assert np.array_equal(clf.predict_proba(NEW), fitted().predict_proba(NEW))


@pytest.mark.parametrize(
    "ids",
    [
        pytest.param([4, 5, 6], id="int"),
        pytest.param(["b", "a", "c"], id="str"),
        pytest.param([dt.date(2024, month, 1) for month in (4, 5, 6)], id="date"),
        pytest.param([dt.datetime(2024, month, 1, 12) for month in (4, 5, 6)], id="datetime"),
        pytest.param(np.array(["2024-04", "2024-05", "2024-06"], "M8[M]"), id="datetime64"),
        pytest.param(pd.date_range("2024-04-01", periods=3), id="timestamp"),
        pytest.param(pd.period_range("2024-04", periods=3, freq="M"), id="period"),
        pytest.param([(2024, 4), (2024, 5), (2024, 6)], id="tuple"),
    ],
)
def test_segments_may_be_anything_that_can_be_compared(ids: Any) -> None:
    ids = list(ids)
    clf = quilt().fit(X, Y, segments=[ids[code] for code in np.repeat([0, 1, 2], N // 3)])
    assert same(clf, fitted())
    assert len(clf.selection_) == 2
    assert [use.used for use in clf.selection_] == [use.used for use in fitted().selection_]


def test_rows_of_segments_may_be_interleaved() -> None:
    order = np.arange(N).reshape(3, -1).T.ravel()  # April, May, June, April, …
    mixed_up = quilt(encode=False).fit(X[order], Y[order], segments=MONTH[order])
    assert same(mixed_up, fitted(encode=False))


def test_without_segments_there_is_no_history() -> None:
    clf = quilt().fit(X, Y)
    assert len(clf.selection_) == 0
    assert "no past segment" in clf.selection_.explain()
    assert len(clf.search_) == clf.n_folds


def test_the_segment_that_appears_last_is_current_whatever_its_name() -> None:
    clf = quilt().fit(X, Y, segments=np.repeat(["nine", "one", "five"], N // 3))
    assert [use.name for use in clf.selection_] == ["nine", "one"]
    assert clf.selection_.current == "five"


def test_a_class_may_be_in_old_segments_only() -> None:
    labels = Y.copy()
    labels[:20] = 2
    clf = quilt().fit(X, labels, segments=MONTH)
    assert clf.classes_.tolist() == [0, 1, 2]
    assert clf.predict_proba(NEW).shape == (50, 3)


def test_a_class_may_be_in_the_current_segment_only() -> None:
    labels = np.where((MONTH == "June") & (X[:, 1] > 0), 2, Y)
    clf = quilt(max_epochs=60).fit(X, labels, segments=MONTH)
    june = MONTH == "June"
    assert clf.score(X[june], labels[june]) > 0.8


# Weights


def test_rows_of_weight_zero_count_as_if_they_were_not_there() -> None:
    used = np.arange(N) % 5 > 0
    rows = X.copy()
    rows[~used] = 1e6  # would spoil the scaling
    weight = np.where(used, 1.0 + (np.arange(N) % 3), 0.0)
    with_them = quilt(class_weight="balanced").fit(rows, Y, MONTH, sample_weight=weight)
    without = quilt(class_weight="balanced").fit(X[used], Y[used], MONTH[used], weight[used])
    assert same(with_them, without)


def test_a_segment_of_weight_zero_is_no_segment() -> None:
    clf = quilt().fit(X, Y, MONTH, sample_weight=(MONTH != "June").astype(float))
    assert [use.name for use in clf.selection_] == ["April"]


def test_the_class_of_a_row_of_weight_zero_is_known() -> None:
    labels = Y.copy()
    labels[0] = 2
    clf = quilt().fit(X, labels, MONTH, sample_weight=np.arange(N) > 0)
    assert clf.predict_proba(NEW).shape == (50, 3)


def test_only_the_proportions_of_weights_matter() -> None:
    weight = 1.0 + np.arange(N) % 2
    assert same(quilt().fit(X, Y, MONTH, weight), quilt().fit(X, Y, MONTH, 4 * weight))
    assert not same(quilt().fit(X, Y, MONTH, weight), fitted())


def odds(clf: QuiltClassifier) -> Any:
    """How much more probable the second class is than the first."""
    first, second = clf.predict_proba(NEW).T
    return second / first


def test_class_weight_trains_as_sample_weight_but_answers_for_the_rows_as_they_are() -> None:
    by_class = fitted(class_weight=MappingProxyType({1: 3.0}), n_folds=1, blend=False)
    by_row = quilt(n_folds=1, blend=False).fit(X, Y, MONTH, np.where(Y == 1, 3.0, 1.0))
    np.testing.assert_allclose(3.0 * odds(by_class), odds(by_row), rtol=1e-3)


@pytest.mark.parametrize("blend", [True, False])
def test_with_class_weights_probabilities_stay_calibrated_and_answers_favour_the_class(
    blend: bool,
) -> None:
    rng = np.random.default_rng(5)
    rows, month = rng.normal(size=(6000, 2)), np.repeat([0, 1, 2], 2000)
    rare = (rng.random(6000) < 1 / (1 + np.exp(3.5 - rows[:, 0]))).astype(np.int64)
    plain = quilt(blend=blend).fit(rows, rare, month)
    balanced = quilt(blend=blend, class_weight="balanced").fit(rows, rare, month)
    for clf in (plain, balanced):
        assert clf.predict_proba(rows)[:, 1].mean() == pytest.approx(rare.mean(), abs=0.02)
    assert plain.predict(rows).mean() < 0.05
    assert balanced.predict(rows).mean() > 0.2


def test_balanced_weights_give_classes_the_same_total() -> None:
    labels = (X[:, 0] > 1).astype(np.int64)
    n = np.bincount(labels)
    by_hand = quilt(n_folds=1, blend=False).fit(X, labels, MONTH, (N / (2 * n))[labels])
    balanced = quilt(class_weight="balanced", n_folds=1, blend=False).fit(X, labels, MONTH)
    np.testing.assert_allclose(odds(balanced) * n[0] / n[1], odds(by_hand), rtol=1e-3)


def test_class_weight_of_a_label_that_is_not_there_is_refused() -> None:
    with pytest.raises(InputError, match=r"class_weight .*7.*'0', '1'"):
        fitted(class_weight={7: 2.0})


def test_class_weight_may_name_a_label_by_its_text() -> None:
    by_text, by_label = fitted(class_weight={"1": 3.0}), fitted(class_weight={1: 3.0})
    assert (by_text.predict_proba(NEW) == by_label.predict_proba(NEW)).all()
    assert by_text.class_weights_ is not None
    assert by_text.class_weights_.tolist() == [1.0, 3.0]


def test_class_weight_may_name_a_class_that_is_only_declared() -> None:
    clf = quilt(class_weight={2: 5.0}).partial_fit(X, Y, classes=[0, 1, 2], segments=MONTH)
    assert clf.classes_.tolist() == [0, 1, 2]


# Folds, start, search


@pytest.mark.parametrize("n_folds", [1, 2, 3])
def test_there_is_one_model_per_fold_and_their_mean_answers(n_folds: int) -> None:
    clf = fitted(n_folds=n_folds, encode=False, blend=False)
    assert len(clf.model_.models) == len(clf.selection_.folds) == n_folds
    rows = NEW.astype(np.float32)
    mean = np.mean([model.predict_proba(rows) for model in clf.model_.models], axis=0)
    np.testing.assert_allclose(clf.predict_proba(NEW), mean, rtol=1e-6)


@pytest.mark.parametrize("n_folds", [1, 2, 3])
def test_a_blend_has_a_model_per_part_and_fold_that_answer_by_their_weights(n_folds: int) -> None:
    clf = fitted(n_folds=n_folds, encode=False)
    parts = [weight for weight in clf.selection_.blend if weight > 0]
    assert sum(parts) == pytest.approx(1)
    assert len(clf.selection_.folds) == n_folds
    assert len(clf.model_.models) == n_folds * len(parts) > n_folds
    rows = NEW.astype(np.float32)
    answers = np.array([model.predict_proba(rows) for model in clf.model_.models])
    by_part = answers.reshape(len(parts), n_folds, *answers.shape[1:]).mean(axis=1)
    expected = np.tensordot(parts, by_part, axes=1)
    np.testing.assert_allclose(clf.predict_proba(NEW), expected, rtol=1e-5, atol=1e-6)


def test_a_previous_start_begins_with_the_weights_of_the_fit_before() -> None:
    clf = fitted(init="previous", max_epochs=60)
    assert same(clf, fitted(max_epochs=60))  # nothing came before it
    first = np.mean([fold.validation_loss[0] for fold in clf.selection_.folds])
    before = weights(clf)
    clf.fit(X, Y, segments=MONTH)
    again = np.mean([fold.validation_loss[0] for fold in clf.selection_.folds])
    assert again < 0.7 * first
    assert weights(clf) != before


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda clf: clf.fit(X, Y + 1, segments=MONTH), id="classes"),
        pytest.param(lambda clf: clf.fit(X[:, :2], Y, segments=MONTH), id="features"),
        pytest.param(
            lambda clf: clf.set_params(hidden_units=4).fit(X, Y, segments=MONTH), id="hidden units"
        ),
        pytest.param(
            lambda clf: clf.set_params(encode=False).fit(X, Y, segments=MONTH), id="encoding"
        ),
        pytest.param(
            lambda clf: clf.set_params(learner=TorchLearner(nn.Linear)).fit(X, Y, segments=MONTH),
            id="learner",
        ),
    ],
)
def test_a_previous_start_is_random_where_the_old_weights_do_not_fit(
    change: Callable[[QuiltClassifier], QuiltClassifier],
) -> None:
    changed = change(fitted(init="previous"))
    assert weights(changed) == weights(change(quilt(init="previous")))


def test_a_loaded_model_can_be_the_previous_start(tmp_path: Any) -> None:
    clf = fitted(init="previous", max_epochs=60)
    clf.save(tmp_path / "model")
    loaded = QuiltClassifier.load(tmp_path / "model")
    assert same(loaded.fit(X, Y, segments=MONTH), clf.fit(X, Y, segments=MONTH))


def test_the_opposite_month_is_dropped_and_the_same_one_kept() -> None:
    clf = QuiltClassifier(hidden_units=32, random_state=0).fit(X, Y, segments=MONTH)
    assert {use.name: use.used for use in clf.selection_} == {"April": False, "May": True}


def test_without_both_tests_every_segment_is_used_in_every_epoch() -> None:
    clf = fitted(use_gain=False, use_disparity=False)
    assert [use.share for use in clf.selection_] == [1.0, 1.0]


def test_without_disparity_there_is_nothing_to_search() -> None:
    clf = fitted(use_disparity=False, n_folds=2)
    assert [(line.fold, line.won) for line in clf.search_] == [(0, True), (1, True)]


def test_without_gain_an_infinite_bound_keeps_everything() -> None:
    clf = fitted(use_gain=False, disparity_max=float("inf"))
    assert [use.share for use in clf.selection_] == [1.0, 1.0]


def test_a_bound_of_zero_keeps_nothing() -> None:
    clf = fitted(disparity_max=0, n_folds=2)
    assert not any(use.used for use in clf.selection_)
    assert clf.disparity_max_ == 0.0
    assert [line.disparity_max for line in clf.search_] == [0.0, 0.0]


@pytest.mark.parametrize(
    ("search", "n_candidates"),
    [("shared", 4), ("bayes", 6), (Shared((0.2, 0.7)), 2), (Bayes(1, 1), 2)],
)
def test_every_candidate_is_tried_once_per_fold_and_one_wins(
    search: Any, n_candidates: int
) -> None:
    clf = fitted(search=search, n_folds=2, blend=False)
    for fold in range(2):
        lines = [line for line in clf.search_ if line.fold == fold]
        winners = [line for line in lines if line.won]
        assert len(lines) == n_candidates
        assert len(winners) == 1
        assert winners[0].validation_loss == min(line.validation_loss for line in lines)
    won = [line.disparity_max for line in clf.search_ if line.won]
    assert clf.disparity_max_ == pytest.approx(np.mean(won))


def method_of(clf: QuiltClassifier) -> Quilt:
    """What a classifier's settings say, but for what follows from its rows."""
    quilt = clf._quilt(clf.make_learner(), (), 2)
    return replace(quilt, seed=0, n_classes=None, executor=Threads(1))


def test_the_default_settings_are_those_that_were_measured() -> None:
    assert method_of(QuiltClassifier()) == DEFAULT


def test_the_papers_settings_are_six_guided_trials_one_split_and_every_row() -> None:
    assert method_of(QuiltClassifier.paper()) == PAPER
    assert PAPER.learner == MLP(hidden_units=256, learning_rate=1e-3, batch_size=128)
    assert (PAPER.n_folds, PAPER.patience, PAPER.max_epochs) == (1, 10, 2000)
    assert PAPER.search == Bayes(n_random=3, n_guided=3)
    assert PAPER.sampling == EVERY_ROW
    assert QuiltClassifier.paper().encode == "standard"
    assert QuiltClassifier.paper(n_folds=3, hidden_units=9).get_params()["n_folds"] == 3


@pytest.mark.parametrize(("encode", "n_knots"), [("robust", 257), ("standard", 0)])
def test_only_the_robust_encoding_goes_by_rank(encode: str, n_knots: int) -> None:
    rng = np.random.default_rng(0)
    money = {"amount": rng.lognormal(3, 2, 400), "plan": [f"p{i % 60}" for i in range(400)]}
    clf = quilt(encode=encode, max_epochs=2).fit(money, np.arange(400) % 2)
    assert clf.encoder_ is not None
    assert len(clf.encoder_.knots.values) == n_knots
    assert len(clf.encoder_.texts["plan"]) == (40 if n_knots else 60)


def test_progress_is_drawn_to_stderr_alone(capsys: pytest.CaptureFixture[str]) -> None:
    fitted(progress=True)
    out, err = capsys.readouterr()
    assert out == ""
    assert "Searching the disparity bound" in err


@pytest.mark.parametrize("search", ["shared", "bayes"])
def test_no_progress_draws_nothing(capfd: pytest.CaptureFixture[str], search: str) -> None:
    fitted(progress=False, search=search)
    assert capfd.readouterr() == ("", "")


def test_the_selection_is_shown_as_a_table() -> None:
    selection = fitted().selection_
    lines = repr(selection).splitlines()
    assert lines[0].startswith("Trained for June (80 rows): 1 of 2 past segments used; the model ")
    scores = f"(scores are medians over epochs, the bound is {selection.disparity_max:.2f})"
    assert lines[0].endswith(f"; {selection.composition()} {scores}")
    assert [line.split()[0] for line in lines[1:]] == ["segment", "April", "May"]


# Repeatability


def test_the_same_seed_gives_the_same_bytes() -> None:
    assert weights(fitted()) == weights(fitted())
    assert weights(fitted()) != weights(fitted(random_state=1))


def test_a_random_state_instance_is_a_seed_that_moves_on() -> None:
    states = [np.random.RandomState(3), np.random.RandomState(3)]
    first, second = (fitted(random_state=state) for state in states)
    assert weights(first) == weights(second)
    assert weights(first) != weights(fitted(random_state=states[0]))


# Batches

FIRST, SECOND = slice(0, 180), slice(180, None)


@pytest.mark.parametrize("encode", ["robust", False])
def test_two_batches_equal_one_fit_on_both(encode: str | bool) -> None:
    clf = quilt(encode=encode).partial_fit(X[FIRST], Y[FIRST], segments=MONTH[FIRST])
    clf.partial_fit(X[SECOND], Y[SECOND], segments=MONTH[SECOND])
    assert same(clf, fitted(encode=encode))


def test_a_batch_without_segments_continues_the_last_one() -> None:
    clf = quilt().partial_fit(X[FIRST], Y[FIRST], segments=MONTH[FIRST])
    clf.partial_fit(X[SECOND], Y[SECOND])
    assert same(clf, fitted())


def test_a_batch_opens_new_segments_and_late_rows_join_old_ones() -> None:
    order = np.r_[np.arange(60), np.arange(80, N), np.arange(60, 80)]  # April's end comes late
    clf = quilt(encode=False).partial_fit(X[:60], Y[:60], segments=MONTH[:60])
    assert len(clf.selection_) == 0
    later = order[60:]
    clf.partial_fit(X[later], Y[later], segments=MONTH[later])
    assert [(use.name, use.n_rows) for use in clf.selection_] == [("April", 80), ("May", 80)]
    assert same(clf, fitted(encode=False))


def test_declared_classes_let_a_batch_of_one_class_train() -> None:
    yes = Y == 1
    clf = quilt().partial_fit(X[yes], Y[yes], classes=[0, 1])
    assert clf.classes_.tolist() == [0, 1]
    with pytest.raises(InputError, match=r"1 class\(es\)"):
        quilt().partial_fit(X[yes], Y[yes])


def test_batches_of_numbers_and_of_text_as_labels_are_refused() -> None:
    with pytest.raises(InputError, match="numbers and text"):
        fitted().partial_fit(X, Y.astype(str))


def test_a_loaded_model_takes_no_batches(tmp_path: Any) -> None:
    fitted().save(tmp_path / "model")
    with pytest.raises(InputError, match="has weights but no rows"):
        QuiltClassifier.load(tmp_path / "model").partial_fit(X, Y)


def test_a_model_that_forgot_its_rows_predicts_as_before_and_takes_no_batches() -> None:
    clf = fitted()
    expected = clf.predict_proba(X)
    assert np.array_equal(clf.forget_rows().forget_rows().predict_proba(X), expected)
    with pytest.raises(InputError, match="has forgotten its rows"):
        clf.partial_fit(X, Y)


@pytest.mark.parametrize("encode", ["robust", False])
def test_changing_rows_after_a_batch_changes_nothing(encode: str | bool) -> None:
    given = [X[FIRST].copy(), Y[FIRST].copy(), np.ones(180)]
    clf = quilt(encode=encode)
    clf.partial_fit(given[0], given[1], segments=MONTH[FIRST], sample_weight=given[2])
    for array in given:
        array[:] = 1
    given[2][::2] = 5
    clf.partial_fit(X[SECOND], Y[SECOND], segments=MONTH[SECOND])
    assert same(clf, fitted(encode=encode))


# scikit-learn


def test_settings_can_be_read_changed_and_cloned() -> None:
    clf = fitted(search=Shared((0.5,)), class_weight={0: 2.0})
    assert clf.get_params()["search"] == Shared((0.5,))
    twin = clone(clf)
    assert twin.get_params() == clf.get_params()
    assert not hasattr(twin, "model_")
    assert clf.set_params(n_folds=3).n_folds == 3


def test_changing_settings_leaves_a_fitted_model_as_it_was() -> None:
    clf = fitted(encode=False)
    before = clf.predict_proba(NEW)
    clf.set_params(hidden_units=5, encode="robust", learner=TorchLearner(nn.Linear), n_folds=1)
    assert np.array_equal(clf.predict_proba(NEW), before)


def test_it_works_in_a_pipeline_that_passes_segments_on() -> None:
    pipe = make_pipeline(StandardScaler(), quilt())
    pipe.fit(X, Y, quiltclassifier__segments=MONTH)
    assert len(pipe[-1].selection_) == 2


def test_it_works_in_a_grid_search() -> None:
    grid = GridSearchCV(quilt(), {"n_folds": [1, 2], "use_gain": [True, False]}, cv=2)
    grid.fit(X, Y, segments=MONTH)
    assert set(grid.best_params_) == {"n_folds", "use_gain"}
    assert len(grid.best_estimator_.selection_) == 2


def test_it_works_in_cross_validation() -> None:
    scores = cross_val_score(quilt(max_epochs=60), X[80:], Y[80:], cv=2)
    assert scores.min() > 0.8


def test_metadata_routing_brings_segments_to_every_split() -> None:
    with sklearn.config_context(enable_metadata_routing=True):
        pipe = make_pipeline(StandardScaler(), quilt().set_fit_request(segments=True))
        scores = cross_val_score(pipe, X, Y, cv=2, params={"segments": MONTH})
        assert len(scores) == 2
        assert len(pipe.fit(X, Y, segments=MONTH)[-1].selection_) == 2


# Learners


def conv(n_channels: int, n_classes: int) -> nn.Module:
    layers = [nn.Conv2d(n_channels, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten()]
    return nn.Sequential(*layers, nn.Linear(144, n_classes))


def text(_: int, n_classes: int) -> nn.Module:
    return nn.Sequential(nn.EmbeddingBag(20, 8), nn.Linear(8, n_classes))


def mlp(n_features: int, n_classes: int) -> nn.Module:
    return nn.Sequential(nn.Linear(n_features, 8), nn.ReLU(), nn.Linear(8, n_classes))


def images() -> NDArray[np.float32]:
    pictures = np.random.default_rng(1).normal(size=(N, 1, 8, 8))
    pictures[:, 0, :, :4] += 2.0 * Y[:, None, None]
    return pictures.astype(np.float32)


def token_ids() -> NDArray[np.int64]:
    tokens: NDArray[np.int64] = np.random.default_rng(2).integers(10, size=(N, 6))
    tokens += 10 * Y[:, None]
    return tokens


@pytest.mark.parametrize(
    ("net", "rows", "encode"),
    [
        pytest.param(conv, images(), False, id="conv"),
        pytest.param(text, token_ids(), False, id="text"),
        pytest.param(mlp, np.c_[X, Y], "robust", id="mlp"),
    ],
)
def test_a_torch_net_learns_its_kind_of_rows(
    net: Callable[[int, int], nn.Module], rows: NDArray[Any], encode: str | bool
) -> None:
    learner = TorchLearner(net, optimizer=lambda params: torch.optim.Adam(params, lr=0.02))
    clf = quilt(learner=learner, encode=encode, max_epochs=30, disparity_max=1.0)
    clf.fit(rows, Y, segments=MONTH)
    assert clf.score(rows, Y) > 0.9
    assert len(clf.selection_) == 2


def test_whole_numbers_are_fine_for_a_net_trained_on_floats_but_not_the_other_way() -> None:
    on_floats = fitted(learner=TorchLearner(nn.Linear), encode=False)
    assert np.array_equal(
        on_floats.predict(np.ones((2, 3), int)), on_floats.predict(np.ones((2, 3)))
    )
    on_tokens = quilt(learner=TorchLearner(text), encode=False).fit(token_ids(), Y)
    with pytest.raises(InputError, match=r"float32.*trained on whole numbers"):
        on_tokens.predict(token_ids().astype(float))


def test_a_learner_given_by_hand_equals_its_settings() -> None:
    assert same(fitted(learner=MLP(8, 0.02, 64)), fitted())


@pytest.mark.parametrize(
    ("names", "warns"),
    [
        (["2024-04", "2024-03", "2024-02"], True),
        ([3, 2, 1], True),
        ([1, 2, 3], False),
        (["2024-02", "2024-03", "2024-04"], False),
        (["April", "May", "June"], False),
    ],
)
def test_dated_segments_that_run_backwards_are_warned_of(names: list[Any], warns: bool) -> None:
    segments = np.repeat(np.array(names, dtype=object), N // 3)
    expected: AbstractContextManager[Any] = (
        pytest.warns(UserWarning, match=f"{names[-1]}, is taken for the present")
        if warns
        else nullcontext()
    )
    with expected:
        clf = quilt(max_epochs=1).fit(X, Y, segments=segments)
    assert clf.selection_.current == names[-1]


def test_a_sentinel_that_first_appears_later_does_not_saturate_the_model() -> None:
    clf = fitted()
    wild = np.array(NEW, dtype=np.float64)
    wild[:, 1] = 999_999.0
    robust = clf.predict_proba(wild)
    assert np.isfinite(robust).all()
    assert len(np.unique(robust[:, 0])) > 1
    standard = fitted(encode="standard")
    assert standard.predict_proba(NEW).tobytes() == clf.predict_proba(NEW).tobytes()


def test_text_that_looks_like_numbers_is_warned_of() -> None:
    rng = np.random.default_rng(0)
    price = pa.array([f"${x:,.2f}" for x in rng.lognormal(6, 2, 90)])
    X = pa.table({"price": price, "city": pa.array(["Oslo", "Rome", "Kiel"] * 30)})
    y = ["yes", "no"] * 45
    with pytest.warns(UserWarning, match=r"'price' is text that looks like numbers, such as '\$"):
        QuiltClassifier(max_epochs=1, random_state=0).fit(X, y)
