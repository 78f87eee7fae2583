"""Algorithm 2 on a stream that never ends: predict, learn, detect, seal, gather, select, train.

Rows come one by one or in batches; each is predicted by `Learning`, learned, and kept in the
store. When the detector fires, the open rows become a past segment; `n_wait` rows later a model
is trained on the past that agrees with them, and again each time the segment has doubled.

- Predictions go on with the old model while rows are gathered and while a training runs, on a
  thread of its own; rows that come meanwhile are learned by the new model before it takes over.
  With `wait=True` a training is over when `learn_one` returns, and everything is repeatable.
- A row is safe when `learn_one` returns, unless the store gathers commits (`n_durable`). When
  the store fails, `learn_one` says so from then on; predictions go on.
- After a crash `QuiltStream.open` reads the last checkpoint and learns the rows after it again.
- The label of a row may come later: `predict_one(x, key=...)`, then `learn_one(y=..., key=...)`,
  or `forget(key)` if it never will.
- A row may come with the position after it in its source, which is stored in the same step. Such
  a row is safe by the next `flush`; after a crash, `position` says where to read on.
- A row that shares no column with any learned so far is refused: it is of another feed.

>>> from driftquilt.stream.runner import QuiltStream
>>> import random
>>> draw = random.Random(0).random
>>> stream = QuiltStream(QuiltClassifier(random_state=0), n_wait=50, wait=True)
>>> for turn in range(400):
...     x = {"a": draw(), "b": draw()}
...     right_way = turn < 200                            # then the concept turns round
...     _ = stream.learn_one(x, (x["a"] > x["b"]) == right_way)
>>> [type(event).__name__ for event in stream.events if event.row > 200][:2]
['DriftFound', 'SegmentSealed']
>>> stream.predict_one({"a": 0.9, "b": 0.1})
False

Paper: Algorithm 2.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from driftquilt.data.row import Row, read_row
from driftquilt.errors import InputError, StoreError
from driftquilt.learners.base import Learner
from driftquilt.quilt.classifier import QuiltClassifier
from driftquilt.store.base import State
from driftquilt.stream import opening
from driftquilt.stream.engine import Engine
from driftquilt.stream.events import Event
from driftquilt.stream.guard import Guard
from driftquilt.stream.late import Late, check_note, position_note
from driftquilt.stream.opening import Place
from driftquilt.stream.rows import (
    Label,
    iter_rows,
    read_at,
    read_label,
    read_labels,
    read_pair,
)
from driftquilt.stream.setup import Setup
from driftquilt.stream.slots import Slots
from driftquilt.stream.training import Trainer, on_thread
from driftquilt.stream.waiting import Key, Waiting, plain_key
from driftquilt.text import plural

__all__ = ["QuiltStream"]

_TOGETHER = 256  # rows that are predicted at once, while learning waits


class QuiltStream(Late):
    """A classifier for a drifting stream; every method may be called from any thread.

    Parameters
    ----------
    estimator : QuiltClassifier, optional
        What is trained after a drift; its `random_state` makes the stream repeatable.
    detector : str, dict or object
        What tells a drift: a name such as "adwin", its settings, or a detector; see `detectors`.
    n_wait : int
        Rows of a new segment to gather before a model is trained for it.
    store : Store or path, optional
        Where rows are kept; a folder survives crashes, None is memory.
    guard : Guard, optional
        What stands between a drift and a new model; see `stream.guard`.
    wait : bool
        Whether `learn_one` waits for a training that it began; kept for `open`.
    trainer : Trainer
        Where trainings run that are not waited for: on a thread, or in a process of their own,
        `stream.workers.Workers()`.
    **settings
        How often to train and how much to keep; see `stream.settings.StreamSettings`.

    """

    _takes_strangers = False  # rows without any column that others have had

    def __init__(
        self,
        estimator: QuiltClassifier | None = None,
        detector: Any = "adwin",
        n_wait: int = 100,
        *,
        store: Place | None = None,
        guard: Guard | None = None,
        wait: bool = False,
        trainer: Trainer = on_thread,
        **settings: Any,
    ) -> None:
        estimator = QuiltClassifier() if estimator is None else estimator
        guard = Guard() if guard is None else guard
        setup = Setup.of(estimator, detector, guard, wait=wait, n_wait=n_wait, **settings)
        self._begin(opening.begin(store, setup, trainer))

    @classmethod
    def open(
        cls,
        store: Place,
        *,
        learner: Learner | None = None,
        detector: Any = None,
        wait: bool | None = None,
        trainer: Trainer = on_thread,
        engine: str | None = None,
        max_waiting: int | None = None,
    ) -> Self:
        """The stream that a store holds, as it was after its last row.

        A learner or a detector that is code of your own has to be given again; `wait`, the
        estimator's `engine`, and `max_waiting` are as before unless they are given. Rows that
        waited for their label are there if the stream was closed, but not after a crash; from here
        on they are in the store. After a crash the next `learn_one` tells what happened since the
        last checkpoint, perhaps for the second time.
        """
        opened, waiting = opening.resume(
            store, learner, detector, wait, trainer, engine, max_waiting
        )
        stream = cls.__new__(cls)
        stream._begin(opened)
        kept = stream._slots.restore(opened.store.state)
        stream._waiting.restore([*(waiting or []), *kept])
        if waiting:  # the checkpoint that has them does not know what becomes of them from here on
            for key, row in waiting:
                opened.note(stream._slots.fill(key, row))
            opened.checkpoint()
        return stream

    def _begin(self, engine: Engine) -> None:
        self._lock = threading.RLock()
        self._engine = engine
        self._closed = False
        self._untold: StoreError | None = None  # of a training that ended during a prediction
        self._waiting = Waiting(engine.setup.settings.max_waiting)
        self._slots = Slots()

    def predict_one(self, x: Any, key: Key | None = None) -> Label | None:
        """The most probable label; None before the first row is learned.

        With a key the row waits for its label.
        """
        probabilities = self._predict(x, key)
        return self.classes[int(probabilities.argmax())] if len(probabilities) else None

    def predict_proba_one(self, x: Any, key: Key | None = None) -> dict[Label, float]:
        """The probability of each label so far."""
        probabilities = self._predict(x, key)
        return dict(zip(self.classes, probabilities.tolist(), strict=False))

    def predict_many(self, X: Any) -> list[Label | None]:
        """The most probable label of each row of a table or list, as `predict_one` has it."""
        answers: list[Label | None] = []
        numbered = enumerate(iter_rows(X))
        while some := list(islice(numbered, _TOGETHER)):
            rows = [read_at(number, read_row, row) for number, row in some]
            with self._lock:
                for (number, _), row in zip(some, rows, strict=True):
                    read_at(number, self._expect_row, row)
                self._collect()
                answers += self._engine.learning.answer_many(rows)
        return answers

    def learn_one(
        self, x: Any = None, y: Any = None, *, key: Key | None = None, position: Any = None
    ) -> list[Event]:
        """Learn a row, or the label of one that was predicted under a key; what happened of it."""
        if x is not None and key is not None:
            raise InputError(f"got a row and the key {key!r}; give one of them with the label")
        if x is None and key is None:
            raise InputError("got neither a row nor a key; give one of them with the label")
        at, label = position_note(position), read_label(y)
        with self._lock:
            row = self._waiting.find(key) if key is not None else read_row(x)
            self._expect_open()
            self._expect([row], [label])
            self._engine.take_one(row, label, {**self._slots.empty(plain_key(key)), **at})
            if position is None:
                self._engine.put()
            if key is not None:
                self._waiting.remove(key)
            return self._news()

    def expect(self, X: Any, y: Iterable[Any] = ()) -> None:
        """Refuse rows and labels that could not be learned; nothing changes."""
        rows = [read_at(number, read_row, row) for number, row in enumerate(iter_rows(X))]
        labels = read_labels(y)
        with self._lock:
            self._expect(rows, labels)

    def unfit(self, X: Any, y: Iterable[Any]) -> dict[int, str]:
        """Rows that could not be learned after those before them, by number, and why."""
        rows = [read_at(number, read_row, row) for number, row in enumerate(iter_rows(X))]
        labels = read_labels(y)
        with self._lock:
            columns = self._engine.columns
            return columns.unfit(rows, labels, strangers=self._takes_strangers)

    def learn_many(
        self, X: Any, y: Iterable[Any], *, notes: Sequence[State] | None = None
    ) -> list[Event]:
        """Learn the rows of a table or list, in order, as `learn_one` would; all or none.

        With a note for each row, state of the store that becomes safe together with that row,
        rows are safe by the next `flush`.
        """
        rows = [read_at(number, read_row, row) for number, row in enumerate(iter_rows(X))]
        labels = read_labels(y)
        if len(rows) != len(labels):
            raise InputError(
                f"there are {len(rows)} rows but {len(labels)} labels; give one label per row"
            )
        if notes is not None and len(notes) != len(rows):
            raise InputError(
                f"there are {len(rows)} rows but {len(notes)} notes; give one note per row"
            )
        for note in notes or ():
            check_note(note)
        with self._lock:
            self._expect_open()
            self._expect(rows, labels)
            if notes is None:
                self._engine.take(rows, labels)
            else:
                for row, label, note in zip(rows, labels, notes, strict=True):
                    self._engine.take_one(row, label, note)
            return self._news()

    def run(self, rows: Iterable[tuple[Any, Any]]) -> Iterator[Event]:
        """Learn pairs of row and label for as long as they come; yields what happens."""
        if not isinstance(rows, Iterable):
            raise InputError(f"got a {type(rows).__name__}; give pairs of row and label")
        for number, pair in enumerate(rows):
            yield from read_at(number, self._learn_pair, pair)

    def roll_back(self, version: int, *, note: State | None = None) -> None:
        """Let an earlier model answer again, until the next one is promoted.

        A note is state of the store that becomes safe in the same step.
        """
        check_note(note or {})
        with self._lock:
            self._expect_model(version)
            self._engine.roll_back(version, note or {})

    def note(self, state: State) -> None:
        """Let state of the store become safe with the rows so far, by the next `flush`."""
        check_note(state)
        with self._lock:
            self._expect_open()
            self._engine.note(state)

    def flush(self, position: Any = None) -> int:
        """Make every row durable now, and that the source was read to a position; how many rows."""
        at = position_note(position)
        with self._lock:
            self._engine.note(at)
            self._engine.put()
            return self._engine.store.flush()

    def finish_training(self) -> list[Event]:
        """Wait for a training that is under way; what came of it."""
        with self._lock:
            self._engine.collect(wait=True)
            return self._news()

    def adapt(self) -> None:
        """Train for the current segment now, without a drift; one that is under way goes on."""
        with self._lock:
            self._expect_open()
            if not self._engine.n_current or not self._engine.can_train:
                raise InputError(
                    f"there is nothing to adapt to: the current segment has "
                    f"{plural(self._engine.n_current, 'row')}, and labels so far are "
                    f"{self.classes}; it takes rows, and two classes"
                )
            self._engine.adapt()

    def close(self, *, finish_training: bool = True, discard: bool = False) -> None:
        """Wait for a training, write everything down and let go of the store.

        A training that is not finished begins again with the first row after `open`. After a
        failure nothing is written; nor is it with `discard`, which lets go as a crash would.
        Closing twice is fine.
        """
        with self._lock:
            closed, self._closed = self._closed, True
            try:
                if self._engine.failure is None and not closed and not discard:
                    self._engine.collect(wait=finish_training)
                    self._engine.checkpoint(self._waiting_in_memory())
            finally:
                self._engine.store.close(discard=discard)
            if self._untold is not None and not closed:
                raise self._untold

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _predict(self, x: Any, key: Key | None) -> NDArray[np.float32]:
        row = read_row(x)
        with self._lock:
            self._expect_row(row)
            self._collect()
            probabilities = self._engine.learning.predict(row)
            if key is not None:
                self._wait(key, row)
            return probabilities

    def _collect(self) -> None:
        try:
            self._engine.collect()
        except StoreError as error:  # the old model answers
            self._untold = error

    def _learn_pair(self, pair: Any) -> list[Event]:
        return self.learn_one(*read_pair(pair))

    def _news(self) -> list[Event]:
        news, self._engine.news = self._engine.news, []
        return news

    def _expect_row(self, row: Row) -> None:
        self._expect([row])

    def _expect(self, rows: Sequence[Row], labels: Sequence[Label] = ()) -> None:
        columns = self._engine.columns
        columns.expect(rows, labels, most=self._engine.setup.settings.max_columns)
        if not self._takes_strangers:
            columns.expect_related(rows)
