"""A training can be asked for, and given up when the stream is closed."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path

import pytest

from driftquilt import InputError, QuiltStream
from driftquilt.stream.events import ModelPromoted, ModelTrained
from driftquilt.stream.training import Outcome, Training
from tests.stream.streams import learn, rows, start


def test_adapt_trains_before_the_stream_would() -> None:
    stream = learn(start(), rows(10))
    assert stream.model is None
    stream.adapt()
    assert stream.model == 1
    trained = [event for event in stream.events if isinstance(event, ModelTrained)]
    assert [event.n_current for event in trained] == [10]


def test_adapt_takes_rows_of_two_classes() -> None:
    stream = start()
    with pytest.raises(InputError, match="nothing to adapt to"):
        stream.adapt()
    stream.learn_one({"a": 1.0}, "yes")
    with pytest.raises(InputError, match="labels so far are"):
        stream.adapt()


def test_training_that_was_given_up_begins_again_after_opening(tmp_path: Path) -> None:
    begun: list[Training] = []

    def never(training: Training) -> Future[Outcome]:
        begun.append(training)
        return Future()

    some = rows(40)
    stream = start(tmp_path, wait=False, trainer=never)
    learn(stream, some[:35])
    stream.close(finish_training=False)
    again = QuiltStream.open(tmp_path, trainer=never)
    assert again.n_rows == 35
    learn(again, some[35:36])
    assert [len(training.tables[-1]) for training in begun] == [30, 36]
    again.close(finish_training=False)


def test_events_are_numbered_and_keep_their_numbers(tmp_path: Path) -> None:
    stream = learn(start(tmp_path), rows(200))
    numbers = [event.number for event in stream.events]
    assert numbers == list(range(1, len(numbers) + 1))
    assert any(isinstance(event, ModelPromoted) for event in stream.events)
    stream.close()
    with QuiltStream.open(tmp_path) as again:
        assert [event.number for event in again.events] == numbers
