"""Mean head gradients of segments of any length, shard by shard.

The mean over a segment of several shards is that of its runs, each of up to four shards, and
that of a run is that of its shards, weighted by the sums of their weights. Shards, runs and
their order follow from the number of rows alone, so the mean is the same to the bit whether the
rows are in this process or on other machines (`integrations.ray.shards`), where each run is
looked at and only C·(H+1) numbers of it travel.

>>> merge(np.array([[1.0], [4.0]]), np.array([2.0, 1.0])).tolist()
[2.0]
>>> [len(run) for run in runs(300_000)]
[4, 1]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from driftquilt.core.segment import Segment

__all__ = [
    "SHARD_ROWS",
    "Mean",
    "RemoteScorer",
    "Scorable",
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
