"""Streams of one service do not get in each other's way, nor in that of those before them."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driftquilt import QuiltStream
from tests.processes import wait_for
from tests.server.serving import InProcess, in_process

ROWS = {"rows": [{"a": 1.0}]}


def predict(service: InProcess, name: str) -> list[str]:
    found = service.post(f"/v1/streams/{name}/predict", json=ROWS)
    assert found.status_code == 200
    return list(found.json()["ids"])


def test_damaged_stream_is_told_of_and_the_others_are_served(tmp_path: Path) -> None:
    with in_process(tmp_path) as service:
        for name in ("sound", "broken"):
            assert service.post("/v1/streams", json={"name": name}).status_code == 201
    manifest = next((tmp_path / "state" / "streams" / "broken" / "store").glob("*.sqlite*"))
    manifest.write_bytes(b"no database" * 500)
    with in_process(tmp_path) as service:
        assert predict(service, "sound")
        refused = service.get("/v1/streams/broken")
        assert (refused.status_code, refused.json()["type"]) == (
            503,
            "urn:driftquilt:stream-damaged",
        )
        assert service.get("/v1/streams").json()["damaged"] == ["broken"]
        assert service.post("/v1/streams", json={"name": "broken"}).status_code == 409
        assert service.request("DELETE", "/v1/streams/broken").status_code == 204
        assert service.post("/v1/streams", json={"name": "broken"}).status_code == 201


def test_what_lies_among_the_streams_and_is_none_keeps_nobody_from_the_others(
    tmp_path: Path,
) -> None:
    with in_process(tmp_path) as service:
        assert service.post("/v1/streams", json={"name": "sound"}).status_code == 201
        waiting = predict(service, "sound")
    streams = tmp_path / "state" / "streams"
    QuiltStream(store=streams / "foreign" / "store").close()
    (streams / ".gitkeep").write_text("")
    (streams / ".snapshot").mkdir()
    (streams / ".left.0badcafe").mkdir()
    with in_process(tmp_path) as service:
        assert service.get("/v1/streams").json()["damaged"] == ["foreign"]
        labels = [{"id": row_id, "label": "yes"} for row_id in waiting]
        told = service.post("/v1/streams/sound/labels", json={"labels": labels})
        assert told.json()["learned"] == 1
    left = {path.name for path in streams.iterdir()}
    assert left == {"foreign", "sound", ".gitkeep", ".snapshot"}


def test_a_deleted_stream_refuses_what_waits_for_its_turn(tmp_path: Path) -> None:
    with in_process(tmp_path) as service:
        service.post("/v1/streams", json={"name": "s"})

        async def delete_while_learning() -> list[int]:
            worker, ask = service.app.registry["s"], service._client.post
            held = threading.Event()
            first = asyncio.ensure_future(worker.turn(lambda: held.wait(10)))
            await asyncio.sleep(0.05)
            body = {"rows": [{"a": 1.0}], "labels": ["yes"]}
            queued = asyncio.ensure_future(ask("/v1/streams/s/labels", json=body))
            await asyncio.sleep(0.05)
            gone = asyncio.ensure_future(service._client.delete("/v1/streams/s"))
            refused = await queued
            held.set()
            await first
            return [refused.status_code, (await gone).status_code]

        assert service._portal.call(delete_while_learning) == [404, 204]
        assert service.post("/v1/streams", json={"name": "s"}).status_code == 201


def test_id_of_a_deleted_stream_is_not_one_of_its_successor(tmp_path: Path) -> None:
    with in_process(tmp_path) as service:
        seen = []
        for _ in range(2):
            service.post("/v1/streams", json={"name": "s"})
            seen += predict(service, "s")
            assert service.request("DELETE", "/v1/streams/s").status_code == 204
    assert len(set(seen)) == 2


def test_predictions_before_the_first_row_have_no_label(tmp_path: Path) -> None:
    with in_process(tmp_path) as service:
        service.post("/v1/streams", json={"name": "s"})
        found = service.post("/v1/streams/s/predict", json={**ROWS, "keep": False}).json()
    assert found == {
        "ids": None, "labels": [None], "classes": [], "probabilities": [[]], "intervals": None,
        "model": None,
    }  # fmt: skip


def test_stream_grows_to_a_bound_in_columns_and_classes(tmp_path: Path) -> None:
    with in_process(tmp_path) as service:
        service.post("/v1/streams", json={"name": "s"})
        wide = {"rows": [{f"c{n}": 1.0 for n in range(3_000)}], "labels": ["a"]}
        assert service.post("/v1/streams/s/labels", json=wide).status_code == 200
        wider = {"rows": [{f"c{n}": 1.0 for n in range(2_000, 4_001)}], "labels": ["a"]}
        refused = service.post("/v1/streams/s/labels", json=wider)
        assert (refused.status_code, refused.json()["detail"]) == (
            422,
            "a stream has at most 4000 columns",
        )
        many = {"rows": [{"c0": 1.0}] * 1_001, "labels": [f"class {n}" for n in range(1_001)]}
        refused = service.post("/v1/streams/s/labels", json=many)
        assert refused.json()["detail"] == "a stream has at most 1000 classes"


def test_class_weights_are_kept_and_decide_which_label_is_the_answer(tmp_path: Path) -> None:
    weights, n_rows = {"no": 1.0, "yes": 40.0}, 60
    rows = [{"a": float(n % 7), "b": float(n % 5)} for n in range(n_rows)]
    labels = ["yes" if n % 10 == 0 else "no" for n in range(n_rows)]
    new = {"name": "s", "settings": {"n_wait": 30}, "random_state": 0, "class_weight": weights}
    with in_process(tmp_path) as service:
        assert service.post("/v1/streams", json=new).json()["class_weight"] == weights
        service.post("/v1/streams/s/labels", json={"rows": rows, "labels": labels})
        wait_for(lambda: service.get("/v1/streams/s").json()["model"] is not None)
    with in_process(tmp_path) as service:
        assert service.get("/v1/streams/s").json()["class_weight"] == weights
        found = service.post("/v1/streams/s/predict", json={"rows": rows, "keep": False}).json()
        schema = service.get("/openapi.json").json()["components"]["schemas"]["NewStream"]
    assert "class_weight" in schema["properties"]
    for label, chances in zip(found["labels"], found["probabilities"], strict=True):
        weighed = {
            name: p * weights[name] for name, p in zip(found["classes"], chances, strict=True)
        }
        assert label == max(weighed, key=lambda name: weighed[name])
    assert np.argmax(found["probabilities"], axis=1).tolist() != [
        found["classes"].index(label) for label in found["labels"]
    ]


@pytest.mark.parametrize(
    "part",
    [
        {"class_weight": "equal"},
        {"class_weight": {}},
        {"class_weight": {"yes": 0}},
        {"class_weight": {"yes": "5"}},
        {"class_weight": {"maybe": 5}, "schema": {"columns": {"a": "number"}, "labels": ["yes"]}},
    ],
)
def test_class_weights_that_make_no_sense_are_refused(tmp_path: Path, part: Any) -> None:
    with in_process(tmp_path) as service:
        refused = service.post("/v1/streams", json={"name": "s", **part})
        assert (refused.status_code, refused.json()["type"]) == (422, "urn:driftquilt:body-invalid")
        detail = refused.json()["detail"]
        assert "class_weight" in detail or detail == "Invalid enum value; see /openapi.json"
        booleans = {"columns": {"a": "number"}, "labels": [False, True]}
        new = {"name": "s", "class_weight": {"true": 5}, "schema": booleans}
        assert service.post("/v1/streams", json=new).status_code == 201


def test_settings_are_numbers_that_json_can_tell_again(tmp_path: Path) -> None:
    with in_process(tmp_path) as service:
        for part in ({"guard": {"min_rows": 10**22}}, {"settings": {"n_wait": 10**30}}):
            refused = service.post("/v1/streams", json={"name": "s", **part})
            assert refused.status_code == 422
        assert service.get("/v1/streams").json() == {"streams": [], "damaged": []}


def test_a_stream_without_rows_has_no_accuracy_yet(tmp_path: Path) -> None:
    with in_process(tmp_path) as service:
        made = service.post("/v1/streams", json={"name": "a"}).json()
        assert (made["accuracy"], made["recent_accuracy"]) == (None, None)
        assert 'accuracy{stream="a"}' not in service.get("/metrics").text
        rows = {"rows": [{"x": 1}, {"x": 2}], "labels": ["no", "yes"]}
        assert service.post("/v1/streams/a/labels", json=rows).status_code == 200
        told = service.get("/v1/streams/a").json()
        assert told["accuracy"] == told["recent_accuracy"]
        assert told["accuracy"] is not None
        assert 'driftquilt_accuracy{stream="a"}' in service.get("/metrics").text


def test_how_many_rows_may_wait_is_no_setting_of_a_stream(tmp_path: Path) -> None:
    with in_process(tmp_path) as service:
        settings = service.post("/v1/streams", json={"name": "a"}).json()["settings"]
        assert "n_wait" in settings
        assert "max_waiting" not in settings


def test_the_metric_of_a_stream_is_told_with_its_score(tmp_path: Path) -> None:
    with in_process(tmp_path) as service:
        plain = service.post("/v1/streams", json={"name": "plain"}).json()
        assert (plain["metric"], plain["score"]) == (None, None)
        made = service.post("/v1/streams", json={"name": "a", "metric": "roc_auc"}).json()
        assert (made["metric"], made["score"]) == ("roc_auc", None)
        rows = [{"x": k % 10} for k in range(60)]
        labels = ["yes" if row["x"] > 6 else "no" for row in rows]
        body = {"rows": rows, "labels": labels}
        assert service.post("/v1/streams/a/labels", json=body).status_code == 200
        told = service.get("/v1/streams/a").json()
        assert 0.5 < told["score"] <= 1
        gauges = service.get("/metrics").text
        assert f'driftquilt_recent_score{{metric="roc_auc",stream="a"}} {told["score"]}' in gauges
        assert gauges.count("driftquilt_recent_score{") == 1
    with in_process(tmp_path) as service:
        again = service.get("/v1/streams/a").json()
        assert (again["metric"], again["score"]) == ("roc_auc", told["score"])


def test_an_unknown_metric_is_refused_without_being_repeated(tmp_path: Path) -> None:
    with in_process(tmp_path) as service:
        for metric in ("roc_acu", "x" * 65, 3):
            answer = service.post("/v1/streams", json={"name": "a", "metric": metric})
            assert answer.status_code == 422
            assert str(metric) not in answer.json()["detail"]
            assert "metric" in answer.json()["detail"]
