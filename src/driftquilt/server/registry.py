"""All streams of a service, each in a folder of its own under the store.

    <store>/streams/<name>/store     rows, segments, models, pending rows: a `DiskStore`

A stream is made under a name that begins with a dot, and renamed when it is whole; one that is
deleted is renamed back before it is removed. What a crash leaves under such a name is removed at
the next start. Names of streams are the only words of a caller that become a path, and they are
letters, digits, `-` and `_` alone.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from driftquilt.errors import InputError
from driftquilt.quilt.classifier import present_weights
from driftquilt.quilt.metrics import find_metric
from driftquilt.quilt.model_file import CLASSIFICATION, REGRESSION
from driftquilt.server.bodies import read_each_label
from driftquilt.server.ingestion import IdempotencyKeys
from driftquilt.server.problems import Problem
from driftquilt.server.schemas import NAME, NewStream
from driftquilt.server.settings import ServeSettings
from driftquilt.server.view import STREAM_COLUMNS, About
from driftquilt.server.worker import StreamWorker, open_store
from driftquilt.store.base import State
from driftquilt.store.disk import DiskStore
from driftquilt.store.files import DISK
from driftquilt.stream import QuiltStream
from driftquilt.stream.columns import LABEL
from driftquilt.stream.settings import Guard, StreamSettings, find_detector
from driftquilt.stream.task import ESTIMATORS
from driftquilt.stream.workers import Workers

__all__ = ["StreamRegistry"]

_log = logging.getLogger("driftquilt.server")

_DRAFT = re.compile(r"\.[a-z0-9][a-z0-9_-]{0,62}\.[0-9a-f]{8}")
_READERS = 8  # threads for those who look
_CHECKPOINT_ROWS = 1_000  # a restart replays at most so many rows, and has to be quick


class StreamRegistry:
    """The streams by name, and what they share: threads, training processes, the loop."""

    def __init__(self, settings: ServeSettings) -> None:
        self.settings = settings
        self._folder = settings.store / "streams"
        self.threads = ThreadPoolExecutor(  # one that learns and one that writes, for each stream
            2 * settings.max_streams + 16, thread_name_prefix="driftquilt-turn"
        )
        self.readers = ThreadPoolExecutor(_READERS, thread_name_prefix="driftquilt-read")
        self._workers = Workers(settings.n_workers)
        self._streams: dict[str, StreamWorker] = {}
        self.damaged: set[str] = set()
        self._changing = asyncio.Lock()

    def __iter__(self) -> Iterator[StreamWorker]:
        return iter([*self._streams.values()])

    def __getitem__(self, name: str) -> StreamWorker:
        worker = self._streams.get(name)
        if name in self.damaged:
            raise Problem(
                "stream-damaged", "the log of the service says why; restore it, or delete it"
            )
        if worker is None:
            raise Problem("stream-unknown", "there is no stream of this name")
        return worker

    def open(self, loop: asyncio.AbstractEventLoop) -> None:
        """Open every stream that there is, and remove what a crash has left."""
        self._loop = loop
        self._folder.mkdir(parents=True, exist_ok=True)
        DISK.sync_folder(self._folder.parent)
        for path in sorted(self._folder.iterdir()):
            if _DRAFT.fullmatch(path.name):
                shutil.rmtree(path)
            elif re.fullmatch(NAME, path.name):
                try:
                    self._streams[path.name] = self._open(path)
                except Exception:  # the other streams are served nevertheless
                    _log.exception("cannot be opened", extra={"stream": path.name})
                    self.damaged.add(path.name)

    async def create(
        self, new: NewStream, key: str | None = None, digest: str = ""
    ) -> StreamWorker:
        """Make a stream, which remembers the key of the request."""
        _expect_new(new)
        async with self._changing:
            if new.name in self._streams or new.name in self.damaged:
                raise Problem("stream-exists", "there is a stream of this name already")
            if len(self._streams) >= self.settings.max_streams:
                raise Problem(
                    "too-many-streams", f"there may be at most {self.settings.max_streams} streams"
                )
            note = {} if key is None else IdempotencyKeys({}).note(key, digest, 0, {})
            made = await self._loop.run_in_executor(self.threads, self._make, new, note)
            self._streams[new.name] = made
            return made

    async def delete(self, name: str) -> None:
        """Remove a stream and all that it knows."""
        async with self._changing:
            if name not in self.damaged:
                await self[name].close(discard=True)
            try:
                gone = await self._loop.run_in_executor(self.threads, self._remove, name)
            except OSError:
                self.damaged.add(name)  # it is closed, and can be deleted again
                raise
            finally:
                self._streams.pop(name, None)
            self.damaged.discard(name)
            await self._loop.run_in_executor(self.threads, shutil.rmtree, gone)

    def wake(self) -> None:
        """Let everyone look up who waits for something to happen; from a signal's handler too."""
        for worker in self:
            self._loop.call_soon_threadsafe(worker.announce)

    async def close(self) -> None:
        """Let go of every stream; trainings that are under way begin again at the next start."""
        for worker in self:
            await worker.close()
        # Only now: a stream must not take a training that is ended here for one that failed.
        await self._loop.run_in_executor(None, self._workers.close)
        self.threads.shutdown(wait=False)
        self.readers.shutdown(wait=False)

    def _open(self, path: Path) -> StreamWorker:
        return StreamWorker(path, self.settings, self._workers, self.threads, self._loop)

    def _remove(self, name: str) -> Path:
        """Put a stream's folder where the next start would remove it."""
        gone = self._draft(name)
        (self._folder / name).rename(gone)
        DISK.sync_folder(self._folder)
        return gone

    def _draft(self, name: str) -> Path:
        return self._folder / f".{name}.{secrets.token_hex(4)}"

    def _make(self, new: NewStream, note: State) -> StreamWorker:
        draft = self._draft(new.name)
        draft.mkdir()
        try:
            about = About(
                new.name,
                datetime.now(UTC).isoformat(timespec="seconds"),
                None if new.schema is None else msgspec.to_builtins(new.schema),
                new.coverage,
            )
            store = open_store(draft)
            try:
                with _make_stream(new, store):
                    store.write_state({"service": about.to_json(), **note})
            finally:
                store.close()
            path = self._folder / new.name
            DISK.sync_folder(draft)
            draft.rename(path)
            DISK.sync_folder(self._folder)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
        try:
            return self._open(path)
        except BaseException:
            shutil.rmtree(self._remove(new.name), ignore_errors=True)
            raise


