"""Errors of the service: RFC 9457 problem details.

A problem has a kind, which is for programs, and a sentence, which is for people. The sentence
never repeats what the caller sent, and an error of the service's own says no more than the id
under which its log has the rest.

>>> problem = Problem("stream-unknown", "there is no stream of this name")
>>> problem.status, problem.to_json("3f9a")["type"]
(404, 'urn:driftquilt:stream-unknown')
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from driftquilt.errors import DriftquiltError

__all__ = ["KINDS", "MEDIA_TYPE", "Problem"]

MEDIA_TYPE = "application/problem+json"

#: Status and title by kind.
KINDS: Mapping[str, tuple[int, str]] = {
    "body-malformed": (400, "The body cannot be read"),
    "request-malformed": (400, "The request cannot be read"),
    "token-missing": (401, "A token is needed"),
    "token-unknown": (401, "The token is not known"),
    "scope-missing": (403, "The token does not allow this"),
    "origin-foreign": (403, "The request comes from another site"),
    "not-found": (404, "There is nothing here"),
    "stream-unknown": (404, "There is no such stream"),
    "ids-unknown": (404, "No row waits under these ids"),
    "model-unknown": (404, "There is no such model"),
    "selection-unknown": (404, "There is no such selection"),
    "method-unknown": (405, "This method does not go here"),
    "answer-unavailable": (406, "The answer has no such form"),
    "body-slow": (408, "The body took too long"),
    "request-slow": (408, "The request took too long"),
    "stream-exists": (409, "There is a stream of this name already"),
    "nothing-to-adapt-to": (409, "A model cannot be trained yet"),
    "nothing-to-roll-back-to": (409, "There is no earlier model"),
    "body-too-large": (413, "The body is too large"),
    "too-many-rows": (413, "There are too many rows"),
    "body-type-unknown": (415, "The body is of another type"),
    "host-unknown": (421, "This host is not served here"),
    "body-invalid": (422, "The body does not hold what it should"),
    "parameter-invalid": (422, "A parameter does not hold what it should"),
    "rows-invalid": (422, "The rows do not go with the stream"),
    "key-reused": (422, "The key belongs to another request"),
    "rate-exceeded": (429, "There are too many requests"),
    "backlog-full": (429, "Too many rows wait to be learned"),
    "too-many-streams": (429, "There are too many streams"),
    "headers-too-large": (431, "The headers are too large"),
    "internal": (500, "Something went wrong here"),
    "stream-damaged": (503, "The stream cannot be opened"),
    "stream-failed": (503, "The stream cannot learn at the moment"),
    "too-many-connections": (503, "There are too many connections"),
    "stopping": (503, "The service is stopping"),
}


class Problem(DriftquiltError):  # noqa: N818 - RFC 9457 calls it so
    """A request that is refused or failed."""

    def __init__(self, kind: str, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.kind, self.detail = kind, detail
        self.status, self.title = KINDS[kind]
        self.headers = dict(headers or {})

    def to_json(self, request_id: str) -> dict[str, Any]:
        """Return the members of the document."""
        return {
            "type": f"urn:driftquilt:{self.kind}",
            "title": self.title,
            "status": self.status,
            "detail": self.detail,
            "request_id": request_id,
        }

    def to_bytes(self, request_id: str) -> bytes:
        """Return the document as it is sent."""
        return msgspec.json.encode(self.to_json(request_id))
