"""Which rows a model sees, which it is tested on, and methods side by side under that protocol.

Every segment in turn is the current one; the segments before it are the history. Of the
current segment, the first `current_share` of an average segment's rows are labelled, and all
later rows are the test set.

Features are scaled under "honest" by the rows seen, under "paper" by the whole stream, test rows
included, which is how the published numbers were made and what no live system can do. The streams
of the paper are complete numbers and are scaled to zero mean and unit variance. A stream of the
user's own is encoded as `QuiltClassifier` encodes rows. Rows that are not seen leave no trace in
it: a category that only they have is all zeros, and a column that is empty in the rows seen is
left out.

Paper: "Model Training".

>>> from driftquilt.paper.baselines.naive import CurrentSegment, FullData
>>> from driftquilt.paper.datasets.synthetic import sine
>>> [(len(e.history), len(e.current), len(e.test)) for e in evaluations(sine(3, 500))]
[(0, 50, 450), (1, 50, 450), (2, 50, 450)]
>>> methods = {"all": FullData(max_epochs=5), "current": CurrentSegment(max_epochs=5)}
>>> [(outcome.segment, outcome.method) for outcome in compare(sine(2, 200), methods)]
[(0, 'all'), (0, 'current'), (1, 'all'), (1, 'current')]
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from driftquilt.core.segment import Segment, cut
from driftquilt.data.encoder import Encoder
from driftquilt.data.frame import Frame
from driftquilt.errors import InputError
from driftquilt.paper.datasets.stream import Stream
from driftquilt.quilt.method import Fitted, Method

__all__ = ["Evaluation", "Outcome", "Protocol", "compare", "encode", "evaluations"]

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


@dataclass(frozen=True)
class Outcome:
    """One method on one segment."""

    segment: Hashable
    method: str
    accuracy: float
    model: Fitted = field(repr=False)


def compare(
    stream: Stream, methods: Mapping[str, Method], protocol: Protocol = "honest"
) -> Iterator[Outcome]:
    """Every method on every segment of the stream, segment by segment."""
    for evaluation in evaluations(stream, protocol):
        for name, method in methods.items():
            model = method.adapt(evaluation.history, evaluation.current)
            predicted = model.predict_proba(evaluation.test.X).argmax(axis=1)
            accuracy = float(np.mean(predicted == evaluation.test.y))
            yield Outcome(evaluation.test.name, name, accuracy, model)


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


def encode(
    stream: Stream, n_rows: int, *, n_known: int
) -> tuple[NDArray[np.float32], tuple[str, ...]]:
    """Return the first rows, encoded by the first `n_known` alone, and the names of the columns."""
    if stream.frame is None:
        known = stream.features[:n_known]
        return _scale(stream.features[:n_rows], known), stream.feature_names
    seen = stream.frame.take(slice(n_known))
    used = {
        name: stream.frame.column(name) for name in seen.columns if seen.kind(name) != "nothing"
    }
    if not used:
        raise InputError(
            f"no column of {stream.name} has a value in its first {n_known} rows, which are all "
            "that is known at that point; drop these rows or fill some in"
        )
    frame = Frame.of_arrays(used)
    encoder = Encoder.fit(frame.take(slice(n_known)), robust=False)  # as the paper scales
    return encoder.encode(frame.take(slice(n_rows))), encoder.feature_names_out


def _scale(rows: NDArray[np.float64], seen: NDArray[np.float64]) -> NDArray[np.float32]:
    spread = seen.std(axis=0)
    spread[spread == 0] = 1.0
    scaled: NDArray[np.float64] = (rows - seen.mean(axis=0)) / spread
    return scaled.astype(np.float32)
