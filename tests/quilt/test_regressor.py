"""QuiltRegressor: what it selects, its intervals, batches, its file, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from driftquilt import (
    InputError,
    ModelFileError,
    QuiltClassifier,
    QuiltRegressor,
    load_model,
    select_segments,
)
from driftquilt.core.loss import LOSSES, LossName
from driftquilt.quilt.executor import Processes

MONTHS = ["April", "May", "June"]


def drifting(
    seed: int = 0, n_rows: int = 300, n_current: int = 120, n_test: int = 600
) -> tuple[NDArray[Any], ...]:
    """Rows of which April is the other way round; the noise grows with the second column."""
    rng = np.random.default_rng(seed)
    month = np.repeat(MONTHS, [n_rows, n_rows, n_current + n_test])
    X = rng.uniform(-1, 1, size=(len(month), 3))
    sign = np.where(month == "April", -1, 1)
    y = 1000 + 100 * sign * X[:, 0] + (2 + 18 * (X[:, 1] > 0)) * rng.normal(size=len(month))
    end = 2 * n_rows + n_current
    return X[:end], y[:end], month[:end], X[end:], y[end:]


def quick(**settings: Any) -> QuiltRegressor:
    return QuiltRegressor(**{"hidden_units": 32, "random_state": 0, "n_jobs": 1, **settings})


@pytest.mark.parametrize("loss", LOSSES)
def test_the_past_that_agrees_is_used_and_no_other(loss: LossName) -> None:
    X, y, month, X_test, y_test = drifting()
    model = quick(loss=loss).fit(X, y, segments=month)
    assert {use.name: use.used for use in model.selection_} == {"April": False, "May": True}
    assert np.abs(model.predict(X_test) - y_test).mean() < 13
    april, may = (use.weight for use in model.selection_)
    assert april < may / 8
    assert "May was used" in model.explain()


def test_the_blend_falls_back_on_all_data_where_nothing_drifts() -> None:
    rng = np.random.default_rng(1)
    X, month = rng.normal(size=(700, 3)), np.repeat(MONTHS, [300, 300, 100])
    model = quick().fit(X, X[:, 0] + rng.normal(size=700), segments=month)
    assert model.selection_.parts["all"] > 0.8
    assert all(use.used for use in model.selection_)


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.95])
@pytest.mark.parametrize("loss", LOSSES)
def test_intervals_hold_the_share_that_was_asked_for(loss: LossName, coverage: float) -> None:
    shares = []
    for seed in range(3):
        X, y, month, X_test, y_test = drifting(seed, n_current=300)
        model = quick(loss=loss, max_epochs=60).fit(X, y, segments=month)
        low, high = model.predict_interval(X_test, coverage).T
        middle = model.predict(X_test)
        assert ((low <= middle) & (middle <= high)).all()
        shares.append(((low <= y_test) & (y_test <= high)).mean())
    assert np.mean(shares) == pytest.approx(coverage, abs=0.05)


def test_labelled_rows_that_do_not_stand_for_their_segment_are_hardly_believed() -> None:
    # Each month begins with low values of the first column, and they change from month to month.
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(0, 1, size=(3, 400, 1)), axis=1).reshape(-1, 1)
    month = np.repeat(MONTHS, 400)
    shift = np.where(X[:, 0] < 0.2, np.repeat([5.0, 10.0, 0.0], 400), 0)
    y = X[:, 0] + shift + 0.1 * rng.normal(size=len(X))
    model = quick(max_epochs=20).fit(X[:880], y[:880], segments=month[:880])
    assert model.coverage_ < 0.4
    assert model.selection_.parts["all"] > 0.8


def test_intervals_are_wider_where_the_noise_is() -> None:
    X, y, month, X_test, _ = drifting(n_rows=1500, n_current=600)
    low, high = quick(patience=15).fit(X, y, segments=month).predict_interval(X_test).T
    is_noisy = X_test[:, 1] > 0
    assert (high - low)[is_noisy].mean() > 2.5 * (high - low)[~is_noisy].mean()


def test_wider_intervals_hold_narrower_ones() -> None:
    X, y, month, X_test, _ = drifting()
    model = quick(quantiles=(0.05, 0.25, 0.5, 0.75, 0.95)).fit(X, y, segments=month)
    narrow, wide = (model.predict_interval(X_test, share) for share in (0.6, 0.9))
    assert (wide[:, 0] <= narrow[:, 0]).mean() > 0.99
    assert (wide[:, 1] >= narrow[:, 1]).mean() > 0.99


def test_a_few_enormous_targets_do_not_spoil_the_others() -> None:
    X, y, month, X_test, y_test = drifting()
    y = y.copy()
    y[[5, 400, 640]] = 1e9
    assert np.abs(quick().fit(X, y, segments=month).predict(X_test) - y_test).mean() < 15


def test_the_same_rows_and_seed_give_the_same_bits_on_threads_and_processes() -> None:
    X, y, month, X_test, _ = drifting()
    answers = [
        quick(max_epochs=6, **engine).fit(X, y, segments=month).predict(X_test).tobytes()
        for engine in ({"n_jobs": 1}, {"n_jobs": 2}, {"engine": Processes(2)})
    ]
    assert len({*answers}) == 1


def test_batches_together_give_what_all_rows_at_once_give() -> None:
    X, y, month, X_test, _ = drifting()
    whole = quick(max_epochs=5).fit(X, y, segments=month)
    model = quick(max_epochs=5).partial_fit(X[:400], y[:400], segments=month[:400])
    model.partial_fit(X[400:650], y[400:650], segments=month[400:650]).partial_fit(X[650:], y[650:])
    assert np.array_equal(model.predict(X_test), whole.predict(X_test))


def test_a_constant_target_is_answered_with() -> None:
    X, _, month, X_test, _ = drifting()
    model = quick(max_epochs=20).fit(X, np.full(len(X), 7.0), segments=month)
    assert np.abs(model.predict(X_test) - 7).max() < 0.5


def test_a_training_can_go_on_from_the_model_before() -> None:
    X, y, month, X_test, y_test = drifting()
    model = quick(init="previous").fit(X, y, segments=month)
    target = model.target_
    model.fit(X, y + 1, segments=month)
    assert model.target_ == target
    assert np.abs(model.predict(X_test) - y_test).mean() < 14


def test_columns_may_be_text_and_have_gaps() -> None:
    X, y, month, _, _ = drifting()
    table = {"x": X[:, 0], "city": np.where(X[:, 1] > 0, "Oslo", "Rome").tolist()}
    model = quick(max_epochs=5).fit(table, y, segments=month)
    assert np.isfinite(model.predict({"x": [0.5, None], "city": [None, "Bonn"]})).all()


@pytest.mark.parametrize("task", [None, "regression"])
def test_segments_can_be_selected_for_any_model(task: str | None) -> None:
    X, y, month, _, _ = drifting()
    selection = select_segments(X, y, month, task=task, hidden_units=32, random_state=0)
    assert {use.name: use.used for use in selection} == {"April": False, "May": True}
    assert selection.row_weights(month)[0] < 0.5


def test_whole_numbers_are_classes_unless_the_task_says_otherwise() -> None:
    X, y, month, _, _ = drifting()
    whole = np.round(y / 50).astype(float)
    few: dict[str, Any] = {"hidden_units": 4, "max_epochs": 2, "random_state": 0}
    classes = QuiltClassifier(**few).fit(X, whole, segments=month).selection_
    assert repr(select_segments(X, whole, month, **few)) == repr(classes)
    numbers = QuiltRegressor(**few).fit(X, whole, segments=month).selection_
    assert repr(select_segments(X, whole, month, task="regression", **few)) == repr(numbers)
    with pytest.raises(InputError, match="clustering"):
        select_segments(X, y, month, task="clustering")


# The file


def test_a_saved_model_predicts_the_same_bits(tmp_path: Path) -> None:
    X, y, month, X_test, _ = drifting()
    model = quick(max_epochs=5, quantiles=(0.1, 0.4, 0.5, 0.9)).fit(X, y, segments=month)
    path = tmp_path / "model.safetensors"
    model.save(path)
    read = load_model(path)
    assert isinstance(read, QuiltRegressor)
    assert np.array_equal(read.predict(X_test), model.predict(X_test))
    for coverage in (0.5, 0.9):
        ends = read.predict_interval(X_test, coverage)
        assert np.array_equal(ends, model.predict_interval(X_test, coverage))
    assert read.get_params() == model.get_params()
    assert read.selection_.explain() == model.selection_.explain()
    read.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == path.read_bytes()


def test_a_file_of_the_other_task_is_refused(tmp_path: Path) -> None:
    X, y, month, _, _ = drifting()
    path = tmp_path / "model.safetensors"
    quick(max_epochs=2).fit(X, y, segments=month).save(path)
    with pytest.raises(ModelFileError, match="regression"):
        QuiltClassifier.load(path)
    QuiltClassifier(max_epochs=2, n_jobs=1).fit(X, y > 1000, segments=month).save(path)
    with pytest.raises(ModelFileError, match="classification"):
        QuiltRegressor.load(path)


# What is refused


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"loss": "absolute"}, "loss"),
        ({"quantiles": (0.9, 0.1)}, "quantiles"),
        ({"quantiles": ()}, "quantiles"),
        ({"quantiles": "0.5"}, "quantiles"),
        ({"n_folds": 0}, "n_folds"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(settings: dict[str, Any], name: str) -> None:
    X, y, month, _, _ = drifting()
    with pytest.raises(InputError, match=name):
        quick(**settings).fit(X, y, segments=month)


@pytest.mark.parametrize("target", [["low", "high"] * 360, [float("nan")] * 720, [1e400] * 720])
def test_a_target_that_is_no_number_is_refused(target: list[Any]) -> None:
    X, _, month, _, _ = drifting()
    with pytest.raises(InputError, match="y"):
        quick().fit(X, target, segments=month)


@pytest.mark.parametrize("coverage", [0.0, 1.0, -1, 80])
def test_a_coverage_is_a_share(coverage: float) -> None:
    X, y, month, X_test, _ = drifting()
    model = quick(max_epochs=1).fit(X, y, segments=month)
    with pytest.raises(InputError, match="coverage"):
        model.predict_interval(X_test, coverage)
