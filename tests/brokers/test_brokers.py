"""What holds for every broker, against real ones: Kafka, Redis and NATS."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from driftquilt.brokers import Message, Note, Source, open_source
from driftquilt.errors import SourceError
from tests.brokers.brokers import KINDS, running
from tests.processes import PATIENCE, wait_for

BODIES = [f"message {number}".encode() for number in range(300)]


@pytest.fixture(params=KINDS)
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Any]:
    with running(request.param, tmp_path / "broker") as started:
        yield started


def read(source: Source, n_messages: int, after: Any = None, most: int = 70) -> list[Message]:
    """Read on until there are so many."""
    found: list[Message] = []
    end = time.monotonic() + 30
    while len(found) < n_messages:
        assert time.monotonic() < end, source.trouble
        some = source.read(after, most, 0.5)
        assert len(some) <= most
        found += some
        after = found[-1].position if found else after
    return found


def bodies(messages: list[Message]) -> list[bytes]:
    return [message.body for message in messages]


def test_messages_come_in_order_and_from_any_position_again(broker: Any, source: Source) -> None:
    broker.send(BODIES)
    found = read(source, len(BODIES))
    assert bodies(found) == BODIES
    assert bodies(read(source, 200, after=found[99].position)) == BODIES[100:]
    assert bodies(read(source, 290, after=found[9].position)) == BODIES[10:]


def test_a_read_at_the_end_waits_and_then_gives_nothing(broker: Any, source: Source) -> None:
    broker.send(BODIES[:10])
    last = read(source, 10)[-1].position
    began = time.monotonic()
    assert [*source.read(last, 10, 0.3)] == []
    assert 0.2 < time.monotonic() - began < PATIENCE
    assert source.trouble is None


def test_a_broker_that_was_away_goes_on_where_it_was(broker: Any, source: Source) -> None:
    broker.send(BODIES[:100])
    last = read(source, 100)[-1].position
    broker.stop()
    assert [[*source.read(last, 10, 0.3)] for _ in range(3)] == [[], [], []]
    assert source.trouble is not None
    assert source.trouble.startswith("the broker is away")
    broker.start()
    broker.send(BODIES[100:])
    assert bodies(read(source, 200, after=last)) == BODIES[100:]
    assert source.trouble is None


def test_a_note_that_a_broker_did_not_take_in_time_is_there_once_when_it_is_given_again(
    broker: Any, source: Source
) -> None:
    notes = [Note("1", None, b"first"), Note("2", None, b"second")]
    broker.stop()
    for _ in range(3):
        assert not source.publish(notes, 0.3)
        assert source.trouble is not None
    broker.start()
    wait_for(lambda: source.publish(notes, 0.5))
    assert source.trouble is None
    assert source.publish([Note("3", None, b"last")], 5.0)
    assert bodies(read(source, 3)) == [b"first", b"second", b"last"]


def test_a_source_may_be_opened_before_its_broker_is_there(broker: Any) -> None:
    broker.stop()
    with contextlib.closing(open_source(broker.url)) as early:
        assert [*early.read(None, 10, 0.3)] == []
        broker.start()
        broker.send(BODIES[:10])
        assert bodies(read(early, 10)) == BODIES[:10]


def test_messages_that_the_broker_dropped_before_they_were_read_are_missed_aloud(
    broker: Any, source: Source
) -> None:
    broker.send(BODIES)
    tenth = read(source, 10, most=10)[-1].position
    broker.lose_first()
    with contextlib.closing(open_source(broker.url)) as anew:
        with pytest.raises(SourceError, match="rows are missing"):
            read(anew, 290, after=tenth)
        assert len(read(anew, 5, most=1)) == 5  # from the oldest that is there


def test_what_is_published_can_be_read(source: Source) -> None:
    notes = [Note(f"id {number}", "key", body) for number, body in enumerate(BODIES)]
    assert source.publish(notes, 10.0)
    assert source.publish([], 1.0)
    assert bodies(read(source, len(BODIES))) == BODIES


def test_closing_twice_is_fine(source: Source) -> None:
    source.close()
    source.close()
