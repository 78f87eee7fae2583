"""The client for asyncio: the same operations, to be awaited.

    async with AsyncClient("http://127.0.0.1:8321") as client:
        clicks = client.stream("clicks")
        told = await clicks.predict([{"age": 31, "city": "Rome"}])
        async for event in clicks.events(live=True):
            print(event["text"])

Whoever leaves such a loop early closes it with `aclose`, as any of asyncio's generators.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import aclosing
from types import TracebackType
from typing import Any

import httpx

from driftquilt.client.connection import (
    Connection,
    as_live_request,
    as_request,
    behind,
    ended,
    events_in,
)
from driftquilt.client.frames import FrameReader
from driftquilt.client.operations import Call, Sender, Service
from driftquilt.client.retrying import as_answer

__all__ = ["AsyncClient"]

Answer = dict[str, Any]
Events = AsyncGenerator[Answer, None]


class AsyncClient(Service[Coroutine[Any, Any, Answer], Coroutine[Any, Any, bytes], Events]):
    """`Client` for asyncio: each method gives something to await, `events` to loop over.

    The arguments are those of `Client`. Use it as a context manager, or await `aclose`.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8321",
        token: str | None = None,
        *,
        timeout: float = 30.0,
        retries: int | None = None,
    ) -> None:
        self._http = _Sender(Connection(url, token, timeout, retries))
        super().__init__(self._http)

    def __repr__(self) -> str:
        return f"AsyncClient({self._http!r})"

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._http.aclose()


class _Sender(Sender[Coroutine[Any, Any, Answer], Coroutine[Any, Any, bytes], Events]):
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._http = httpx.AsyncClient(**connection.options())
        self.aclose = self._http.aclose

    def __repr__(self) -> str:
        return repr(self._connection.url)

    async def answer(self, call: Call) -> Answer:
        return as_answer(await self.content(call))

    async def content(self, call: Call) -> bytes:
        tries = self._connection.tries()
        while True:
            outcome: httpx.Response | Exception
            try:
                outcome = await self._http.request(**as_request(call))
            except httpx.TransportError as error:
                outcome = error
            pause = tries.pause(call, outcome)
            if isinstance(outcome, httpx.Response) and pause is None:
                return outcome.content if outcome.is_success else b""
            await asyncio.sleep(pause or 0.0)

    def events(self, call: Call, *, live: bool) -> Events:
        return self._live(call) if live else self._pages(call)

    async def _pages(self, call: Call) -> Events:
        page = await self.answer(call)
        for event in page["events"]:
            yield event
        while page["next"] is not None:
            page = await self.answer(behind(call, page["next"]))
            for event in page["events"]:
                yield event

    async def _live(self, call: Call) -> Events:
        tries = self._connection.tries()
        while True:
            outcome: httpx.Response | Exception = ended()
            try:
                async with aclosing(self._listen(call)) as heard:
                    async for events in heard:
                        tries.begin_anew()
                        for event in events:
                            call = behind(call, event["number"])
                            yield event
            except httpx.TransportError as error:
                outcome = error
            except httpx.HTTPStatusError as refused:
                outcome = refused.response
            await asyncio.sleep(tries.pause(call, outcome) or 0.0)

    async def _listen(self, call: Call) -> AsyncGenerator[list[Answer], None]:
        """What one connection brings, as long as it lasts."""
        reader = FrameReader()
        async with self._http.stream(**as_live_request(call, self._connection)) as response:
            if not response.is_success:
                await response.aread()
                response.raise_for_status()
            async for chunk in response.aiter_bytes():
                yield events_in(reader.feed(chunk))
