"""Mean head gradients of segments of any length, shard by shard.

The mean over a segment of several shards is that of its shards' means, weighted by the sums of
their weights. Shards and their order follow from the number of rows alone, so the mean is the
same to the bit whether the rows are in this process or lie on other machines (`scale.shards`),
where each shard is looked at and only C·(H+1) numbers of it travel.

>>> merge(np.array([[1.0], [4.0]]), np.array([2.0, 1.0])).tolist()
[2.0]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from driftquilt.core.segment import Segment, shards

__all__ = ["Elsewhere", "Scorable", "mean_gradients", "merge"]


class Scorable(Protocol):
    """A model that tells mean head gradients."""

    def head_gradients(
        self, segments: Sequence[Segment]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Mean head gradient (S, C·(H+1)) and mean cross-entropy (S,) of each segment."""


#: What gives the mean head gradient of every past segment, (S, C·(H+1)), all rows counted.
Elsewhere: TypeAlias = Callable[[Scorable], NDArray[np.float64]]


def mean_gradients(model: Scorable, segments: Sequence[Segment]) -> NDArray[np.float64]:
    """Mean head gradient of each segment, (S, C·(H+1))."""
    parts = [shards(len(segment)) for segment in segments]
    if all(len(of) == 1 for of in parts):
        return model.head_gradients(segments)[0]
    means = [
        model.head_gradients([segment.take(part) for part in of])[0]
        for segment, of in zip(segments, parts, strict=True)
    ]
    weights = [
        np.array([segment.weight[part].sum(dtype=np.float64) for part in of])
        for segment, of in zip(segments, parts, strict=True)
    ]
    return np.stack([merge(*pair) for pair in zip(means, weights, strict=True)])


def merge(means: NDArray[np.float64], weights: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean over all shards of a segment, from each shard's mean (K, P) and weight (K,)."""
    whole: NDArray[np.float64] = means[0]
    if len(means) > 1:
        whole = means[0] * weights[0]
        for mean, weight in zip(means[1:], weights[1:], strict=True):  # in the order of shards
            whole += mean * weight
        whole /= weights.sum()
    return whole
