"""Every request passes here first: its id, who asks, how often, how large, how slow.

In this order: an id; a host and an origin that may ask; a token; the rate; the size of the body
and the time it takes. Then the request is routed, and its answer gets the security headers, a
line in the log and its place in the metrics. An unexpected error becomes a 500 that reveals
nothing; the log has the details.

It is plain ASGI, so that a body which is too large is never read.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from driftquilt.errors import StoreError
from driftquilt.server.logs import request_id as logged_id
from driftquilt.server.logs import write_lines
from driftquilt.server.metrics import Metrics
from driftquilt.server.problems import MEDIA_TYPE, Problem
from driftquilt.server.schemas import NAME
from driftquilt.server.settings import ServeSettings
from driftquilt.server.tokens import Token, Tokens

__all__ = ["HEADERS", "RateLimit", "RequestMiddleware"]

_log = logging.getLogger("driftquilt.access")

#: Nothing runs on the page, and nothing is fetched, but what this service itself serves.
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-cache",  # the browser asks each time, and the ETag answers
}
#: Paths that need no token: they reveal nothing about any stream.
_OPEN = frozenset({"/", "/healthz", "/readyz", "/openapi.json"})
# Ids and names of streams are logged, and tokens are not.
_ID = re.compile(rb"(?!dq_)[A-Za-z0-9_.-]{8,64}")
_STREAM = re.compile(rf"/v1/streams/(?!dq_)({NAME})(?:/|$)")
_LOCAL = re.compile(r"(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?", re.IGNORECASE)
_MAX_HEADERS = 64
_MAX_HEADER_BYTES = 1 << 15
_MAX_DIGITS = 20
_SINGLE = {b"host", b"authorization", b"content-type", b"content-length", b"idempotency-key"}
_FORWARDED = {
    b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto",
    b"x-real-ip",
}  # fmt: skip
_DRAIN_BYTES = 1 << 26  # of a refused body, so that the answer can be read
_DRAIN_SECONDS = 1.0
_HUNG_UP = 499  # in the log alone
_LOG_PAUSE = 0.1  # seconds; a write for each line would cost more than a prediction
_BURST = 2.0  # seconds' worth of requests
_HEADERS = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
_CHALLENGE = {"WWW-Authenticate": 'Bearer realm="driftquilt"'}


#: Who asks without a token: anyone on this machine, or nobody in particular.
_ANYONE = Token("", frozenset({"admin"}), "", "")
_NOBODY = Token("", frozenset(), "", "")


class RateLimit:
    """A token bucket per caller, which holds two seconds' worth of requests.

    >>> limit = RateLimit(2.0, clock=lambda: 0.0)
    >>> for _ in range(4):
    ...     limit.expect("app")
    >>> limit.expect("app")
    Traceback (most recent call last):
    driftquilt.server.problems.Problem: at most 2 requests a second are answered
    """

    def __init__(self, per_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second, self._clock = per_second, clock
        self._left: dict[str, tuple[float, float]] = {}  # requests, and when counted

    def expect(self, caller: str) -> None:
        """Refuse a request too many."""
        now = self._clock()
        capacity = max(1.0, self._per_second * _BURST)
        left, then = self._left.get(caller, (capacity, now))
        left = min(capacity, left + (now - then) * self._per_second)
        if left < 1:
            wait = max(1, math.ceil((1 - left) / self._per_second))
            raise Problem(
                "rate-exceeded",
                f"at most {self._per_second:g} requests a second are answered",
                {"Retry-After": str(wait)},
            )
        self._left[caller] = (left - 1, now)


class RequestMiddleware:
    """The application behind its checks."""

    def __init__(self, settings: ServeSettings, tokens: Tokens, metrics: Metrics) -> None:
        self._settings, self._tokens, self._metrics = settings, tokens, metrics
        self._is_loopback = settings.is_loopback
        self._rate_limit = RateLimit(settings.rate)
        self._lines: list[dict[str, Any]] = []  # of the log, to be written
        self.stopping = False

    def wrap(self, app: ASGIApp) -> ASGIApp:
        """Stand before an application."""
        self._app = app
        return self

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = _Exchange(scope, receive, send, self._settings)
        logged_id.set(exchange.request_id)
        try:
            caller = self._admit(scope, exchange.headers)
            scope["state"] = {**scope.get("state", {}), "caller": caller}
            exchange.expect_size()
            await self._app(scope, exchange.receive, exchange.send)
        except Problem as problem:
            await exchange.refuse(problem)
        except StoreError as error:
            _log.warning("the store failed: %s", error, extra={"path": scope["path"]})
            await exchange.refuse(
                Problem("stream-failed", "the stream cannot be read at the moment")
            )
        except asyncio.CancelledError:
            if not self.stopping:
                raise
            await exchange.refuse(_stopping(), drain=False)  # `drain_seconds` are over
        except ClientDisconnect:
            exchange.status = _HUNG_UP
        except Exception:
            _log.exception("a request failed", extra={"path": scope["path"]})
            await exchange.refuse(
                Problem("internal", "the log of the service has the reason under the request_id")
            )
        self._record(scope, exchange)

    def goes_on(self, caller: Token) -> bool:
        """Return whether an endless answer may go on: its token is there, and the service."""
        allowed = self._is_free() if caller is _ANYONE else caller in self._tokens
        return allowed and not self.stopping

    def flush_log(self) -> None:
        """Write the lines that wait."""
        lines, self._lines = self._lines, []
        write_lines(lines)

    def _is_free(self) -> bool:
        """Return whether no token is needed."""
        return self._is_loopback and not self._tokens.were_made

    def _admit(self, scope: Scope, headers: dict[bytes, bytes]) -> Token:
        if self.stopping:
            raise _stopping()
        _expect_headers(scope["headers"])
        if b"transfer-encoding" in headers and b"content-length" in headers:
            raise Problem("request-malformed", "the length of the body is given twice")
        path, free = scope["path"], self._is_free()
        if free:  # a page of another site must not reach it through the browser
            _expect_local(headers)
        if path in _OPEN or path.startswith("/static/"):
            return _ANYONE if free else _NOBODY
        caller = _ANYONE if free else self._authenticate(headers)
        self._rate_limit.expect(caller.name)
        return caller

    def _authenticate(self, headers: dict[bytes, bytes]) -> Token:
        kind, _, secret = headers.get(b"authorization", b"").partition(b" ")
        if kind.lower() != b"bearer" or not secret:
            raise Problem(
                "token-missing", "send the header Authorization: Bearer and a token", _CHALLENGE
            )
        token = self._tokens.find(secret.strip().decode("latin-1"))
        if token is None:
            raise Problem("token-unknown", "there is no such token, or it was revoked", _CHALLENGE)
        return token

    def _record(self, scope: Scope, exchange: _Exchange) -> None:
        """Count the request, and log it."""
        route = getattr(scope.get("route"), "path", None) or "other"
        seconds = time.perf_counter() - exchange.start
        self._metrics.count_request(scope["method"], route, exchange.status, seconds)
        if not _log.isEnabledFor(logging.INFO):
            return
        caller: Token | None = scope.get("state", {}).get("caller")
        line: dict[str, Any] = {
            "time": datetime.now(UTC).isoformat(timespec="milliseconds"), "level": "info",
            "logger": _log.name, "message": f"{scope['method']} {route} {exchange.status}",
            "request_id": exchange.request_id, "seconds": round(seconds, 6),
            "caller": caller.name or None if caller else None,
        }  # fmt: skip
        stream = _STREAM.match(scope["path"])
        if stream is not None:
            line["stream"] = stream[1]
        if not self._lines:
            asyncio.get_running_loop().call_later(_LOG_PAUSE, self.flush_log)
        self._lines.append(line)


class _Exchange:
    """One request on its way in, and its answer on the way out."""

    def __init__(self, scope: Scope, receive: Receive, send: Send, settings: ServeSettings) -> None:
        self._receive, self._send = receive, send
        self._max_bytes, self._seconds = settings.max_body_bytes, settings.body_seconds
        self.start = time.perf_counter()
        self.headers: dict[bytes, bytes] = dict(scope["headers"])
        sent_id = self.headers.get(b"x-request-id", b"")
        self.request_id = sent_id.decode() if _ID.fullmatch(sent_id) else os.urandom(8).hex()
        self.status = 0
        self._n_bytes = 0
        self._complete = False  # whether the whole body was received

    def expect_size(self) -> None:
        """Refuse a body that says it is too large."""
        length = self.headers.get(b"content-length")
        if length is not None:
            if not length.isdigit() or len(length) > _MAX_DIGITS:
                raise Problem("request-malformed", "Content-Length is not a number")
            self._expect_bytes(int(length))

    def _expect_bytes(self, n_bytes: int) -> None:
        if n_bytes > self._max_bytes:
            raise Problem("body-too-large", f"a body has at most {self._max_bytes} bytes")

    async def receive(self) -> Message:
        """Return the next part of the body, within size and time."""
        if self._complete:
            return await self._receive()  # a client that goes away
        left = self._seconds - (time.perf_counter() - self.start)
        try:
            async with asyncio.timeout(left):
                message = await self._receive()
        except TimeoutError:
            raise Problem(
                "body-slow", f"a body has to arrive within {self._seconds:g} seconds"
            ) from None
        if message["type"] == "http.request":
            self._n_bytes += len(message.get("body", b""))
            self._complete = not message.get("more_body", False)
            self._expect_bytes(self._n_bytes)
        return message

    async def send(self, message: Message) -> None:
        """Send a part of the answer, with the security headers."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = [*message["headers"], *_HEADERS]
            headers.append((b"x-request-id", self.request_id.encode()))
            message = {**message, "headers": headers}
        await self._send(message)

    async def refuse(self, problem: Problem, *, drain: bool = True) -> None:
        """Send a problem, unless the answer has begun."""
        if self.status:
            return
        if drain and not self._complete:
            await self._drain()
        body = problem.to_bytes(self.request_id)
        headers = [
            (b"content-type", MEDIA_TYPE.encode()),
            (b"content-length", str(len(body)).encode()),
            *((name.lower().encode(), value.encode()) for name, value in problem.headers.items()),
        ]
        if not self._complete:
            headers.append((b"connection", b"close"))
        await self.send(
            {"type": "http.response.start", "status": problem.status, "headers": headers}
        )
        await self.send({"type": "http.response.body", "body": body})

    async def _drain(self) -> None:
        """Discard the rest of a body for a moment: who still sends does not read."""
        if self.headers.get(b"content-length", b"0") == b"0" and (
            b"transfer-encoding" not in self.headers
        ):
            self._complete = True
            return
        try:
            async with asyncio.timeout(_DRAIN_SECONDS):
                while self._n_bytes < _DRAIN_BYTES:
                    message = await self._receive()
                    self._n_bytes += len(message.get("body", b""))
                    if message["type"] != "http.request" or not message.get("more_body", False):
                        self._complete = message["type"] == "http.request"
                        return
        except TimeoutError:
            return


