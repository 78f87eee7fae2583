"""Events as they happen, by server-sent events, with the stream's status at most once a second."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable

import orjson

from driftquilt.server.served import Served
from driftquilt.server.told import tell_event

__all__ = ["live"]

_QUIET = 15.0  # seconds until a line that says nothing, so that nobody in between hangs up
_LOOK = 1.0  # between two of status, and two looks whether to go on


async def live(served: Served, after: int, goes_on: Callable[[], bool]) -> AsyncIterator[bytes]:
    """What happened after an event, and what happens from now on."""
    yield b": driftquilt\n\n"
    seen: tuple[object, ...] = ()
    said = time.monotonic()
    while goes_on():
        changed, view = served.changed, served.view
        for event in view.events_after(after):
            after = event.number
            data = tell_event(event)
            yield _message(data["event"], orjson.dumps(data), event.number)
        trouble = served.feed()["trouble"] if served.feed else None
        now = (view, served.failure, served.intake.waiting.n_rows, trouble)
        if now != seen:
            yield _message("status", orjson.dumps(served.status()))
            seen, said = now, time.monotonic()
            await asyncio.sleep(_LOOK)
        elif time.monotonic() - said > _QUIET:
            yield b": still here\n\n"
            said = time.monotonic()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LOOK):
                await changed.wait()


def _message(kind: str, data: bytes, number: int | None = None) -> bytes:
    head = b"" if number is None else b"id: %d\n" % number
    return head + b"event: " + kind.encode() + b"\ndata: " + data + b"\n\n"