def _make_stream(new: NewStream, store: DiskStore) -> QuiltStream:
    usual = {"checkpoint_rows": _CHECKPOINT_ROWS, "max_columns": STREAM_COLUMNS}
    settings: dict[str, Any] = {**usual, **new.settings}
    weighing: dict[str, Any] = (
        {} if new.class_weight is None else {"class_weight": new.class_weight}
    )
    return QuiltStream(
        ESTIMATORS[new.task](random_state=new.random_state, **weighing),
        new.detector,
        store=store,
        guard=None if new.guard is None else Guard(**msgspec.to_builtins(new.guard)),
        scoring=new.metric,
        panel="rows",  # labels come after other rows were predicted
        **settings,
    )


def _expect_new(new: NewStream) -> None:
    """Refuse what the types of `NewStream` let through."""
    known = [field.name for field in fields(StreamSettings) if field.name != "max_waiting"]
    if not new.settings.keys() <= set(known):  # how many rows wait is the service's own limit
        raise Problem(
            "body-invalid", f"a stream has no setting of this name; it has {', '.join(known)}"
        )
    parts: dict[str, Callable[[], object]] = {
        "settings": lambda: StreamSettings(**new.settings),  # type: ignore[arg-type]
        "guard": lambda: new.guard and Guard(**msgspec.to_builtins(new.guard)),
        "detector": lambda: find_detector(new.detector, 0),
        "metric": lambda: find_metric(new.metric),
    }
    for part, make in parts.items():
        try:
            make()
        except InputError as error:
            takes = f"{error.name} takes {error.expected}"
            why = takes if error.name else "see the documentation"
            raise Problem("body-invalid", f"{part} cannot be used; {why}") from error
    _expect_task(new)
    if new.schema is None:
        return
    if LABEL in new.schema.columns:
        raise Problem("body-invalid", f"a column of a schema cannot be called {LABEL!r}")
    labels = read_each_label(new.schema.labels or ())
    if len({type(label) for label in labels}) > 1:
        raise Problem("body-invalid", "the labels of a schema are all of one kind")
    if labels and present_weights(new.class_weight, labels) != new.class_weight:
        raise Problem("body-invalid", "class_weight names a label that the schema does not have")


def _expect_task(new: NewStream) -> None:
    """Refuse what streams of the other task have."""
    labels = None if new.schema is None else new.schema.labels
    of_others: dict[str, Any] = {"coverage": new.coverage}
    if new.task == REGRESSION:
        of_others = {"class_weight": new.class_weight, "metric": new.metric, "labels": labels}
    for part, value in of_others.items():
        if value is not None:
            other = "numbers" if new.task == CLASSIFICATION else "classes"
            raise Problem("body-invalid", f"{part} goes with {other}, but the task is {new.task}")
