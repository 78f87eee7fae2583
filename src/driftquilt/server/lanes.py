"""The operations that are asked all the time, without the way through the framework.

FastAPI documents them like all others and could answer them as well; but finding the route, and
the parameters that it takes, would cost more than the prediction.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from fastapi import Request, Response
from starlette.requests import ClientDisconnect

from driftquilt.server.gate import ROUTE, App, Receive, Scope, Send
from driftquilt.server.names import NAME

__all__ = ["Lanes"]

Handler: TypeAlias = Callable[[Request, str], Awaitable[Response]]
_PATH = re.compile(rf"/v1/streams/({NAME[1:-1]})/([a-z]+)")


class _Request(Request):
    """A request whose body is read without a detour."""

    async def body(self) -> bytes:
        if not hasattr(self, "_body"):
            parts = []
            more = True
            while more:
                message = await self.receive()
                if message["type"] == "http.disconnect":
                    raise ClientDisconnect
                parts.append(message.get("body", b""))
                more = message.get("more_body", False)
            self._body = parts[0] if len(parts) == 1 else b"".join(parts)
        return self._body


class Lanes:
    """An application with short ways to `POST /v1/streams/{name}/<word>`."""

    def __init__(self, app: App, handlers: dict[str, Handler]) -> None:
        self._app, self._handlers = app, handlers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        match = _PATH.fullmatch(scope["path"]) if scope.get("method") == "POST" else None
        handler = self._handlers.get(match[2]) if match else None
        if handler is None or match is None:
            await self._app(scope, receive, send)
            return
        scope[ROUTE] = f"/v1/streams/{{name}}/{match[2]}"
        response = await handler(_Request(scope, receive), match[1])
        await response(scope, receive, send)
