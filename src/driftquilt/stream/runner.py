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
- The label of a row may come later: `predict_one(x, key=...)`, then `learn_one(y=..., key=...)`.

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
from collections.abc import Iterable, Iterator
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from driftquilt.errors import InputError, StoreError
from driftquilt.estimator import QuiltClassifier
from driftquilt.inputs.row import Row, read_row
from driftquilt.learners.base import Learner
from driftquilt.store.base import Store
from driftquilt.stream import opening
from driftquilt.stream.checkpoint import read_model, versions
from driftquilt.stream.engine import Engine
from driftquilt.stream.events import Event, RowForgotten
from driftquilt.stream.guard import Guard
from driftquilt.stream.opening import Place
from driftquilt.stream.rows import Label, iter_rows, read_at, read_label, read_labels
from driftquilt.stream.setup import Setup
from driftquilt.stream.waiting import Key, Waiting

__all__ = ["QuiltStream"]


class QuiltStream:
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
        Whether `learn_one` waits for a training that it began.
    **settings
        How often to train and how much to keep; see `stream.settings.StreamSettings`.

    """

    def __init__(
        self,
        estimator: QuiltClassifier | None = None,
        detector: Any = "adwin",
        n_wait: int = 100,
        *,
        store: Place | None = None,
        guard: Guard | None = None,
        wait: bool = False,
        **settings: Any,
    ) -> None:
        estimator = QuiltClassifier() if estimator is None else estimator
        guard = Guard() if guard is None else guard
        setup = Setup.of(estimator, detector, guard, n_wait=n_wait, **settings)
        self._begin(opening.begin(store, setup, wait=wait))

    @classmethod
    def open(
        cls,
        store: Place,
        *,
        learner: Learner | None = None,
        detector: Any = None,
        wait: bool = False,
    ) -> Self:
        """The stream that a store holds, as it was after its last row.

        A learner or a detector that is code of your own has to be given again. Rows that waited
        for their label are there if the stream was closed, but not after a crash.
        """
        engine, waiting = opening.resume(store, learner, detector, wait=wait)
        stream = cls.__new__(cls)
        stream._begin(engine)
        stream._waiting.restore(waiting or [])
        return stream

    def _begin(self, engine: Engine) -> None:
        self._lock = threading.RLock()
        self._engine = engine
        self._closed = False
        self._untold: StoreError | None = None  # of a training that ended during a prediction
        self._waiting = Waiting(engine.setup.settings.max_waiting)

    @property
    def n_rows(self) -> int:
        """Rows learned so far."""
        return self._engine.learning.n_rows

    @property
    def n_durable(self) -> int:
        """Rows that a crash would not lose."""
        return self._engine.store.n_durable

    @property
    def n_waiting(self) -> int:
        """Predicted rows whose label is still to come."""
        return len(self._waiting)

    @property
    def accuracy(self) -> float:
        """Share of rows that were predicted right, each right before it was learned.

        With late labels this is not what was answered when the row came.
        """
        learning = self._engine.learning
        return learning.n_right / learning.n_rows if learning.n_rows else 0.0

    @property
    def classes(self) -> list[Label]:
        """Labels so far, in order of appearance."""
        return list(self._engine.learning.classes)

    @property
    def events(self) -> tuple[Event, ...]:
        """What happened, oldest first; the last thousand."""
        with self._lock:
            return tuple(self._engine.events)

    @property
    def training(self) -> bool:
        """Whether a training is under way."""
        return self._engine.training

    @property
    def model(self) -> int | None:
        """Version of the model in use; None before the first."""
        champion = self._engine.learning.champion
        return None if champion is None else champion.number

    @property
    def models(self) -> list[int]:
        """Versions that can be rolled back to."""
        return sorted(versions(self._engine.store))

    @property
    def store(self) -> Store:
        """Where rows are kept."""
        return self._engine.store

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
        """The most probable label of each row of a table or list."""
        return [self.predict_one(row) for row in iter_rows(X)]

    def learn_one(self, x: Any = None, y: Any = None, *, key: Key | None = None) -> list[Event]:
        """Learn a row, or the label of one that was predicted under a key; what happened of it."""
        if x is not None and key is not None:
            raise InputError(f"got a row and the key {key!r}; give one of them with the label")
        if x is None and key is None:
            raise InputError("got neither a row nor a key; give one of them with the label")
        with self._lock:
            row = self._waiting.find(key) if key is not None else read_row(x)
            happened = self._learn([row], [read_label(y)])
            if key is not None:
                self._waiting.remove(key)
            return happened

    def learn_many(self, X: Any, y: Iterable[Any]) -> list[Event]:
        """Learn the rows of a table or list, in order, as `learn_one` would; all or none."""
        rows = [read_at(number, read_row, row) for number, row in enumerate(iter_rows(X))]
        labels = read_labels(y)
        if len(rows) != len(labels):
            raise InputError(
                f"there are {len(rows)} rows but {len(labels)} labels; give one label per row"
            )
        with self._lock:
            return self._learn(rows, labels)

    def run(self, rows: Iterable[tuple[Any, Any]]) -> Iterator[Event]:
        """Learn pairs of row and label for as long as they come; yields what happens."""
        for x, y in rows:
            yield from self.learn_one(x, y)

    def roll_back(self, version: int) -> None:
        """Let an earlier model answer again, until the next one is promoted."""
        with self._lock:
            self._expect_model(version)
            self._engine.roll_back(version)

    def classifier(self, version: int | None = None) -> QuiltClassifier:
        """A model as it was trained: the one in use, or another version."""
        with self._lock:
            version = self.model if version is None else version
            self._expect_model(version)
            return read_model(self.store, version or 0, self._engine.setup.estimator.learner)

    def flush(self) -> int:
        """Make every row durable now; how many there are."""
        return self._engine.store.flush()

    def finish_training(self) -> list[Event]:
        """Wait for a training that is under way; what came of it."""
        with self._lock:
            self._engine.collect(wait=True)
            return self._news()

    def close(self) -> None:
        """Wait for a training, write everything down and let go of the store.

        After a failure nothing is written. Closing twice is fine.
        """
        with self._lock:
            closed, self._closed = self._closed, True
            try:
                if self._engine.failure is None and not closed:
                    self._engine.collect(wait=True)
                    self._engine.checkpoint(self._waiting.to_json())
            finally:
                self._engine.store.close()
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
            self._engine.columns.expect([row])
            try:
                self._engine.collect()
            except StoreError as error:  # the old model answers
                self._untold = error
            probabilities = self._engine.learning.predict(row)
            if key is not None:
                self._expect_open()
                forgotten = self._waiting.add(key, row)
                if forgotten is not None:
                    self._engine.tell(RowForgotten(self.n_rows, forgotten))
            return probabilities

    def _expect_open(self) -> None:
        if self._closed:
            raise StoreError("the stream is closed; go on with it: QuiltStream.open(path)")

    def _expect_model(self, version: int | None) -> None:
        if version not in self.models:
            raise InputError(f"there is no model {version!r}; there are {self.models}")

    def _learn(self, rows: list[Row], labels: list[Label]) -> list[Event]:
        self._expect_open()
        self._engine.columns.expect(rows, labels)
        self._engine.take(rows, labels)
        return self._news()

    def _news(self) -> list[Event]:
        news, self._engine.news = self._engine.news, []
        return news
