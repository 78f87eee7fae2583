"""What a stream has been asked to do and has not done yet, in order and within limits.

Requests come from the event loop; one thread at a time takes all that wait, does them, and comes
back for more. Whoever adds the first is told to start that thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from driftquilt.server.problems import Problem

__all__ = ["Backlog", "Work"]


@dataclass(frozen=True, eq=False)
class Work:
    """Something to run, the rows and bytes it brings, and who waits for its answer."""

    run: Callable[[], Any]
    n_rows: int
    n_bytes: int
    done: asyncio.Future[Any]
    request_id: str | None


class Backlog:
    """Works that wait; `busy` while a thread is at them, `closed` when no more are taken."""

    def __init__(self, max_rows: int, max_bytes: int) -> None:
        self._max_rows, self._max_bytes = max_rows, max_bytes
        self._lock = threading.Lock()
        self._works: list[Work] = []
        self.n_rows = self.n_bytes = 0  # of what waits or is being done
        self.busy = self.closed = False

    def add(self, work: Work) -> bool:
        """Take it in; whether a thread has to be started."""
        with self._lock:
            if self.closed:
                raise Problem("stopping", "the stream is being closed")
            if work.n_rows:  # what the service asks of itself has room
                self._expect_room(work)
            self._works.append(work)
            self.n_rows += work.n_rows
            self.n_bytes += work.n_bytes
            begins, self.busy = not self.busy, True
            return begins

    def take(self) -> list[Work]:
        """All that wait; if there are none, the thread that asks has to end."""
        with self._lock:
            works, self._works = self._works, []
            self.busy = bool(works)
            return works

    def release(self, works: Sequence[Work]) -> None:
        """These have been done."""
        with self._lock:
            self.n_rows -= sum(work.n_rows for work in works)
            self.n_bytes -= sum(work.n_bytes for work in works)

    def close(self, *, discard: bool) -> list[Work]:
        """Take no more in; with `discard`, those that waited, which nobody does any more."""
        with self._lock:
            self.closed = True
            works = self._works if discard else []
            self._works = [] if discard else self._works
            return works

    def _expect_room(self, work: Work) -> None:
        fits = (
            self.n_rows + work.n_rows <= self._max_rows
            and self.n_bytes + work.n_bytes <= self._max_bytes
        )
        if self.n_rows and not fits:
            raise Problem(
                "backlog-full",
                f"{self.n_rows} rows of {self.n_bytes} bytes wait to be learned; at most "
                f"{self._max_rows} rows and {self._max_bytes} bytes may",
                {"Retry-After": "1"},
            )
