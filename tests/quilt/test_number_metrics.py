"""Metrics of numbers equal those of scikit-learn, for one draw of rows and for many."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import get_scorer, mean_pinball_loss

from driftquilt.errors import InputError
from driftquilt.quilt.metrics import find_number_metric

NAMES = (
    "mae", "rmse", "mse", "mape", "r2", "explained_variance", "neg_median_absolute_error",
    "neg_mean_absolute_error", "root mean squared error", "median_absolute_error",
)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n_rows", [1, 50, 51])
@pytest.mark.filterwarnings("ignore:R.2 score is not well-defined")
def test_draws_are_scored_as_scikit_learn_does(name: str, n_rows: int) -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(1e6, 3, n_rows)
    answers = y + rng.normal(size=n_rows)
    counts = np.stack(
        [np.ones(n_rows), np.bincount(rng.integers(n_rows, size=n_rows), None, n_rows)]
    )
    metric = find_number_metric(name)
    scorer = get_scorer(metric.name)
    for count, score in zip(counts, metric.weighted(y, answers, None, counts), strict=True):
        rows = np.repeat(np.arange(n_rows), count.astype(int))
        if n_rows == 1 and not metric.is_loss:
            assert np.isnan(score)
        else:
            expected = scorer._sign * scorer._score_func(y[rows], answers[rows])
            assert score == pytest.approx(expected, rel=1e-6)


def test_pinball_is_the_mean_over_answer_and_ends() -> None:
    rng = np.random.default_rng(0)
    y, low = rng.normal(size=(2, 80))
    answers, high = low + 1, low + 2
    expected = np.mean(
        [
            mean_pinball_loss(y, p, alpha=level)
            for p, level in ((low, 0.1), (answers, 0.5), (high, 0.9))
        ]
    )
    metric = find_number_metric("pinball")
    assert metric.score(y, answers, np.column_stack([low, high])) == pytest.approx(-expected)
    with pytest.raises(InputError, match="intervals"):
        metric.score(y, answers)


def test_a_metric_that_is_not_defined_is_nan() -> None:
    metric = find_number_metric("r2")
    assert np.isnan(metric.score(np.ones(5), np.zeros(5)))
    assert np.isnan(metric.score(np.zeros(0), np.zeros(0)))
    with pytest.raises(InputError, match="mae"):
        find_number_metric("mea")
