"""The clients with the service itself: every operation, and a restart in the midst of it."""

from __future__ import annotations

import asyncio
import json
import random
import re
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pyarrow as pa
import pytest

from driftquilt import AsyncClient, Client, QuiltClassifier, ServiceError
from driftquilt.client.operations import OPERATIONS, Service, Stream
from driftquilt.server.tokens import Tokens
from tests.processes import wait_for
from tests.server.running import Running


def rows(n_rows: int, seed: int = 0) -> tuple[list[dict[str, float]], list[str]]:
    draw = random.Random(seed)  # noqa: S311
    made = [{"a": draw.uniform(0, 1), "b": draw.uniform(0, 1)} for _ in range(n_rows)]
    return made, ["yes" if row["a"] > row["b"] else "no" for row in made]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with Running(tmp_path_factory.mktemp("service")) as running:
        yield running.url


@pytest.fixture
def client(url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    monkeypatch.delenv("DRIFTQUILT_TOKEN", raising=False)
    with Client(url) as client:
        yield client


def test_every_operation_of_the_service_has_a_method_and_every_method_an_operation(
    tmp_path: Path,
) -> None:
    from driftquilt.server.app import make_app  # noqa: PLC0415
    from driftquilt.server.settings import load_settings  # noqa: PLC0415

    document: Any = make_app(load_settings(store=tmp_path / "state")).openapi()
    documented = {
        (method.upper(), re.sub(r"\{(\w+)(:\w+)?\}", r"{\1}", path))
        for path, methods in document["paths"].items()
        for method in methods
    }
    assert documented == set(OPERATIONS.values())
    methods = {*vars(Service), *vars(Stream), "live_events"}
    assert [name for name in OPERATIONS if name not in methods] == []


def test_a_streams_life_from_its_making_to_its_end(client: Client) -> None:
    made = client.create_stream(
        "life",
        detector="hddm_w",
        settings={"n_wait": 50},
        random_state=0,
        class_weight={"yes": 2},
    )
    assert (made["name"], made["class_weight"]) == ("life", {"yes": 2})
    life = client.stream("life")
    known, labels = rows(300)
    assert life.learn(known, labels)["learned"] == 300
    wait_for(lambda: life.status()["model"] is not None)
    reply = life.predict(known[:3])
    assert [len(reply[key]) for key in ("ids", "labels", "probabilities")] == [3, 3, 3]
    assert life.label(reply["ids"], labels[:3])["learned"] == 3
    assert life.label(reply["ids"], labels[:3])["repeated"] == 3
    [version, *_] = life.status()["models"]
    number = life.selections()["selections"][0]["number"]
    assert life.selection(number)["explanation"]
    assert life.segments()["current"]["n_rows"] == 303
    assert life.accuracy()["size"] > 0
    assert life.models()["in_use"] == version
    assert life.model_file(version)[8:9] == b"{"
    assert life.promote(version) == {"model": version}
    assert life.adapt() == {"training": True}
    wait_for(lambda: len(life.models()["models"]) > 1)
    assert "ModelTrained" in [event["event"] for event in life.events()]
    assert life.delete() == {}
    with pytest.raises(ServiceError) as caught:
        life.status()
    assert (caught.value.status, caught.value.kind) == (404, "stream-unknown")
    assert caught.value.request_id


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.Table.from_pylist],
                         ids=["pandas", "polars", "arrow"])  # fmt: skip
def test_tables_are_rows_like_any_other(client: Client, make: Any) -> None:
    name = f"tables-{time.monotonic_ns()}"
    client.create_stream(name)
    stream = client.stream(name)
    known, labels = rows(50)
    assert stream.learn(make(known), labels)["learned"] == 50
    for keep in (True, False):
        reply = stream.predict(make(known), keep=keep)
        assert reply["labels"] == stream.predict(known, keep=False)["labels"]
        assert (reply["ids"] is not None) is keep


def test_dates_are_learned_as_dates_and_models_of_them_read_a_csv(
    client: Client, tmp_path: Path
) -> None:
    stream = client.stream("dated")
    client.create_stream("dated", random_state=0, settings={"n_wait": 40})
    begin, draw = datetime(2024, 1, 1, tzinfo=UTC), random.Random(0)  # noqa: S311
    days = [begin + timedelta(hours=6 * n) for n in range(120)]
    at_work = ["yes" if day.weekday() < 5 and 6 <= day.hour <= 18 else "no" for day in days]
    made = [{"at": day, "noise": draw.random()} for day in days]
    for first in range(0, 120, 20):
        stream.learn(made[first : first + 20], at_work[first : first + 20])
    assert stream.status()["columns"] == {"at": "date", "noise": "number"}
    reply = stream.predict(pd.DataFrame(made[:2]))
    assert stream.label(reply["ids"], at_work[:2])["learned"] == 2
    assert stream.predict(made[:1], keep=False)["ids"] is None
    with pytest.raises(ServiceError, match="or none where it has held these"):
        stream.learn([{"at": "yesterday", "noise": 1.0}], ["no"])
    wait_for(lambda: stream.status()["model"])
    (tmp_path / "model.safetensors").write_bytes(stream.model_file(stream.status()["model"]))
    clf = QuiltClassifier.load(tmp_path / "model.safetensors")
    assert len(clf.predict(pd.DataFrame(made))) == 120
    client.stream("dated").delete()


