"""A labelled stream in segments: the record every data set comes as.

features  (n, d)  float64, unscaled
labels    (n,)    class codes, int64
segments  (n,)    segment numbers from 0, rising, int64
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

__all__ = ["Stream", "shuffle_inside"]


@dataclass(frozen=True, eq=False)
class Stream:
    """Rows in stream order, cut into segments.

    `current_share` is the part of an average segment whose labels are known when a model is
    trained for it; the paper takes a tenth, and a fifth for its shortest streams.
    """

    name: str
    features: NDArray[np.float64] = field(repr=False)
    labels: NDArray[np.int64] = field(repr=False)
    segments: NDArray[np.int64] = field(repr=False)
    citation: str = field(repr=False)
    current_share: float = 0.1

    @property
    def n_segments(self) -> int:
        return int(self.segments[-1]) + 1


def shuffle_inside(segments: NDArray[np.int64]) -> NDArray[np.intp]:
    """The order in which the published arrays hold the rows of each segment.

    Published row i is row `order[i]` of the stream as it was made: one generator serves the
    whole stream and gives each segment in turn a permutation of its rows.
    """
    generator = np.random.RandomState(0)
    sizes = np.bincount(segments)
    starts = np.cumsum(sizes) - sizes
    parts = [generator.permutation(n) + start for n, start in zip(sizes, starts, strict=True)]
    return np.concatenate(parts)
