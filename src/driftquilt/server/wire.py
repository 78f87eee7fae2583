"""HTTP as it comes over a socket: what is no request, or comes too slowly, is a problem too.

The gate sees requests whose heads could be read. This is for the others: a head that is no HTTP,
that does not end, or that takes longer than `head_seconds`, and for connections beyond the most
there may be. They are answered as every problem is, and hung up on. A connection that says nothing
at all is closed after the same time.
"""

from __future__ import annotations

import asyncio
import os
from http import HTTPStatus
from typing import Any, cast

import orjson
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from driftquilt.server.cork import Corked
from driftquilt.server.page import HEADERS
from driftquilt.server.problems import MEDIA_TYPE, Problem

__all__ = ["Http"]

_MOST_HEAD_BYTES = 1 << 18


class Http(HttpToolsProtocol):
    """uvicorn's protocol with bounds on the head of a request."""

    def __init__(
        self, *given: Any, head_seconds: float, max_connections: int, **named: Any
    ) -> None:
        super().__init__(*given, **named)
        self._head_seconds, self._max_connections = head_seconds, max_connections
        self._timer: asyncio.TimerHandle | None = None
        self._in_head = False
        self._n_bytes = 0  # of a head that has not ended

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast("asyncio.Transport", Corked(transport, self.loop)))
        self._begin_timer()
        if len(self.connections) > self._max_connections:
            self._refuse(
                Problem(
                    "too-many-connections",
                    f"at most {self._max_connections} connections are open at a time",
                    {"Retry-After": "5"},
                )
            )

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self._in_head:
            if self._timer is None and self._is_idle():  # an empty line is no request
                self._begin_timer()
            return
        self._n_bytes += len(data)
        if self._n_bytes > _MOST_HEAD_BYTES:
            self._refuse(Problem("headers-too-large", "the head of a request is short"))
        elif self._timer is None:  # most heads come whole, and need none
            self._begin_timer()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._n_bytes = True, 0

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._end_timer()
        super().on_headers_complete()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        self._refuse(Problem("request-malformed", "this is no request as HTTP/1.1 has it"))

    def _unsupported_upgrade_warning(self) -> None:
        """Nothing: a request that would rather be a web socket is answered as it is."""

    def _is_idle(self) -> bool:
        """Whether no request is under way, and nothing else ends the connection some time."""
        quiet = self.cycle is None or self.cycle.response_complete
        return quiet and self.timeout_keep_alive_task is None

    def _begin_timer(self) -> None:
        self._timer = self.loop.call_later(self._head_seconds, self._give_up)

    def _end_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._timer = None
        if self._in_head:
            seconds = f"{self._head_seconds:g} seconds"
            self._refuse(Problem("request-slow", f"the head of a request comes within {seconds}"))
        else:
            self.transport.close()

    def _refuse(self, problem: Problem) -> None:
        self._in_head = False
        self._end_timer()
        if self.transport.is_closing():
            return
        request_id = os.urandom(8).hex()
        body = orjson.dumps(problem.to_json(request_id))
        headers = {
            **HEADERS,
            **problem.headers,
            "Content-Type": MEDIA_TYPE,
            "Content-Length": str(len(body)),
            "X-Request-Id": request_id,
            "Connection": "close",
        }
        status = HTTPStatus(problem.status)
        lines = [f"HTTP/1.1 {status} {status.phrase}"]
        lines += [f"{name.lower()}: {value}" for name, value in headers.items()]
        self.transport.write("\r\n".join([*lines, "", ""]).encode() + body)
        self.transport.close()
