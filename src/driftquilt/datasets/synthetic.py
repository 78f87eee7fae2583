"""Streams made by a rule, equal to the published arrays bit for bit.

The rules are those of scikit-multiflow's generators, which draw from `numpy.random.RandomState`;
rows are then shuffled inside segments as the published arrays are.

>>> stream = sine(n_segments=2, n_rows=500)
>>> stream.features.shape, np.bincount(stream.segments).tolist()
((1000, 4), [500, 500])
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from driftquilt.datasets.base import Stream, shuffle_inside

__all__ = ["sine"]


def sine(n_segments: int = 8, n_rows: int = 2000, *, original_order: bool = False) -> Stream:
    """Four concepts that come back in turn: two curves, and both with their labels flipped.

    `n_rows` is per segment. Features x2 and x3 are irrelevant. `original_order=True` leaves
    out the shuffle inside segments.
    """
    features = np.concatenate(
        [np.random.RandomState(seed).rand(n_rows, 4) for seed in range(n_segments)]
    )
    segments = np.repeat(np.arange(n_segments), n_rows)
    labels = _sine_labels(features[:, 0], features[:, 1], segments % 4)
    if not original_order:
        order = shuffle_inside(segments)
        features, labels = features[order], labels[order]
    citation = "Gama, Medas, Castillo, Rodrigues: Learning with drift detection, SBIA 2004"
    return Stream("sine", features, labels, segments, citation)


def _sine_labels(
    a: NDArray[np.float64], b: NDArray[np.float64], concept: NDArray[np.int64]
) -> NDArray[np.int64]:
    curve = np.where(concept < 2, np.sin(b), 0.5 + 0.3 * np.sin(3 * np.pi * b))  # noqa: PLR2004
    flipped = concept % 2 == 1
    labels: NDArray[np.bool_] = (a < curve) ^ flipped
    return labels.astype(np.int64)
