"""Every operation that the OpenAPI document has, whatever it is: who may ask, and what is told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import jsonschema
import pytest

from driftquilt.server.app import make_app
from driftquilt.server.problems import KINDS
from driftquilt.server.settings import load_settings
from driftquilt.server.tokens import SCOPES
from tests.server.serving import InProcess, in_process

DOCUMENT = make_app(load_settings(store="nowhere")).openapi()
PARAMETERS = {"name": "s", "version": "1", "number": "1", "kind": "quilt"}
PROBLEM = "application/problem+json"


class Operation(NamedTuple):
    """One way to ask."""

    method: str
    path: str
    told: dict[str, Any]

    @property
    def is_open(self) -> bool:
        return self.told.get("security") == []

    @property
    def filled(self) -> str:
        return self.path.format(**PARAMETERS)

    def __repr__(self) -> str:
        return f"{self.method} {self.path}"


OPERATIONS = [
    Operation(method.upper(), path, told)
    for path, methods in DOCUMENT["paths"].items()
    for method, told in methods.items()
]
GUARDED = [operation for operation in OPERATIONS if not operation.is_open]
each = pytest.mark.parametrize("operation", OPERATIONS, ids=repr)
each_guarded = pytest.mark.parametrize("operation", GUARDED, ids=repr)


def parts(document: Any) -> Iterator[dict[str, Any]]:
    """Every object in a document."""
    if isinstance(document, dict):
        yield document
    for part in document.values() if isinstance(document, dict) else document:
        if isinstance(part, dict | list):
            yield from parts(part)


def test_no_request_can_say_where_trainings_run() -> None:
    found = {str(name) for part in parts(DOCUMENT) for name in part.get("properties", {})}
    found |= {one["name"] for part in parts(DOCUMENT) for one in part.get("parameters", [])}
    assert {"detector", "random_state", "name"} <= found
    assert found.isdisjoint({"engine", "executor", "address", "n_jobs", "learner"})


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    with in_process(tmp_path_factory.mktemp("walk")) as service:
        yield service


@pytest.fixture(scope="module")
def tokens(service: InProcess) -> dict[str, str]:
    """A token for each scope; there is no other way in from here on."""
    made = service.tokens
    tokens: dict[str, str] = {scope: made.create(scope, [scope]) for scope in SCOPES}
    while service.get("/v1/me").status_code != 401:  # within a second
        pass
    return tokens


def test_what_needs_no_token_tells_nothing_of_streams() -> None:
    assert {repr(operation) for operation in OPERATIONS if operation.is_open} == {
        "GET /healthz", "GET /readyz",
    }  # fmt: skip
    assert len(GUARDED) > 15


@each_guarded
def test_without_a_token_nothing_is_done(
    service: InProcess, tokens: dict[str, str], operation: Operation
) -> None:
    wrong = [
        None, "", "Bearer", "Bearer ", "Bearer dq_wrong", f"Bearer {tokens['admin'][:-1]}",
        f"Basic {tokens['admin']}", tokens["admin"], f"Bearer {tokens['admin']} x", "Bearer \xff",
    ]  # fmt: skip
    for given in wrong:
        headers = {} if given is None else {"Authorization": given.encode("latin-1")}
        answer = service.request(operation.method, operation.filled, headers=headers)
        assert answer.status_code == 401, given
        assert answer.headers["www-authenticate"].startswith("Bearer")
        assert answer.json()["type"] in {
            "urn:driftquilt:token-missing",
            "urn:driftquilt:token-unknown",
        }


@each_guarded
def test_a_token_without_the_scope_is_not_enough(
    service: InProcess, tokens: dict[str, str], operation: Operation
) -> None:
    needed = operation.told["x-scope"]
    assert operation.told["security"] == [{"token": [needed]}]
    for scope in SCOPES[: SCOPES.index(needed)]:
        headers = {"Authorization": f"Bearer {tokens[scope]}"}
        answer = service.request(operation.method, operation.filled, headers=headers)
        assert answer.status_code == 403, scope
        assert answer.json()["type"] == "urn:driftquilt:scope-missing"
        assert operation.path == "/v1/streams" or "stream" not in answer.json()["detail"]


@each_guarded
def test_the_scope_is_enough(
    service: InProcess, tokens: dict[str, str], operation: Operation
) -> None:
    for scope in SCOPES[SCOPES.index(operation.told["x-scope"]) :]:
        headers = {"Authorization": f"Bearer {tokens[scope]}"}
        answer = service.request(operation.method, operation.filled, headers=headers)
        assert answer.status_code not in {401, 403}, answer.text
        assert str(answer.status_code) in operation.told["responses"]


@each
def test_an_operation_is_told_in_full(operation: Operation) -> None:
    told = operation.told
    assert told["summary"]
    assert told["operationId"]
    for parameter in told.get("parameters", []):
        assert parameter["schema"], parameter["name"]
    problems = {code: how for code, how in told["responses"].items() if code >= "400"}
    always = ["400", "401", "403", "404", "408", "413", "422", "429", "431", "500", "503"]
    assert problems.keys() >= {*always}
    assert all(list(how["content"]) == [PROBLEM] for how in problems.values())
    [done] = told["responses"].keys() - problems.keys()
    assert done == "204" or told["responses"][done]["content"]


def test_the_headers_that_are_read_are_told() -> None:
    def taking(header: str) -> set[str]:
        return {
            repr(operation)
            for operation in OPERATIONS
            if header in {parameter["name"] for parameter in operation.told.get("parameters", [])}
        }

    posts = {repr(operation) for operation in OPERATIONS if operation.method == "POST"}
    assert taking("Idempotency-Key") == posts - {"POST /v1/streams/{name}/predict"}
    assert taking("Last-Event-ID") == {"GET /v1/streams/{name}/events/live"}


@pytest.mark.parametrize(
    "operation",
    [operation for operation in OPERATIONS if "requestBody" in operation.told],
    ids=repr,
)
def test_a_body_has_examples_that_its_schema_takes(operation: Operation) -> None:
    content = operation.told["requestBody"]["content"]["application/json"]
    schema = {**content["schema"], "components": DOCUMENT["components"]}
    assert content["examples"]
    for example in content["examples"].values():
        jsonschema.validate(example["value"], schema)


def test_every_status_of_a_problem_is_told_somewhere() -> None:
    told = {int(code) for operation in OPERATIONS for code in operation.told["responses"]}
    assert {status for status, _ in KINDS.values()} - told == {405}


def test_the_document_is_what_its_version_says() -> None:
    """Against the parts of OpenAPI 3.1 that readers of it rely on."""
    assert DOCUMENT["openapi"].startswith("3.1")
    assert set(DOCUMENT) <= {"openapi", "info", "paths", "components", "servers", "tags"}
    ids = [operation.told["operationId"] for operation in OPERATIONS]
    assert len(set(ids)) == len(ids)
    for part in parts(DOCUMENT):
        jsonschema.Draft202012Validator.check_schema(part.get("schema", {}))
        found: Any = DOCUMENT
        for name in part.get("$ref", "#/openapi").removeprefix("#/").split("/"):
            found = found[name]


def test_the_document_is_served_without_a_token(service: InProcess, tokens: dict[str, str]) -> None:
    assert tokens
    assert service.get("/openapi.json").json() == json.loads(json.dumps(DOCUMENT))
