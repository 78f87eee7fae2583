"""A limit on how long each body may take, looked at once a second for all of them.

A timer for every request would cost more than reading its body does, and a slow sender is not
less slow a second later.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from typing import TypeVar

from driftquilt.server.problems import Problem

__all__ = ["Deadlines"]

T = TypeVar("T")
_EVERY = 1.0  # seconds


class Deadlines:
    """Requests whose body is awaited."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until: dict[asyncio.Task[object], float] = {}
        self._late: set[asyncio.Task[object]] = set()
        self._looking = False

    async def within(self, coming: Awaitable[T], began: float) -> T:
        """What comes, or a `Problem` some time after the limit; `began` is of `perf_counter`."""
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - this is a coroutine
        self._until[task] = began + self._seconds
        if not self._looking:
            self._looking = True
            self._look_later()
        try:
            return await coming
        except asyncio.CancelledError:
            if task not in self._late:
                raise
            task.uncancel()
            raise Problem("body-slow", f"a body comes within {self._seconds:g} seconds") from None
        finally:
            del self._until[task]
            self._late.discard(task)

    def _look_later(self) -> None:
        asyncio.get_running_loop().call_later(min(_EVERY, self._seconds), self._look)

    def _look(self) -> None:
        now = time.perf_counter()
        for task, until in self._until.items():
            if now > until and task not in self._late:
                self._late.add(task)
                task.cancel()
        self._looking = bool(self._until)
        if self._looking:
            self._look_later()
