"""What is Kafka's own: partitions, unknown topics, offsets that never were, late confirmations."""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from driftquilt.brokers import Note, Source, kafka, open_source
from driftquilt.errors import NoteTooLargeError, SourceError
from tests.brokers.brokers import PASSWORD, KafkaBroker, running
from tests.brokers.test_brokers import read
from tests.processes import wait_for


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    with running("kafka", Path(tmp_path_factory.mktemp("kafka")), n_partitions=3) as started:
        yield started


def test_each_partition_keeps_its_order_and_a_position_knows_all_of_them(
    broker: KafkaBroker, source: Source
) -> None:
    for partition in range(3):
        broker.send([b"%d %d" % (partition, number) for number in range(100)], partition)
    found = read(source, 300)
    assert all(message.position.keys() == {"0", "1", "2"} for message in found)
    assert found[-1].position == {"0": 100, "1": 100, "2": 100}
    half = found[149].position
    again = read(source, 150, after=half)
    for some in (found, found[:150] + again):
        parts = [[*map(int, message.body.split())] for message in some]
        for partition in range(3):
            assert [n for p, n in parts if p == partition] == [*range(100)]


def test_an_unknown_topic_is_told(broker: KafkaBroker) -> None:
    with (
        contextlib.closing(open_source(broker.url.replace("/rows", "/other"))) as source,
        pytest.raises(SourceError, match="kafka:other"),
    ):
        read(source, 1)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("", "refuses the user or the password"),  # this cluster knows no users
        ("?mechanism=NONE", "cannot be set up: .* Unsupported SASL mechanism: NONE"),
    ],
)
def test_a_user_that_is_refused_is_told_and_the_password_is_not(
    broker: KafkaBroker, options: str, said: str
) -> None:
    url = broker.url.replace("://", f"://me:{PASSWORD}@") + options
    with (
        contextlib.closing(open_source(url)) as source,
        pytest.raises(SourceError, match=said) as refused,
    ):
        read(source, 1)
    assert PASSWORD not in f"{refused.value} {refused.value.__cause__}"


@pytest.mark.parametrize("position", [{"0": 10**6, "1": 100, "2": 100}, {"7": 3}])
def test_a_position_that_never_was_is_told(broker: KafkaBroker, position: dict[str, int]) -> None:
    with contextlib.closing(open_source(broker.url)) as source, pytest.raises(SourceError):
        read(source, 1, after=position)


@pytest.fixture
def own(tmp_path: Path) -> Iterator[KafkaBroker]:
    """A cluster that may be spoilt; the first of its brokers has partition 0, and so on."""
    with running("kafka", tmp_path, n_partitions=3) as started:
        for partition in range(3):
            started.order(f"leader rows {partition} {partition + 1}")
        yield started


@pytest.mark.parametrize("is_known", [True, False])
def test_while_one_broker_is_away_the_partitions_of_the_others_are_read(
    own: KafkaBroker, is_known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka, "_LOOK_AGAIN", 0.5)
    monkeypatch.setattr(kafka, "_LOOK_SOON", 0.5)
    for partition in range(3):
        own.send([b"early"] * 10, partition)
    with contextlib.closing(open_source(own.url)) as source:
        at = read(source, 30)[-1].position if is_known else None
        own.order("down 1")
        n_read = 0
        for _ in range(4):
            for partition in (1, 2):
                own.send([b"later"] * 5, partition)
            found = read(source, 10, after=at)
            at, n_read = found[-1].position, n_read + len(found)
            time.sleep(0.6)  # until it is time to look for partitions again
        assert n_read + len(source.read(at, 100, 0.5)) == (40 if is_known else 60)
        own.order("up 1")
        own.send([b"late"], 0)
        assert read(source, 1 if is_known else 11, after=at)[-1].position["0"] == 11


def test_a_confirmation_that_is_late_is_waited_for_and_nothing_is_sent_twice(
    own: KafkaBroker,
) -> None:
    notes = [Note(str(number), "key", b"%d" % number) for number in range(3)]
    with contextlib.closing(open_source(own.url)) as source:
        wait_for(lambda: source.publish([Note("warm", "key", b"warm")], 0.0))
        own.order("delay 1000")
        assert not source.publish(notes[:2], 0.2)
        wait_for(lambda: source.publish(notes, 0.2))
        own.order("delay 0")
        assert source.trouble is None
        found = read(source, 4)
        assert [*source.read(found[-1].position, 10, 1.5)] == []
    assert Counter(message.body for message in found) == Counter([b"warm", b"0", b"1", b"2"])


