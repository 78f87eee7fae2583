"""What the service tells of a stream."""

from __future__ import annotations

from pathlib import Path

from tests.server.serving import in_process


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
