"""The two clients: `Client` waits for each answer, `AsyncClient` is awaited.

    client = Client("http://127.0.0.1:8321")
    client.create_stream("clicks")
    clicks = client.stream("clicks")
    predictions = clicks.predict([{"age": 31, "city": "Rome"}])
    clicks.label(predictions["ids"], ["yes"])

    async with AsyncClient("http://127.0.0.1:8321") as client:
        clicks = client.stream("clicks")
        predictions = await clicks.predict([{"age": 31, "city": "Rome"}])
        async for event in clicks.events(live=True):
            print(event["text"])

Answers are the service's JSON, as dicts. To leave an asynchronous loop over events early, close it
with `aclose`, as any asynchronous generator.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Coroutine, Generator
from typing import Any

import httpx

from driftquilt.client.connection import (
    Connection,
    EventReader,
    Retries,
    as_answer,
    connection_lost,
    resume_after,
)
from driftquilt.client.operations import Call, Service

__all__ = ["AsyncClient", "Client"]

Answer = dict[str, Any]
Events = Generator[Answer, None, None]
AsyncEvents = AsyncGenerator[Answer, None]


class Client(Service[Answer, bytes, Events]):
    """A service's operations as plain calls.

    Answers are dicts. What the service refuses is a `ServiceError`. Use it as a context manager,
    or call `close`.

    Parameters
    ----------
    url
        The service's address.
    token
        What the service knows the caller by; default: the variable `DRIFTQUILT_TOKEN`.
    timeout
        Seconds that a connection or an answer may take.
    retries
        How often a call is repeated when the connection is lost or the service is busy; default:
        5 times, and for half a minute while connections are refused, as during a restart.

    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8321",
        token: str | None = None,
        *,
        timeout: float = 30.0,
        retries: int | None = None,
    ) -> None:
        self._connection = Connection(url, token, timeout, retries)
        self._http = httpx.Client(**self._connection.options())

    def __repr__(self) -> str:
        return f"Client({self._connection.url!r})"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()

    def _answer(self, call: Call) -> Answer:
        return as_answer(self._content(call))

    def _content(self, call: Call) -> bytes:
        retries = Retries(self._connection.retries)
        while True:
            outcome: httpx.Response | Exception
            try:
                outcome = self._http.request(**call.request())
            except httpx.TransportError as error:
                outcome = error
            pause = retries.pause(call, outcome)
            if isinstance(outcome, httpx.Response) and pause is None:
                return outcome.content if outcome.is_success else b""
            time.sleep(pause or 0.0)

    def _events(self, call: Call, *, live: bool) -> Events:
        return self._live(call) if live else self._pages(call)

    def _pages(self, call: Call) -> Events:
        page = self._answer(call)
        yield from page["events"]
        while page["next"] is not None:
            page = self._answer(resume_after(call, page["next"]))
            yield from page["events"]

    def _live(self, call: Call) -> Events:
        retries = Retries(self._connection.retries)
        while True:
            outcome: httpx.Response | Exception = connection_lost()
            try:
                with self._http.stream(**self._connection.live_request(call)) as response:
                    if not response.is_success:
                        response.read()
                        response.raise_for_status()
                    reader = EventReader()
                    for chunk in response.iter_bytes():
                        retries.reset()
                        for event in reader.feed(chunk):
                            call = resume_after(call, event["number"])
                            yield event
            except httpx.TransportError as error:
                outcome = error
            except httpx.HTTPStatusError as refused:
                outcome = refused.response
            time.sleep(retries.pause(call, outcome) or 0.0)


class AsyncClient(Service[Coroutine[Any, Any, Answer], Coroutine[Any, Any, bytes], AsyncEvents]):
    """`Client` for asyncio: await each method, and loop over `events`.

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
        self._connection = Connection(url, token, timeout, retries)
        self._http = httpx.AsyncClient(**self._connection.options())

    def __repr__(self) -> str:
        return f"AsyncClient({self._connection.url!r})"

    async def __aenter__(self) -> AsyncClient:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        await self._http.aclose()

    async def _answer(self, call: Call) -> Answer:
        return as_answer(await self._content(call))

    async def _content(self, call: Call) -> bytes:
        retries = Retries(self._connection.retries)
        while True:
            outcome: httpx.Response | Exception
            try:
                outcome = await self._http.request(**call.request())
            except httpx.TransportError as error:
                outcome = error
            pause = retries.pause(call, outcome)
            if isinstance(outcome, httpx.Response) and pause is None:
                return outcome.content if outcome.is_success else b""
            await asyncio.sleep(pause or 0.0)

    def _events(self, call: Call, *, live: bool) -> AsyncEvents:
        return self._live(call) if live else self._pages(call)

    async def _pages(self, call: Call) -> AsyncEvents:
        page = await self._answer(call)
        for event in page["events"]:
            yield event
        while page["next"] is not None:
            page = await self._answer(resume_after(call, page["next"]))
            for event in page["events"]:
                yield event

    async def _live(self, call: Call) -> AsyncEvents:
        retries = Retries(self._connection.retries)
        while True:
            outcome: httpx.Response | Exception = connection_lost()
            try:
                async with self._http.stream(**self._connection.live_request(call)) as response:
                    if not response.is_success:
                        await response.aread()
                        response.raise_for_status()
                    reader = EventReader()
                    async for chunk in response.aiter_bytes():
                        retries.reset()
                        for event in reader.feed(chunk):
                            call = resume_after(call, event["number"])
                            yield event
            except httpx.TransportError as error:
                outcome = error
            except httpx.HTTPStatusError as refused:
                outcome = refused.response
            await asyncio.sleep(retries.pause(call, outcome) or 0.0)
