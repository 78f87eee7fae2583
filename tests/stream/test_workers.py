"""Trainings in processes of their own end as those on a thread do, and die alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

import pytest

from driftquilt import InputError, QuiltClassifier, QuiltStream
from driftquilt.learners.mlp import MLP
from driftquilt.stream.events import ModelPromoted, TrainingFailed
from driftquilt.stream.training import Outcome, Training, on_thread
from driftquilt.stream.workers import Workers
from tests.processes import wait_for
from tests.stream.streams import rows


@pytest.fixture
def workers() -> Iterator[Workers]:
    made = Workers(1)
    yield made
    made.close()


def learn(stream: QuiltStream, n_rows: int) -> None:
    for x, y in rows(n_rows):
        stream.learn_one(x, y)
        if stream.training:  # so that it takes over at the same row, wherever it runs
            stream.finish_training()


def test_process_trains_the_same_model_as_a_thread(workers: Workers) -> None:
    answers = []
    for trainer in (on_thread, workers):
        stream = QuiltStream(QuiltClassifier(random_state=0), n_wait=50, trainer=trainer)
        learn(stream, 130)
        assert any(isinstance(event, ModelPromoted) for event in stream.events)
        answers.append([stream.predict_proba_one(x) for x, _ in rows(20)])
    assert answers[0] == answers[1]


def test_killed_worker_fails_its_training_alone_and_the_next_gets_another(
    workers: Workers,
) -> None:
    stream = QuiltStream(QuiltClassifier(random_state=0), n_wait=50, trainer=workers)
    some = rows(200)
    for x, y in some[:50]:
        stream.learn_one(x, y)
    assert stream.training
    wait_for(lambda: workers._busy, what="the start of a training")
    workers._busy[0]._process.send_signal(signal.SIGKILL)
    (failed,) = stream.finish_training()
    assert isinstance(failed, TrainingFailed)
    assert "signal 9" in failed.why
    for x, y in some[50:100]:
        stream.learn_one(x, y)
    happened = stream.finish_training()
    assert any(isinstance(event, ModelPromoted) for event in happened)


def test_learner_of_ones_own_stays_in_its_process(workers: Workers) -> None:
    with pytest.raises(InputError, match="leave the trainer out"):
        QuiltStream(QuiltClassifier(learner=MLP()), n_wait=50, trainer=workers)


def test_a_stream_goes_on_without_trainings_when_its_workers_are_closed() -> None:
    workers = Workers(1)
    stream = QuiltStream(QuiltClassifier(), n_wait=50, trainer=workers)
    workers.close()
    workers.close()
    learn(stream, 60)
    failed = [event for event in stream.events if isinstance(event, TrainingFailed)]
    assert len(failed) == 1
    assert stream.predict_one(rows(1)[0][0]) is not None
    learn(stream, 60)  # the next is due with a hundred rows
    failed = [event for event in stream.events if isinstance(event, TrainingFailed)]
    assert len(failed) == 2


def test_a_training_that_is_cancelled_is_one_that_failed() -> None:
    waiting: list[Future[Outcome]] = []

    def later(_: Training) -> Future[Outcome]:
        waiting.append(Future())
        return waiting[-1]

    stream = QuiltStream(QuiltClassifier(), n_wait=50, trainer=later)
    for x, y in rows(50):
        stream.learn_one(x, y)
    waiting[0].cancel()
    assert stream.predict_one(rows(1)[0][0]) is not None
    assert isinstance(stream.events[-1], TrainingFailed)


_PARENT = """
import sys, time
from driftquilt import QuiltClassifier, QuiltStream
from driftquilt.stream.workers import Workers
workers = Workers(1)
stream = QuiltStream(QuiltClassifier(), n_wait=50, trainer=workers)
for turn in range(50):
    stream.learn_one({"a": float(turn % 7)}, turn % 2)
while not workers._busy:
    time.sleep(0.01)
print(workers._busy[0]._process.pid, flush=True)
time.sleep(60)
"""


def test_worker_ends_with_the_process_that_began_it(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", _PARENT], stdout=subprocess.PIPE, text=True, cwd=tmp_path
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    wait_for(lambda: not _is_alive(pid), what="the end of the worker")


def _is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    os.kill(pid, 0)
    return state != "Z"


@pytest.mark.parametrize("n_workers", [0, -1, 1.5, True, "2"])
def test_number_of_workers_is_checked(n_workers: object) -> None:
    with pytest.raises(InputError, match="n_workers is"):
        Workers(n_workers)  # type: ignore[arg-type]
