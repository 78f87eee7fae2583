"""The OpenAPI document, generated from the operations and the structs of their bodies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from driftquilt import __version__
from driftquilt.server.problems import MEDIA_TYPE
from driftquilt.server.routes import Operation
from driftquilt.server.schemas import (
    ARROW,
    JSON,
    KEY_LETTERS,
    LabelsBody,
    NewStream,
    PredictBody,
    ProblemBody,
)

__all__ = ["openapi_document"]

#: Headers that some operations take.
_HEADERS: dict[str, dict[str, Any]] = {
    "Idempotency-Key": {
        "name": "Idempotency-Key",
        "in": "header",
        "description": "The same key with the same body does nothing twice and gets the answer "
        "again, marked `Idempotent-Replayed: true`.",
        "schema": {"type": "string", "pattern": f"^{KEY_LETTERS}$", "examples": ["order-7"]},
    },
    "Last-Event-ID": {
        "name": "Last-Event-ID",
        "in": "header",
        "description": "The number of the last event received; those after it follow.",
        "schema": {"type": "string", "examples": ["5"]},
    },
}
_MATRIX = {"columns": ["age", "city"], "rows": [[31, "Rome"]]}
_OBJECTS = {"rows": [{"age": 31, "city": "Rome"}]}
#: Of each body.
_EXAMPLES: dict[Any, tuple[dict[str, Any], ...]] = {
    PredictBody: (_OBJECTS, _MATRIX),
    LabelsBody: (
        {"labels": [{"id": "1-0", "label": "yes"}]},
        {**_OBJECTS, "labels": ["yes"]},
        {**_MATRIX, "labels": ["yes"]},
        {**_OBJECTS, "labels": [12.5]},
    ),
    NewStream: (
        {"name": "clicks", "detector": "adwin", "settings": {"n_wait": 100}, "metric": "roc_auc"},
        {
            "name": "loans",
            "schema": {"columns": {"age": "number", "city": "text"}, "labels": ["no", "yes"]},
        },
        {"name": "prices", "task": "regression", "coverage": 0.8},
    ),
}
_SUMMARY = "Predictions, labels and drift of a team's streams. Every error is a problem (RFC 9457)."
_ALWAYS = (400, 401, 403, 404, 408, 413, 421, 422, 429, 431, 500, 503)
_BINARY = {"schema": {"type": "string", "format": "binary"}}


def openapi_document(operations: Sequence[Operation]) -> dict[str, Any]:
    """Return the OpenAPI 3.1 document of these operations."""
    bodies = [operation.body for operation in operations]
    structs = {*bodies, *(operation.answer for operation in operations), ProblemBody} - {None}
    ordered = sorted(structs, key=lambda struct: struct.__name__)
    schemas, components = msgspec.json.schema_components(
        ordered, ref_template="#/components/schemas/{name}"
    )
    references = dict(zip(ordered, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for operation in operations:
        by_method = paths.setdefault(operation.path, {})
        by_method[operation.method.lower()] = _describe(operation, references)
    token = {"type": "http", "scheme": "bearer", "description": "See /v1/me."}
    document = {
        "openapi": "3.1.0",
        "info": {"title": "driftquilt", "version": __version__, "description": _SUMMARY},
        "paths": paths,
        "components": {"schemas": components, "securitySchemes": {"token": token}},
    }
    # The end of a text is `\\Z` in Python's patterns and `$` in those of JSON Schema.
    plain = msgspec.json.encode(document).replace(rb"\\Z", b"$")
    return msgspec.json.decode(plain, type=dict[str, Any])


def _describe(operation: Operation, references: dict[Any, dict[str, Any]]) -> dict[str, Any]:
    """Describe the operation; `references` are to the schemas of structs."""
    content: dict[str, Any] = {}
    if operation.answer is not None:
        content[JSON] = {"schema": references[operation.answer]}
    content |= dict.fromkeys(operation.media_types, _BINARY)
    done = {"description": "Done."} | ({"content": content} if content else {})
    problem = {
        "description": "A problem.",
        "content": {MEDIA_TYPE: {"schema": references[ProblemBody]}},
    }
    codes = sorted({*_ALWAYS, *operation.problems})
    document: dict[str, Any] = {
        "operationId": operation.handler.__name__.strip("_"),
        "summary": operation.summary,
        "description": operation.handler.__doc__,
        "parameters": [*_parameters(operation), *(_HEADERS[name] for name in operation.headers)],
        "responses": {str(operation.status): done} | {str(code): problem for code in codes},
        "security": [] if operation.scope is None else [{"token": [operation.scope]}],
    }
    if operation.scope is not None:
        document["x-scope"] = operation.scope
    if operation.body is not None:
        examples = {str(at): {"value": value} for at, value in enumerate(_EXAMPLES[operation.body])}
        body = {JSON: {"schema": references[operation.body], "examples": examples}}
        arrow = {ARROW: _BINARY} if operation.takes_arrow else {}
        document["requestBody"] = {"required": True, "content": {**body, **arrow}}
    return document


def _parameters(operation: Operation) -> list[dict[str, Any]]:
    return [
        {
            "name": parameter.name,
            "in": "path" if f"{{{parameter.name}}}" in operation.path else "query",
            "required": parameter.required,
            "schema": msgspec.json.schema(parameter.type),
        }
        for parameter in msgspec.structs.fields(operation.parameters)
    ]
