"""Which rows are seen, which are asked, and what the scaling may know."""

from __future__ import annotations

import numpy as np
import pytest

from driftquilt.paper.baselines.naive import CurrentSegment
from driftquilt.paper.datasets.synthetic import sine
from driftquilt.paper.protocol import Protocol, compare, evaluations


def test_every_row_of_a_segment_is_either_seen_or_asked() -> None:
    stream = sine(3, 200)
    for number, evaluation in enumerate(evaluations(stream)):
        assert [segment.name for segment in evaluation.history] == list(range(number))
        assert len(evaluation.current) == 20
        labels = np.concatenate([evaluation.current.y, evaluation.test.y])
        np.testing.assert_array_equal(labels, stream.labels[stream.segments == number])


def test_honest_scaling_knows_only_the_rows_seen() -> None:
    for evaluation in evaluations(sine(3, 200), "honest"):
        seen = np.concatenate([s.X for s in [*evaluation.history, evaluation.current]])
        np.testing.assert_allclose(seen.mean(axis=0), 0, atol=1e-6)
        np.testing.assert_allclose(seen.std(axis=0), 1, atol=1e-6)


def test_paper_scaling_is_that_of_the_whole_stream() -> None:
    stream = sine(3, 200)
    scaled = (stream.features - stream.features.mean(axis=0)) / stream.features.std(axis=0)
    *_, last = evaluations(stream, "paper")
    rows = np.concatenate([s.X for s in [*last.history, last.current, last.test]])
    np.testing.assert_allclose(rows, scaled, atol=1e-6)


@pytest.mark.parametrize("protocol", ["honest", "paper"])
def test_accuracy_is_that_on_the_rows_asked(protocol: Protocol) -> None:
    stream, method = sine(2, 200), CurrentSegment(max_epochs=3)
    outcomes = list(compare(stream, {"current only": method}, protocol))
    for outcome, evaluation in zip(outcomes, evaluations(stream, protocol), strict=True):
        model = method.adapt(evaluation.history, evaluation.current)
        right = model.predict_proba(evaluation.test.X).argmax(axis=1) == evaluation.test.y
        assert outcome.accuracy == right.mean()
