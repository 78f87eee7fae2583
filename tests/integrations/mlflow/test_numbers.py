"""Numbers for MLflow: what it loads of a regressor, and runs of a stream; it takes no MLflow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd  # type: ignore[import-untyped]

from driftquilt import QuiltRegressor
from driftquilt.integrations.mlflow import _FinishedTraining, _load_pyfunc, _pair
from driftquilt.stream import QuiltStream
from tests.quilt.test_regressor import drifting


def test_numbers_and_intervals_are_those_of_the_regressor(tmp_path: Path) -> None:
    X, y, month, X_test, _ = drifting()
    model = QuiltRegressor(hidden_units=8, max_epochs=3, random_state=0, n_jobs=1)
    model.fit(X, y, segments=month).save(tmp_path / "model")
    rows = pd.DataFrame(X_test, index=np.arange(len(X_test)) + 7)
    answers = _load_pyfunc(str(tmp_path / "model")).predict(rows)
    assert list(answers.columns) == ["prediction", "low", "high"]
    assert answers.index.equals(rows.index)
    np.testing.assert_array_equal(answers["prediction"], model.predict(X_test))
    np.testing.assert_array_equal(answers[["low", "high"]], model.predict_interval(X_test))


def test_a_run_of_a_stream_of_numbers_has_its_model_and_its_error() -> None:
    X, y, *_ = drifting()
    regressor = QuiltRegressor(hidden_units=8, max_epochs=3, n_folds=2, random_state=0, n_jobs=1)
    stream = QuiltStream(regressor, wait=True, train_budget=50)
    for row, number in zip(X[:120].tolist(), y[:120].tolist(), strict=True):
        stream.learn_one({f"x{j}": value for j, value in enumerate(row)}, number)
    trained, end = list(_pair(stream.events))[-1]
    run = _FinishedTraining.read(stream, trained, end)
    assert isinstance(run.clf, QuiltRegressor)
    assert run.settings["loss"] == "quantile"
    assert run.metrics["disparity_max"] == run.clf.disparity_max_
    assert run.standing == ("mean_absolute_error", stream.mean_absolute_error)
