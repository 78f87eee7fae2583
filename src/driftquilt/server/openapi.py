"""Operations of the service, and the OpenAPI document that follows from them.

An `Operation` says all there is to know of a way to ask: method, path, scope, parameters, body,
answer. It is an endpoint of Starlette, and the document is generated from the same declarations.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args, get_origin

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from driftquilt import __version__
from driftquilt.server.bodies import explain
from driftquilt.server.problems import MEDIA_TYPE, Problem
from driftquilt.server.schemas import ARROW, JSON, NoParameters, ProblemBody

__all__ = ["IDEMPOTENCY_KEY", "KEY_LETTERS", "LAST_EVENT_ID", "Operation", "openapi_document"]

Handler = Callable[[Request, Any], Awaitable[Response]]

KEY_LETTERS = r"[A-Za-z0-9_.:-]{1,128}"
#: Headers that some operations take.
IDEMPOTENCY_KEY: dict[str, Any] = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "The same key with the same body does nothing twice and gets the answer again, "
    "marked `Idempotent-Replayed: true`.",
    "schema": {"type": "string", "pattern": f"^{KEY_LETTERS}$", "examples": ["order-7"]},
}
LAST_EVENT_ID: dict[str, Any] = {
    "name": "Last-Event-ID",
    "in": "header",
    "description": "The number of the last event received; those after it follow.",
    "schema": {"type": "string", "examples": ["5"]},
}
_SUMMARY = "Predictions, labels and drift of a team's streams. Every error is a problem (RFC 9457)."
_ALWAYS = (400, 401, 403, 404, 408, 413, 421, 422, 429, 431, 500, 503)
_BINARY = {"schema": {"type": "string", "format": "binary"}}


class _Request(Request):
    """A request whose body is read without Starlette's stream of chunks, at a third of its cost."""

    async def body(self) -> bytes:
        if not hasattr(self, "_body"):
            parts, more = [], True
            while more:
                message = await self.receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                parts.append(message.get("body", b""))
                more = message.get("more_body", False)
            self._body = parts[0] if len(parts) == 1 else b"".join(parts)
        return self._body


@dataclass(frozen=True, eq=False)
class Operation:
    """One way to ask: an ASGI endpoint that knows its own documentation.

    `scope` is what a token needs, None if no token is needed. `answer` is a struct, None if there
    is no JSON; `media_types` are the other forms of the answer.
    """

    method: str
    path: str
    handler: Handler
    summary: str
    scope: str | None = "read"
    parameters: type[msgspec.Struct] = NoParameters
    body: Any = None
    examples: Sequence[dict[str, Any]] = ()  # of the body
    takes_arrow: bool = False
    answer: Any = None
    status: int = 200
    media_types: Sequence[str] = ()
    headers: Sequence[dict[str, Any]] = ()
    problems: Sequence[int] = field(default=())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check who asks and what for, then answer."""
        request = _Request(scope, receive)
        if self.scope is not None:
            scope["state"]["caller"].expect(self.scope)
        response = await self.handler(request, self._read_parameters(request))
        await response(scope, receive, send)

    def _read_parameters(self, request: Request) -> Any:
        given = request.path_params
        if request.scope["query_string"]:
            given = {**request.query_params, **given}
        try:
            return msgspec.convert(given, self.parameters, strict=False)
        except msgspec.ValidationError as error:
            choices = [
                f"{parameter.name} takes {', '.join(map(repr, get_args(parameter.type)))}"
                for parameter in msgspec.structs.fields(self.parameters)
                if get_origin(parameter.type) is Literal
            ]
            detail = "; ".join([explain(error), *choices])
            raise Problem("parameter-invalid", detail) from error

    def document(self, references: dict[Any, dict[str, Any]]) -> dict[str, Any]:
        """Describe the operation; `references` are to the schemas of structs."""
        content: dict[str, Any] = {}
        if self.answer is not None:
            content[JSON] = {"schema": references[self.answer]}
        content |= dict.fromkeys(self.media_types, _BINARY)
        done = {"description": "Done."} | ({"content": content} if content else {})
        problem = {
            "description": "A problem.",
            "content": {MEDIA_TYPE: {"schema": references[ProblemBody]}},
        }
        codes = sorted({*_ALWAYS, *self.problems})
        document: dict[str, Any] = {
            "operationId": self.handler.__name__.strip("_"),
            "summary": self.summary,
            "description": self.handler.__doc__,
            "parameters": [*self._documented_parameters(), *self.headers],
            "responses": {str(self.status): done} | {str(code): problem for code in codes},
            "security": [] if self.scope is None else [{"token": [self.scope]}],
        }
        if self.scope is not None:
            document["x-scope"] = self.scope
        if self.body is not None:
            examples = {str(at): {"value": value} for at, value in enumerate(self.examples)}
            body = {JSON: {"schema": references[self.body], "examples": examples}}
            arrow = {ARROW: _BINARY} if self.takes_arrow else {}
            document["requestBody"] = {"required": True, "content": {**body, **arrow}}
        return document

    def _documented_parameters(self) -> list[dict[str, Any]]:
        return [
            {
                "name": parameter.name,
                "in": "path" if f"{{{parameter.name}}}" in self.path else "query",
                "required": parameter.required,
                "schema": msgspec.json.schema(parameter.type),
            }
            for parameter in msgspec.structs.fields(self.parameters)
        ]


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
        by_method[operation.method.lower()] = operation.document(references)
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
