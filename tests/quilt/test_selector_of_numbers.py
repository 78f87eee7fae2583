"""QuiltSelector around regressors: what it trains on, its blend, its file, and what it refuses."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pytest
from catboost import CatBoostRegressor  # type: ignore[import-untyped]
from lightgbm import LGBMRegressor
from sklearn.base import is_regressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from xgboost import XGBRegressor

from driftquilt import InputError, QuiltClassifier, QuiltRegressor, QuiltSelector, load_model
from tests.quilt.test_regressor import drifting

QUICK = QuiltRegressor(hidden_units=16, max_epochs=15, n_jobs=1)


@parametrize_with_checks(  # type: ignore[untyped-decorator]
    [QuiltSelector(LinearRegression(), random_state=0)],
    expected_failed_checks=lambda _: {
        "check_dtype_object": "a value of a strange type is an InputError, no TypeError"
    },
    xfail_strict=True,
)
def test_check_of_scikit_learn_holds(
    estimator: QuiltSelector, check: Callable[[QuiltSelector], Any]
) -> None:
    check(estimator)


ESTIMATORS = [
    LinearRegression(),
    make_pipeline(StandardScaler(), LinearRegression()),
    HistGradientBoostingRegressor(max_iter=60),
    LGBMRegressor(n_estimators=60, verbose=-1, n_jobs=1),
    XGBRegressor(n_estimators=60, n_jobs=1),
    CatBoostRegressor(iterations=200, verbose=False, allow_writing_files=False, thread_count=1),
]


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: type(e).__name__)
def test_the_past_that_agrees_is_used_and_the_file_predicts_alike(
    estimator: Any, tmp_path: Path
) -> None:
    X, y, month, X_test, y_test = drifting()
    model = QuiltSelector(estimator, quilt=QUICK, random_state=0).fit(X, y, segments=month)
    assert is_regressor(model)
    assert not any(tried.has_age for tried in model.search_)  # that column is for classes
    assert not model.selection_.of("April").used
    assert model.selection_.of("May").used
    predicted = model.predict(X_test)
    assert np.abs(predicted - y_test).mean() < 20
    assert model.score(X_test, y_test) > 0.8
    assert not hasattr(model, "predict_proba")
    assert model.sample_weight_[0] < model.sample_weight_[-1] == 1
    model.save(tmp_path / "model")
    read = load_model(tmp_path / "model")
    assert isinstance(read, QuiltSelector)
    np.testing.assert_array_equal(read.predict(X_test), predicted)


@pytest.mark.parametrize("blend", [True, False])
@pytest.mark.parametrize("scoring", [None, "mae", "rmse", "r2", "neg_median_absolute_error"])
def test_every_metric_finds_the_past_that_agrees(scoring: str | None, blend: bool) -> None:
    X, y, month, _, _ = drifting()
    model = QuiltSelector(LinearRegression(), quilt=QUICK, scoring=scoring, blend=blend)
    model.set_params(random_state=0).fit(X, y, segments=month)
    assert not model.selection_.of("April").used
    assert blend or len(model.estimators_) == 1
    assert all(np.isfinite(tried.score) for tried in model.search_)


def test_text_reaches_a_booster_as_categories() -> None:
    X, y, month, _, _ = drifting()
    table = pd.DataFrame({"x": X[:, 0], "city": np.where(X[:, 1] > 0, "Oslo", "Rome")})
    y = y + 50 * (X[:, 1] > 0)
    booster = LGBMRegressor(n_estimators=40, verbose=-1, n_jobs=1)
    model = QuiltSelector(booster, quilt=QUICK, random_state=0).fit(table, y, segments=month)
    one, other = model.predict(pd.DataFrame({"x": [0.5, 0.5], "city": ["Oslo", "Rome"]}))
    assert one - other == pytest.approx(50, abs=15)


@pytest.mark.parametrize(
    ("estimator", "settings", "name"),
    [
        (LinearRegression(), {"scoring": "f1"}, "f1"),
        (LinearRegression(), {"quilt": QuiltClassifier()}, "QuiltRegressor"),
        (LogisticRegression(), {"quilt": QUICK}, "QuiltClassifier"),
        (LogisticRegression(), {"scoring": "mae"}, "mae"),
    ],
)
def test_what_belongs_to_the_other_task_is_refused(
    estimator: Any, settings: dict[str, Any], name: str
) -> None:
    X, y, month, _, _ = drifting()
    target = y if is_regressor(estimator) else y > 1000
    with pytest.raises(InputError, match=name):
        QuiltSelector(estimator, **settings).fit(X, target, segments=month)
