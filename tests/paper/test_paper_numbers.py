"""`QuiltClassifier.paper()` under the paper's protocol gives the paper's accuracy."""

from __future__ import annotations

import numpy as np
import pytest

from driftquilt import QuiltClassifier
from driftquilt.core.segment import join
from driftquilt.paper.datasets.stream import Stream
from driftquilt.paper.protocol import evaluations
from tests.published import load_published

SEEDS = range(5)


def accuracy(stream: Stream, seed: int) -> float:
    """Mean over the segments, each as the current one in turn."""
    scores = []
    for evaluation in evaluations(stream, "paper"):
        seen = [*evaluation.history, evaluation.current]
        rows = join(seen)
        names = np.repeat([segment.name for segment in seen], [len(segment) for segment in seen])
        clf = QuiltClassifier.paper(encode=False, random_state=seed)
        clf.fit(rows.X, rows.y, segments=names)
        scores.append(clf.score(evaluation.test.X, evaluation.test.y))
    return float(np.mean(scores))


@pytest.mark.parametrize(
    ("name", "published", "tolerance"),
    [("usenet1", 0.812, 0.03), ("usenet2", 0.771, 0.03), ("sea", 0.888, 0.01)],
)
def test_mean_accuracy_over_five_seeds_is_the_papers(
    name: str, published: float, tolerance: float
) -> None:
    stream = load_published(name)
    mean = np.mean([accuracy(stream, seed) for seed in SEEDS])
    assert mean == pytest.approx(published, abs=tolerance)
