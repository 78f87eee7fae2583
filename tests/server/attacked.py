"""What a bad request has to be answered with, and that the service lives on."""

from __future__ import annotations

import json
from typing import Any

from tests.server.running import Running
from tests.server.serving import Answer, send_raw

#: Stands in every bad body, and in no answer.
MARK = "xmarksthespot"
JSON = "application/json"
ARROW = "application/vnd.apache.arrow.stream"
PREDICT = "/v1/streams/s/predict"
LABELS = "/v1/streams/s/labels"
ROWS = [{"age": 31.0, "city": "Rome"}, {"age": 40.0, "city": "Oslo"}]


class Attacked:
    """A running service under bad requests."""

    def __init__(self, running: Running) -> None:
        self.running = running

    @classmethod
    def with_streams(cls, running: Running) -> Attacked:
        schema = {"columns": {"age": "number", "city": "text"}, "labels": ["no", "yes"]}
        with running.client() as client:
            client.create_stream("s")
            client.create_stream("declared", schema=schema)
            client.stream("s").learn(ROWS, ["yes", "no"])
        return cls(running)

    def ask(
        self, path: str, body: bytes | None, *headers: str, method: str = "POST", kind: str = JSON
    ) -> Answer:
        """A request of which every byte is as given."""
        lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{self.running.port}"]
        if body is not None:
            lines += [f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
        head = "\r\n".join([*lines, *headers, "", ""]).encode("latin-1")
        return send_raw(self.running.port, head + (body or b""))

    def expect_refusal(self, answer: Answer, status: int) -> dict[str, Any]:
        """A problem in few words that repeats nothing; its document."""
        assert answer.status == status, answer.body or answer
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert MARK.encode() not in answer.body
        assert b"NaN" not in answer.body
        told: dict[str, Any] = json.loads(answer.body)
        assert told.keys() == {"type", "title", "status", "detail", "request_id"}
        assert told["status"] == status
        assert told["request_id"] == answer.headers["x-request-id"]
        assert 0 < len(told["detail"]) < 300
        assert all(letter.isprintable() for letter in told["detail"])
        self.expect_alive()
        return told

    def expect_alive(self) -> None:
        """It answers, knows what it knew, and has written no traceback."""
        answer = self.ask("/v1/streams/s", None, method="GET")
        assert answer.status == 200
        status = json.loads(answer.body)
        assert (status["n_rows"], status["failure"]) == (2, None)
        assert status["columns"] == {"age": "number", "city": "text"}
        assert "Traceback" not in self.running.log
