"""The client that waits for each answer.

    client = Client("http://127.0.0.1:8321")
    client.create_stream("clicks")
    clicks = client.stream("clicks")
    told = clicks.predict([{"age": 31, "city": "Rome"}])
    clicks.label(told["ids"], ["yes"])

Answers are what the service says, as dicts.
"""

from __future__ import annotations

import time
from collections.abc import Generator
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

__all__ = ["Client"]

Answer = dict[str, Any]
Events = Generator[Answer, None, None]


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
        self._http = _Sender(Connection(url, token, timeout, retries))
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


class _Sender(Sender[Answer, bytes, Events]):
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._http = httpx.Client(**connection.options())
        self.close = self._http.close

    def __repr__(self) -> str:
        return repr(self._connection.url)

    def answer(self, call: Call) -> Answer:
        return as_answer(self.content(call))

    def content(self, call: Call) -> bytes:
        tries = self._connection.tries()
        while True:
            outcome: httpx.Response | Exception
            try:
                outcome = self._http.request(**as_request(call))
            except httpx.TransportError as error:
                outcome = error
            pause = tries.pause(call, outcome)
            if isinstance(outcome, httpx.Response) and pause is None:
                return outcome.content if outcome.is_success else b""
            time.sleep(pause or 0.0)

    def events(self, call: Call, *, live: bool) -> Events:
        return self._live(call) if live else self._pages(call)

    def _pages(self, call: Call) -> Events:
        page = self.answer(call)
        yield from page["events"]
        while page["next"] is not None:
            page = self.answer(behind(call, page["next"]))
            yield from page["events"]

    def _live(self, call: Call) -> Events:
        tries = self._connection.tries()
        while True:
            outcome: httpx.Response | Exception = ended()
            try:
                for events in self._listen(call):
                    tries.begin_anew()
                    for event in events:
                        call = behind(call, event["number"])
                        yield event
            except httpx.TransportError as error:
                outcome = error
            except httpx.HTTPStatusError as refused:
                outcome = refused.response
            time.sleep(tries.pause(call, outcome) or 0.0)

    def _listen(self, call: Call) -> Generator[list[Answer], None, None]:
        """What one connection brings, as long as it lasts."""
        reader = FrameReader()
        with self._http.stream(**as_live_request(call, self._connection)) as response:
            if not response.is_success:
                response.read()
                response.raise_for_status()
            for chunk in response.iter_bytes():
                yield events_in(reader.feed(chunk))
