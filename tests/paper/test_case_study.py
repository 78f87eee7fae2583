"""The curves that the figure of the case study shows, as the paper describes them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import spearmanr

from driftquilt.core.selection import Scores
from driftquilt.paper.outputs import case_study

N_EPOCHS = 60


@pytest.fixture(scope="module", params=[0, 1, 2])
def curves(request: pytest.FixtureRequest) -> dict[str, Scores]:
    return case_study(request.param, n_epochs=N_EPOCHS)


def trend(curve: NDArray[np.float64]) -> float:
    """Rank correlation with time: 1 rises throughout, -1 falls throughout."""
    return float(spearmanr(np.arange(len(curve)), curve).statistic)


def test_both_past_segments_have_a_score_per_epoch(curves: dict[str, Scores]) -> None:
    assert list(curves) == ["same concept", "other concept"]
    for scores in curves.values():
        assert scores.disparity.shape == scores.gain.shape == (N_EPOCHS,)


def test_the_same_concept_has_a_disparity_near_zero_and_the_other_a_high_one_throughout(
    curves: dict[str, Scores],
) -> None:
    same, other = curves["same concept"].disparity, curves["other concept"].disparity
    assert same.max() < 0.1
    assert other.min() > np.sqrt(2)  # the labels alone are so far apart; the embedding adds to it
    assert other[-1] > 0.9 * other[0]


def test_the_same_concept_has_a_positive_gain_that_falls_to_zero(curves: dict[str, Scores]) -> None:
    gain = curves["same concept"].gain
    assert (gain > 0).all()
    assert trend(gain) < -0.99
    assert gain[-1] < 0.01 * gain[0]


def test_the_other_concept_has_a_negative_gain_that_rises_to_zero(
    curves: dict[str, Scores],
) -> None:
    gain = curves["other concept"].gain
    assert (gain < 0).all()
    assert trend(gain) > 0.9
    assert gain[-1] > 0.1 * gain[0]


def test_a_seed_gives_the_same_curves_again() -> None:
    first, again, other = (case_study(seed, n_epochs=5)["same concept"] for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.gain, again.gain)
    assert not np.array_equal(first.gain, other.gain)
