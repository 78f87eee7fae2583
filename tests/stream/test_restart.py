"""A stream that crashes and is opened again goes on as if nothing had happened, bit for bit."""

from __future__ import annotations

import math
import shutil
from collections.abc import Iterable
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from driftquilt.store.memory import MemoryStore
from driftquilt.stream import QuiltStream
from driftquilt.stream.events import DriftFound, ModelPromoted, SegmentSealed
from driftquilt.stream.settings import LET_ALL_THROUGH
from tests.stream.streams import (
    Gated,
    as_stored,
    estimator,
    hasty,
    learn,
    left,
    left_in,
    rows,
    start,
)  # fmt: skip

ROWS = rows(600)


@cache
def undisturbed(checkpoint_rows: int = 5_000) -> dict[str, Any]:
    """What a stream without a crash leaves."""
    stream = start(MemoryStore(), checkpoint_rows=checkpoint_rows)
    learn(stream, ROWS)
    found = left(stream)
    drifts = [e for e in found["record"]["events"] if e["event"] == DriftFound.__name__]
    assert len(found["segments"]) == len(drifts) > 3
    assert len(found["models"]) > 8
    return found


class Crashes:
    """A folder that is copied while its stream lives, which is what a kill leaves of it."""

    def __init__(self, tmp_path: Path, **pace: Any) -> None:
        self.paths = (tmp_path / str(number) for number in range(10_000))
        self.path, self.pace = next(self.paths), pace

    def begin(self, **settings: Any) -> QuiltStream:
        return start(hasty(self.path, **self.pace), **settings)

    def crash(self, stream: QuiltStream, **settings: Any) -> QuiltStream:
        old, self.path = self.path, next(self.paths)
        shutil.copytree(old, self.path)
        stream.store.close()  # writes to the old folder alone
        shutil.rmtree(old)
        return QuiltStream.open(hasty(self.path, **self.pace), wait=True, **settings)

    def left(self, stream: QuiltStream) -> dict[str, Any]:
        stream.close()
        with hasty(self.path) as store:
            return left_in(store)


def run_with_crashes(crashes: Crashes, cuts: Iterable[int], **settings: Any) -> dict[str, Any]:
    stream = crashes.begin(**settings)
    for first, last in pairwise([0, *cuts, len(ROWS)]):
        learn(stream, ROWS[first:last])
        stream = crashes.crash(stream)
        assert stream.n_rows == last == stream.n_durable
    return crashes.left(stream)


def event_rows() -> list[int]:
    return sorted({event["row"] for event in undisturbed()["record"]["events"]})


@pytest.mark.parametrize("checkpoint_rows", [10, 50, 5_000])
def test_crashes_around_every_event_change_nothing(tmp_path: Path, checkpoint_rows: int) -> None:
    cuts = sorted({row + near for row in event_rows() for near in (-1, 0, 1)} - {len(ROWS)})
    found = run_with_crashes(Crashes(tmp_path), cuts, checkpoint_rows=checkpoint_rows)
    assert found == undisturbed()


@pytest.mark.parametrize("step", [11, 97])
def test_crashes_every_so_many_rows_change_nothing(tmp_path: Path, step: int) -> None:
    found = run_with_crashes(Crashes(tmp_path), range(step, len(ROWS), step))
    assert found == undisturbed()


def test_a_stream_that_was_closed_goes_on_as_if_it_had_not_been(tmp_path: Path) -> None:
    stream = start(hasty(tmp_path / "s"))
    for first in range(0, len(ROWS), 60):
        learn(stream, ROWS[first : first + 60])
        stream.close()
        stream = QuiltStream.open(hasty(tmp_path / "s"), wait=True)
    assert left_in(stream.store) == undisturbed()
    stream.close()


@pytest.mark.parametrize("delay", [math.inf, 0.001])
def test_rows_that_were_not_durable_are_lost_and_all_others_are_there_once(
    tmp_path: Path, delay: float
) -> None:
    crashes, n_lost = Crashes(tmp_path, commit_rows=50, commit_delay=delay), 0
    stream = crashes.begin()
    while stream.n_rows < len(ROWS):
        learn(stream, ROWS[stream.n_rows : stream.n_rows + 87])
        n_taken, n_durable = stream.n_rows, stream.n_durable
        if n_taken < len(ROWS):
            stream = crashes.crash(stream)
            assert n_durable <= stream.n_rows <= n_taken
            n_lost += n_taken - stream.n_rows
    assert stream.flush() == len(ROWS)
    assert crashes.left(stream) == undisturbed()
    assert delay < math.inf or n_lost > 100  # there was something to lose


def test_predictions_after_a_crash_are_those_before_it(tmp_path: Path) -> None:
    crashes = Crashes(tmp_path)
    stream = learn(crashes.begin(), ROWS[:333])
    before = [stream.predict_proba_one(x) for x, _ in ROWS[333:400]]
    accuracy, events, models = stream.accuracy, stream.events, stream.models
    again = crashes.crash(stream)
    assert [again.predict_proba_one(x) for x, _ in ROWS[333:400]] == before
    assert (again.accuracy, again.events, again.models) == (accuracy, events, models)
    assert again.model == stream.model
    again.close()


