"""The service in this process, for many quick requests, and raw bytes to one that runs.

with in_process(folder) as service:
    service.post("/v1/streams", json={"name": "a"})
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any, NamedTuple

import httpx
from anyio.from_thread import BlockingPortal, start_blocking_portal

from driftquilt.server.app import Service, make_app
from driftquilt.server.settings import load_settings
from driftquilt.server.tokens import Tokens

BASE = "http://127.0.0.1:8321"


class InProcess:
    """A service that lives, without a socket; requests come from the thread of the test."""

    def __init__(self, app: Service, portal: BlockingPortal) -> None:
        self.app, self._portal = app, portal
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        self._client = httpx.AsyncClient(transport=transport, base_url=BASE)

    @property
    def tokens(self) -> Tokens:
        return Tokens(self.app.settings.store / "tokens.json")

    def request(self, method: str, path: str, **given: Any) -> httpx.Response:
        return self._portal.call(partial(self._client.request, method, path, **given))

    def get(self, path: str, **given: Any) -> httpx.Response:
        return self.request("GET", path, **given)

    def post(self, path: str, **given: Any) -> httpx.Response:
        return self.request("POST", path, **given)

    async def live(self, ready: asyncio.Event, stop: asyncio.Event) -> None:
        """From start to stop, by the lifespan protocol of ASGI."""
        begun = False

        async def receive() -> dict[str, str]:
            nonlocal begun
            if not begun:
                begun = True
                return {"type": "lifespan.startup"}
            await stop.wait()
            return {"type": "lifespan.shutdown"}

        async def send(message: Any) -> None:
            assert "failed" not in message["type"], message
            ready.set()

        async with self._client:
            await self.app({"type": "lifespan", "state": {}}, receive, send)


@contextmanager
def in_process(folder: Path, **settings: Any) -> Iterator[InProcess]:
    """A service with its store in this folder."""
    with start_blocking_portal() as portal:
        app = make_app(load_settings(store=folder / "state", **settings))
        service = InProcess(app, portal)
        ready, stop = asyncio.Event(), asyncio.Event()
        life = portal.start_task_soon(service.live, ready, stop)
        portal.call(ready.wait)
        try:
            yield service
        finally:
            portal.call(stop.set)
            life.result()


class Answer(NamedTuple):
    """What came back over a socket."""

    status: int
    headers: dict[str, str]
    body: bytes


def send_raw(port: int, *parts: bytes, seconds: float = 10.0) -> Answer:
    """Send these bytes as they are, and read one answer; status 0 if there is none."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        with suppress(BrokenPipeError, ConnectionResetError):
            for part in parts:
                connection.sendall(part)
        answer = HTTPResponse(connection)
        try:
            answer.begin()
            headers = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, headers, answer.read())
        except (HTTPException, ConnectionResetError):
            return Answer(0, {}, b"")
        finally:
            answer.close()
