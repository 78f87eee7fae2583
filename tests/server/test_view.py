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
