"""HTTP as it comes over a socket: a malformed or slow request gets a problem as well.

The middleware sees requests whose heads could be read. This is for the others: a head that is not
HTTP, that does not end, or that takes longer than `head_seconds`, for connections beyond the
limit, and for more than 16 requests that wait on one connection. They are answered with a problem
and closed. A connection that sends nothing is closed after the same time, and so is one whose
client stops reading its answer. (uvicorn has no deadline for heads and answers, reads on while
requests wait, and its `limit_concurrency` answers without a problem and without `Retry-After`.)
"""

from __future__ import annotations

import asyncio
import os
from http import HTTPStatus
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from driftquilt.server.middleware import HEADERS
from driftquilt.server.problems import MEDIA_TYPE, Problem

__all__ = ["HttpProtocol"]

_MAX_HEAD_BYTES = 1 << 18
_MAX_PIPELINED = 16
_MIN_BYTES_PER_SECOND = 1024  # that a client has to take of an answer which is not yet sent


class _Coalescing:
    """A transport that sends the writes of one turn of the loop in one system call.

    uvicorn writes the head of an answer and its body one after the other, which would be two.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._parts: list[bytes] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        """Send soon."""
        if not self._parts:
            self._loop.call_soon(self._send)
        self._parts.append(data)

    def close(self) -> None:
        """Send, and close."""
        self._send()
        self._transport.close()

    def _send(self) -> None:
        parts, self._parts = self._parts, []
        if parts and not self._transport.is_closing():
            self._transport.write(b"".join(parts))


class HttpProtocol(HttpToolsProtocol):
    """uvicorn's protocol with limits on the head of a request and on connections."""

    def __init__(self, *args: Any, head_seconds: float, max_connections: int, **named: Any) -> None:
        super().__init__(*args, **named)
        self._head_seconds, self._max_connections = head_seconds, max_connections
        self._timer: asyncio.TimerHandle | None = None
        self._write_timer: asyncio.TimerHandle | None = None
        self._in_head = False
        self._n_bytes = 0  # of a head that has not ended

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(cast("asyncio.Transport", _Coalescing(transport, self.loop)))
        self._start_timer()
        if len(self.connections) > self._max_connections:
            self._refuse(
                Problem(
                    "too-many-connections",
                    f"at most {self._max_connections} connections are open at a time",
                    {"Retry-After": "5"},
                )
            )

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._stop_write_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if not self._in_head:
            if self._timer is None and self._is_idle():  # an empty line is not a request
                self._start_timer()
            return
        self._n_bytes += len(data)
        if self._n_bytes > _MAX_HEAD_BYTES:
            self._refuse(Problem("headers-too-large", "the head of the request is too long"))
        elif self._timer is None:  # most heads come whole, and need none
            self._start_timer()

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._in_head, self._n_bytes = True, 0

    def on_headers_complete(self) -> None:
        self._in_head = False
        self._stop_timer()
        super().on_headers_complete()
        if self._is_flooded():  # raising stops the parser, whatever else has come
            raise ConnectionAbortedError

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002
        if self._is_flooded():
            self.pipeline.clear()
            detail = f"at most {_MAX_PIPELINED} requests may wait on one connection"
            self._refuse(Problem("rate-exceeded", detail))
        else:
            self._refuse(Problem("request-malformed", "malformed HTTP/1.1 request"))

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch_writing()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_write_timer()

    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing: a request to become a web socket is answered as it is."""

    def _is_idle(self) -> bool:
        """Return whether no request is under way, and nothing else ends the connection."""
        quiet = self.cycle is None or self.cycle.response_complete
        return quiet and self.timeout_keep_alive_task is None

    def _is_flooded(self) -> bool:
        return len(self.pipeline) > _MAX_PIPELINED

    def _watch_writing(self) -> None:
        """Hang up if the client does not go on reading what is left to send."""
        left = self.transport.get_write_buffer_size()
        self._write_timer = self.loop.call_later(self._head_seconds, self._expect_reading, left)

    def _expect_reading(self, left_before: int) -> None:
        taken = left_before - self.transport.get_write_buffer_size()
        if taken < min(left_before, self._head_seconds * _MIN_BYTES_PER_SECOND):
            self._write_timer = None
            self.transport.abort()
        else:
            self._watch_writing()

    def _stop_write_timer(self) -> None:
        if self._write_timer is not None:
            self._write_timer.cancel()
            self._write_timer = None

    def _start_timer(self) -> None:
        self._timer = self.loop.call_later(self._head_seconds, self._time_out)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _time_out(self) -> None:
        self._timer = None
        if self._in_head:
            seconds = f"{self._head_seconds:g} seconds"
            self._refuse(
                Problem("request-slow", f"the head of a request has to arrive within {seconds}")
            )
        else:
            self.transport.close()

    def _refuse(self, problem: Problem) -> None:
        self._in_head = False
        self._stop_timer()
        if self.transport.is_closing():
            return
        request_id = os.urandom(8).hex()
        body = problem.to_bytes(request_id)
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
        if self.transport.get_write_buffer_size() and self._write_timer is None:
            self._watch_writing()
