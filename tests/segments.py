"""Small segments for tests, and what models answer on them."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from driftquilt.core.segment import Segment


class Predictor(Protocol):
    """Anything that gives probabilities."""

    def predict_proba(self, X: NDArray[np.float32], /) -> NDArray[np.floating]: ...


def make_segment(
    name: str,
    n_rows: int,
    *,
    flip: bool = False,
    noise: float = 0.0,
    shift: float = 0.0,
    n_features: int = 2,
    n_classes: int = 2,
    weighted: bool = False,
    seed: int = 0,
) -> Segment:
    """Return normal rows whose class is 1 where the first feature is positive.

    `flip` turns the concept round, `noise` is the share of wrong labels, `shift` moves the rows.
    Of more classes, the others are where the second feature is above 1.
    """
    rng = np.random.default_rng((seed, n_rows))
    X = rng.normal(size=(n_rows, n_features)).astype(np.float32)
    y = ((X[:, 0] > 0) ^ flip ^ (rng.random(n_rows) < noise)).astype(np.int64)
    y += (n_classes - 2) * (X[:, 1:2] > 1).any(axis=1)
    weight = rng.uniform(0.2, 3, n_rows) if weighted else np.ones(n_rows)
    return Segment(name, X + np.float32(shift), y, weight.astype(np.float32))


def random_segment(
    n_rows: int,
    n_features: int = 3,
    n_classes: int = 2,
    *,
    name: str = "may",
    weighted: bool = False,
    seed: int = 0,
) -> Segment:
    """Return normal rows of random classes."""
    rng = np.random.default_rng((seed, n_rows, n_features, n_classes))
    X = rng.normal(size=(n_rows, n_features)).astype(np.float32)
    weight = rng.uniform(0.2, 3, n_rows) if weighted else np.ones(n_rows)
    return Segment(name, X, rng.integers(n_classes, size=n_rows), weight.astype(np.float32))


def accuracy(model: Predictor, rows: Segment) -> float:
    """Return the share of rows whose most probable class is theirs."""
    return float((model.predict_proba(rows.X).argmax(axis=1) == rows.y).mean())
