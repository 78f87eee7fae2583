"""Requests made from the OpenAPI document, right and wrong: the answers are those it tells."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import Case, GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.result import Ok
from schemathesis.specs.openapi import checks

from tests.processes import wait_for
from tests.server.running import Running, feed
from tests.server.test_openapi_walk import DOCUMENT

SCHEMA = schemathesis.openapi.from_dict(json.loads(json.dumps(DOCUMENT)))
OPERATIONS = {
    found.ok().label: found.ok() for found in SCHEMA.get_all_operations() if isinstance(found, Ok)
}
LIVE = "GET /v1/streams/{name}/events/live"
KNOWN = "clicks"
CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
]
MODES = {"right": GenerationMode.POSITIVE, "wrong": GenerationMode.NEGATIVE}
CLIENT = httpx.Client(trust_env=False)
QUICK, MANY = 25, 2_500  # of each mode

OPEN = {label for label, found in OPERATIONS.items() if found.definition.raw["security"] == []}
each = pytest.mark.parametrize(
    ("label", "mode"),
    # Where no token is needed, there is nothing about a request that could be wrong.
    [(label, "right" if label in OPEN else mode) for label in OPERATIONS for mode in MODES],
)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with Running(tmp_path_factory.mktemp("schemathesis"), max_streams=5, rate=1e9) as running:
        yield running
        running.end()
        assert "Traceback" not in running.log


@pytest.fixture
def url(running: Running) -> str:
    """Of a service with a stream that has learned, and has a model."""
    with running.client() as client:
        names = {stream["name"] for stream in client.streams()["streams"]}
        for name in names - {KNOWN}:
            client.stream(name).delete()
        if KNOWN not in names:
            client.create_stream(KNOWN)
            feed(client, KNOWN, 200, flipped=False)
            wait_for(lambda: client.stream(KNOWN).status()["model"])
    return running.url


def ask(label: str, mode: str, url: str, n_cases: int) -> None:
    """At least so many requests of one operation; an answer that is not told of is a failure."""
    n_asked = 0

    @settings(
        max_examples=n_cases, deadline=None, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(OPERATIONS[label].as_strategy(generation_mode=MODES[mode]))
    def run(case: Case[Any]) -> None:
        nonlocal n_asked
        n_asked += 1
        if mode == "right" and len(case.path_parameters.get("name", "")) % 2:
            case.path_parameters["name"] = KNOWN
        if label == LIVE:
            listen(case, url)
            return
        answer = case.call(base_url=url)
        case.validate_response(answer, checks=CHECKS)
        if mode == "right":
            assert answer.status_code not in {400, 408, 415, 431}, answer.text
        if answer.status_code == 201:
            CLIENT.delete(f"{url}{answer.headers['location'][0]}").raise_for_status()

    while n_asked < n_cases:  # where there are few different ones, they come again
        run()


def listen(case: Case[Any], url: str) -> None:
    """The beginning of an answer that does not end, or a problem."""
    asked: dict[str, Any] = case.as_transport_kwargs(base_url=url)
    with CLIENT.stream("GET", asked["url"], params=asked["params"]) as answer:
        if answer.status_code == 200:
            assert answer.headers["content-type"].startswith("text/event-stream")
            assert next(answer.iter_lines()) == ": driftquilt"
            return
    case.validate_response(case.call(base_url=url), checks=CHECKS)


@each
def test_the_answers_are_those_that_are_told(label: str, mode: str, url: str) -> None:
    ask(label, mode, url, QUICK)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@each
def test_the_answers_to_many_are_those_that_are_told(label: str, mode: str, url: str) -> None:
    ask(label, mode, url, MANY)
