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

Answers are the service's JSON, as dicts. Whoever leaves an asynchronous loop over events early
closes it with `aclose`, as any asynchronous generator.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Coroutine, Generator
from contextlib import aclosing
from types import TracebackType
from typing import Any

import httpx

from driftquilt.client.connection import (
    Connection,
    EventReader,
    as_answer,
    as_live_request,
    as_request,
    connection_lost,
    events_in,
    resume_after,
)
from driftquilt.client.operations import Call, Sender, Service

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
        self._http = _SyncSender(Connection(url, token, timeout, retries))
        super().__init__(self._http)

    def __repr__(self) -> str:
        return f"Client({self._http!r})"

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._http.close()


class _SyncSender(Sender[Answer, bytes, Events]):
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._http = httpx.Client(**connection.options())
        self.close = self._http.close

    def __repr__(self) -> str:
        return repr(self._connection.url)

    def answer(self, call: Call) -> Answer:
        return as_answer(self.content(call))

    def content(self, call: Call) -> bytes:
        attempts = self._connection.retries_of_call()
        while True:
            outcome: httpx.Response | Exception
            try:
                outcome = self._http.request(**as_request(call))
            except httpx.TransportError as error:
                outcome = error
            pause = attempts.pause(call, outcome)
            if isinstance(outcome, httpx.Response) and pause is None:
                return outcome.content if outcome.is_success else b""
            time.sleep(pause or 0.0)

    def events(self, call: Call, *, live: bool) -> Events:
        return self._live(call) if live else self._pages(call)

    def _pages(self, call: Call) -> Events:
        page = self.answer(call)
        yield from page["events"]
        while page["next"] is not None:
            page = self.answer(resume_after(call, page["next"]))
            yield from page["events"]

    def _live(self, call: Call) -> Events:
        attempts = self._connection.retries_of_call()
        while True:
            outcome: httpx.Response | Exception = connection_lost()
            try:
                for events in self._listen(call):
                    attempts.reset()
                    for event in events:
                        call = resume_after(call, event["number"])
                        yield event
            except httpx.TransportError as error:
                outcome = error
            except httpx.HTTPStatusError as refused:
                outcome = refused.response
            time.sleep(attempts.pause(call, outcome) or 0.0)

    def _listen(self, call: Call) -> Generator[list[Answer], None, None]:
        """Yield what one connection brings, as long as it lasts."""
        reader = EventReader()
        with self._http.stream(**as_live_request(call, self._connection)) as response:
            if not response.is_success:
                response.read()
                response.raise_for_status()
            for chunk in response.iter_bytes():
                yield events_in(reader.feed(chunk))


class AsyncClient(Service[Coroutine[Any, Any, Answer], Coroutine[Any, Any, bytes], AsyncEvents]):
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
        self._http = _AsyncSender(Connection(url, token, timeout, retries))
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


class _AsyncSender(Sender[Coroutine[Any, Any, Answer], Coroutine[Any, Any, bytes], AsyncEvents]):
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._http = httpx.AsyncClient(**connection.options())
        self.aclose = self._http.aclose

    def __repr__(self) -> str:
        return repr(self._connection.url)

    async def answer(self, call: Call) -> Answer:
        return as_answer(await self.content(call))

    async def content(self, call: Call) -> bytes:
        attempts = self._connection.retries_of_call()
        while True:
            outcome: httpx.Response | Exception
            try:
                outcome = await self._http.request(**as_request(call))
            except httpx.TransportError as error:
                outcome = error
            pause = attempts.pause(call, outcome)
            if isinstance(outcome, httpx.Response) and pause is None:
                return outcome.content if outcome.is_success else b""
            await asyncio.sleep(pause or 0.0)

    def events(self, call: Call, *, live: bool) -> AsyncEvents:
        return self._live(call) if live else self._pages(call)

    async def _pages(self, call: Call) -> AsyncEvents:
        page = await self.answer(call)
        for event in page["events"]:
            yield event
        while page["next"] is not None:
            page = await self.answer(resume_after(call, page["next"]))
            for event in page["events"]:
                yield event

    async def _live(self, call: Call) -> AsyncEvents:
        attempts = self._connection.retries_of_call()
        while True:
            outcome: httpx.Response | Exception = connection_lost()
            try:
                async with aclosing(self._listen(call)) as batches:
                    async for events in batches:
                        attempts.reset()
                        for event in events:
                            call = resume_after(call, event["number"])
                            yield event
            except httpx.TransportError as error:
                outcome = error
            except httpx.HTTPStatusError as refused:
                outcome = refused.response
            await asyncio.sleep(attempts.pause(call, outcome) or 0.0)

    async def _listen(self, call: Call) -> AsyncGenerator[list[Answer], None]:
        """Yield what one connection brings, as long as it lasts."""
        reader = EventReader()
        async with self._http.stream(**as_live_request(call, self._connection)) as response:
            if not response.is_success:
                await response.aread()
                response.raise_for_status()
            async for chunk in response.aiter_bytes():
                yield events_in(reader.feed(chunk))
