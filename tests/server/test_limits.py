"""Limits, each with its own problem; and what stands on every answer."""

from __future__ import annotations

import asyncio
import json
import re
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from driftquilt.server.middleware import HEADERS, RateLimit
from driftquilt.server.problems import Problem
from tests.server.running import Running
from tests.server.serving import InProcess, in_process, send_raw

ROW = {"age": 31, "city": "Rome"}
SECRET = "dq_" + "s" * 43


def expect(answer: httpx.Response, status: int, kind: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    told: dict[str, Any] = answer.json()
    assert told["type"] == f"urn:driftquilt:{kind}"
    return told


def test_a_body_that_is_too_large_is_refused_whole_or_in_chunks(tmp_path: Path) -> None:
    with Running(tmp_path) as running:
        with running.client() as client:
            client.create_stream("s")
        head = "POST /v1/streams/s/predict HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        head += "Content-Type: application/json\r\n"
        body = b"x" * 10_000_000
        whole = f"{head}Content-Length: {len(body)}\r\n\r\n".encode()
        chunked = f"{head}Transfer-Encoding: chunked\r\n\r\n{len(body):x}\r\n".encode()
        unsent = f"{head}Content-Length: {2**62}\r\nExpect: 100-continue\r\n\r\n".encode()
        for sent in (whole + body, chunked + body + b"\r\n0\r\n\r\n", unsent):
            answer = send_raw(running.port, sent)
            assert answer.status == 413
            assert json.loads(answer.body)["type"] == "urn:driftquilt:body-too-large"
        running.end()
        assert "Traceback" not in running.log


def test_requests_beyond_the_rate_are_refused_and_told_when_to_come_again(tmp_path: Path) -> None:
    with in_process(tmp_path, rate=2.0) as service:
        answers = [service.get("/v1/me") for _ in range(12)]
        assert {answer.status_code for answer in answers} == {200, 429}
        late = next(answer for answer in answers if answer.status_code == 429)
        expect(late, 429, "rate-exceeded")
        assert int(late.headers["retry-after"]) >= 1
        assert service.get("/healthz").status_code == 200


def test_one_caller_does_not_use_up_the_rate_of_another(tmp_path: Path) -> None:
    with in_process(tmp_path, rate=1.0) as service:
        one, other = (service.tokens.create(name, ["read"]) for name in ("one", "other"))
        time.sleep(1.1)
        statuses = [_me(service, one) for _ in range(8)]
        assert statuses[-1] == 429
        assert _me(service, other) == 200


def _me(service: InProcess, token: str) -> int:
    return service.get("/v1/me", headers={"Authorization": f"Bearer {token}"}).status_code


@pytest.mark.parametrize(
    ("path", "methods"),
    [("/v1/streams", "GET, POST"), ("/v1/streams/s", "DELETE, GET"), ("/v1/me", "GET")],
)
def test_a_method_that_does_not_go_is_told_which_do(
    tmp_path: Path, path: str, methods: str
) -> None:
    with in_process(tmp_path) as service:
        answer = service.request("PATCH", path)
        assert methods in expect(answer, 405, "method-unknown")["detail"]
        assert answer.headers["allow"] == methods


def test_a_line_of_the_log_names_the_stream_if_the_name_may_be_one(tmp_path: Path) -> None:
    with Running(tmp_path) as running:
        for name in ("clicks", "no%20name"):
            httpx.get(f"{running.url}/v1/streams/{name}/events", timeout=60)
        running.end()
        lines = [json.loads(line) for line in running.log.splitlines() if "/events" in line]
        assert [line.get("stream") for line in lines] == ["clicks", None]


def test_a_parameter_with_few_values_is_told_which(tmp_path: Path) -> None:
    with in_process(tmp_path) as service:
        answer = service.get("/v1/streams/s/models/1/file?format=pkl")
        assert "'safetensors', 'onnx'" in expect(answer, 422, "parameter-invalid")["detail"]


def test_rows_and_streams_have_limits(tmp_path: Path) -> None:
    with in_process(tmp_path, max_rows=2, max_streams=1) as service:
        assert service.post("/v1/streams", json={"name": "s"}).status_code == 201
        expect(service.post("/v1/streams", json={"name": "t"}), 429, "too-many-streams")
        body: dict[str, Any] = {"rows": [ROW] * 3}
        expect(service.post("/v1/streams/s/predict", json=body), 413, "too-many-rows")
        body["labels"] = ["yes"] * 3
        expect(service.post("/v1/streams/s/labels", json=body), 413, "too-many-rows")
        pairs = [{"id": f"1-{k}", "label": "yes"} for k in range(3)]
        expect(service.post("/v1/streams/s/labels", json={"labels": pairs}), 413, "too-many-rows")


def test_a_backlog_that_is_full_is_told_of(tmp_path: Path) -> None:
    with Running(tmp_path, max_backlog=500) as running:
        with running.client() as client:
            client.create_stream("s")

        async def send_all() -> list[httpx.Response]:
            async with httpx.AsyncClient(base_url=running.url, timeout=60) as client:
                body = {"rows": [{"a": 1.0}] * 400, "labels": ["yes", "no"] * 200}
                asks = [client.post("/v1/streams/s/labels", json=body) for _ in range(20)]
                return await asyncio.gather(*asks)

        answers = asyncio.run(send_all())
        refused = [answer for answer in answers if answer.status_code != 200]
        assert 0 < len(refused) < 20
        for answer in refused:
            expect(answer, 429, "backlog-full")
            assert answer.headers["retry-after"] == "1"
        with running.client() as client:
            assert client.stream("s").status()["n_rows"] == 400 * (20 - len(refused))


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"), ("GET", "/static/page.js"), ("GET", "/healthz"), ("GET", "/v1/me"),
        ("GET", "/openapi.json"), ("GET", "/metrics"), ("GET", "/nothing"), ("PUT", "/v1/streams"),
        ("POST", "/v1/streams"), ("GET", "/v1/streams/s"), ("OPTIONS", "/v1/me"),
    ],
)  # fmt: skip
def test_every_answer_is_fenced_in_and_has_an_id(tmp_path: Path, method: str, path: str) -> None:
    with in_process(tmp_path) as service:
        answer = service.request(method, path)
        assert {name: answer.headers[name] for name in HEADERS} == HEADERS
        assert re.fullmatch("[0-9a-f]{16}", answer.headers["x-request-id"])
        assert "server" not in answer.headers
        assert "access-control-allow-origin" not in answer.headers
        given = service.request(method, path, headers={"X-Request-Id": "order-7.a"})
        assert given.headers["x-request-id"] == "order-7.a"
        for bad in ("short", "a" * 65, "two words", "<script>", "dq_" + "a" * 43):
            other = service.request(method, path, headers={"X-Request-Id": bad})
            assert re.fullmatch("[0-9a-f]{16}", other.headers["x-request-id"])


