"""What is NATS's own: passwords, unknown streams and subjects, ids that are known again."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from nats.js.api import RetentionPolicy
from nats.js.client import JetStreamContext
from nats.js.errors import NoStreamResponseError

from driftquilt.brokers import Note, Source, open_source
from driftquilt.errors import NoteTooLargeError, SourceError
from tests.brokers.brokers import PASSWORD, NatsBroker, running


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsBroker]:
    with running("nats", tmp_path_factory.mktemp("nats"), password=PASSWORD) as started:
        yield started


@pytest.fixture(autouse=True)
def _empty(broker: NatsBroker) -> None:
    broker.lose_all()


@pytest.mark.parametrize("login", ["", "me:guess-77@", "you:guess-77@"])
def test_a_wrong_password_is_refused_and_not_shown(broker: NatsBroker, login: str) -> None:
    url = broker.url.replace(f"me:{PASSWORD}@", login)
    with (
        contextlib.closing(open_source(url)) as source,
        pytest.raises(SourceError, match="refuses the user or the password") as refused,
    ):
        source.read(None, 10, 0.2)
    assert "guess-77" not in f"{refused.value} {refused.value.__cause__}"


def test_an_unknown_stream_or_subject_is_told(broker: NatsBroker) -> None:
    with (
        contextlib.closing(open_source(broker.url.replace("/ROWS/", "/OTHER/"))) as source,
        pytest.raises(SourceError, match="no such stream"),
    ):
        source.read(None, 10, 0.2)
    with (
        contextlib.closing(open_source(broker.url.replace("/rows", "/answers"))) as source,
        pytest.raises(SourceError, match=r"subject.*\['rows'\]"),
    ):
        source.publish([Note("1", None, b"one")], 1.0)


def test_a_subject_that_only_another_stream_takes_is_told_and_it_gets_nothing(
    broker: NatsBroker,
) -> None:
    broker.add_stream("ANSWERS", ["answers.*"])
    with (
        contextlib.closing(open_source(broker.url.replace("/ROWS/", "/ANSWERS/"))) as to,
        contextlib.closing(open_source(broker.url)) as source,
    ):
        n_before = len(source.read(None, 10, 0.2))
        with pytest.raises(SourceError, match=r"subject.*\['answers"):
            to.publish([Note("strayed", None, b"an answer")], 1.0)
        assert len(source.read(None, 10, 0.2)) == n_before


def test_a_wait_that_ends_between_two_questions_is_no_absence(
    monkeypatch: pytest.MonkeyPatch, source: Source
) -> None:
    async def run_out(*_: Any, **__: Any) -> Any:
        raise TimeoutError  # as the library does at the very end of its time

    source.read(None, 10, 0.2)
    monkeypatch.setattr(JetStreamContext.PullSubscription, "fetch", run_out)
    assert [*source.read(None, 10, 0.2)] == []
    assert source.trouble is None


def test_a_subject_may_be_taken_by_a_pattern(broker: NatsBroker) -> None:
    broker.add_stream("WIDE", ["wide.*.new", "deep.>"])
    for subject in ("wide.orders.new", "deep.a.b"):
        url = broker.url.replace("/ROWS/rows", f"/WIDE/{subject}")
        with contextlib.closing(open_source(url)) as source:
            assert source.publish([Note(subject, None, b"one")], 5.0)
            assert [message.body for message in source.read(None, 10, 0.2)] == [b"one"]


def test_a_stream_that_became_ready_since_is_not_refused(
    monkeypatch: pytest.MonkeyPatch, source: Source
) -> None:
    async def not_yet(*_: Any, **__: Any) -> None:
        raise NoStreamResponseError

    with monkeypatch.context() as patched:
        patched.setattr(JetStreamContext, "publish", not_yet)
        began = time.monotonic()
        assert not source.publish([Note("early", None, b"early")], 0.3)
        assert time.monotonic() - began > 0.25
        assert source.trouble is not None
    assert source.publish([Note("early", None, b"early")], 5.0)


@pytest.mark.parametrize("retention", ["interest", "workqueue"])
def test_a_stream_that_deletes_what_was_read_is_refused(
    broker: NatsBroker, retention: RetentionPolicy
) -> None:
    broker.add_stream(retention.upper(), [retention], retention=retention)
    url = broker.url.replace("/ROWS/rows", f"/{retention.upper()}/{retention}")
    with contextlib.closing(open_source(url)) as source:
        assert source.publish([Note("1", None, b"an answer may go there")], 5.0)
        with pytest.raises(SourceError, match=f"deletes what was read, .* is {retention}; read"):
            source.read(None, 10, 0.2)


@pytest.mark.parametrize("n_bytes", [2**20 + 1, 2**20, 2**20 - 52])
def test_a_note_that_is_too_large_is_told_by_its_id_and_the_others_can_go(
    n_bytes: int, source: Source
) -> None:
    small, large = Note("small", None, b"small"), Note("large", None, b"x" * n_bytes)
    for _ in range(2):
        with pytest.raises(NoteTooLargeError, match=r"'large' has .* max_payload") as refused:
            source.publish([small, large], 5.0)
        assert refused.value.note_id == "large"
    assert source.publish([small], 5.0)


def test_a_note_as_large_as_the_broker_takes_goes(source: Source) -> None:
    most = 2**20 - len("NATS/1.0\r\nNats-Msg-Id: most\r\nNats-Expected-Stream: ROWS\r\n\r\n")
    assert source.publish([Note("most", None, b"x" * most)], 5.0)
    with pytest.raises(NoteTooLargeError):
        source.publish([Note("more", None, b"x" * (most + 1))], 5.0)


def test_a_note_that_is_too_large_for_its_stream_is_told(broker: NatsBroker) -> None:
    broker.add_stream("SMALL", ["small"], max_msg_size=100)
    with contextlib.closing(open_source(broker.url.replace("/ROWS/rows", "/SMALL/small"))) as to:
        with pytest.raises(NoteTooLargeError, match="than the stream takes") as refused:
            to.publish([Note("1", None, b"one"), Note("2", None, b"x" * 200)], 5.0)
        assert refused.value.note_id == "2"
        assert to.publish([Note("1", None, b"one")], 5.0)
        assert [message.body for message in to.read(None, 10, 0.2)] == [b"one"]


def test_a_broker_that_speaks_in_the_clear_is_refused_before_it_is_told_a_password() -> None:
    heard = list[bytes]()
    with socket.create_server(("127.0.0.1", 0)) as server:
        listening = threading.Thread(target=_listen_in_the_clear, args=(server, heard))
        listening.start()
        url = f"nats://me:{PASSWORD}@127.0.0.1:{server.getsockname()[1]}/ROWS/rows?tls=true"
        with (
            contextlib.closing(open_source(url)) as source,
            pytest.raises(SourceError, match="does not ask for TLS; nothing was sent"),
        ):
            source.read(None, 10, 0.5)
        listening.join()
    assert b"".join(heard) == b""


def _listen_in_the_clear(server: socket.socket, heard: list[bytes]) -> None:
    client, _ = server.accept()
    with client:
        client.sendall(b'INFO {"auth_required": true, "max_payload": 1048576}\r\n')
        heard.append(client.recv(1000))


def test_a_source_that_was_closed_says_so(broker: NatsBroker) -> None:
    source = open_source(broker.url)
    source.close()
    with pytest.raises(SourceError, match="it was closed; open it again"):
        source.read(None, 10, 0.2)
    with pytest.raises(SourceError, match="it was closed; open it again"):
        source.publish([Note("1", None, b"one")], 0.2)


def test_large_messages_are_read_few_at_a_time(broker: NatsBroker) -> None:
    broker.add_stream("LARGE", ["large"])
    with contextlib.closing(
        open_source(broker.url.replace("/ROWS/rows", "/LARGE/large"))
    ) as source:
        notes = [Note(str(number), None, b"x" * 2**19) for number in range(80)]
        assert source.publish(notes[:40], 20.0)
        assert source.publish(notes[40:], 20.0)
        first = source.read(None, 500, 5.0)
        assert len(first) == 16
        assert len(source.read(first[-1].position, 500, 5.0)) == 32


def test_a_note_that_is_published_twice_appears_once(source: Source) -> None:
    for _ in range(3):
        assert source.publish([Note("one", None, b"one"), Note("two", None, b"two")], 5.0)
    assert [message.body for message in source.read(None, 10, 0.5)] == [b"one", b"two"]


def test_a_position_behind_the_end_is_told(source: Source) -> None:
    with (
        pytest.raises(SourceError, match="sequence 999"),
    ):
        source.read(999, 10, 0.2)
