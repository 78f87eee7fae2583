"""What is NATS's own: passwords, unknown streams and subjects, ids that are known again."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from driftquilt.errors import SourceError
from driftquilt.sources.broker import Note
from driftquilt.sources.connect import open_source
from tests.sources.brokers import PASSWORD, NatsBroker, running


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsBroker]:
    with running("nats", tmp_path_factory.mktemp("nats"), password=PASSWORD) as started:
        yield started


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
        pytest.raises(SourceError, match="no such stream in JetStream; make it first"),
    ):
        source.read(None, 10, 0.2)
    with (
        contextlib.closing(open_source(broker.url.replace("/rows", "/answers"))) as source,
        pytest.raises(SourceError, match=r"does not take the subject; it takes \['rows'\]"),
    ):
        source.publish([Note("1", None, b"one")], 1.0)


def test_a_note_that_is_published_twice_appears_once(broker: NatsBroker) -> None:
    with contextlib.closing(open_source(broker.url)) as source:
        for _ in range(3):
            assert source.publish([Note("one", None, b"one"), Note("two", None, b"two")], 5.0)
        assert [message.body for message in source.read(None, 10, 0.5)] == [b"one", b"two"]


def test_a_position_behind_the_end_is_told(broker: NatsBroker) -> None:
    with (
        contextlib.closing(open_source(broker.url)) as source,
        pytest.raises(SourceError, match="read up to sequence 999, but the stream ends at"),
    ):
        source.read(999, 10, 0.2)