def _stopping() -> Problem:
    return Problem("stopping", "the service is being stopped", {"Retry-After": "5"})


def _expect_headers(headers: list[tuple[bytes, bytes]]) -> None:
    if len(headers) > _MAX_HEADERS:
        raise Problem("headers-too-large", f"a request has at most {_MAX_HEADERS} headers")
    if sum(len(name) + len(value) for name, value in headers) > _MAX_HEADER_BYTES:
        raise Problem("headers-too-large", f"headers have at most {_MAX_HEADER_BYTES} bytes")
    single = [name for name, _ in headers if name in _SINGLE]
    if len(single) > len(set(single)):
        raise Problem("request-malformed", "duplicate header")


def _expect_local(headers: dict[bytes, bytes]) -> None:
    if not _FORWARDED.isdisjoint(headers):  # whoever is behind a proxy may be anywhere
        raise Problem(
            "host-unknown", "without tokens the service answers no proxy; create a token first"
        )
    host = headers.get(b"host", b"").decode("latin-1")
    if not _LOCAL.fullmatch(host):
        raise Problem("host-unknown", "without tokens the service answers to localhost only")
    origin = headers.get(b"origin", b"").decode("latin-1")
    foreign = origin and origin.rpartition("://")[2] != host
    if foreign or headers.get(b"sec-fetch-site") == b"cross-site":
        raise Problem("origin-foreign", "pages of other sites may not use this service")
