"""A stream fed by a broker, a real one: what is learned, answered, passed over and refused."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from driftquilt.brokers import Message, Note, Source, Tally, consume, open_source
from driftquilt.errors import InputError, NoteTooLargeError, SourceError
from driftquilt.stream import QuiltStream
from tests.brokers.brokers import RedisBroker, running
from tests.stream.streams import as_stored, hasty, rows, start, stored_rows

ROWS = rows(500)
QUIET: dict[str, Any] = {"detector": "never", "n_wait": 1000}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RedisBroker]:
    with running("redis", tmp_path / "broker") as started:
        yield started


@pytest.fixture
def to(broker: RedisBroker) -> Iterator[Source]:
    with contextlib.closing(open_source(broker.url.replace("rows", "answers"))) as opened:
        yield opened


def send(broker: RedisBroker, *bodies: Any) -> None:
    broker.send([b if isinstance(b, bytes) else json.dumps(b).encode() for b in bodies])


def labelled(some: list[tuple[dict[str, Any], str]]) -> list[dict[str, Any]]:
    return [{"row": x, "label": y} for x, y in some]


def feed(
    stream: QuiltStream, source: Source, until: Callable[[Tally], bool], **options: Any
) -> Tally:
    """Consume on a thread until something is so."""
    stop, tally, fallen = threading.Event(), Tally(), list[BaseException]()

    def work() -> None:
        try:
            consume(stream, source, stop=stop, tally=tally, wait=0.1, **options)
        except BaseException as error:
            fallen.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    end = time.monotonic() + 60
    while not until(tally) and thread.is_alive() and time.monotonic() < end:
        time.sleep(0.01)
    stop.set()
    thread.join(timeout=60)
    if fallen:
        raise fallen[0]
    assert until(tally)
    return tally


def taken(n_messages: int) -> Callable[[Tally], bool]:
    return lambda tally: tally.n_messages == n_messages


def test_a_stream_fed_by_a_broker_is_the_same_as_one_fed_by_hand(
    broker: RedisBroker, source: Source
) -> None:
    send(broker, *labelled(ROWS))
    stream, by_hand = start(), start()
    tally = feed(stream, source, taken(len(ROWS)))
    by_hand.learn_many(*zip(*ROWS, strict=True))
    assert (tally.n_learned, tally.n_refused) == (len(ROWS), 0)
    assert stored_rows(stream.store) == as_stored(ROWS)
    assert [str(e).partition(" in ")[0] for e in stream.events] == [
        str(e).partition(" in ")[0] for e in by_hand.events
    ]
    assert any("promoted" in str(event) for event in stream.events)
    assert stream.accuracy == by_hand.accuracy


def test_what_cannot_be_learned_is_counted_told_and_passed_over(
    broker: RedisBroker, source: Source
) -> None:
    bad: list[tuple[Any, str]] = [
        (b"\xff", "not UTF-8"),
        ({"row": {"a": "text"}, "label": "yes"}, "holds the text"),
        ({"row": {"other": 1}, "label": "yes"}, "none of them"),
        ({"row": [1], "label": "yes"}, "got a list"),
        ({"row": {"a": [1]}, "label": "yes"}, "'a' holds a list"),
        (b'{"row": {"a": 1e400}, "label": "yes"}', "'a' holds inf, beyond float32"),
        ({"row": {"a": 10**400}, "label": "yes"}, "beyond float32"),
        ({"row": {"\ud800": 1.0, "a": 1.0}, "label": "yes"}, "not valid Unicode"),
        ({"row": {"a": 1.0}, "label": "\ud800"}, "not valid Unicode"),
        ({"row": {"a": 1.0}, "label": 7}, "is a int"),
        ({"row": {"a": 1.0}, "label": None}, "the label is missing"),
        ({"row": {"a": 1.0}, "label": 0.5}, "the label 0.5"),
        ({"row": {"a": 1.0}, "label": 2**63}, "the label 9223372036854775808"),
        ({"id": "never", "label": "yes"}, "no row waits"),
        ({"id": "odd", "row": {"a": "text"}}, "holds the text"),
        ({"id": "odd", "row": [1]}, "got a list"),
    ]
    send(broker, *labelled(ROWS[:10]), *(body for body, _ in bad), *labelled(ROWS[10:20]))
    stream = start(**QUIET)
    tally = feed(stream, source, taken(20 + len(bad)))
    assert (tally.n_learned, tally.n_asked, tally.n_refused) == (20, 0, len(bad))
    assert stored_rows(stream.store) == as_stored(ROWS[:20])
    for refused, (_, why) in zip(tally.refused, bad, strict=True):
        assert why in refused.why


def test_rows_wait_for_their_labels_through_a_restart(
    broker: RedisBroker, source: Source, tmp_path: Path
) -> None:
    asked = [{"id": f"order {n}", "row": x} for n, (x, _) in enumerate(ROWS[:30])]
    send(broker, *asked)
    stream = start(hasty(tmp_path / "s"), **QUIET)
    assert feed(stream, source, taken(30)).n_asked == 30
    stream.store.close()  # as a crash
    send(broker, *({"id": f"order {n}", "label": ROWS[n][1]} for n in range(29, 9, -1)))
    with QuiltStream.open(hasty(tmp_path / "s")) as again:
        assert again.n_waiting == 30
        assert feed(again, source, taken(20)).n_learned == 20
        assert again.n_waiting == 10
        assert stored_rows(again.store) == as_stored(ROWS[29:9:-1])


def test_answers_and_events_go_back(broker: RedisBroker, source: Source, to: Source) -> None:
    send(broker, *labelled(ROWS[:40]), *({"id": n, "row": ROWS[n][0]} for n in range(40, 50)))
    stream = start(detector="never")  # a training after 30 rows
    feed(stream, source, taken(50), to=to)
    said = [json.loads(message.body) for message in to.read(None, 100, 1.0)]
    answers = [body for body in said if "prediction" in body]
    assert [body["id"] for body in answers] == [*range(40, 50)]
    assert {body["prediction"] for body in answers} <= {"yes", "no"}
    assert answers[-1] == {
        "id": 49, "prediction": stream.predict_one(ROWS[49][0]), "model": 1,
    }  # fmt: skip
    assert {"ModelTrained", "ModelPromoted"} <= {body.get("event") for body in said}


def told(broker: RedisBroker) -> list[int]:
    """Numbers of the events that went back."""
    with broker.client() as client:
        return [json.loads(entry[b"body"])["number"] for _, entry in client.xrange("answers")]


def test_events_go_back_whoever_fed_the_stream(
    broker: RedisBroker, source: Source, to: Source
) -> None:
    stream = start(detector="never")
    stream.learn_many(*zip(*ROWS[:40], strict=True))  # before anybody asked for events
    n_before = len(stream.events)
    threading.Timer(0.3, lambda: stream.learn_many(*zip(*ROWS[40:], strict=True))).start()
    feed(stream, source, lambda _: len(told(broker)) == len(stream.events) - n_before > 0, to=to)
    assert told(broker) == [event.number for event in stream.events[n_before:]]


def test_events_that_could_not_go_back_do_so_after_a_crash_and_no_others(
    broker: RedisBroker, source: Source, to: Source, tmp_path: Path
) -> None:
    send(broker, *labelled(ROWS[:40]))
    stream = start(hasty(tmp_path / "s"), detector="never")
    feed(stream, source, taken(40), to=to)
    n_before = len(told(broker))
    send(broker, *labelled(ROWS[40:]))
    with running("redis", tmp_path / "other") as other:
        other.stop()
        with contextlib.closing(open_source(other.url)) as away:
            feed(stream, source, lambda _: bool(away.trouble), to=away)
    stream.store.close()  # as a crash
    with QuiltStream.open(hasty(tmp_path / "s")) as again:
        assert len(again.events) > n_before > 0
        feed(again, source, lambda _: len(told(broker)) >= len(again.events), to=to)
        assert told(broker) == [event.number for event in again.events]


def test_a_row_that_was_forgotten_is_told(broker: RedisBroker, source: Source, to: Source) -> None:
    send(broker, *({"id": n, "row": ROWS[n][0]} for n in range(3)))
    feed(start(max_waiting=2, **QUIET), source, taken(3), to=to)
    said = [json.loads(message.body) for message in to.read(None, 10, 1.0)]
    assert [body["key"] for body in said if body.get("event") == "RowForgotten"] == [0]


def test_a_stop_does_not_wait_for_a_broker_that_takes_no_answers(
    broker: RedisBroker, source: Source, tmp_path: Path
) -> None:
    send(broker, *labelled(ROWS[:5]), {"id": 1, "row": ROWS[5][0]}, *labelled(ROWS[6:8]))
    with running("redis", tmp_path / "other") as other:
        other.stop()
        stream = start(**QUIET)
        with contextlib.closing(open_source(other.url)) as to:
            feed(stream, source, lambda tally: tally.n_learned == 5 and bool(to.trouble), to=to)
            assert (stream.n_rows, stream.n_durable, stream.n_waiting) == (5, 5, 0)
            other.start()
            feed(stream, source, taken(3), to=to)  # and reads on from there
            assert (stream.n_rows, stream.n_waiting) == (7, 1)
            assert len(to.read(None, 10, 1.0)) == 1


def test_an_id_that_waits_with_another_row_gets_no_second_answer(
    broker: RedisBroker, source: Source, to: Source
) -> None:
    asked = [{"id": 1, "row": ROWS[n][0]} for n in (10, 10, 11)]
    send(broker, *labelled(ROWS[:5]), *asked)
    tally = feed(start(**QUIET), source, taken(8), to=to)
    assert (tally.n_asked, tally.n_refused) == (2, 1)
    answers = [json.loads(message.body) for message in to.read(None, 10, 1.0)]
    assert [body["id"] for body in answers] == [1, 1]
    assert "with another row" in tally.refused[-1].why


class Narrow:
    """A broker that takes no long answers, and keeps the others."""

    name, trouble = "narrow", None

    def __init__(self) -> None:
        self.taken: list[Note] = []

    def read(self, after: Any, most: int, wait: float) -> list[Message]:
        raise NotImplementedError

    def publish(self, notes: Sequence[Note], wait: float) -> bool:  # noqa: ARG002
        for note in notes:
            if len(note.body) > 100:
                raise NoteTooLargeError("more than 100 bytes", note_id=note.id)
        self.taken += notes
        return True

    def close(self) -> None:
        pass


def test_a_row_whose_answer_no_broker_takes_is_passed_over(
    broker: RedisBroker, source: Source
) -> None:
    ids = ["short", "l" * 500, "brief"]
    send(broker, *labelled(ROWS[:5]), *({"id": i, "row": ROWS[9][0]} for i in ids))
    to = Narrow()
    tally = feed(start(**QUIET), source, taken(8), to=to)
    assert (tally.n_asked, tally.n_refused) == (2, 1)
    assert "too large for the broker" in tally.refused[-1].why
    assert [json.loads(note.body)["id"] for note in to.taken] == ["short", "brief"]


def test_no_two_notes_of_streams_and_events_have_the_same_id(
    broker: RedisBroker, source: Source
) -> None:
    send(broker, *labelled(ROWS), {"id": 1, "row": ROWS[0][0]})
    ids: list[str] = []
    for _ in range(2):
        to = Narrow()
        feed(start(), source, taken(len(ROWS) + 1), to=to, most=1)
        ids += [note.id for note in to.taken]
    assert len(ids) == len(set(ids)) > 2


def test_a_second_consumer_is_refused(broker: RedisBroker, source: Source) -> None:
    send(broker, *labelled(ROWS[:10]))
    stream = start(**QUIET)

    def moves(_: Callable[[], None]) -> None:
        stream.flush(position={"source": source.name, "after": ["1-1", 1]})
        _()

    with pytest.raises(InputError, match="let one consumer feed a stream"):
        feed(stream, source, taken(10), turn=moves)


def test_no_turn_is_held_while_answers_wait_for_their_broker(
    broker: RedisBroker, source: Source, tmp_path: Path
) -> None:
    send(broker, *labelled(ROWS[:5]), {"id": 1, "row": ROWS[5][0]})
    held: list[bool] = []

    def turn(take: Callable[[], None]) -> None:
        held.append(True)
        take()
        held.append(False)

    with running("redis", tmp_path / "other") as other:
        other.stop()
        stream = start(**QUIET)
        with contextlib.closing(open_source(other.url)) as to:
            waits = lambda tally: tally.n_learned == 5 and bool(to.trouble)  # noqa: E731
            feed(stream, source, waits, to=to, turn=turn)
    assert held[:2] == [True, False]
    assert stream.n_waiting == 0


def test_a_broker_may_be_away_in_the_middle(broker: RedisBroker, source: Source) -> None:
    send(broker, *labelled(ROWS[:100]))
    stream = start(**QUIET)

    def restart() -> None:
        broker.stop()
        time.sleep(0.5)
        broker.start()
        send(broker, *labelled(ROWS[100:200]))

    threading.Timer(0.3, restart).start()
    assert feed(stream, source, taken(200)).n_learned == 200
    assert stored_rows(stream.store) == as_stored(ROWS[:200])


def test_rows_that_the_broker_has_dropped_end_it_aloud(broker: RedisBroker, source: Source) -> None:
    send(broker, *labelled(ROWS[:20]))
    stream = start(**QUIET)
    feed(stream, source, taken(20))
    send(broker, *labelled(ROWS[20:60]))
    broker.lose_first()
    with pytest.raises(SourceError, match="rows are missing"):
        feed(stream, source, taken(40))
    assert stream.n_rows == 20


def test_a_second_source_is_refused(source: Source, to: Source) -> None:
    stream = start(**QUIET)
    stream.flush(position={"source": source.name, "after": ["1-1", 1]})
    with pytest.raises(InputError, match="redis:0/rows"):
        consume(stream, to, stop=threading.Event())


@pytest.mark.parametrize("options", [{"most": 0}, {"wait": 0.0}])
def test_a_consumer_that_could_take_nothing_is_refused(
    source: Source, options: dict[str, Any]
) -> None:
    with pytest.raises(InputError, match="give at least 1"):
        consume(start(**QUIET), source, stop=threading.Event(), **options)
