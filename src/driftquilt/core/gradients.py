"""The gradient that rows send through the last layer, in closed form, and its mean over segments.

For a softmax over `z = W a + b` and cross-entropy, the gradient of a row with embedding `a`,
prediction `p` and label `y` is `(p - y, (p - y) ⊗ a)`: no backward pass is needed. Quilt
compares segments by the mean of it, one vector of C·(H+1) numbers per segment, laid out
class by class: the bias first, then the H weights.

    probabilities  (n, C)
    y              (n,)      class codes
    embedding      (n, H)    whatever goes into the last layer
    weight         (n,)
    gradient       (C·(H+1),) float64

A long segment is scored shard by shard. Its mean is that of its runs, each of up to four shards,
and that of a run is that of its shards, weighted by the sums of their weights. Shards, runs and
their order follow from the number of rows alone, so the mean is the same to the bit whether the
rows are in this process or on other machines (`integrations.ray.shards`), where each run is
looked at and only C·(H+1) numbers of it travel.

Paper: "Gradient Computation".

>>> p, a = np.array([[0.75, 0.25]]), np.array([[2.0, 4.0]])
>>> head_gradient(p, np.array([0]), a, np.ones(1)).tolist()
[-0.25, -0.5, -1.0, 0.25, 0.5, 1.0]
>>> merge(np.array([[1.0], [4.0]]), np.array([2.0, 1.0])).tolist()
[2.0]
>>> [len(run) for run in runs(300_000)]
[4, 1]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from driftquilt.core.segment import Segment

__all__ = [
    "SHARD_ROWS",
    "Mean",
    "RemoteScorer",
    "Scorable",
    "cross_entropy",
    "head_gradient",
    "mean_gradients",
    "merge",
    "put_together",
    "run_mean",
    "runs",
    "shards",
]

#: Rows that are scored at once. The mean over a longer segment is that of its shards, so it is the
#: same to the bit wherever the shards are.
SHARD_ROWS = 65_536

_RUN_SHARDS = 4


def head_gradient(
    probabilities: NDArray[np.floating[Any]],
    y: NDArray[np.int64],
    embedding: NDArray[np.floating[Any]],
    weight: NDArray[np.floating[Any]],
) -> NDArray[np.float64]:
    """Sum over the rows of weight times head gradient; divide by the weights' sum for the mean."""
    residual = probabilities.astype(np.float64)
    residual[np.arange(len(y)), y] -= 1.0
    residual *= weight[:, None]
    gradient = np.empty((residual.shape[1], embedding.shape[1] + 1))
    gradient[:, 0] = residual.sum(axis=0)
    gradient[:, 1:] = residual.T @ embedding
    return gradient.ravel()


def cross_entropy(
    probabilities: NDArray[np.floating[Any]],
    y: NDArray[np.int64],
    weight: NDArray[np.floating[Any]],
) -> float:
    """Sum over the rows of weight times cross-entropy."""
    likelihood = np.maximum(probabilities[np.arange(len(y)), y], np.finfo(np.float32).tiny)
    return float(-(weight * np.log(likelihood)).sum(dtype=np.float64))


class Scorable(Protocol):
    """A model that computes mean head gradients."""

    def head_gradients(
        self, segments: Sequence[Segment]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean head gradient (S, C·(H+1)) and mean cross-entropy (S,) of each segment."""


#: What gives the mean head gradient of every past segment, (S, C·(H+1)), all rows counted.
RemoteScorer: TypeAlias = Callable[[Scorable], NDArray[np.float64]]


class Mean(NamedTuple):
    """Mean head gradient of some rows, C·(H+1) numbers, and the sum of their weights."""

    gradient: NDArray[np.float64]
    weight: float


def mean_gradients(model: Scorable, segments: Sequence[Segment]) -> NDArray[np.float64]:
    """Mean head gradient of each segment, (S, C·(H+1))."""
    if all(len(shards(len(segment))) == 1 for segment in segments):
        return model.head_gradients(segments)[0]
    return np.stack([put_together(_run_means(model, segment)) for segment in segments])


def shards(n_rows: int) -> list[slice]:
    """Return the shards of a segment with so many rows, in order.

    >>> shards(70_000)
    [slice(0, 65536, None), slice(65536, 70000, None)]
    """
    return [
        slice(first, min(first + SHARD_ROWS, n_rows))
        for first in range(0, max(n_rows, 1), SHARD_ROWS)
    ]


def runs(n_rows: int) -> list[list[slice]]:
    """Return the shards of a segment with so many rows, in order, by the run they belong to."""
    parts = shards(n_rows)
    return [parts[first : first + _RUN_SHARDS] for first in range(0, len(parts), _RUN_SHARDS)]


def run_mean(model: Scorable, run: Sequence[Segment]) -> Mean:
    """Return the mean over a run, from its shards."""
    gradients, _ = model.head_gradients(run)
    weights = np.array([shard.weight.sum(dtype=np.float64) for shard in run])
    return Mean(merge(gradients, weights), float(weights.sum()))


def put_together(means: Sequence[Mean]) -> NDArray[np.float64]:
    """Return the mean over a segment, from those of its runs."""
    gradients, weights = zip(*means, strict=True)
    return merge(np.stack(gradients), np.array(weights))


def _run_means(model: Scorable, segment: Segment) -> list[Mean]:
    return [run_mean(model, [segment.take(part) for part in run]) for run in runs(len(segment))]


def merge(means: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean over parts, from the mean (K, P) and the weight (K,) of each.

    The mean of a single part is returned as it is.
    """
    whole: NDArray[np.float64] = means[0]
    if len(means) > 1:
        whole = means[0] * weights[0]
        for mean, weight in zip(means[1:], weights[1:], strict=True):  # in their order
            whole += mean * weight
        whole /= weights.sum()
    return whole
