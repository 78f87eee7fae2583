"""The gate: every request passes it, and nothing that is wrong with one gets further.

In this order: an id; a host and an origin that may be; a token; the rate; the size of the body
and the time it takes. Then the request is answered, with headers that fence the answer in, and a
line in the log. Whatever goes wrong behind the gate becomes a problem without a word of why; the
log has the rest.

It is plain ASGI: no request is wrapped twice, and a body that is too large is never read.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import time
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import orjson
from starlette.requests import ClientDisconnect

from driftquilt.server.access_log import AccessLog
from driftquilt.server.deadlines import Deadlines
from driftquilt.server.logs import request_id as logged_id
from driftquilt.server.metrics import Metrics
from driftquilt.server.names import NAME
from driftquilt.server.page import HEADERS
from driftquilt.server.problems import MEDIA_TYPE, Problem, internal
from driftquilt.server.rate import Rate
from driftquilt.server.settings import ServeSettings
from driftquilt.server.tokens import SCOPES, Token, Tokens

__all__ = ["CALLER", "OPEN", "REQUEST_ID", "ROUTE", "Caller", "Gate"]

Scope: TypeAlias = MutableMapping[str, Any]
Message: TypeAlias = MutableMapping[str, Any]
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
App: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]

_log = logging.getLogger("driftquilt.access")

#: Where a request carries who asks, and its id.
CALLER = "driftquilt.caller"
REQUEST_ID = "driftquilt.request_id"
ROUTE = "driftquilt.route"
#: Paths that need no token: they tell nothing about any stream.
OPEN = frozenset({"/", "/healthz", "/readyz", "/openapi.json"})
# Ids and names of streams are logged, and tokens are not.
_ID = re.compile(rb"(?!dq_)[A-Za-z0-9_.-]{8,64}")
_STREAM = re.compile(rf"/v1/streams/(?!dq_)({NAME[1:-1]})(?:/|$)")
_LOCAL = re.compile(r"(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?", re.IGNORECASE)
_MOST_HEADERS = 64
_MOST_HEADER_BYTES = 1 << 15
_MOST_DIGITS = 20
_ONCE = {b"host", b"authorization", b"content-type", b"content-length", b"idempotency-key"}
_FORWARDED = {
    b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto",
    b"x-real-ip",
}  # fmt: skip
_DRAIN_BYTES = 1 << 26  # of a body that is refused, so that the answer can be read
_DRAIN_SECONDS = 1.0
_HUNG_UP = 499  # in the log alone
_HEADERS = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]


@dataclass(frozen=True)
class Caller:
    """Who asks; without a token, anyone on this machine."""

    name: str | None
    scopes: tuple[str, ...]

    def expect(self, scope: str) -> None:
        """Refuse what the caller may not do."""
        if scope not in self.scopes:
            raise Problem("scope-missing", f"this takes a token with the scope {scope}")


_ANYONE = Caller(None, SCOPES)
_NOBODY = Caller(None, ())


class Gate:
    """The application with a gate before it."""

    def __init__(self, app: App, settings: ServeSettings, tokens: Tokens, metrics: Metrics) -> None:
        self._app, self._settings, self._tokens, self._metrics = app, settings, tokens, metrics
        self._rate, self._deadlines = Rate(settings.rate), Deadlines(settings.body_seconds)
        self._access = AccessLog()
        self._callers: dict[Token, Caller] = {}
        self.stopping = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        most_bytes = self._settings.max_body_bytes
        passage = _Passage(scope, receive, send, most_bytes, self._deadlines)
        scope[REQUEST_ID] = passage.request_id
        logged_id.set(passage.request_id)
        try:
            scope[CALLER] = self._admit(scope, passage.headers)
            passage.expect_size()
            await self._app(scope, passage.receive, passage.send)
        except Problem as problem:
            await passage.refuse(problem)
        except asyncio.CancelledError:
            if not self.stopping:
                raise
            await passage.refuse(_stopping(), drain=False)  # `drain_seconds` are over
        except ClientDisconnect:
            passage.status = _HUNG_UP
        except Exception:
            _log.exception("a request failed", extra={"path": scope["path"]})
            await passage.refuse(internal())
        self._tell(scope, passage)

    def goes_on(self, caller: Caller) -> bool:
        """Whether an answer that does not end may go on: its token is there, and the service."""
        free = not self._tokens.were_made and self._settings.is_loopback
        tokens = {token for token, known in self._callers.items() if known is caller}
        return not self.stopping and (free if caller is _ANYONE else bool(tokens & {*self._tokens}))

    def write_log(self) -> None:
        """Write the lines that wait."""
        self._access.write()

    def _admit(self, scope: Scope, headers: dict[bytes, bytes]) -> Caller:
        if self.stopping:
            raise _stopping()
        _expect_headers(scope["headers"])
        if b"transfer-encoding" in headers and b"content-length" in headers:
            raise Problem("request-malformed", "the length of the body is given twice")
        path = scope["path"]
        free = not self._tokens.were_made and self._settings.is_loopback
        if free:  # a page of another site must not reach it through the browser
            _expect_local(headers)
        if path in OPEN or path.startswith("/static/"):
            return _ANYONE if free else _NOBODY
        caller = _ANYONE if free else self._find(headers)
        self._rate.expect(caller.name)
        return caller

    def _find(self, headers: dict[bytes, bytes]) -> Caller:
        kind, _, secret = headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() != b"bearer" or not secret:
            raise Problem(
                "token-missing", "send the header Authorization: Bearer and a token", _CHALLENGE
            )
        token = self._tokens.find(secret.strip().decode("latin-1"))
        if token is None:
            raise Problem("token-unknown", "there is no such token, or it was revoked", _CHALLENGE)
        caller = self._callers.get(token)
        if caller is None:
            allowed = tuple(scope for scope in SCOPES if token.may(scope))
            caller = self._callers[token] = Caller(token.name, allowed)
        return caller

    def _tell(self, scope: Scope, passage: _Passage) -> None:
        route = scope.get(ROUTE) or getattr(scope.get("route"), "path", None) or "other"
        seconds = time.perf_counter() - passage.began
        self._metrics.count_request(scope["method"], route, passage.status, seconds)
        caller, named = scope.get(CALLER), _STREAM.match(scope["path"])
        self._access.add(
            passage.request_id, scope["method"], route, passage.status, seconds,
            caller.name if caller else None, named[1] if named else None,
        )  # fmt: skip


class _Passage:
    """One request on its way in, and its answer on the way out."""

    def __init__(
        self,
        scope: Scope,
        receive: Receive,
        send: Send,
        most_bytes: int,
        deadlines: Deadlines,
    ) -> None:
        self._receive, self._send = receive, send
        self._most_bytes, self._deadlines = most_bytes, deadlines
        self.began = time.perf_counter()
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        given = self.headers.get(b"x-request-id", b"")
        self.request_id = given.decode() if _ID.fullmatch(given) else os.urandom(8).hex()
        self.status = 0
        self._n_bytes = 0
        self._whole = False

    def expect_size(self) -> None:
        """Refuse a body that says it is too large."""
        length = self.headers.get(b"content-length")
        if length is not None:
            if not length.isdigit() or len(length) > _MOST_DIGITS:
                raise Problem("request-malformed", "the length of the body is no number")
            self._expect(int(length))

    def _expect(self, n_bytes: int) -> None:
        if n_bytes > self._most_bytes:
            raise Problem("body-too-large", f"a body has at most {self._most_bytes} bytes")

    async def receive(self) -> Message:
        """The next part of the body, within size and time."""
        if self._whole:
            return await self._receive()  # a client that goes away
        message = await self._deadlines.within(self._receive(), self.began)
        if message["type"] == "http.request":
            self._n_bytes += len(message.get("body", b""))
            self._whole = not message.get("more_body", False)
            self._expect(self._n_bytes)
        return message

    async def send(self, message: Message) -> None:
        """The answer, fenced in."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = [*message["headers"], *_HEADERS]
            headers.append((b"x-request-id", self.request_id.encode()))
            message = {**message, "headers": headers}
        await self._send(message)

    async def refuse(self, problem: Problem, *, drain: bool = True) -> None:
        """A problem instead of an answer; nothing if the answer has begun."""
        if self.status:
            return
        if drain and not self._whole:
            await self._drain()
        body = orjson.dumps(problem.to_json(self.request_id))
        headers = [
            (b"content-type", MEDIA_TYPE.encode()),
            (b"content-length", str(len(body)).encode()),
            *((name.lower().encode(), value.encode()) for name, value in problem.headers.items()),
        ]
        if not self._whole:
            headers.append((b"connection", b"close"))
        await self.send(
            {"type": "http.response.start", "status": problem.status, "headers": headers}
        )
        await self.send({"type": "http.response.body", "body": body})

    async def _drain(self) -> None:
        """Let the rest of a body pass by for a moment: who still sends does not read."""
        if self.headers.get(b"content-length", b"0") == b"0" and (
            b"transfer-encoding" not in self.headers
        ):
            self._whole = True
            return
        try:
            async with asyncio.timeout(_DRAIN_SECONDS):
                while self._n_bytes < _DRAIN_BYTES:
                    message = await self._receive()
                    self._n_bytes += len(message.get("body", b""))
                    if message["type"] != "http.request" or not message.get("more_body", False):
                        self._whole = message["type"] == "http.request"
                        return
        except TimeoutError:
            return


