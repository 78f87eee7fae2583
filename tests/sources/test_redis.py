"""What is Redis's own: passwords, streams that come and go, entries of another shape."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from driftquilt.errors import SourceError
from driftquilt.sources.connect import open_source
from tests.sources.brokers import PASSWORD, RedisBroker, running


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisBroker]:
    with running("redis", tmp_path_factory.mktemp("redis"), password=PASSWORD) as started:
        yield started


@pytest.fixture(autouse=True)
def _empty(broker: RedisBroker) -> None:
    with broker.client() as client:
        client.flushall()


@pytest.mark.parametrize("password", ["", ":guess-77@", "me:guess-77@"])
def test_a_wrong_password_is_refused_and_not_shown(broker: RedisBroker, password: str) -> None:
    url = broker.url.replace(f":{PASSWORD}@", password)
    with (
        contextlib.closing(open_source(url)) as source,
        pytest.raises(SourceError, match="refuses the user or the password") as refused,
    ):
        source.read(None, 10, 0.2)
    assert "guess-77" not in f"{refused.value} {refused.value.__cause__}"


def test_a_stream_that_is_not_there_yet_is_waited_for(broker: RedisBroker) -> None:
    with contextlib.closing(open_source(broker.url)) as source:
        assert [*source.read(None, 10, 0.2)] == []
        assert source.trouble == "there is no stream 'rows' yet"
        broker.send([b"one"])
        assert [message.body for message in source.read(None, 10, 0.2)] == [b"one"]


def test_a_stream_that_was_read_and_is_gone_or_younger_is_told(broker: RedisBroker) -> None:
    with contextlib.closing(open_source(broker.url)) as source, broker.client() as client:
        broker.send([b"one"])
        (message,) = source.read(None, 10, 0.2)
        client.delete("rows")
        with pytest.raises(SourceError, match="the stream is not there any more"):
            source.read(message.position, 10, 0.2)
        client.xadd("rows", {"body": b"two"}, id="1-1")
        with pytest.raises(SourceError, match="the stream ends before it"):
            source.read(message.position, 10, 0.2)


def test_entries_that_were_read_may_be_trimmed_and_deleted(broker: RedisBroker) -> None:
    with contextlib.closing(open_source(broker.url)) as source, broker.client() as client:
        broker.send([b"%d" % number for number in range(20)])
        half = source.read(None, 10, 0.2)
        client.xtrim("rows", maxlen=10, approximate=False)
        assert source.read(half[-1].position, 1, 0.2)[0].body == b"10"
        rest = source.read(half[-1].position, 10, 0.2)
        client.xdel("rows", rest[0].position[0], rest[-1].position[0])
        client.xtrim("rows", maxlen=0)
        broker.send([b"20"])
        assert [m.body for m in source.read(rest[-1].position, 10, 0.2)] == [b"20"]


def test_a_key_that_is_no_stream_is_told(broker: RedisBroker) -> None:
    with contextlib.closing(open_source(broker.url)) as source, broker.client() as client:
        client.set("rows", "text")
        with pytest.raises(SourceError, match="the broker answers WRONGTYPE"):
            source.read(None, 10, 0.2)


def test_an_entry_without_a_body_is_an_empty_message(broker: RedisBroker) -> None:
    with contextlib.closing(open_source(broker.url)) as source, broker.client() as client:
        client.xadd("rows", {"age": "31"})
        assert [message.body for message in source.read(None, 10, 0.2)] == [b""]
