"""The paper's case study of two concepts: the curves of both scores while a model trains.

All rows of concept 0 have label 0, all of concept 1 label 1, and rows come from one
distribution. The present has concept 1. Paper: "Case Study: Two Concepts".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import spearmanr

from driftquilt.core.segment import Segment
from driftquilt.core.selection import Rule
from driftquilt.core.training import Run, Task, train
from driftquilt.learners.mlp import MLP

N_EPOCHS = 80


class Curves(NamedTuple):
    """Scores by epoch: of the segment with the same concept, and of the other."""

    disparity_same: NDArray[np.float64]
    disparity_other: NDArray[np.float64]
    gain_same: NDArray[np.float64]
    gain_other: NDArray[np.float64]


def rows(rng: np.random.Generator, name: str, n: int, concept: int) -> Segment:
    X = rng.normal(size=(n, 2)).astype(np.float32)
    return Segment(name, X, np.full(n, concept, dtype=np.int64), np.ones(n, np.float32))


@pytest.fixture(scope="module")
def curves() -> Curves:
    rng = np.random.default_rng(0)
    history = [rows(rng, "same", 1000, concept=1), rows(rng, "other", 1000, concept=0)]
    current, validation = rows(rng, "now", 500, concept=1), rows(rng, "now", 1000, concept=1)
    task = Task(
        history, current, validation, Rule(use_gain=False), max_epochs=N_EPOCHS, patience=N_EPOCHS
    )
    run = Run(task, MLP(hidden_units=64).start(current.X, 2, seed=0))
    epochs = list(train(run, disparity_max=0.0))
    far = np.array([epoch.scores.disparity for epoch in epochs])
    gain = np.array([epoch.scores.gain for epoch in epochs])
    assert not any(epoch.selected.any() for epoch in epochs)
    return Curves(far[:, 0], far[:, 1], gain[:, 0], gain[:, 1])


def trend(curve: NDArray[np.float64]) -> float:
    """Rank correlation with time: 1 rises throughout, -1 falls throughout."""
    return float(spearmanr(np.arange(len(curve)), curve).statistic)


def test_same_concept_has_a_disparity_near_zero_throughout(curves: Curves) -> None:
    assert curves.disparity_same.max() < 0.1


def test_other_concept_has_a_high_disparity_throughout(curves: Curves) -> None:
    # The labels alone are √2 apart; the embedding only adds to it.
    assert curves.disparity_other.min() > np.sqrt(2)
    assert (curves.disparity_other > 10 * curves.disparity_same).all()


def test_same_concept_has_a_positive_gain_that_falls_to_zero(curves: Curves) -> None:
    assert (curves.gain_same > 0).all()
    assert trend(curves.gain_same) < -0.99
    assert curves.gain_same[-1] < 0.01 * curves.gain_same[0]


def test_other_concept_has_a_negative_gain_that_rises_to_zero(curves: Curves) -> None:
    assert (curves.gain_other < 0).all()
    assert trend(curves.gain_other) > 0.9
    assert curves.gain_other[-1] > 0.1 * curves.gain_other[0]


def test_a_converged_model_has_no_gain_left_but_still_tells_the_concepts_apart(
    curves: Curves,
) -> None:
    assert abs(curves.gain_other[-1]) < 0.1 * curves.disparity_other[-1]
    assert curves.disparity_other[-1] > 0.9 * curves.disparity_other[0]