def test_nothing_is_remembered_of_notes_that_were_confirmed(own: KafkaBroker) -> None:
    with contextlib.closing(open_source(own.url)) as opened:
        source: Any = opened
        for number in range(20):
            source.publish([Note(f"given up {number}", None, b"x")], 0.01)
        _publish(source, [Note("last", None, b"x")])
        box = source._outbox
        wait_for(lambda: source.publish([Note("one more", None, b"x")], 1.0) and not box._under_way)
        assert (box._arrived, box._failed) == (set(), [])


PRODUCE, BEGIN = 0, 22  # kinds of requests


@pytest.mark.parametrize(
    ("kind", "code", "said"),
    [
        (PRODUCE, 45, "OUT_OF_ORDER_SEQUENCE_NUMBER"),
        (PRODUCE, 29, "the user may not use the topic"),
        (PRODUCE, 87, "the topic does not take such messages"),
        (BEGIN, 31, "the user may not write to the cluster"),
    ],
)
def test_a_refusal_to_publish_is_told_and_a_later_call_begins_anew(
    own: KafkaBroker, kind: int, code: int, said: str
) -> None:
    notes = [Note("1", None, b"one"), Note("2", None, b"two")]
    with contextlib.closing(open_source(own.url)) as source:
        if kind == PRODUCE:
            assert source.publish([Note("warm", None, b"warm")], 10.0)
        own.order(f"errors {kind} {code} 1")
        with pytest.raises(SourceError, match=said):
            _publish(source, notes)
        _publish(source, notes)


def _publish(source: Any, notes: list[Note]) -> None:
    wait_for(lambda: source.publish(notes, 0.5))


def test_a_user_that_is_refused_is_told_to_who_publishes_too(broker: KafkaBroker) -> None:
    url = broker.url.replace("://", f"://me:{PASSWORD}@")
    with contextlib.closing(open_source(url)) as source:
        for _ in range(2):
            with pytest.raises(SourceError, match="refuses the user or the password"):
                _publish(source, [Note("1", None, b"one")])


def test_more_notes_than_the_client_holds_go_in_their_order(own: KafkaBroker) -> None:
    notes = [Note(str(number), "key", b"%d" % number) for number in range(1000)]
    with contextlib.closing(open_source(own.url)) as opened:
        source: Any = opened
        source._settings["queue.buffering.max.messages"] = 100
        _publish(source, notes)
        assert [int(message.body) for message in read(source, 1000)] == [*range(1000)]


def test_a_note_that_is_too_large_for_the_client_is_told_and_the_others_can_go(
    own: KafkaBroker,
) -> None:
    small, large = Note("small", "key", b"small"), Note("large", "key", b"x" * 2**20)
    with contextlib.closing(open_source(own.url)) as source:
        with pytest.raises(NoteTooLargeError, match=r"'large' has 1048576 bytes") as refused:
            source.publish([small, large], 5.0)
        assert refused.value.note_id == "large"
        assert source.publish([small], 10.0)
        assert [message.body for message in read(source, 1)] == [b"small"]


def test_of_a_batch_that_is_too_large_for_the_broker_each_note_is_tried_alone(
    own: KafkaBroker,
) -> None:
    notes = [Note(str(number), "key", b"%d" % number) for number in range(3)]
    with contextlib.closing(open_source(own.url)) as source:
        assert source.publish([Note("warm", "key", b"warm")], 10.0)
        own.order(f"errors {PRODUCE} 10 1")
        assert source.publish(notes, 10.0)  # together too large, and not alone
        own.order(f"errors {PRODUCE} 10 2")
        with pytest.raises(NoteTooLargeError) as refused:
            source.publish(notes, 10.0)
        rest = [note for note in notes if note.id != refused.value.note_id]
        assert source.publish(rest, 10.0)
        assert len(read(source, 6)) == 6


def test_what_is_read_at_once_is_bounded_in_bytes(
    own: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka, "AT_ONCE", 2**20)
    own.send([bytes(100_000)] * 45)
    with contextlib.closing(open_source(own.url)) as source:
        first = read(source, 1, most=1)
        time.sleep(1.0)  # for the client to read ahead
        at_once = source.read(first[-1].position, 10**7, 1.0)
        assert 0 < sum(len(message.body) for message in at_once) < 3 * 2**20