def test_json_has_dates_where_a_schema_declares_them(client: Client, url: str) -> None:
    schema = {"columns": {"at": "date", "clock": "time", "x": "number"}}
    client.create_stream("declared", schema=schema)
    rows = {"at": "2024-05-01T12:00:00+02:00", "clock": "09:30", "x": 1}
    url = f"{url}/v1/streams/declared"
    reply = httpx.post(f"{url}/predict", json={"rows": [rows]}).json()
    labels = {"labels": [{"id": reply["ids"][0], "label": "yes"}]}
    assert httpx.post(f"{url}/labels", json=labels).json()["learned"] == 1
    more = {"rows": [rows | {"at": "2024-05-02"}, rows | {"at": None}], "labels": ["yes", "no"]}
    assert httpx.post(f"{url}/labels", json=more).json()["learned"] == 2
    assert httpx.get(url).json()["columns"] == {"at": "date", "clock": "time", "x": "number"}
    for wrong in ({"at": "yesterday"}, {"at": 7}, {"x": "2024-05-01"}, {"other": 1}):
        refused = httpx.post(f"{url}/predict", json={"rows": [rows | wrong]})
        assert refused.status_code == 422, refused.text
        assert refused.json()["type"] == "urn:driftquilt:rows-invalid"
    client.stream("declared").delete()


def test_the_service_as_a_whole_answers(client: Client) -> None:
    assert client.health() == {"status": "ok"}
    assert client.ready() == {"status": "ready"}
    assert client.me() == {"name": None, "scopes": ["read", "write", "admin"]}
    assert b"# TYPE" in client.metrics()
    client.create_stream("listed")
    assert "listed" in [stream["name"] for stream in client.streams()["streams"]]
    with pytest.raises(ServiceError, match="409 stream-exists"):
        client.create_stream("listed")


def test_the_same_with_asyncio(url: str) -> None:
    async def life() -> list[Any]:
        async with AsyncClient(url) as client:
            await client.create_stream("async", settings={"n_wait": 50}, random_state=0)
            stream = client.stream("async")
            known, labels = rows(300)
            await stream.learn(known, labels)
            reply = await asyncio.gather(*(stream.predict(row) for row in known[:20]))
            await stream.label([one["ids"][0] for one in reply], labels[:20])
            live = stream.events(live=True)
            first = await anext(live)
            await live.aclose()
            return [first, (await stream.status())["n_rows"]]

    first, n_rows = asyncio.run(life())
    assert first["number"] >= 1
    assert n_rows == 320


def test_live_events_and_requests_outlast_a_restart(tmp_path: Path) -> None:
    heard: list[dict[str, Any]] = []
    known, labels = rows(200)

    def listen(stream: Any) -> None:
        for event in stream.events(live=True):
            heard.append(event)
            if event["event"] == "ModelTrained" and event["row"] > 100:
                return

    with Running(tmp_path) as running, Client(running.url, retries=20) as client:
        client.create_stream("s", detector="adwin", settings={"n_wait": 50}, random_state=0)
        stream = client.stream("s")
        listener = threading.Thread(target=listen, args=[stream])
        listener.start()
        stream.learn(known[:100], labels[:100])
        wait_for(lambda: "ModelPromoted" in [event["event"] for event in heard])
        running.end()
        running.begin()
        stream.learn(known[100:], labels[100:])
        stream.adapt()
        listener.join(60)
        assert not listener.is_alive()
        numbers = [event["number"] for event in heard]
        assert numbers == [event["number"] for event in stream.events()][: len(numbers)]


def test_a_token_allows_what_its_scope_says(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path / "state" / "tokens.json")
    reader, writer, admin = (tokens.create(name, [name]) for name in ("read", "write", "admin"))
    with Running(tmp_path) as running:
        url = running.url
        with Client(url) as stranger, pytest.raises(ServiceError, match="401 token-missing"):
            stranger.streams()
        with Client(url, admin) as client:
            client.create_stream("s")
        with Client(url, writer) as client:
            assert client.me() == {"name": "write", "scopes": ["read", "write"]}
            client.stream("s").predict({"a": 1.0})
            with pytest.raises(ServiceError, match="403 scope-missing"):
                client.stream("s").delete()
        with Client(url, reader) as client:
            assert client.stream("s").status()["n_waiting"] == 1
            with pytest.raises(ServiceError, match="403 scope-missing"):
                client.stream("s").predict({"a": 1.0})
        tokens.revoke("read")
        time.sleep(1.2)
        with Client(url, reader) as client, pytest.raises(ServiceError, match="401 token-unknown"):
            client.streams()
    _, *lines = (tmp_path / "serve.log").read_text().splitlines()
    assert all(json.loads(line)["time"] for line in lines)
    said = "".join(lines)
    assert not any(secret[3:] in said for secret in (reader, writer, admin))