@pytest.mark.parametrize("weights", ["balanced", {"yes": 20.0, "later": 3.0}])
def test_class_weights_steer_the_answers_also_after_a_crash(tmp_path: Path, weights: Any) -> None:
    crashes = Crashes(tmp_path)
    stream = learn(crashes.begin(estimator=estimator(class_weight=weights)), ROWS[:333])
    clf = stream.classifier(stream.models[-1])
    assert clf.class_weights_ is not None
    asked = [x for x, _ in ROWS[333:400]]
    by_class = dict(zip(clf.classes_.tolist(), clf.class_weights_.tolist(), strict=True))
    before = [stream.predict_one(x) for x in asked]
    for x, answer in zip(asked, before, strict=True):
        chances = stream.predict_proba_one(x)
        assert answer == max(chances, key=lambda label: chances[label] * by_class[label])
    assert stream.predict_many(asked) == before
    again = crashes.crash(stream)
    assert [again.predict_one(x) for x in asked] == before
    assert again.class_weight == again.status().class_weight == weights
    assert again.accuracy == stream.accuracy
    again.close()


def test_a_rollback_survives_a_crash(tmp_path: Path) -> None:
    crashes = Crashes(tmp_path)
    stream = learn(crashes.begin(), ROWS[:300])
    assert stream.model == stream.models[-1]
    stream.roll_back(2)
    answers = [stream.predict_proba_one(x) for x, _ in ROWS[300:330]]
    again = crashes.crash(stream)
    assert again.model == 2
    assert [again.predict_proba_one(x) for x, _ in ROWS[300:330]] == answers
    learn(again, ROWS[300:])
    assert again.model == again.models[-1] > 2
    again.close()


class Forgetful:
    """A detector of the user's own that fires after so many rows."""

    def __init__(self, n_rows: int) -> None:
        self.left = n_rows

    @property
    def drift_detected(self) -> bool:
        return self.left == 0

    def update(self, value: Any) -> None:  # noqa: ARG002
        self.left -= 1


class Torn(MemoryStore):
    """A store whose process dies where it is told to: right after a segment was sealed."""

    torn = False

    def put_model(self, *arguments: Any, **named: Any) -> int:
        if self.torn and self.n_open == 0:
            raise KeyboardInterrupt
        return super().put_model(*arguments, **named)


def test_a_segment_sealed_in_the_moment_of_the_crash_is_found_again() -> None:
    store = Torn()
    settings = {"detector": {"kind": "known", "points": [49]}, "checkpoint_rows": 20}
    stream = learn(start(store, **settings), ROWS[:49])
    store.torn = True
    with pytest.raises(KeyboardInterrupt):
        stream.learn_one(*ROWS[49])
    assert [(s.name, s.n_rows) for s in store.segments] == [(0, 50)]
    store.torn = False
    again = learn(QuiltStream.open(store, wait=True), ROWS[50:120])
    whole = learn(start(**settings), ROWS[:120])
    assert left(again) == left(whole)


def test_a_detector_without_a_state_does_not_tear_segments() -> None:
    store = Torn()
    stream = start(store, detector=Forgetful(50), checkpoint_rows=20, guard=LET_ALL_THROUGH)
    learn(stream, ROWS[:49])
    store.torn = True
    with pytest.raises(KeyboardInterrupt):
        stream.learn_one(*ROWS[49])
    store.torn = False
    again = QuiltStream.open(store, wait=True, detector=Forgetful(7))
    learn(again, ROWS[50:80])
    sealed = [event for event in again.events if isinstance(event, SegmentSealed)]
    assert [(event.first_row, event.n_rows) for event in sealed] == [
        (0, 50), (50, 7), (57, 7), (64, 7), (71, 7),
    ]  # fmt: skip
    assert left(again)["rows"] == as_stored(ROWS[:80])


def test_a_training_that_a_crash_cut_short_begins_again(tmp_path: Path) -> None:
    crashes = Crashes(tmp_path)
    cut_short, ready = Gated(), Gated()
    ready.gate.set()
    stream = QuiltStream(
        estimator(learner=cut_short), "never", 100, store=hasty(crashes.path), refresh=None,
        checkpoint_rows=10,
    )  # fmt: skip
    learn(stream, ROWS[:100])
    assert stream.training
    learn(stream, ROWS[100:115])  # a checkpoint comes meanwhile
    assert stream.model is None
    again = crashes.crash(stream, learner=ready)
    cut_short.gate.set()
    assert again.model == 1
    assert [type(e) for e in again.events if isinstance(e, ModelPromoted)] == [ModelPromoted]
    assert again.n_rows == 115
    again.close()


def test_a_model_in_use_is_there_whenever_the_crash_comes(tmp_path: Path) -> None:
    crashes = Crashes(tmp_path)
    stream = crashes.begin(max_models=1)
    for first in range(0, 300, 10):
        learn(stream, ROWS[first : first + 10])
        stream = crashes.crash(stream)
        assert stream.models == ([] if stream.model is None else [stream.model])
    assert stream.model == 4
    stream.close()
