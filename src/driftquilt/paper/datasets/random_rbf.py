"""Clouds of rows round moving centroids: the rows of the Random RBF stream.

Each row, every centroid takes a step along its own straight line and bounces off the walls of
the unit cube. One centroid is then drawn by its weight, and the row lies from it in a random
direction, at a distance that is normal with the centroid's spread.

The normal draws are made here, by the polar method of `RandomState.normal` with a logarithm
that is rounded correctly. The C library's may be off in the last bit (glibc 2.36: 6 of the 8,000
taken here), which is enough to change two values of the published stream.

>>> features, labels = random_rbf_rows(3)
>>> features.shape, labels
((3, 10), array([3, 4, 4]))
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Context, Decimal
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["random_rbf_rows"]

_MODEL_SEED, _SAMPLE_SEED = 99, 50
_N_CLASSES, _N_FEATURES, _N_CENTROIDS = 5, 10, 50
_SPEED = 0.0001
_DECIMALS = Context(prec=30)  # twice what a float64 holds


class _Centroids(NamedTuple):
    centres: NDArray[np.float64]  # (50, 10)
    steps: NDArray[np.float64]  # (50, 10), per row of the stream
    labels: NDArray[np.int64]  # (50,)
    spreads: NDArray[np.float64]  # (50,)
    bounds: NDArray[np.float64]  # (50,), running sum of the weights
    weight: float  # of all


def random_rbf_rows(n_rows: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Features (n_rows, 10) and labels of the first rows of the stream."""
    model = _draw_centroids()
    chances, directions, distances = _draw_rows(n_rows)
    picks = np.searchsorted(model.bounds, chances * model.weight, side="right")
    picks = np.minimum(picks, _N_CENTROIDS - 1)
    lengths = np.sqrt(_sum_of_squares(directions))
    scales = distances * model.spreads[picks] / lengths
    centres = np.empty((n_rows, _N_FEATURES))
    for row, moved in zip(range(n_rows), _move(model.centres, model.steps), strict=False):
        centres[row] = moved[picks[row]]
    return centres + directions * scales[:, None], model.labels[picks]


def _draw_centroids() -> _Centroids:
    generator = np.random.RandomState(_MODEL_SEED)
    drawn = [
        (generator.rand(_N_FEATURES), generator.randint(_N_CLASSES), *generator.rand(2))
        for _ in range(_N_CENTROIDS)
    ]
    centres, labels, spreads, weights = map(np.array, zip(*drawn, strict=True))
    # Drawn from the same seed again: a centroid's line is set by the draws that made the centres.
    lines = np.random.RandomState(_MODEL_SEED).rand(_N_CENTROIDS, _N_FEATURES)
    steps = lines / np.sqrt(_sum_of_squares(lines))[:, None] * _SPEED
    return _Centroids(
        centres, steps, labels.astype(np.int64), spreads, np.cumsum(weights), weights.sum()
    )


def _draw_rows(
    n_rows: int,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Per row: a chance in [0, 1), a direction (10,) in [-1, 1) and a normal draw."""
    generator = np.random.RandomState(_SAMPLE_SEED)
    normals = _normals(generator)
    uniforms, distances = np.empty((n_rows, 1 + _N_FEATURES)), np.empty(n_rows)
    for row in range(n_rows):
        uniforms[row] = generator.rand(1 + _N_FEATURES)
        distances[row] = next(normals)
    return uniforms[:, 0], uniforms[:, 1:] * 2 - 1, distances


def _normals(generator: np.random.RandomState) -> Iterator[float]:
    """Normal draws in pairs, taking uniform ones only when a pair begins."""
    while True:
        a, b = (2 * u - 1 for u in generator.rand(2).tolist())
        square = a * a + b * b
        if 0 < square < 1:
            logarithm = float(_DECIMALS.ln(Decimal(square)))
            factor = math.sqrt(-2 * logarithm / square)
            yield factor * b
            yield factor * a


def _move(
    centres: NDArray[np.float64], steps: NDArray[np.float64]
) -> Iterator[NDArray[np.float64]]:
    centres, steps = centres.copy(), steps.copy()
    while True:
        centres += steps
        out = (centres < 0) | (centres > 1)
        if out.any():
            np.clip(centres, 0, 1, out=centres)
            steps[out] *= -1
        yield centres


def _sum_of_squares(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of each row, added from left to right; `sum` would add in another order."""
    totals: NDArray[np.float64] = np.cumsum(vectors * vectors, axis=1)[:, -1]
    return totals
