"""The paper's two concepts: what both scores do while a model learns today's.

All rows come from one distribution; rows of concept 0 have label 0, rows of concept 1 label 1.
Today is concept 1. The model is trained on today's rows alone, and two past segments are only
scored: one with today's concept, one with the other.

Paper: "Case Study: Two Concepts" and its figure.

>>> curves = case_study(seed=0)
>>> same, other = curves["same concept"], curves["other concept"]
>>> bool((10 * same.disparity < other.disparity).all())
True
"""

from __future__ import annotations

import math

import numpy as np

from driftquilt.core.segment import Segment
from driftquilt.core.selection import Rule, Scores
from driftquilt.core.training import Run, Task, train
from driftquilt.learners.mlp import MLP
from driftquilt.quilt.executor import one_blas_thread

__all__ = ["case_study"]

# Many rows are scored, so that chance does not set two samples of one concept apart; few are
# trained on, so that an epoch is a small step.
N_SCORED, N_TRAINED = 10_000, 500


def case_study(seed: int = 0, *, n_epochs: int = 60) -> dict[str, Scores]:
    """The scores of both past segments, each of shape (epochs,)."""
    rng = np.random.default_rng(seed)
    past = [
        _segment(rng, "same concept", 1, N_SCORED),
        _segment(rng, "other concept", 0, N_SCORED),
    ]
    task = Task(
        past,
        current=_segment(rng, "today", 1, N_TRAINED),
        validation=_segment(rng, "today", 1, N_SCORED),
        rule=Rule(use_gain=False),
        max_epochs=n_epochs,
        patience=n_epochs,
        seed=seed,
    )
    with one_blas_thread():
        model = MLP().start(task.current.X, n_classes=2, seed=seed)
        epochs = list(train(Run(task, model), disparity_max=-math.inf))
    return {
        str(segment.name): Scores(
            np.array([epoch.scores.disparity[s] for epoch in epochs]),
            np.array([epoch.scores.gain[s] for epoch in epochs]),
        )
        for s, segment in enumerate(past)
    }


def _segment(rng: np.random.Generator, name: str, label: int, n_rows: int) -> Segment:
    X = rng.normal(size=(n_rows, 2)).astype(np.float32)
    return Segment(name, X, np.full(n_rows, label), np.ones(n_rows, np.float32))
