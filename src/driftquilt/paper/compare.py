"""Methods side by side on one stream.

>>> from driftquilt.paper.datasets.synthetic import sine
>>> from driftquilt.paper.baselines.naive import CurrentSegment, FullData
>>> methods = {"all": FullData(max_epochs=5), "current": CurrentSegment(max_epochs=5)}
>>> outcomes = list(compare(sine(2, 200), methods))
>>> [(outcome.segment, outcome.method) for outcome in outcomes]
[(0, 'all'), (0, 'current'), (1, 'all'), (1, 'current')]
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from driftquilt.paper.datasets.base import Stream
from driftquilt.paper.protocol import Protocol, evaluations
from driftquilt.quilt.method import Fitted, Method

__all__ = ["Outcome", "compare"]


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
