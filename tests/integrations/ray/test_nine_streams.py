"""On each of the nine streams Ray decides as the local engine does, bit for bit."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest

from driftquilt import QuiltClassifier
from driftquilt.core.segment import Segment, join
from driftquilt.paper.datasets.catalog import names
from driftquilt.paper.protocol import evaluations
from tests.integrations.ray.processes import killed_workers
from tests.published import load_published

pytestmark = pytest.mark.usefixtures("cluster")


@cache
def last_segment(name: str) -> list[Segment]:
    """What is seen when the last segment is the current one."""
    *_, evaluation = evaluations(load_published(name), "paper")
    return [*evaluation.history, evaluation.current]


def outcome(name: str, engine: str) -> tuple[str, bytes]:
    seen = last_segment(name)
    rows = join(seen)
    segments = np.repeat([segment.name for segment in seen], [len(segment) for segment in seen])
    clf = QuiltClassifier(encode=False, engine=engine, random_state=0)
    clf.fit(rows.X, rows.y, segments=segments)
    return json.dumps(clf.selection_.to_json()), clf.predict_proba(rows.X).tobytes()


@pytest.mark.parametrize("name", names())
def test_the_selection_and_the_model_are_those_of_the_local_engine(name: str) -> None:
    expected = outcome(name, "local")
    assert outcome(name, "ray") == expected
    with killed_workers(2) as killed:
        assert outcome(name, "ray") == expected
        for _ in range(50):  # some are over before a worker is found
            if killed:
                break
            assert outcome(name, "ray") == expected
    assert killed
