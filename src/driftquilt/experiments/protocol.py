"""Which rows a model sees, and which it is tested on.

Every segment in turn is the current one; the segments before it are the history. Of the
current segment, the first `current_share` of an average segment's rows are labelled, and all
later rows are the test set.

Features are scaled to zero mean and unit variance: under "honest" with the figures of the rows
seen, under "paper" with those of the whole stream, test rows included, which is how the
published numbers came about and what no live system can do.

Paper: "Model Training".

>>> from driftquilt.datasets.synthetic import sine
>>> [(len(e.history), len(e.current), len(e.test)) for e in evaluations(sine(3, 500))]
[(0, 50, 450), (1, 50, 450), (2, 50, 450)]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from driftquilt.core.segment import Segment, cut
from driftquilt.datasets.base import Stream

__all__ = ["Evaluation", "Protocol", "evaluations"]

Protocol = Literal["honest", "paper"]


@dataclass(frozen=True)
class Evaluation:
    """One segment as the current one: what is seen, and what is asked."""

    history: list[Segment]
    current: Segment
    test: Segment


def evaluations(stream: Stream, protocol: Protocol = "honest") -> Iterator[Evaluation]:
    """One evaluation per segment of the stream."""
    sizes = np.bincount(stream.segments)
    n_current = int(sizes.mean() * stream.current_share)
    starts = np.cumsum(sizes) - sizes
    for number, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        n_seen, end = start + n_current, start + size
        n_scaled = n_seen if protocol == "honest" else len(stream.features)
        X = _scale(stream.features[:end], stream.features[:n_scaled])
        y, codes = stream.labels[:end], stream.segments[:end]
        history, current = cut(X[:n_seen], y[:n_seen], codes[:n_seen], range(number + 1))
        _, test = cut(X[n_seen:], y[n_seen:], np.zeros(end - n_seen, dtype=np.intp), [number])
        yield Evaluation(history, current, test)


def _scale(rows: NDArray[np.float64], seen: NDArray[np.float64]) -> NDArray[np.float32]:
    spread = seen.std(axis=0)
    spread[spread == 0] = 1.0
    scaled: NDArray[np.float64] = (rows - seen.mean(axis=0)) / spread
    return scaled.astype(np.float32)
