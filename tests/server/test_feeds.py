"""A broker feeds a stream of the service beside HTTP, and each message counts once."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.brokers.brokers import RedisBroker, running
from tests.processes import wait_for
from tests.server.running import Running, stored_numbers

N_ROWS = 400


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[RedisBroker]:
    with running("redis", tmp_path) as made:
        yield made


def bodies(numbers: range) -> list[bytes]:
    return [
        json.dumps({"row": {"number": n, "a": n % 7}, "label": n % 2}).encode() for n in numbers
    ]


def test_rows_of_a_broker_are_learned_once_though_the_service_is_killed(
    broker: RedisBroker, tmp_path: Path
) -> None:
    broker.send(bodies(range(N_ROWS)))
    with (
        Running(tmp_path, feeds=json.dumps({"clicks": broker.url})) as service,
        service.client() as client,
    ):
        client.create_stream("clicks", detector="never")
        stream = client.stream("clicks")
        wait_for(lambda: stream.status()["n_rows"] >= 100)
        service.kill()
        service.begin()
        broker.send(bodies(range(N_ROWS, 2 * N_ROWS)))
        wait_for(lambda: stream.status()["n_rows"] == 2 * N_ROWS)
        feed = stream.status()["feed"]
        assert feed["trouble"] is None
        assert feed["n_refused"] == 0
        service.end()
    assert stored_numbers(service.store / "streams/clicks") == [*range(2 * N_ROWS)]


def test_answers_go_back_to_a_broker(broker: RedisBroker, tmp_path: Path) -> None:
    back = broker.url.replace("stream=rows", "stream=answers")
    feeds = {"feeds": json.dumps({"clicks": broker.url}), "answers": json.dumps({"clicks": back})}
    broker.send([*bodies(range(50)), json.dumps({"id": "o-7", "row": {"a": 3}}).encode()])
    with Running(tmp_path, **feeds) as service, service.client() as client:
        client.create_stream("clicks")
        with broker.client() as seen:
            found = wait_for(lambda: seen.xrange("answers"))
        answer = json.loads(found[0][1][b"body"])
        assert answer["id"] == "o-7"
        assert answer["prediction"] in (0, 1)


def test_a_model_that_took_over_is_told_though_no_more_messages_come(
    broker: RedisBroker, tmp_path: Path
) -> None:
    back = broker.url.replace("stream=rows", "stream=answers")
    feeds = {"feeds": json.dumps({"clicks": broker.url}), "answers": json.dumps({"clicks": back})}
    broker.send(bodies(range(120)))
    with Running(tmp_path, **feeds) as service, service.client() as client, broker.client() as seen:
        client.create_stream("clicks")  # a model after 100 rows

        def promoted() -> bool:
            return any(b"ModelPromoted" in entry[b"body"] for _, entry in seen.xrange("answers"))

        wait_for(promoted)


def test_rows_of_a_broker_that_wait_are_counted_and_those_forgotten_hide_no_event(
    broker: RedisBroker, tmp_path: Path
) -> None:
    asked = [json.dumps({"id": n, "row": {"a": n}}).encode() for n in range(40)]
    broker.send([*bodies(range(120)), *asked])
    feeds = json.dumps({"clicks": broker.url})
    with Running(tmp_path, feeds=feeds, max_waiting=30) as service, service.client() as client:
        client.create_stream("clicks", settings={"n_wait": 100})  # one model, at 100 rows
        stream = client.stream("clicks")
        wait_for(lambda: stream.status()["model"])
        wait_for(lambda: stream.status()["feed"]["n_messages"] == 160)
        broker.send([json.dumps({"id": "last", "row": {"a": 1}}).encode()])
        wait_for(lambda: stream.status()["feed"]["n_messages"] == 161)
        assert stream.status()["n_waiting"] == 30
        broker.send([json.dumps({"id": n, "label": 1}).encode() for n in (38, 39)])
        wait_for(lambda: b'driftquilt_labels_total{stream="clicks"} 2.0' in client.metrics())
        assert b'driftquilt_forgotten_rows_total{stream="clicks"} 11.0' in client.metrics()
        assert [event["event"] for event in stream.events()] == ["ModelTrained", "ModelPromoted"]


def test_a_feed_that_cannot_go_on_says_why_and_the_password_stays_hidden(tmp_path: Path) -> None:
    url = "redis://ops:rosebud-42@127.0.0.1:1/0?stream=rows"
    with (
        Running(tmp_path, feeds=json.dumps({"clicks": url})) as service,
        service.client() as client,
    ):
        client.create_stream("clicks")
        stream = client.stream("clicks")
        trouble = wait_for(lambda: (stream.status()["feed"] or {}).get("trouble"))
        assert "rosebud" not in trouble
        stream.learn([{"a": 1.0}], ["yes"])  # others go on
        service.end()
        assert "rosebud" not in service.log


def test_what_was_refused_and_what_is_in_the_way_is_told(
    broker: RedisBroker, tmp_path: Path
) -> None:
    broker.send([*bodies(range(5)), b"no JSON"])
    feeds = json.dumps({"clicks": broker.url})
    with Running(tmp_path, feeds=feeds) as service, service.client() as client:
        client.create_stream("clicks")
        stream = client.stream("clicks")
        wait_for(lambda: stream.status()["n_rows"] == 5 and stream.status()["feed"]["n_refused"])
        assert "JSON" in stream.status()["feed"]["last_refused"]
        assert b'driftquilt_feed_refused_total{stream="clicks"} 1.0' in client.metrics()
        broker.stop()
        wait_for(lambda: b'driftquilt_feed_trouble{stream="clicks"} 1.0' in client.metrics())
        away = "the feed waits: the broker is away"
        wait_for(lambda: away in service.log)
        broker.start()
        wait_for(lambda: b'driftquilt_feed_trouble{stream="clicks"} 0.0' in client.metrics())
        wait_for(lambda: "the feed goes on" in service.log.rpartition(away)[2])


def test_a_stream_that_is_made_again_is_fed_from_the_first_message_though_none_is_new(
    broker: RedisBroker, tmp_path: Path
) -> None:
    broker.send(bodies(range(N_ROWS)))
    feeds = json.dumps({"clicks": broker.url})
    with Running(tmp_path, feeds=feeds) as service, service.client() as client:
        for _ in range(2):
            client.create_stream("clicks", detector="never")
            stream = client.stream("clicks")
            wait_for(lambda: stream.status()["n_rows"] == N_ROWS)  # noqa: B023
            wait_for(lambda: stream.status()["feed"]["n_messages"] == N_ROWS)  # noqa: B023
            stream.delete()