@pytest.mark.parametrize("host", ["example.org", "127.0.0.1.example.org", "localhost.example.org"])
def test_without_tokens_other_hosts_are_not_served(tmp_path: Path, host: str) -> None:
    with in_process(tmp_path) as service:
        expect(service.get("/v1/me", headers={"Host": host}), 421, "host-unknown")
        expect(service.get("/", headers={"Host": host}), 421, "host-unknown")


def test_without_tokens_pages_of_other_sites_are_not_answered(tmp_path: Path) -> None:
    with in_process(tmp_path) as service:
        for origin in ("https://example.org", "null", "http://127.0.0.1:1", "http://localhost"):
            answer = service.post("/v1/streams", json={"name": "s"}, headers={"Origin": origin})
            expect(answer, 403, "origin-foreign")
        own = {"Origin": "http://127.0.0.1:8321"}
        assert service.post("/v1/streams", json={"name": "s"}, headers=own).status_code == 201


@pytest.mark.parametrize("header", ["Forwarded", "X-Forwarded-For", "X-Real-IP", "Via"])
def test_without_tokens_nobody_gets_through_a_proxy(tmp_path: Path, header: str) -> None:
    with in_process(tmp_path) as service:
        expect(service.get("/v1/me", headers={header: "192.0.2.7"}), 421, "host-unknown")
        secret = service.tokens.create("app", ["read"])
        time.sleep(1.1)
        headers = {header: "192.0.2.7", "Authorization": f"Bearer {secret}"}
        assert service.get("/v1/me", headers=headers).status_code == 200


def test_without_tokens_a_foreign_page_cannot_even_look(tmp_path: Path) -> None:
    with in_process(tmp_path) as service:
        foreign = {"Sec-Fetch-Site": "cross-site"}
        expect(service.get("/v1/streams", headers=foreign), 403, "origin-foreign")


def test_labels_names_and_ids_have_a_length(tmp_path: Path) -> None:
    long = "x" * 1_001
    with in_process(tmp_path) as service:
        service.post("/v1/streams", json={"name": "s"})
        bodies: list[dict[str, object]] = [
            {"rows": [{"a": 1}], "labels": [long]},
            {"rows": [{long: 1}], "labels": ["yes"]},
            {"columns": [long], "rows": [[1]], "labels": ["yes"]},
            {"labels": [{"id": "a" * 33, "label": "yes"}]},
        ]
        for body in bodies:
            expect(service.post("/v1/streams/s/labels", json=body), 422, "body-invalid")
        short = {"rows": [{long[:1_000]: 1}], "labels": [long[:1_000]]}
        assert service.post("/v1/streams/s/labels", json=short).status_code == 200


def test_an_answer_has_no_more_probabilities_than_can_be_told(tmp_path: Path) -> None:
    with in_process(tmp_path) as service:
        service.post("/v1/streams", json={"name": "s"})
        many = {"rows": [{"a": 1}] * 300, "labels": [f"class {n}" for n in range(300)]}
        assert service.post("/v1/streams/s/labels", json=many).status_code == 200
        asked = {"columns": ["a"], "rows": [[1]] * 7_000, "keep": False}
        expect(service.post("/v1/streams/s/predict", json=asked), 413, "too-many-rows")
        fewer = asked | {"rows": [[1]] * 1_000}
        assert len(service.post("/v1/streams/s/predict", json=fewer).json()["labels"]) == 1_000


def test_a_rate_below_one_lets_a_request_through_now_and_then() -> None:
    now = 0.0
    rate = RateLimit(0.4, clock=lambda: now)
    rate.expect("app")
    with pytest.raises(Problem) as refused:
        rate.expect("app")
    assert refused.value.headers == {"Retry-After": "3"}
    now = 3.0
    rate.expect("app")


@pytest.mark.parametrize("log_format", ["json", "text"])
def test_no_secret_and_no_row_is_logged(tmp_path: Path, log_format: str) -> None:
    with Running(tmp_path, log_format=log_format, log_level="debug") as running:
        token = running.tokens.create("ops", ["admin"])
        time.sleep(1.1)
        for secret in (token, SECRET):
            headers = {"Authorization": f"Bearer {secret}"}
            with httpx.Client(base_url=running.url, headers=headers) as client:
                client.post("/v1/streams", json={"name": "s"})
                client.post("/v1/streams/s/predict", json={"rows": [{"a": "private-row"}]})
                client.get(f"/v1/streams/s?token={secret}")
                client.get(f"/v1/streams/{secret}")
        running.end()
        assert "/v1/streams" in running.log
        assert token not in running.log
        assert SECRET not in running.log
        assert "private-row" not in running.log
