"""Streams made by a rule, equal to the published arrays bit for bit.

The rules are those of scikit-multiflow's generators, which draw from `numpy.random.RandomState`;
rows are then shuffled inside segments as the published arrays are. The defaults are the
paper's. In each function `n_rows` is per segment, and `original_order=True` leaves out the
shuffle. A stream of more segments begins with the stream of fewer.

>>> stream = sine(n_segments=2, n_rows=500)
>>> stream.features.shape, np.bincount(stream.segments).tolist()
((1000, 4), [500, 500])
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import Context, Decimal
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from driftquilt.paper.datasets.stream import Stream, check_count, shuffle_inside

__all__ = ["CITATIONS", "PAPER_SHAPE", "SHA256", "hyperplane", "random_rbf", "sea", "sine"]

CITATIONS = {
    "sea": "Street, Kim: A streaming ensemble algorithm (SEA) for large-scale classification, "
    "KDD 2001",
    "hyperplane": "Hulten, Spencer, Domingos: Mining time-changing data streams, KDD 2001",
    "random_rbf": "Bifet, Holmes, Kirkby, Pfahringer: MOA: Massive online analysis, JMLR 11, 2010",
    "sine": "Gama, Medas, Castillo, Rodrigues: Learning with drift detection, SBIA 2004",
}

#: Of the streams with the paper's numbers of segments and rows, as `Stream.checksum` counts.
SHA256 = {
    "sea": "bcd6bc13ae934cc7f65117d150b69d03302e201a7aa5e7e8d663aad43fb6690d",
    "hyperplane": "5e94c6001bdc9fc52aef5b88dd50ffbb9d6a848da56c6562465de40576777cf6",
    "random_rbf": "3af4db6098c6f1e378ae58a0a058573837887b8d298ab7b90a8ceb94eafc114b",
    "sine": "0d3df80ac920fe9c98adfd0cb0f1be14f259d9900558488cce33fab5a0573101",
}

PAPER_SHAPE = (8, 2000)  # segments, rows in each
_FLIP = 0.1  # what 0.01 + a uniform draw has to stay within, so a chance of 9 %
_THRESHOLDS = np.array([8.0, 9.0, 7.0, 9.5])  # of the four SEA concepts
_STEP = 0.01  # of a moving weight of the hyperplane, per row

# Of the Random RBF stream.
_MODEL_SEED, _SAMPLE_SEED = 99, 50
_N_CLASSES, _N_FEATURES, _N_CENTROIDS = 5, 10, 50
_SPEED = 0.0001
_DECIMALS = Context(prec=30)  # twice what a float64 holds


def sea(n_segments: int = 8, n_rows: int = 2000, *, original_order: bool = False) -> Stream:
    """Four thresholds on x0 + x1 that come back in turn; x2 is irrelevant.

    9 % of the labels are flipped.
    """
    draws, segments = _draw_each(n_segments, n_rows, 4)
    features = 10 * draws[:, :3]
    above = features[:, 0] + features[:, 1] > _THRESHOLDS[segments % 4]
    labels = above ^ (0.01 + draws[:, 3] <= _FLIP)
    return _finish("sea", features, labels, segments, original_order=original_order)


def sine(n_segments: int = 8, n_rows: int = 2000, *, original_order: bool = False) -> Stream:
    """Four concepts that come back in turn: two curves, and both with their labels flipped.

    Features x2 and x3 are irrelevant.
    """
    features, segments = _draw_each(n_segments, n_rows, 4)
    a, b, concept = features[:, 0], features[:, 1], segments % 4
    curve = np.where(concept < 2, np.sin(b), 0.5 + 0.3 * np.sin(3 * np.pi * b))  # noqa: PLR2004
    labels = (a < curve) ^ (concept % 2 == 1)
    return _finish("sine", features, labels, segments, original_order=original_order)


def hyperplane(n_segments: int = 8, n_rows: int = 2000, *, original_order: bool = False) -> Stream:
    """Return a plane through the middle of the unit cube that turns at every row, without rest.

    Of its 10 weights the first two walk up or down by 0.01 a row, and turn round with a chance
    of 9 %. The label is 1 on the upper side.
    """
    segments = _number(n_segments, n_rows)
    generator = np.random.RandomState(0)
    start = generator.rand(10)
    draws = generator.rand(len(segments), 13)  # 10 features, 1 unused, 2 that may turn a weight
    features = draws[:, :10]
    heading = np.cumprod(np.where(0.01 + draws[:, 11:] <= _FLIP, -1.0, 1.0), axis=0)
    walk = np.vstack([start[:2], np.full((1, 2), _STEP), _STEP * heading])
    weights = np.tile(start, (len(segments), 1))
    weights[:, :2] = np.cumsum(walk, axis=0)[: len(segments)]
    sides = np.cumsum(weights * features, axis=1)[:, -1]  # added from left to right
    labels = sides >= 0.5 * np.cumsum(weights, axis=1)[:, -1]
    return _finish("hyperplane", features, labels, segments, original_order=original_order)


def random_rbf(n_segments: int = 8, n_rows: int = 2000, *, original_order: bool = False) -> Stream:
    """Clouds of rows round 50 centroids of 5 classes, all of which move at every row.

    Each row, every centroid takes a step along its own straight line and bounces off the walls of
    the unit cube. One centroid is then drawn by its weight, and the row lies from it in a random
    direction, at a distance that is normal with the centroid's spread.
    """
    segments = _number(n_segments, n_rows)
    features, labels = _random_rbf_rows(len(segments))
    return _finish("random_rbf", features, labels, segments, original_order=original_order)


def _number(n_segments: int, n_rows: int) -> NDArray[np.int64]:
    check_count("n_segments", n_segments)
    check_count("n_rows", n_rows)
    return np.repeat(np.arange(n_segments, dtype=np.int64), n_rows)


def _draw_each(
    n_segments: int, n_rows: int, n_draws: int
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Uniform draws (n, n_draws), each segment's from a generator of its own."""
    segments = _number(n_segments, n_rows)
    draws = [np.random.RandomState(seed).rand(n_rows, n_draws) for seed in range(n_segments)]
    return np.concatenate(draws), segments


