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

import numpy as np
from numpy.typing import NDArray

from driftquilt.paper.datasets.base import Stream, check_count, shuffle_inside
from driftquilt.paper.datasets.random_rbf import random_rbf_rows

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
    """A plane through the middle of the unit cube that turns at every row, without rest.

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
    """Clouds of rows round 50 centroids of 5 classes, all of which move at every row."""
    segments = _number(n_segments, n_rows)
    features, labels = random_rbf_rows(len(segments))
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
