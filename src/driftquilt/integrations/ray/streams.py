"""Many streams on one cluster, each an actor that comes back from its store.

An actor holds one `QuiltStream`, whose rows are in a folder that every node sees. When its
process or its node dies, Ray starts it again, somewhere, and it continues from the store; a call
that was under way is made again. Every call that learns has an id, which is stored together with
each of its rows, so those that were stored before the crash are not learned twice. A store has one
process at a time: a lock on its folder sees to it where the file system has locks.

    from driftquilt.integrations.ray.streams import Streams

    with Streams("/shared/streams") as streams:
        shop = streams.open("shop-12", QuiltClassifier(random_state=0))
        shop.learn_many(rows, labels)
        shop.predict_many(rows)
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import nullcontext, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self
from uuid import uuid4

from driftquilt.data.frame import iter_rows, read_label_list
from driftquilt.errors import DriftquiltError, InputError
from driftquilt.integrations.ray.executor import connect, get, ray, submit
from driftquilt.quilt.classifier import QuiltClassifier
from driftquilt.store.disk import DiskStore
from driftquilt.stream import QuiltStream
from driftquilt.stream.events import Event
from driftquilt.stream.task import Estimator, learner_of, reader

__all__ = ["RemoteStream", "Streams"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}")
_SHARE_OF_CORE = 0.01  # a stream is idle most of the time, so many share a core
_TRIES = 20  # of a call whose actor dies each time
_CALL = "call"  # in the state of the store: id of the last call, and its rows that are stored


class Streams:
    """Streams in the folders of one folder, by name; closing it ends their actors."""

    def __init__(self, folder: str | os.PathLike[str], address: str | None = None) -> None:
        connect(address)
        self._folder = Path(folder).absolute()
        self._open: dict[str, RemoteStream] = {}

    def open(
        self,
        name: str,
        estimator: Estimator | None = None,
        detector: Any = "experts",
        **settings: Any,
    ) -> RemoteStream:
        """Return the stream of that name; a new one is started with these settings.

        `settings` are those of `QuiltStream`, without its store. The estimator trains on one core
        of the node.
        """
        if not _NAME.fullmatch(name):
            raise InputError(
                f"{name!r} is not a valid stream name; use up to 63 letters, digits, '_', '.' "
                "and '-', the first a letter or a digit"
            )
        if "store" in settings:
            raise InputError("the store of a stream is its folder here; leave `store` out")
        known = self._open.get(name)
        if known is None or known.closed:
            trained = QuiltClassifier() if estimator is None else estimator
            QuiltStream(trained, detector, **settings).close()  # refuses here what it would there
            arguments = {"estimator": trained, "detector": detector, **settings}
            actor = submit(_StreamActor, str(self._folder / name), arguments)
            known = self._open[name] = RemoteStream(name, actor)
        return known

    def close(self) -> None:
        """Let every stream end in order; all go on when they are opened again."""
        failures = list[DriftquiltError]()
        while self._open:
            try:
                self._open.popitem()[1].close()
            except DriftquiltError as error:  # the others are to end all the same
                failures.append(error)
        if failures:
            raise failures[0]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _: object, error: BaseException | None, *__: object) -> None:
        with suppress(DriftquiltError) if error else nullcontext():  # which would hide it
            self.close()


class Standing(NamedTuple):
    """Where a stream is; numbers have no accuracy, and classes no mean absolute error."""

    n_rows: int
    accuracy: float | None
    events: list[Event]
    mean_absolute_error: float | None


class RemoteStream:
    """A stream on the cluster; calls are obeyed one after the other, whoever makes them."""

    def __init__(self, name: str, actor: Any) -> None:
        self.name = name
        self.closed = False
        self._actor = actor

    @cached_property
    def task(self) -> str:
        """Whether labels are classes, "classification", or numbers, "regression"."""
        return str(self._ask("task"))

    def predict_many(self, X: Any) -> list[Any]:
        """Return the most probable label, or the number, of each row of a table or list."""
        return list(self._ask("predict_many", list(iter_rows(X))))

    def learn_many(self, X: Any, y: Iterable[Any]) -> list[Event]:
        """Learn rows in order, each once across crashes; they are durable when this returns."""
        rows, labels = list(iter_rows(X)), read_label_list(y, reader(self.task))
        return list(self._ask("learn_many", uuid4().hex, rows, labels))

    def standing(self) -> Standing:
        """Rows learned, accuracy or error of all of them, and everything that happened."""
        standing: Standing = self._ask("standing")
        return standing

    def close(self) -> None:
        """End the actor; the rows stay."""
        if self.closed:
            return
        try:
            self._ask("close")
        finally:
            self.closed = True
            ray.kill(self._actor)

    def _ask(self, what: str, *arguments: Any) -> Any:
        if self.closed:
            raise InputError(f"the stream {self.name!r} was closed; open it again")
        return get(submit(getattr(self._actor, what), *arguments))


@ray.remote(max_restarts=-1, max_task_retries=_TRIES, num_cpus=_SHARE_OF_CORE)
class _StreamActor:
    """The stream on its node; `arguments` are those that a new stream is made with."""

    def __init__(self, folder: str, arguments: dict[str, Any]) -> None:
        self._opened: QuiltStream | DriftquiltError
        try:
            self._opened = _open(folder, arguments)
        except DriftquiltError as error:  # Ray would report an actor that died
            self._opened = error

    @property
    def _stream(self) -> QuiltStream:
        if isinstance(self._opened, DriftquiltError):
            raise self._opened
        return self._opened

    def task(self) -> str:
        return self._stream.task

    def predict_many(self, rows: list[Any]) -> list[Any]:
        return self._stream.predict_many(rows)

    def learn_many(self, call: str, rows: list[Any], labels: list[Any]) -> list[Event]:
        stream = self._stream
        last, n_stored = stream.store.state.get(_CALL, ["", 0])
        done = n_stored if last == call else 0
        notes = [{_CALL: [call, number]} for number in range(done + 1, len(rows) + 1)]
        events = stream.learn_many(rows[done:], labels[done:], notes=notes)
        stream.flush()
        return events

    def standing(self) -> Standing:
        stream = self._stream
        status = stream.status()
        error = status.mean_absolute_error
        return Standing(status.n_rows, status.accuracy, list(stream.events), error)

    def close(self) -> None:
        if isinstance(self._opened, QuiltStream):
            self._opened.close()


def _open(folder: str, arguments: dict[str, Any]) -> QuiltStream:
    store = DiskStore(folder)
    known = "stream" in store.state
    store.close()
    here: dict[str, Any] = {"n_jobs": 1, "engine": "local"}
    if not known:
        arguments["estimator"].set_params(**here)
        return QuiltStream(**arguments, store=folder)
    detector, learner = arguments["detector"], learner_of(arguments["estimator"])
    own = None if isinstance(detector, str | dict) else detector
    return QuiltStream.open(folder, learner=learner, detector=own, **here)
