"""What is Redis's own: passwords, streams that come and go, entries of another shape."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from driftquilt.brokers import Source, open_source
from driftquilt.errors import SourceError
from tests.brokers.brokers import PASSWORD, RedisBroker, running


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisBroker]:
    with running("redis", tmp_path_factory.mktemp("redis"), password=PASSWORD) as started:
        yield started


@pytest.fixture(autouse=True)
def client(broker: RedisBroker) -> Iterator[Any]:
    with broker.client() as connected:
        connected.flushall()
        yield connected


@pytest.mark.parametrize("password", ["", ":guess-77@", "me:guess-77@"])
def test_a_wrong_password_is_refused_and_not_shown(broker: RedisBroker, password: str) -> None:
    url = broker.url.replace(f":{PASSWORD}@", password)
    with (
        contextlib.closing(open_source(url)) as source,
        pytest.raises(SourceError, match="refuses the user or the password") as refused,
    ):
        source.read(None, 10, 0.2)
    assert "guess-77" not in f"{refused.value} {refused.value.__cause__}"


def test_a_stream_that_is_not_there_yet_is_waited_for(broker: RedisBroker, source: Source) -> None:
    assert [*source.read(None, 10, 0.2)] == []
    assert source.trouble == "there is no stream 'rows' yet"
    began = time.monotonic()
    assert [*source.read(None, 10, 0.5)] == []
    assert time.monotonic() - began > 0.4
    broker.send([b"one"])
    assert [message.body for message in source.read(None, 10, 0.2)] == [b"one"]


def test_a_stream_that_was_read_and_is_gone_or_younger_is_told(
    broker: RedisBroker, source: Source, client: Any
) -> None:
    broker.send([b"one"])
    (message,) = source.read(None, 10, 0.2)
    client.delete("rows")
    with pytest.raises(SourceError, match="not there any more"):
        source.read(message.position, 10, 0.2)
    client.xadd("rows", {"body": b"two"}, id="1-1")
    with pytest.raises(SourceError, match="the stream ends before it"):
        source.read(message.position, 10, 0.2)


@pytest.mark.parametrize("n_new", [3, 30])
def test_a_stream_that_was_made_anew_is_told_however_long_it_is(
    broker: RedisBroker, n_new: int, source: Source, client: Any
) -> None:
    broker.send([b"%d" % number for number in range(20)])
    at = source.read(None, 15, 0.2)[-1].position
    client.delete("rows")
    broker.send([b"new"] * n_new)
    with pytest.raises(SourceError, match="recreated since; rows are missing"):
        source.read(at, 10, 0.2)


def test_entries_that_a_failing_broker_lost_are_told_though_others_follow(
    source: Source, client: Any
) -> None:
    for number in range(1, 11):
        client.xadd("rows", {"body": b"%d" % number}, id=f"{number}-0")
    at = source.read(None, 10, 0.2)[-1].position
    client.delete("rows")  # what a replica had got when it took over
    for number in [*range(1, 8), *range(20, 30)]:
        client.xadd("rows", {"body": b"%d" % number}, id=f"{number}-0")
    with pytest.raises(SourceError, match="lost and recreated"):
        source.read(at, 10, 0.2)


def test_trims_and_deletions_are_told_apart_from_losses(
    broker: RedisBroker, source: Source, client: Any
) -> None:
    broker.send([b"%d" % number for number in range(20)])
    at = source.read(None, 10, 0.2)[-1].position
    client.xdel("rows", at[0])
    assert source.read(at, 1, 0.2)[0].body == b"10"
    client.xtrim("rows", maxlen=8, approximate=False)
    with pytest.raises(SourceError, match="2 entries"):
        source.read(at, 10, 0.2)


def test_large_entries_are_read_few_at_a_time(broker: RedisBroker, source: Source) -> None:
    broker.send([b"x" * 2**20] * 40 + [b"small"] * 100)
    at, numbers = None, list[int]()
    while sum(numbers) < 140:
        some = source.read(at, 500, 0.2)
        at = some[-1].position
        numbers.append(len(some))
    assert numbers == [16, 16, 16, 16, 32, 44]


def test_entries_that_were_read_may_be_trimmed_and_deleted(
    broker: RedisBroker, source: Source, client: Any
) -> None:
    broker.send([b"%d" % number for number in range(20)])
    half = source.read(None, 10, 0.2)
    client.xtrim("rows", maxlen=10, approximate=False)
    assert source.read(half[-1].position, 1, 0.2)[0].body == b"10"
    rest = source.read(half[-1].position, 10, 0.2)
    client.xdel("rows", rest[0].position[0], rest[-1].position[0])
    client.xtrim("rows", maxlen=0)
    broker.send([b"20"])
    assert [m.body for m in source.read(rest[-1].position, 10, 0.2)] == [b"20"]


def test_a_key_that_is_no_stream_is_told(source: Source, client: Any) -> None:
    client.set("rows", "text")
    with pytest.raises(SourceError, match="the broker answers WRONGTYPE"):
        source.read(None, 10, 0.2)


def test_what_is_no_redis_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"redis://127.0.0.1:{server.getsockname()[1]}/0?stream=rows"
        answering = threading.Thread(target=_answer_as_http, args=(server,))
        answering.start()
        with (
            contextlib.closing(open_source(url)) as source,
            pytest.raises(SourceError, match=r"the server is not Redis: .* 400 "),
        ):
            source.read(None, 10, 0.2)
        answering.join()


def _answer_as_http(server: socket.socket) -> None:
    client, _ = server.accept()
    with client:
        client.recv(1000)
        client.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")


def test_an_entry_without_a_body_is_an_empty_message(source: Source, client: Any) -> None:
    client.xadd("rows", {"age": "31"})
    assert [message.body for message in source.read(None, 10, 0.2)] == [b""]
