"""What a stream was asked to do and has not done yet, in order and within limits.

Requests come from the event loop; one thread at a time takes all that wait, runs them, and comes
back for more. Whoever adds the first starts that thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from driftquilt.server.problems import Problem

__all__ = ["LearningQueue", "Task"]


@dataclass(frozen=True, eq=False)
class Task:
    """Something to run, the rows and bytes it brings, and who waits for its answer."""

    run: Callable[[], Any]
    n_rows: int
    n_bytes: int
    done: asyncio.Future[Any]
    request_id: str | None


class LearningQueue:
    """Tasks that wait; `busy` while a thread runs them, `closed` when no more are taken."""

    def __init__(self, max_rows: int, max_bytes: int) -> None:
        self._max_rows, self._max_bytes = max_rows, max_bytes
        self._lock = threading.Lock()
        self._tasks: list[Task] = []
        self.n_rows = self.n_bytes = 0  # of what waits or is being done
        self.busy = self.closed = False

    def add(self, task: Task) -> bool:
        """Take a task; return whether a thread has to be started."""
        with self._lock:
            if self.closed:
                raise Problem("stopping", "the stream is being closed")
            if task.n_rows:  # the service's own tasks always fit
                self._expect_room(task)
            self._tasks.append(task)
            self.n_rows += task.n_rows
            self.n_bytes += task.n_bytes
            begins, self.busy = not self.busy, True
            return begins

    def take(self) -> list[Task]:
        """Return all that wait; if there are none, the thread has to end."""
        with self._lock:
            tasks, self._tasks = self._tasks, []
            self.busy = bool(tasks)
            return tasks

    def release(self, tasks: Sequence[Task]) -> None:
        """Note that tasks are done."""
        with self._lock:
            self.n_rows -= sum(task.n_rows for task in tasks)
            self.n_bytes -= sum(task.n_bytes for task in tasks)

    def close(self, *, discard: bool) -> list[Task]:
        """Take no more; with `discard`, return those that waited, which nobody runs any more."""
        with self._lock:
            self.closed = True
            tasks = self._tasks if discard else []
            self._tasks = [] if discard else self._tasks
            return tasks

    def _expect_room(self, task: Task) -> None:
        fits = (
            self.n_rows + task.n_rows <= self._max_rows
            and self.n_bytes + task.n_bytes <= self._max_bytes
        )
        if self.n_rows and not fits:
            raise Problem(
                "backlog-full",
                f"{self.n_rows} rows of {self.n_bytes} bytes wait to be learned; at most "
                f"{self._max_rows} rows and {self._max_bytes} bytes may",
                {"Retry-After": "1"},
            )
