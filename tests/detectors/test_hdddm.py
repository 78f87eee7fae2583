"""HDDDM sees features move, batch by batch, and nothing else."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from driftquilt.detectors import HDDDM
from driftquilt.detectors.hdddm import hellinger
from driftquilt.errors import InputError
from tests.detectors.streams import answers, drifts, normal_rows, shifted

FLOATS = st.floats(-1e6, 1e6, width=32)


def plainly(batch: Any, baseline: Any, n_bins: int) -> float:
    """The distance as the paper writes it, feature by feature, bin by bin."""
    distances = []
    for k in range(batch.shape[1]):
        both = np.concatenate([batch[:, k], baseline[:, k]]).astype(np.float64)
        edges = (both.min(), both.max() if both.max() > both.min() else both.min() + 1)
        p, q = (np.histogram(s[:, k], n_bins, edges)[0] / len(s) for s in (batch, baseline))
        distances.append(math.sqrt(sum((math.sqrt(a) - math.sqrt(b)) ** 2 for a, b in zip(p, q))))  # noqa: B905
    return sum(distances) / len(distances)


@pytest.mark.parametrize("seed", range(5))
def test_the_distance_is_that_of_a_plain_loop(seed: int) -> None:
    X = normal_rows(1000, 4, seed).astype(np.float32)
    X[:, 3] = seed  # one feature never varies
    assert hellinger(X[:200], X[200:], 14) == pytest.approx(plainly(X[:200], X[200:], 14))


@given(X=arrays(np.float32, (30, 2), elements=FLOATS), split=st.integers(1, 29))
def test_the_distance_is_zero_of_itself_symmetric_and_at_most_root_two(X: Any, split: int) -> None:
    a, b = X[:split], X[split:]
    assert hellinger(X, X, 5) == 0
    assert hellinger(a, b, 5) == hellinger(b, a, 5)
    assert 0 <= hellinger(a, b, 5) <= math.sqrt(2) + 1e-12


def test_it_decides_as_the_paper_does() -> None:
    X = np.concatenate([shifted(1000, 1000, 2, 0.8, seed) for seed in range(3)]).astype(np.float32)
    baseline, before = X[:50], None
    differences: list[float] = []
    expected = []
    for start in range(50, len(X), 50):
        batch = X[start : start + 50]
        distance = plainly(batch, baseline, 7)
        drift = False
        if before is not None:
            if len(differences) >= 4:
                limit = np.mean(differences) + 1.5 * np.std(differences, ddof=1)
                drift = bool(distance - before > limit)
            differences.append(abs(distance - before))
        if drift:
            expected.append(start + 49)
            baseline, before, differences = batch, None, []
        else:
            baseline, before = np.concatenate([baseline, batch]), distance
    detector = HDDDM(batch_rows=50, gamma=1.5, min_differences=4, max_batches=1000)
    said = answers(detector, X)
    assert len(expected) >= 3
    assert [row for row, drift in enumerate(said) if drift] == expected


@pytest.mark.parametrize(("n_features", "by"), [(2, 1.5), (10, 3.0)])
def test_a_feature_that_moves_is_seen_with_the_first_full_batch(n_features: int, by: float) -> None:
    delays = []
    for seed in range(8):
        found = drifts(HDDDM(), shifted(3000, 600, n_features, by, seed))
        delays += [row - 3000 for row in found if row >= 3000][:1]
    assert len(delays) >= 7
    assert set(delays) == {199}


def test_a_slow_change_is_seen_if_the_batches_tell_it() -> None:
    found = 0
    for seed in range(6):
        X = normal_rows(5000, 2, seed)
        X[2000:, 0] += np.minimum(np.arange(3000) / 600, 1) * 3  # over six hundred rows
        found += any(2000 <= row < 3000 for row in drifts(HDDDM(), X))
    assert found >= 5


def test_a_stream_that_does_not_change_raises_few_alarms() -> None:
    alarms = sum(len(drifts(HDDDM(), normal_rows(40_000, 3, seed))) for seed in range(2))
    assert alarms <= 8  # in 400 batches


def test_a_change_of_correlation_alone_is_beyond_it() -> None:
    alarms = 0
    for seed in range(4):
        X = normal_rows(3600, 2, seed)
        X[3000:, 1] = X[3000:, 0]
        alarms += any(row >= 3000 for row in drifts(HDDDM(), X))
    assert alarms <= 1


def test_a_drift_is_found_only_with_the_last_row_of_a_batch() -> None:
    detector = HDDDM(batch_rows=40, gamma=0.5)
    said = answers(detector, shifted(2000, 2000, 2, 2.0, seed=0))
    rows = [row for row, drift in enumerate(said) if drift]
    assert rows
    assert all((row + 1) % 40 == 0 for row in rows)


def test_extreme_and_constant_rows_are_borne() -> None:
    detector = HDDDM(batch_rows=20, min_differences=2)
    rows = np.zeros((200, 3), dtype=np.float32)
    rows[::3, 1] = np.finfo(np.float32).max
    rows[1::3, 1] = np.finfo(np.float32).min
    assert not any(answers(detector, rows))


@pytest.mark.parametrize("setting", [{"batch_rows": 3}, {"gamma": -1}, {"min_differences": 1}])
def test_settings_are_checked(setting: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=f"{next(iter(setting))} of the detector 'hdddm'"):
        HDDDM(**setting)
