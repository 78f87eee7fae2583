"""How an operation stands in the OpenAPI document: scope, body, answers, problems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from driftquilt.server.media import ARROW, JSON
from driftquilt.server.problems import MEDIA_TYPE
from driftquilt.server.schemas import ProblemBody

__all__ = ["KEY_LETTERS", "ONCE", "RESUME", "document"]

KEY_LETTERS = r"[A-Za-z0-9_.:-]{1,128}"
#: Headers that some operations take.
ONCE: dict[str, Any] = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "The same key with the same body does nothing twice and gets the answer again, "
    "marked `Idempotent-Replayed: true`.",
    "schema": {"type": "string", "pattern": f"^{KEY_LETTERS}$", "examples": ["order-7"]},
}
RESUME: dict[str, Any] = {
    "name": "Last-Event-ID",
    "in": "header",
    "description": "The number of the last event that came; those after it follow.",
    "schema": {"type": "string", "examples": ["5"]},
}

_ALWAYS = (400, 401, 403, 404, 408, 413, 421, 422, 429, 431, 500, 503)


def document(
    scope: str,
    told: type[BaseModel] | None,
    summary: str,
    *,
    status: int = 200,
    body: Sequence[type[BaseModel]] = (),
    arrow: bool = False,
    arrow_answer: bool = False,
    media: str | None = None,
    headers: Sequence[dict[str, Any]] = (),
    problems: Sequence[int] = (),
) -> dict[str, Any]:
    """Arguments of a route; `arrow` is for the body."""
    responses: dict[int | str, dict[str, Any]] = {
        status: {"description": "Done."} | ({} if told is None else {"model": told})
    }
    if media is not None:
        responses[status]["content"] = {media: {"schema": {"type": "string"}}}
    if arrow_answer:
        responses[status]["content"] = {ARROW: {"schema": {"type": "string", "format": "binary"}}}
    for code in sorted({*_ALWAYS, *problems}):
        responses[code] = {
            "description": "A problem.",
            "content": {MEDIA_TYPE: {"schema": ProblemBody.model_json_schema()}},
        }
    extra: dict[str, Any] = {
        "security": [{"token": [scope]}],
        "x-scope": scope,
        "parameters": [*headers],
    }
    if body:
        extra["requestBody"] = {"required": True, "content": _content(body, arrow)}
    return {
        "summary": summary,
        "status_code": status,
        "responses": responses,
        "openapi_extra": extra,
        "response_class": Response if told is None else JSONResponse,
    }


def _content(body: Sequence[type[BaseModel]], arrow: bool) -> dict[str, Any]:
    kinds = [model.model_json_schema(ref_template=_REF) for model in body]
    schema: dict[str, Any] = kinds[0] if len(kinds) == 1 else {"anyOf": kinds}
    content: dict[str, Any] = {JSON: {"schema": _inline(schema)}}
    if arrow:
        content[ARROW] = {"schema": {"type": "string", "format": "binary"}}
    return content


_REF = "#/$defs/{model}"


def _inline(schema: Any, definitions: dict[str, Any] | None = None) -> Any:
    """The schema with its definitions in place, for it stands alone in the document."""
    if isinstance(schema, list):
        return [_inline(item, definitions) for item in schema]
    if not isinstance(schema, dict):
        return schema
    definitions = (definitions or {}) | schema.get("$defs", {})
    if "$ref" in schema:
        return _inline(definitions[schema["$ref"].rpartition("/")[2]], definitions)
    return {name: _inline(value, definitions) for name, value in schema.items() if name != "$defs"}
