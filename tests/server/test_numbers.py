"""Streams of numbers in a real service: errors in place of accuracy, intervals, bad labels."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pytest
from playwright.sync_api import Browser, expect

from driftquilt import Client, QuiltRegressor, ServiceError, load_model
from driftquilt.server.schemas import ARROW
from tests.processes import wait_for
from tests.server.running import Running
from tests.server.serving import in_process
from tests.server.test_page import visit

NUMBERS = {"task": "regression", "coverage": 0.8, "random_state": 0}


def priced(n_rows: int, seed: int = 0) -> tuple[list[dict[str, Any]], list[float]]:
    """Flats and what they cost, with a noise of 5."""
    rng = np.random.default_rng(seed)
    sizes, floors = rng.uniform(20, 120, n_rows), rng.integers(0, 9, n_rows)
    cities = rng.choice(["Oslo", "Rome"], n_rows)
    prices = 2.0 * sizes + np.where(cities == "Oslo", 80, 10) + rng.normal(0, 5, n_rows)
    rows = zip(sizes.tolist(), floors.tolist(), cities.tolist(), strict=True)
    return [dict(zip(("size", "floor", "city"), row, strict=True)) for row in rows], prices.tolist()


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with Running(tmp_path_factory.mktemp("numbers"), max_rows=2_000) as running:
        with running.client() as client:
            client.create_stream("flats", settings={"n_wait": 50}, **NUMBERS)
            flats, (rows, prices) = client.stream("flats"), priced(1_200)
            for start in range(0, 1_200, 200):
                flats.learn(rows[start : start + 200], prices[start : start + 200])
                wait_for(lambda: not flats.status()["training"])
        yield running
        running.end()
        assert "Traceback" not in running.log


@pytest.fixture
def client(running: Running) -> Iterator[Client]:
    with running.client() as client:
        yield client


def learned(client: Client) -> dict[str, Any]:
    """What may not change when something is refused."""
    status = client.stream("flats").status()
    counts = ("n_rows", "n_waiting", "mean_absolute_error", "recent_mean_absolute_error", "failure")
    return {name: status[name] for name in counts}


def test_the_status_has_the_error_and_no_accuracy(client: Client) -> None:
    status = client.stream("flats").status()
    assert (status["task"], status["coverage"], status["classes"]) == ("regression", 0.8, [])
    assert (status["accuracy"], status["recent_accuracy"]) == (None, None)
    assert 3 < status["recent_mean_absolute_error"] < status["mean_absolute_error"] < 40
    curve = client.stream("flats").accuracy()
    assert curve["accuracy"] is None
    assert (len(curve["mean_absolute_error"]), curve["size"]) == (12, 100)
    assert curve["mean_absolute_error"][-1] < curve["mean_absolute_error"][0]
    whole = np.average(curve["mean_absolute_error"], weights=[99, *[100] * 11])
    assert whole == pytest.approx(status["mean_absolute_error"], rel=1e-4)


def test_a_prediction_is_a_number_in_an_interval(client: Client) -> None:
    rows, prices = priced(500, seed=1)
    answer = client.stream("flats").predict(rows, keep=False)
    assert (answer["classes"], answer["probabilities"], answer["ids"]) == ([], None, None)
    low, high = np.array(answer["intervals"]).T
    labels = np.array(answer["labels"])
    assert ((low < labels) & (labels < high)).all()
    assert np.abs(labels - prices).mean() < 12


def test_intervals_hold_their_share_of_the_rows_to_come(client: Client) -> None:
    client.create_stream("to-come", **NUMBERS)
    stream, (rows, prices), inside = client.stream("to-come"), priced(1_100, seed=7), []
    for start in range(0, 1_100, 50):
        part = slice(start, start + 50)
        ends = stream.predict(rows[part], keep=False)["intervals"] or []
        held = zip(ends, prices[part], strict=False)
        inside += [low <= price <= high for (low, high), price in held]
        stream.learn(rows[part], prices[part])
    assert len(inside) == 1_050
    assert 0.73 < np.mean(inside) < 0.87
    stream.delete()


def test_a_table_is_answered_with_a_table(running: Running, client: Client) -> None:
    rows, _ = priced(5, seed=2)
    plain = client.stream("flats").predict(pd.DataFrame(rows), keep=False)
    asked = httpx.post(
        f"{running.url}/v1/streams/flats/predict",
        json={"rows": rows, "keep": False},
        headers={"Accept": ARROW},
    )
    table = pa.ipc.open_stream(asked.content).read_all()
    assert table.column_names == ["label", "low", "high"]
    assert table["label"].to_pylist() == plain["labels"]
    ends = np.column_stack([table["low"], table["high"]])
    np.testing.assert_array_equal(ends, plain["intervals"])


def test_without_a_coverage_or_with_few_rows_there_is_no_interval(client: Client) -> None:
    rows, prices = priced(30)
    client.create_stream("plain", task="regression")
    client.create_stream("few", **NUMBERS)
    for name in ("plain", "few"):
        stream = client.stream(name)
        before = stream.predict(rows[:2], keep=False)
        assert (before["labels"], before["intervals"]) == ([None, None], None)
        stream.learn(rows[:5], prices[:5])
        assert stream.predict(rows[:2], keep=False)["intervals"] is None
        stream.learn(rows[5:], prices[5:])
    assert client.stream("plain").predict(rows[:2])["intervals"] is None
    assert len(client.stream("few").predict(rows[:2])["intervals"]) == 2
    for name in ("plain", "few"):
        client.stream(name).delete()


def test_labels_by_id_of_whole_and_broken_numbers_are_learned(client: Client) -> None:
    flats, before = client.stream("flats"), client.stream("flats").status()["n_rows"]
    rows, prices = priced(4, seed=3)
    ids = flats.predict(rows)["ids"]
    assert flats.label(ids, [round(prices[0]), *np.array(prices[1:])])["n_rows"] == before + 4
    assert flats.learn(pd.DataFrame(rows), pd.Series(prices))["n_rows"] == before + 8


@pytest.mark.parametrize(
    ("label", "status"),
    [
        ('"12.5"', 422), ('"high"', 422), ("true", 422), ("null", 422), ("[1]", 422),
        ("1e308", 422), ("-1e101", 422), ("1e999", 422), ("9" * 400, 422), ("NaN", 400),
        ("Infinity", 400),
    ],
)  # fmt: skip
def test_a_label_that_is_no_number_is_refused_and_nothing_is_lost(
    running: Running, client: Client, label: str, status: int
) -> None:
    flats, (rows, prices) = client.stream("flats"), priced(2, seed=4)
    ids = flats.predict(rows)["ids"]
    before, n_before = learned(client), learned(client)["n_rows"]
    by_row = f'{{"rows": {json.dumps(rows)}, "labels": [1.5, {label}]}}'
    first, last = json.dumps({"id": ids[0], "label": 1.5}), json.dumps(ids[1])
    by_id = f'{{"labels": [{first}, {{"id": {last}, "label": {label}}}]}}'
    for body in (by_row, by_id):
        refused = httpx.post(
            f"{running.url}/v1/streams/flats/labels",
            content=body,
            headers={"Content-Type": "application/json"},
        )
        assert refused.status_code == status, refused.text
        assert refused.headers["content-type"] == "application/problem+json"
        assert label.strip('"') not in refused.json()["detail"].split() or label in ("true", "null")
    assert learned(client) == before
    assert flats.label(ids, prices)["n_rows"] == n_before + 2  # both rows still waited


@pytest.mark.parametrize("label", [math.nan, math.inf, "text"])
def test_a_table_with_such_a_label_is_refused(
    running: Running, client: Client, label: float | str
) -> None:
    rows, prices = priced(2, seed=5)
    before, labels = learned(client), [str(prices[0]) if label == "text" else prices[0], label]
    table = pa.Table.from_pylist(rows).append_column("label", pa.array(labels))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    refused = httpx.post(
        f"{running.url}/v1/streams/flats/labels",
        content=bytes(sink.getvalue()),
        headers={"Content-Type": ARROW},
    )
    assert (refused.status_code, refused.json()["type"]) == (422, "urn:driftquilt:body-invalid")
    assert learned(client) == before


def test_a_stream_of_classes_takes_no_amounts(client: Client) -> None:
    client.create_stream("classes")
    with pytest.raises(ServiceError) as refused:
        client.stream("classes").learn(priced(1)[0], [12.5])
    assert (refused.value.status, refused.value.kind) == (422, "body-invalid")
    assert client.stream("classes").status()["n_rows"] == 0
    client.stream("classes").delete()


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"task": "numbers"}, "enum"),
        ({"task": "regression", "metric": "roc_auc"}, "metric"),
        ({"task": "regression", "class_weight": "balanced"}, "class_weight"),
        ({"task": "regression", "schema": {"columns": {"a": "number"}, "labels": [1]}}, "labels"),
        ({"coverage": 0.8}, "coverage"),
        ({"task": "regression", "coverage": 1.0}, "$.coverage"),
        ({"task": "regression", "coverage": 80}, "$.coverage"),
    ],
)
def test_what_does_not_go_with_the_task_is_refused(
    client: Client, options: dict[str, Any], named: str
) -> None:
    with pytest.raises(ServiceError, match=named.replace("$", r"\$")) as refused:
        client.create_stream("wrong", **options)
    assert refused.value.status == 422
    assert "wrong" not in {stream["name"] for stream in client.streams()["streams"]}


def test_prometheus_has_the_error_of_numbers_and_no_accuracy(client: Client) -> None:
    lines = client.metrics().decode().splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if '{stream="flats"}' in line)
    status = client.stream("flats").status()
    for name in ("mean_absolute_error", "recent_mean_absolute_error"):
        found = float(values[f'driftquilt_{name}{{stream="flats"}}'])
        assert found == pytest.approx(status[name], rel=1e-5)
    assert 'driftquilt_accuracy{stream="flats"}' not in values
    assert 'driftquilt_recent_accuracy{stream="flats"}' not in values


def test_its_models_are_regressors_and_can_be_used_again(client: Client, tmp_path: Path) -> None:
    flats, path = client.stream("flats"), tmp_path / "model.safetensors"
    models = flats.models()
    path.write_bytes(flats.model_file(models["in_use"]))
    model = load_model(path)
    assert isinstance(model, QuiltRegressor)
    rows, prices = priced(200, seed=6)
    assert np.abs(model.predict(pd.DataFrame(rows)) - prices).mean() < 30
    assert b"prediction" in flats.model_file(models["in_use"], file_format="onnx")
    assert flats.selections()["selections"]
    version = models["models"][0]["version"]
    assert flats.promote(version) == {"model": version}


def test_the_lines_are_drawn_of_errors(client: Client) -> None:
    flats = client.stream("flats")
    now = flats.accuracy()["mean_absolute_error"][-1]
    assert "Mean absolute error up to row 1,2" in flats.drawing("accuracy").decode()
    assert f"now {now:.6g}, highest " in flats.drawing("accuracy").decode()
    assert b"<path" in flats.drawing("sparkline")


def test_the_page_shows_the_error_in_place_of_accuracy(browser: Browser, running: Running) -> None:
    with running.client() as client:
        recent = client.stream("flats").status()["recent_mean_absolute_error"]
    seen = visit(browser, running.url)
    shown = f"{recent:.4g}"
    card = seen.tab.locator(".card", has_text="flats")
    expect(card).to_contain_text(f"{shown} recent mean absolute error")
    expect(card.locator(".spark path")).to_have_count(1)
    seen.tab.get_by_role("link", name="flats").click()
    expect(seen.tab.locator(".tiles div").first).to_have_text(f"recent mean absolute error{shown}")
    expect(seen.tab.get_by_role("heading", name="Error over time")).to_be_visible()
    expect(seen.tab.locator(".accuracy .chart .line")).to_have_count(1)
    expect(seen.tab.get_by_text("coverage of intervals")).to_be_visible()
    expect(seen.tab.get_by_role("heading", name="Classes")).to_have_count(0)
    expect(seen.tab.get_by_text("recent accuracy")).to_have_count(0)
    seen.close()


def test_a_kill_loses_nothing_of_a_stream_of_numbers(tmp_path: Path) -> None:
    rows, prices = priced(330)
    with Running(tmp_path) as running, running.client() as client:
        client.create_stream("flats", settings={"n_wait": 50}, **NUMBERS)
        flats = client.stream("flats")
        flats.learn(rows[:300], prices[:300])
        wait_for(lambda: not flats.status()["training"])
        ids = flats.predict(rows[300:])["ids"]
        before = flats.status()
        running.kill()
        running.begin()
        after = flats.status()
        kept = ("task", "coverage", "n_rows", "n_waiting", "mean_absolute_error", "columns")
        assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
        assert after["recent_mean_absolute_error"] == before["recent_mean_absolute_error"]
        assert flats.label(ids, prices[300:])["n_rows"] == 330
        assert len(flats.predict(rows[:3])["intervals"]) == 3
        running.end()


def test_a_refused_training_says_what_numbers_it_takes(tmp_path: Path) -> None:
    with in_process(tmp_path) as service:
        service.post("/v1/streams", json={"name": "s", **NUMBERS})
        body = {"rows": [{"a": 1.0}, {"a": 2.0}], "labels": [5.0, 5.0]}
        assert service.post("/v1/streams/s/labels", json=body).status_code == 200
        refused = service.post("/v1/streams/s/adapt")
    assert refused.status_code == 409
    assert "different numbers" in refused.json()["detail"]
