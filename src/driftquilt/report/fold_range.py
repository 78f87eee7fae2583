"""The curves of all folds as one: their mean at each epoch, and from where to where they go.

Folds stop after different numbers of epochs. At each epoch those count that have come so far.

    scores  (E, S) for each fold -> mean, low and high, each (E, S) of the longest fold

>>> short, long = np.array([[1.0], [2.0]]), np.array([[3.0], [4.0], [5.0]])
>>> [part[:, 0].tolist() for part in fold_range([short, long])]
[[2.0, 3.0, 5.0], [1.0, 2.0, 5.0], [3.0, 4.0, 5.0]]
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["FoldRange", "fold_range"]


class FoldRange(NamedTuple):
    """Scores at each epoch; not a number where no fold has one."""

    mean: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]


def fold_range(scores: Sequence[NDArray[np.float64]]) -> FoldRange:
    """Mean and range over folds, at least one."""
    n_epochs = max(len(curve) for curve in scores)
    padded = np.full((len(scores), n_epochs, scores[0].shape[1]), np.nan)
    for fold, curve in enumerate(scores):
        padded[fold, : len(curve)] = np.where(np.isfinite(curve), curve, np.nan)
    known = ~np.isnan(padded)
    n_known = known.sum(axis=0)
    total = np.where(known, padded, 0.0).sum(axis=0)
    return FoldRange(
        np.where(n_known > 0, total / np.maximum(n_known, 1), np.nan),
        np.fmin.reduce(padded, axis=0),
        np.fmax.reduce(padded, axis=0),
    )
