"""Which rows a model sees, and which it is tested on.

Every segment in turn is the current one; the segments before it are the history. Of the
current segment, the first `current_share` of an average segment's rows are labelled, and all
later rows are the test set.

Features are scaled and encoded (see `encoding`): under "honest" by the rows seen, under "paper"
by the whole stream, test rows included, which is how the published numbers came about and what
no live system can do.

Paper: "Model Training".

>>> from driftquilt.paper.datasets.synthetic import sine
>>> [(len(e.history), len(e.current), len(e.test)) for e in evaluations(sine(3, 500))]
[(0, 50, 450), (1, 50, 450), (2, 50, 450)]
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np

from driftquilt.core.segment import Segment, cut
from driftquilt.paper.datasets.base import Stream
from driftquilt.paper.encoding import encode

__all__ = ["Evaluation", "Protocol", "evaluations"]

Protocol = Literal["honest", "paper"]


@dataclass(frozen=True)
class Evaluation:
    """One segment as the current one: what is seen, and what is asked.

    `columns` name those of the rows; with text in a stream they may grow from segment to segment.
    """

    history: list[Segment]
    current: Segment
    test: Segment
    columns: tuple[str, ...]


def evaluations(stream: Stream, protocol: Protocol = "honest") -> Iterator[Evaluation]:
    """One evaluation per segment of the stream."""
    sizes = np.bincount(stream.segments)
    n_current = int(sizes.mean() * stream.current_share)
    starts = np.cumsum(sizes) - sizes
    for number, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        n_seen, end = start + n_current, start + size
        n_known = n_seen if protocol == "honest" else len(stream.features)
        X, columns = encode(stream, end, n_known=n_known)
        y, codes = stream.labels[:end], stream.segments[:end]
        history, current = cut(X[:n_seen], y[:n_seen], codes[:n_seen], range(number + 1))
        _, test = cut(X[n_seen:], y[n_seen:], np.zeros(end - n_seen, dtype=np.intp), [number])
        yield Evaluation(history, current, test, columns)
