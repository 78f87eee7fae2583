"""One stream in the service: predicts at once, learns in turns, loses nothing it acknowledged.

Three things go on beside each other:

- Predictions are made on the event loop from a `View`, which never changes; the rows are written
  down before the answer goes out.
- Rows and labels are learned on a thread, one request after the other, and become durable
  together at the end of a turn; then they are acknowledged, and a new `View` is made.
- Trainings run in a process of their own.

If the store fails, learning stops with a `Problem` and predictions go on; the stream is opened
again when the next rows come.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from driftquilt.errors import DriftquiltError, InputError, StoreError
from driftquilt.quilt.explanation import Selection
from driftquilt.quilt.model_file import REGRESSION
from driftquilt.server.bodies import IdLabels, LabelledRows
from driftquilt.server.ingestion import Ingestion
from driftquilt.server.logs import request_id
from driftquilt.server.problems import Problem
from driftquilt.server.schemas import Feed, Learned, Stream
from driftquilt.server.settings import ServeSettings
from driftquilt.server.view import About, View, look, rounded
from driftquilt.server.waiting_files import move_waiting_files
from driftquilt.store.base import State
from driftquilt.store.disk import DiskStore
from driftquilt.stream import QuiltStream
from driftquilt.stream.training import Outcome, Trainer, Training

__all__ = ["StreamWorker", "Task", "TaskQueue", "open_store"]

T = TypeVar("T")
#: Someone who waits, and what they get: an error, or else a value.
Outcomes = tuple[asyncio.Future[Any], BaseException | None, Any]
_log = logging.getLogger("driftquilt.server")

_REOPEN_AFTER = 2.0  # seconds
_SHOW_EVERY = 0.5  # seconds, of a long request
_WRITE_PAUSE = 0.002  # seconds between two commits of pending rows, so that requests share them
_ADAPTING = "adapting"  # whether a training that was asked for has not ended yet


def open_store(folder: Path) -> DiskStore:
    """Return a store that commits only when asked: at the end of each turn."""
    return DiskStore(folder / "store", commit_rows=1_000_000, commit_delay=60.0)


@dataclass(frozen=True, eq=False)
class Task:
    """Something to run, the rows and bytes it brings, and who waits for its answer."""

    run: Callable[..., Any]
    n_rows: int
    n_bytes: int
    done: asyncio.Future[Any]
    request_id: str | None


class TaskQueue:
    """What a stream was asked to do and has not done yet, in order and within limits.

    Requests come from the event loop; one thread at a time takes all that wait, runs them, and
    comes back for more. Whoever adds the first starts that thread. `busy` while it runs, `closed`
    when no more tasks are taken.
    """

    def __init__(self, max_rows: int = 0, max_bytes: int = 0) -> None:
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


class StreamWorker:
    """A stream, its pending rows, and the view that others have of it."""

    def __init__(
        self,
        folder: Path,
        settings: ServeSettings,
        trainer: Trainer,
        threads: ThreadPoolExecutor,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self.folder, self._settings, self._trainer = folder, settings, trainer
        self._threads, self._loop = threads, loop
        self._queue = TaskQueue(settings.max_backlog, settings.max_backlog_bytes)
        self._writes = TaskQueue()  # of pending rows
        self.selections: dict[int, Selection] = {}  # by version of the model
        self._failed_at = self._shown_at = 0.0
        self.failure: str | None = None
        self.feed: Callable[[], Feed] | None = None  # the status of a broker's feed
        self.training_seconds = 0.0
        self.changed = asyncio.Event()
        with self._opened() as (self.stream, state):
            self.about = About(**state["service"])
            self.ingestion = Ingestion(self.stream, state, self._settings, self._show_progress)
            self.view = self._look(None)
        self._train_again(state)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[tuple[QuiltStream, State]]:
        store = open_store(self.folder)
        try:
            move_waiting_files(self.folder / "waiting", store)
            state = store.state
            stream = QuiltStream.open(
                store,
                trainer=self._train,
                engine="local",
                max_waiting=self._settings.max_waiting,  # of a feed
            )
            yield stream, state
        except BaseException:
            store.close()
            raise

    def _train_again(self, state: State) -> None:
        """Begin a training again that was asked for, or due, and did not come to its end."""
        left = self.stream.status().rows_until_training
        if state.get(_ADAPTING) or (left is not None and left <= 0):
            try:
                self.stream.adapt()
            except InputError as error:
                _log.info("no training: %s", error, extra=self._extra)

    @property
    def name(self) -> str:
        return self.about.name

    @property
    def closed(self) -> bool:
        """Whether nothing more is taken in."""
        return self._queue.closed

    @property
    def _extra(self) -> dict[str, str]:
        """Return what every line of the log adds."""
        return {"stream": self.name}

    def status(self) -> Stream:
        """Return the stream's status as it is now."""
        values = self.view.status.to_json()
        for name in ("n_right", "n_durable", "absolute_error"):
            del values[name]
        settings = {**values["settings"]}
        settings.pop("max_waiting", None)  # how many rows may wait is the service's own limit
        values |= {
            "settings": settings,
            "n_waiting": self.ingestion.pending.n_rows + values["n_waiting"],
            "failure": self.failure,
        }
        recent, is_numbers = self.view.recent, values["task"] == REGRESSION
        return Stream(
            **self.about.to_json(),
            **values,
            recent_accuracy=None if is_numbers else recent,
            recent_mean_absolute_error=recent if is_numbers else None,
            label_delay=self.ingestion.delays.recent(),
            feed=None if self.feed is None else self.feed(),
        )

    async def keep(self, content: bytes, kind: str, n_rows: int) -> list[str]:
        """Let rows wait for their labels; return their ids when they are durable."""
        came = time.time()
        done: asyncio.Future[list[str]] = self._loop.create_future()
        task = Task(lambda pending: pending.add(content, kind, n_rows, came), 0, 0, done, None)
        if self._writes.add(task):
            # Once all requests that are there by now have been read, they are written together.
            self._loop.call_soon(self._loop.run_in_executor, self._threads, self._write_pending)
        try:
            return await done
        except StoreError as error:
            if self.failure is None:
                self._fail(error)
            self._loop.create_task(self._recover_soon())
            raise failed() from error

    def _write_pending(self) -> None:
        """Write pending rows, those of many requests in one commit; on a thread."""
        while tasks := self._writes.take():
            pending = self.ingestion.pending
            try:
                ids = [task.run(pending) for task in tasks]
                pending.write()
                settled: list[Outcomes] = [
                    (task.done, None, own) for task, own in zip(tasks, ids, strict=True)
                ]
            except BaseException as error:  # whoever waits gets it
                settled = [(task.done, error, None) for task in tasks]
            self._loop.call_soon_threadsafe(settle, settled)
            time.sleep(_WRITE_PAUSE)

    async def _recover_soon(self) -> None:
        """Take a turn, at the beginning of which a failed stream is opened again."""
        with contextlib.suppress(DriftquiltError):
            await self.turn(lambda: None)

    async def learn(
        self, labels: LabelledRows | IdLabels, key: str | None, digest: str, n_bytes: int = 0
    ) -> tuple[Learned, bool]:
        """Learn; return the answer when it is durable, and whether it is an earlier one."""
        if isinstance(labels, IdLabels):
            run = partial(self.ingestion.learn_ids, labels, key, digest)
        else:
            self.view.expect(labels.frame, self.about.schema)
            run = partial(self.ingestion.learn_rows, labels, key, digest)
        return await self.turn(run, len(labels), n_bytes)

    async def turn(self, run: Callable[[], T], n_rows: int = 0, n_bytes: int = 0) -> T:
        """Run something on the thread that learns; return its answer when it is durable."""
        done: asyncio.Future[T] = self._loop.create_future()
        if self._queue.add(Task(run, n_rows, n_bytes, done, request_id.get())):
            self._loop.run_in_executor(self._threads, self._take_turns)
        return await done

    def nudge(self) -> None:
        """See to a training that has ended; from any thread."""
        try:
            self._loop.call_soon_threadsafe(lambda: self._loop.create_task(self._collect()))
        except RuntimeError:  # the loop is closed, and so is the service
            _log.info("a training ended after the service did", extra=self._extra)

    async def _collect(self) -> None:
        try:
            await self.turn(self._finish_training)
        except DriftquiltError as error:
            level = logging.INFO if self.closed else logging.WARNING
            _log.log(level, "a training has no effect: %s", error, extra=self._extra)

    def _finish_training(self) -> None:
        if not self.stream.training:
            self.stream.finish_training()
            self.stream.note({_ADAPTING: False})

    def adapt(self) -> None:
        """Train now, and after a restart if that comes first; in a turn."""
        self.stream.adapt()
        self.stream.note({_ADAPTING: True})

    def _take_turns(self) -> None:
        """Do what is queued, for as long as there is something; on a thread."""
        while tasks := self._queue.take():
            request_id.set(None)
            self._recover()
            settled = [(task.done, *self._run(task)) for task in tasks]
            self._flush()
            if self.failure is not None:  # then nothing of this turn is sure to be durable
                settled = [(done, error or failed(), None) for done, error, _ in settled]
            self._queue.release(tasks)
            self._loop.call_soon_threadsafe(settle, settled)

    def _run(self, task: Task) -> tuple[BaseException | None, Any]:
        if self.failure is not None or task.done.done():  # whoever asked is gone
            return failed(), None
        request_id.set(task.request_id)
        try:
            return None, task.run()
        except Problem as problem:
            return problem, None
        except InputError as error:
            _log.info("rows were refused: %s", type(error).__name__, extra=self._extra)
            return Problem(
                "rows-invalid", "the rows or labels do not fit those learned so far"
            ), None
        except BaseException as error:
            self._fail(error)
            return failed(), None

    def _flush(self) -> None:
        """Make the turn durable, then let it be seen."""
        if self.failure is not None:
            return
        try:
            self.stream.flush()
            self.ingestion.settle()
            self._publish()
        except BaseException as error:
            self._fail(error)

    def _fail(self, error: BaseException) -> None:
        """Note that the stream cannot go on."""
        _log.error("the stream failed", exc_info=error, extra=self._extra)
        self.failure = f"{type(error).__name__}: the log of the service says more"
        self._failed_at = time.monotonic()
        self._loop.call_soon_threadsafe(self.announce)

    def _recover(self) -> None:
        """Open the stream again after a failure, but not all the time."""
        if self.failure is None or time.monotonic() - self._failed_at < _REOPEN_AFTER:
            return
        try:
            self._reopen()
        except BaseException as error:
            self._fail(error)

    def _reopen(self) -> None:
        try:
            self.stream.close(finish_training=False, discard=True)  # the failure was reported
        except DriftquiltError as error:
            _log.info("closing after a failure: %s", error, extra=self._extra)
        with self._opened() as (stream, state):
            self.ingestion.reopen(stream, state)
            self.stream = stream
            self.view = self._look(None)
        self.failure = None
        self._train_again(state)
        _log.info("the stream is open again", extra=self._extra)

    def _train(self, training: Training) -> Future[Outcome]:
        future = self._trainer(training)
        future.add_done_callback(self._trained)
        return future

    def _trained(self, future: Future[Outcome]) -> None:
        if not future.cancelled():
            self.training_seconds += future.result().seconds
            self.nudge()

    def _publish(self) -> None:
        """Let the world see what there is now; on the thread that learns."""
        before, self.view = self.view, self._look(self.view)
        self._shown_at = time.monotonic()
        for event in self.view.events_after(before.status.last_event):
            _log.info("%s", event, extra={**self._extra, "event": type(event).__name__})
        self._loop.call_soon_threadsafe(self.announce)

    def _show_progress(self) -> None:
        """Let a long request be seen on its way, now and then: what is seen is durable."""
        if time.monotonic() - self._shown_at >= _SHOW_EVERY:
            self.stream.flush()
            self.ingestion.settle()
            self._publish()

    def announce(self) -> None:
        """Wake whoever waits for a change."""
        self.changed.set()
        self.changed = asyncio.Event()

    def _look(self, previous: View | None) -> View:
        recent = self.ingestion.history.recent
        return look(self.stream, previous, None if recent is None else rounded(recent))

    async def close(self, *, discard: bool = False) -> None:
        """Finish what is queued, write everything down, and let go; a training is given up.

        With `discard`, because the stream is to go, what is queued is refused.
        """
        gone = Problem("stream-unknown", "the stream was deleted")
        settle([(task.done, gone, None) for task in self._queue.close(discard=discard)])
        self._writes.close(discard=False)
        while self._queue.busy or self._writes.busy:
            await asyncio.sleep(0.01)
        await self._loop.run_in_executor(self._threads, self._let_go, discard)
        self.announce()

    def _let_go(self, discard: bool) -> None:
        try:
            self.stream.close(finish_training=False, discard=discard)
        except DriftquiltError:  # what was acknowledged is safe all the same
            _log.exception("closing failed", extra=self._extra)


def failed() -> Problem:
    """Return the problem of a store that cannot be written."""
    return Problem("stream-failed", "rows cannot be kept at the moment", {"Retry-After": "5"})


def settle(outcomes: Sequence[Outcomes]) -> None:
    """Answer everyone who waits; on the loop."""
    for done, error, value in outcomes:
        if done.done():  # whoever asked is gone
            continue
        if error is None:
            done.set_result(value)
        else:
            done.set_exception(error)