def _stopping() -> Problem:
    return Problem("stopping", "the service is being stopped", {"Retry-After": "5"})


_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="driftquilt"'}


def _expect_headers(headers: list[tuple[bytes, bytes]]) -> None:
    if len(headers) > _MOST_HEADERS:
        raise Problem("headers-too-large", f"a request has at most {_MOST_HEADERS} headers")
    if sum(len(name) + len(value) for name, value in headers) > _MOST_HEADER_BYTES:
        raise Problem("headers-too-large", f"headers have at most {_MOST_HEADER_BYTES} bytes")
    once = [name for name, _ in headers if name in _ONCE]
    if len(once) > len(set(once)):
        raise Problem("request-malformed", "a header that goes once came twice")


def _expect_local(headers: dict[bytes, bytes]) -> None:
    if not _FORWARDED.isdisjoint(headers):  # whoever stands before a proxy may be anywhere
        raise Problem(
            "host-unknown", "without tokens the service answers no proxy; make a token first"
        )
    host = headers.get(b"host", b"").decode("latin-1")
    if not _LOCAL.fullmatch(host):
        raise Problem("host-unknown", "without tokens the service answers to localhost alone")
    origin = headers.get(b"origin", b"").decode("latin-1")
    foreign = origin and origin.rpartition("://")[2] != host
    if foreign or headers.get(b"sec-fetch-site") == b"cross-site":
        raise Problem("origin-foreign", "pages of other sites may not ask this service")
