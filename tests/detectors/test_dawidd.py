"""DAWIDD sees any dependence of rows on time, correlations too, and says since when."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from driftquilt.detectors import DAWIDD, HDDDM, make_detector
from driftquilt.detectors.dawidd import centred_kernel, depends_on_time, place_of_change
from tests.detectors.streams import answers, drifts, normal_rows, shifted


def kernel_plainly(X: Any) -> Any:
    squares = np.array([[((a - b) ** 2).sum() for b in X] for a in X])
    K = np.exp(-squares / np.median(squares))
    H = np.eye(len(X)) - 1 / len(X)
    return H @ K @ H


def test_the_kernel_is_that_of_a_plain_loop() -> None:
    X = normal_rows(40, 3)
    np.testing.assert_allclose(centred_kernel(X), kernel_plainly(X), atol=1e-12)


@pytest.mark.parametrize("by", [0.0, 0.4, 0.6, 1.0])
@pytest.mark.parametrize("p_max", [0.02, 0.2])
def test_stopping_early_answers_as_all_permutations_would(by: float, p_max: float) -> None:
    for seed in range(5):
        K = centred_kernel(shifted(40, 40, 2, by, seed))
        L = kernel_plainly(np.arange(80)[:, None] / 80)
        rng = np.random.default_rng(seed)
        shuffles = [rng.permutation(80) for _ in range(99)]
        observed = (K * L).sum()
        as_large = sum((K * L[np.ix_(order, order)]).sum() >= observed for order in shuffles)
        p_value = (1 + as_large) / 100
        assert depends_on_time(K, p_max, 99, seed) == (p_value <= p_max)


@pytest.mark.parametrize("seed", range(4))
def test_the_place_of_change_is_where_a_plain_search_finds_it(seed: int) -> None:
    X = shifted(35, 25, 2, 1.5, seed)
    K = centred_kernel(X)
    scores = {}
    for s in range(5, 56):
        old, new = K[:s, :s].mean(), K[s:, s:].mean()
        scores[s] = (old + new - 2 * K[:s, s:].mean()) * s * (60 - s) / 60
    assert place_of_change(K, 5) == max(scores, key=lambda s: scores[s])


def correlated(seed: int) -> Any:
    """Rows of which no feature changes, but their correlation."""
    X = normal_rows(800, 2, seed)
    X[500:, 1] = 0.95 * X[500:, 0] + np.sqrt(1 - 0.95**2) * X[500:, 1]
    return X


def gradual(seed: int) -> Any:
    X = normal_rows(1200, 2, seed)
    X[500:, 0] += np.minimum(np.arange(700) / 400, 1) * 2.5
    return X


@pytest.mark.parametrize(
    "make",
    [lambda s: shifted(500, 200, 2, 1.2, s), lambda s: shifted(500, 200, 10, 1.2, s), correlated,
     gradual],
    ids=["one of two features moves", "one of ten", "correlation", "gradual"],
)  # fmt: skip
def test_a_change_is_seen(make: Callable[[int], Any]) -> None:
    seen = [any(row >= 500 for row in drifts(DAWIDD(seed=n), make(n))) for n in range(8)]
    assert sum(seen) >= 7


def test_a_stream_that_does_not_change_raises_few_alarms() -> None:
    alarms = sum(len(drifts(DAWIDD(seed=seed), normal_rows(5000, 3, seed))) for seed in range(4))
    assert alarms <= 2  # in four hundred tests at 0.001


def test_after_a_drift_only_rows_after_it_stay() -> None:
    detector = DAWIDD(seed=0)
    for value in shifted(500, 300, 3, 4.0, seed=1):
        detector.update(value)
        if detector.drift_detected:
            break
    assert abs(len(detector) - 50) <= 3


def test_a_change_of_labels_alone_is_seen_in_errors_and_not_in_rows() -> None:
    X = normal_rows(4000, 3, seed=2)
    label = (X[:, 0] > 0) ^ (np.arange(4000) >= 2000)  # the other way round from row 2000 on
    wrong = (X[:, 0] > 0) != label
    found = drifts(make_detector("adwin"), wrong.astype(float))
    assert found
    assert 2000 <= found[0] < 2100
    for detector in (HDDDM(), DAWIDD(seed=0)):
        assert not any(2000 <= row < 2400 for row in drifts(detector, X))


@pytest.mark.parametrize("seed", [0, 7])
def test_it_repeats_with_its_seed(seed: int) -> None:
    X = shifted(400, 200, 2, 0.7, seed=3)
    assert answers(DAWIDD(seed=seed), X) == answers(DAWIDD(seed=seed), X)


def test_rows_that_hardly_vary_are_borne() -> None:
    rng = np.random.default_rng(0)
    constant = np.ones((400, 2))
    seldom = (rng.random((400, 3)) < 0.05).astype(float)  # most rows are equal
    huge = rng.normal(size=(400, 2)) * 1e37
    for X in (constant, seldom, huge):
        assert not any(answers(DAWIDD(seed=0), X))


def test_categories_that_change_are_seen() -> None:
    rng = np.random.default_rng(0)
    before, after = rng.choice(3, 500, p=[0.8, 0.1, 0.1]), rng.choice(3, 300, p=[0.2, 0.7, 0.1])
    X = np.eye(3)[np.concatenate([before, after])]
    found = drifts(DAWIDD(seed=0), X)
    assert found
    assert 500 <= found[0] < 700
