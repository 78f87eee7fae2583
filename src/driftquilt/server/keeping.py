"""Predicted rows are written down before their answer goes out, those of many requests at a time.

A request queues its rows and waits; one thread writes what is queued for as long as there is
something, and each write makes durable all that came before it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from driftquilt.errors import StoreError
from driftquilt.server.problems import Problem
from driftquilt.server.waiting import WaitingRows

__all__ = ["Keeper", "Settled", "failed", "settle"]

_log = logging.getLogger("driftquilt.server")
_PAUSE = 0.0005  # seconds between two writes

#: Someone who waits, and what to tell them: an error, or else a value.
Settled = tuple[asyncio.Future[Any], BaseException | None, Any]


class Keeper:
    """Lets rows wait in `waiting`; for one event loop."""

    def __init__(
        self,
        waiting: WaitingRows,
        name: str,
        threads: ThreadPoolExecutor,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._waiting, self._name, self._threads, self._loop = waiting, name, threads, loop
        self._lock = threading.Lock()
        self._kept: list[asyncio.Future[None]] = []
        self._writing = self._closed = False

    async def keep(self, body: bytes, kind: str, n_rows: int) -> list[str]:
        """Let rows wait for their labels; their ids, when they are durable."""
        done = self._loop.create_future()
        with self._lock:
            if self._closed:
                raise Problem("stopping", "the stream is being closed")
            ids = self._waiting.add(body, kind, n_rows)
            self._kept.append(done)
            begins, self._writing = not self._writing, True
        if begins:
            # When all requests that are there by now have been read, they are written together.
            self._loop.call_soon(self._loop.run_in_executor, self._threads, self._write)
        await done
        return ids

    async def close(self) -> None:
        """Take no more, and write what was taken."""
        with self._lock:
            self._closed = True
        while self._writing:
            await asyncio.sleep(0.01)

    def _write(self) -> None:
        """Write what is queued, for as long as there is something; on a thread."""
        while True:
            with self._lock:
                kept, self._kept = self._kept, []
                self._writing = bool(kept)
            if not kept:
                return
            error: BaseException | None = None
            try:
                self._waiting.write()
            except BaseException as unwritten:  # whoever waits is told
                _log.exception("rows cannot be kept", extra={"stream": self._name})
                error = unwritten
            self._loop.call_soon_threadsafe(settle, [(done, error, None) for done in kept])
            time.sleep(_PAUSE)  # so that more requests share the next write


def failed() -> Problem:
    """The store does not take what it should."""
    return Problem("stream-failed", "rows cannot be kept at the moment", {"Retry-After": "5"})


def settle(settled: Sequence[Settled]) -> None:
    """Tell everyone who waits; on the loop."""
    for done, error, value in settled:
        if done.done():  # whoever asked is gone
            continue
        if error is None:
            done.set_result(value)
        elif isinstance(error, StoreError):
            done.set_exception(failed())
        else:
            done.set_exception(error)