def _finish(
    name: str,
    features: NDArray[np.float64],
    labels: NDArray[np.int64] | NDArray[np.bool_],
    segments: NDArray[np.int64],
    *,
    original_order: bool,
) -> Stream:
    n_segments = int(segments[-1]) + 1
    n_rows = len(segments) // n_segments
    order = np.arange(len(segments)) if original_order else shuffle_inside(segments)
    starts = tuple(range(n_rows, len(segments), n_rows))
    is_published = (n_segments, n_rows) == PAPER_SHAPE and not original_order
    return Stream(
        name,
        features[order],
        labels[order].astype(np.int64),
        segments,
        CITATIONS[name],
        class_names=tuple("01234" if name == "random_rbf" else "01"),
        drift_points=starts if name in ("sea", "sine") else None,
        sha256=SHA256[name] if is_published else None,
    )


class _Centroids(NamedTuple):
    centres: NDArray[np.float64]  # (50, 10)
    steps: NDArray[np.float64]  # (50, 10), per row of the stream
    labels: NDArray[np.int64]  # (50,)
    spreads: NDArray[np.float64]  # (50,)
    bounds: NDArray[np.float64]  # (50,), running sum of the weights
    weight: float  # of all


def _random_rbf_rows(n_rows: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
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
    """Yield normal draws in pairs, taking uniform ones only when a pair begins.

    This is the polar method of `RandomState.normal` with a logarithm that is rounded correctly.
    The C library's may be off in the last bit (glibc 2.36: 6 of the 8,000 taken here), which is
    enough to change two values of the published stream.
    """
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
