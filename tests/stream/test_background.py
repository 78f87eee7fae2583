"""Trainings on a thread of their own: predictions go on, nothing is lost, threads may mix."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from driftquilt.quilt.classifier import QuiltClassifier
from driftquilt.stream import QuiltStream
from driftquilt.stream.events import DriftFound, ModelPromoted, ModelTrained, SegmentSealed
from driftquilt.stream.settings import LET_ALL_THROUGH
from tests.stream.streams import (
    Gated,
    as_stored,
    estimator,
    hasty,
    learn,
    rows,
    start,
    stored_rows,
)  # fmt: skip

ROWS = rows(400)


def gated(**settings: Any) -> tuple[QuiltStream, Gated]:
    learner = Gated()
    given: dict[str, Any] = {"detector": "never", "n_wait": 30, "refresh": None}
    stream = QuiltStream(estimator(learner=learner), **(given | settings))
    return stream, learner


def test_predictions_go_on_while_a_training_runs() -> None:
    stream, learner = gated()
    learn(stream, ROWS[:30])
    assert stream.training
    answers = []
    for x, y in ROWS[30:60]:
        answers.append(stream.predict_one(x))
        stream.learn_one(x, y)
        assert stream.training
    assert set(answers) <= {"yes", "no"}
    assert (stream.model, stream.events) == (None, ())
    learner.gate.set()
    happened = stream.finish_training()
    assert [type(event) for event in happened] == [ModelTrained, ModelPromoted]
    assert (stream.model, stream.training) == (1, False)
    assert happened[0].row == 60
    assert isinstance(happened[0], ModelTrained)
    assert happened[0].n_current == 30


def test_rows_that_came_meanwhile_are_learned_by_the_new_model() -> None:
    late, learner = gated()
    learn(late, ROWS[:60])
    learner.gate.set()
    late.finish_training()
    early, open_gate = gated()
    open_gate.gate.set()
    learn(early, ROWS[:30])
    early.finish_training()
    learn(early, ROWS[30:60])
    one, other = (stream._engine.learning.champion for stream in (late, early))
    assert one is not None
    assert other is not None
    for name, tensor in one.tensors().items():
        np.testing.assert_array_equal(tensor, other.tensors()[name])


def test_nothing_is_lost_when_drifts_come_during_trainings() -> None:
    stream, learner = gated(
        detector={"kind": "every_rows", "n_rows": 50}, guard=LET_ALL_THROUGH, refresh=2.0
    )
    learn(stream, ROWS[:130])
    assert stream.training
    learner.gate.set()
    learn(stream, ROWS[130:])
    stream.finish_training()
    sealed = [event for event in stream.events if isinstance(event, SegmentSealed)]
    assert [event.first_row for event in sealed] == list(range(0, 400, 50))
    assert stored_rows(stream.store) == as_stored(ROWS)
    assert stream.model is not None


def test_closing_waits_for_a_training_and_keeps_its_model(tmp_path: Path) -> None:
    stream, learner = gated(store=hasty(tmp_path))
    learn(stream, ROWS[:40])
    threading.Timer(0.2, learner.gate.set).start()
    stream.close()
    with QuiltStream.open(hasty(tmp_path), learner=learner) as again:
        assert (again.model, again.n_rows, again.training) == (1, 40, False)


def test_a_training_that_is_over_is_not_under_way_and_its_model_answers_next() -> None:
    stream, learner = gated()
    learn(stream, ROWS[:30])
    learner.gate.set()
    while stream.training:
        time.sleep(0.005)
    stream.predict_one(ROWS[30][0])
    assert stream.model == 1


def test_threads_may_predict_and_learn_at_once() -> None:
    stream = start(wait=False, detector={"kind": "every_rows", "n_rows": 100})
    parts = [ROWS[first::4] for first in range(4)]
    over = threading.Event()

    def ask() -> int:
        n_asked = 0
        while n_asked <= 10 or not over.is_set():
            answer = stream.predict_proba_one(ROWS[n_asked % 400][0])
            assert not answer or abs(sum(answer.values()) - 1) < 1e-3
            assert len(stream.events) < 1000
            n_asked += 1
            time.sleep(0)
        return n_asked

    with ThreadPoolExecutor(6) as pool:
        asking = [pool.submit(ask) for _ in range(2)]
        learning = [pool.submit(learn, stream, part) for part in parts]
        try:
            for job in learning:
                job.result()
        finally:
            over.set()
        assert all(job.result() > 10 for job in asking)
    stream.finish_training()
    assert stream.n_rows == stream.store.n_appended == len(ROWS)
    assert sum(isinstance(event, DriftFound) for event in stream.events) == 4
    found = {tuple(sorted(map(str, row.items()))) for row in stored_rows(stream.store)}
    assert found == {tuple(sorted(map(str, row.items()))) for row in as_stored(ROWS)}


def test_the_default_stream_trains_in_the_background() -> None:
    stream = QuiltStream(QuiltClassifier(hidden_units=16, n_jobs=1, random_state=0), n_wait=40)
    learn(stream, ROWS[:60])
    assert [type(event) for event in stream.finish_training()][-1:] in ([ModelPromoted], [])
    assert stream.model == 1
