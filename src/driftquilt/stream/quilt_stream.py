"""Algorithm 2 on a stream that never ends: predict, learn, detect, seal, gather, select, train.

Rows come one by one or in batches; each is predicted by a panel of experts (`Learning`), learned,
and kept in the store. When the detector fires, or the open segment is long enough, its rows become
a past segment; `n_wait` rows later a model is trained on the past that agrees with them, and again
each time the segment has doubled. Every model joins the panel.

- Predictions go on with the old model while rows are gathered and while a training runs, on a
  thread of its own; rows that come meanwhile are learned by the new model before it takes over.
  With `wait=True` a training is over when `learn_one` returns, and everything is repeatable.
- A row is safe when `learn_one` returns, unless the store gathers commits (`n_durable`). When
  the store fails, `learn_one` says so from then on; predictions go on.
- After a crash `QuiltStream.open` reads the last checkpoint and learns the rows after it again.
- The label of a row may come later: `predict_one(x, key=...)`, then `learn_one(y=..., key=...)`,
  or `forget(key)` if it never will. The row waits in the store, so a crash does not lose it, and
  leaves it in the step in which it goes in among the learned ones: it is learned once.
- A row may come with the position after it in its source, which is stored in the same step. Such
  a row is safe by the next `flush`; after a crash, `position` says where to read on.
- A row that shares no column with any learned so far is refused: it is of another feed.

>>> from driftquilt.stream import QuiltStream
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

import contextlib
import os
import secrets
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeAlias, cast

from numpy.typing import NDArray
from sklearn.base import clone

from driftquilt.data.frame import (
    Label,
    Row,
    iter_rows,
    read_at,
    read_label_list,
    read_pair,
    read_row,
)
from driftquilt.errors import InputError, StoreError
from driftquilt.learners.base import Learner
from driftquilt.quilt.classifier import QuiltClassifier
from driftquilt.quilt.metrics import Scoring
from driftquilt.quilt.model_file import REGRESSION
from driftquilt.quilt.regressor import expect_coverage
from driftquilt.store.base import State, Store, state_to_json
from driftquilt.store.disk import DiskStore
from driftquilt.store.memory import MemoryStore
from driftquilt.store.pending import Key, PendingChange
from driftquilt.stream.engine import Engine
from driftquilt.stream.events import Event, ModelPromoted, RowForgotten, TrainingFailed
from driftquilt.stream.persistence import SLOT
from driftquilt.stream.settings import LET_ALL_THROUGH, Guard, Setup, StreamSettings
from driftquilt.stream.snapshot import NumberSnapshot, Snapshot
from driftquilt.stream.status import StreamStatus
from driftquilt.stream.task import Estimator, reader
from driftquilt.stream.training import Trainer, on_thread
from driftquilt.stream.workers import Workers
from driftquilt.text import plural

if TYPE_CHECKING:
    from driftquilt.report.drawing import Drawing

__all__ = ["Place", "QuiltStream"]

Place: TypeAlias = Store | str | os.PathLike[str]
_OWN_STATE = ("stream", "id")
_TOGETHER = 256  # rows that are predicted at once, while learning waits


class QuiltStream:
    """A classifier or a regressor for a drifting stream; any thread may call every method.

    Parameters
    ----------
    estimator : QuiltClassifier or QuiltRegressor, optional
        What is trained; its `random_state` makes the stream repeatable. With a regressor labels
        and answers are numbers.
    detector : str, dict or object
        What tells a drift. "experts" compares the experts of the stream with each other, and with
        it the stream cuts segments and trains on a schedule, without waiting for a drift. Others
        are a name such as "adwin", its settings, or a detector; see `detectors`.
    n_wait : int
        Rows of a new segment to gather before a model is trained for it.
    store : Store or path, optional
        Where rows are kept; a folder survives crashes, None is memory.
    guard : Guard, optional
        What stands between a drift and a new model; see `Guard`. With "experts" the default
        refuses no model that is not broken.
    wait : bool
        Whether `learn_one` waits for a training that it began; kept for `open`.
    trainer : Trainer
        Where trainings run that are not waited for: on a thread, or in a process of their own,
        `stream.workers.Workers()`.
    scoring : str or dict, optional
        A metric to watch beside accuracy, by the name of a scikit-learn scorer, or a cost matrix:
        `status().score` is that of the last thousand rows. It chooses nothing; the estimator has
        a `scoring` of its own.
    **settings
        How often to train and how much to keep; see `stream.settings.StreamSettings`. And `panel`:
        "all", "rows" without the experts that see the last labels, for labels that come late, or
        "model" for the newest model alone, as in the paper.

    """

    _takes_strangers = False  # rows without any column that others have had

    def __init__(
        self,
        estimator: Estimator | None = None,
        detector: Any = "experts",
        n_wait: int = 25,
        *,
        store: Place | None = None,
        guard: Guard | None = None,
        wait: bool = False,
        trainer: Trainer = on_thread,
        scoring: Scoring | None = None,
        **settings: Any,
    ) -> None:
        estimator = QuiltClassifier() if estimator is None else estimator
        setup = Setup.of(
            estimator, detector, guard, wait=wait, scoring=scoring, n_wait=n_wait, **settings
        )
        with _opened(MemoryStore() if store is None else store) as opened:
            if opened.n_appended or opened.state or opened.models:
                raise StoreError(
                    "there is a stream in this store already; go on with it: QuiltStream.open(path)"
                )
            _expect_trainer(trainer, setup)
            opened.write_state({"stream": setup.to_json(), "id": secrets.token_hex(8)})
            self._start(Engine(setup, opened, trainer))

    @classmethod
    def paper(
        cls,
        detector: Any = "adwin",
        n_wait: int = 100,
        *,
        random_state: int | None = None,
        **settings: Any,
    ) -> Self:
        """Make a stream that is Algorithm 2 as published: one model, one detector, nothing else.

        A drift ends a segment, `n_wait` rows later a model is trained as in the paper, and it
        answers alone and does not learn on. Until the first model is there, a net that learns
        online answers. A segment still ends after `segment_rows`, so that memory is bounded.
        """
        estimator = QuiltClassifier.paper(random_state=random_state)
        alone = {"guard": LET_ALL_THROUGH, "refresh": None, "panel": "model"}
        return cls(estimator, detector, n_wait, **{**alone, **settings})

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
        n_jobs: int | None = None,
        max_waiting: int | None = None,
    ) -> Self:
        """Return the stream that a store holds, as it was after its last row.

        A learner or a detector that is your own code has to be given again; `wait`, the
        estimator's `engine` and `n_jobs`, and `max_waiting` are as before unless they are given.
        After a crash the next `learn_one` returns what happened since the last checkpoint,
        perhaps for the second time.
        """
        if isinstance(store, str | os.PathLike) and not Path(store).is_dir():
            raise StoreError(f"there is no folder {store}; begin a stream: QuiltStream(store=path)")
        with _opened(store) as opened:
            before: Any = opened.state.get("stream")
            setup = Setup.from_json(
                before,
                learner,
                detector,
                wait=wait,
                engine=engine,
                n_jobs=n_jobs,
                max_waiting=max_waiting,
            )
            _expect_trainer(trainer, setup)
            if setup.wait != before.get("wait", False):  # for the next time
                opened.write_state({"stream": {**before, "wait": setup.wait}})
            resumed = Engine(setup, opened, trainer)
            resumed.restore()
        stream = cls.__new__(cls)
        stream._start(resumed)
        return stream

    def _start(self, engine: Engine) -> None:
        self._lock = threading.RLock()
        self._engine = engine
        self._closed = False
        self._unraised: StoreError | None = None  # of a training that ended during a prediction

    def predict_one(self, x: Any, key: Key | None = None) -> Any:
        """Return the most probable label, or the number; None before the first row is learned.

        With a key the row waits for its label. With class weights it is the label of the highest
        product, once there is a model.
        """
        with self._lock:  # so that the model that decides is the one that predicted
            return self._engine.learning.label(self._predict(x, key))

    def predict_proba_one(self, x: Any, key: Key | None = None) -> dict[Label, float]:
        """Return the probability of each label so far."""
        self._expect_classes("predict_proba_one")
        probabilities = self._predict(x, key)
        return dict(zip(self.classes, probabilities.tolist(), strict=False))

    def predict_interval_one(self, x: Any, coverage: float = 0.8) -> tuple[float, float] | None:
        """Return both ends of an interval that holds such a share of the numbers in the long run.

        It follows the errors of the last 500 answers, the newest of which say how large errors are
        now. It is as wide for every row, and None as long as there are too few errors: ten rows
        for a coverage of 0.8.
        """
        if self.task != REGRESSION:
            raise InputError(
                "predict_interval_one is for numbers, and the labels of this stream are classes; "
                "use predict_proba_one"
            )
        expect_coverage(coverage)
        with self._lock:
            answer = self._predict(x, None)[None, :]
            ends = cast(NumberSnapshot, self._engine.learning.live()).intervals(answer, coverage)
        return None if ends is None else (float(ends[0, 0]), float(ends[0, 1]))

    def predict_many(self, X: Any) -> list[Any]:
        """Return the label of each row of a table or list, as `predict_one` does."""
        answers: list[Any] = []
        numbered = enumerate(iter_rows(X))
        while some := list(islice(numbered, _TOGETHER)):
            rows = [read_at(number, read_row, row) for number, row in some]
            with self._lock:
                for (number, _), row in zip(some, rows, strict=True):
                    read_at(number, lambda row: self._expect([row]), row)
                self._collect()
                answers += self._engine.learning.predict_labels(rows)
        return answers

    def learn_one(
        self, x: Any = None, y: Any = None, *, key: Key | None = None, position: Any = None
    ) -> list[Event]:
        """Learn a row, or the label of one that was predicted under a key; what happened of it."""
        if x is not None and key is not None:
            raise InputError(f"got a row and the key {key!r}; give one of them with the label")
        if x is None and key is None:
            raise InputError("got neither a row nor a key; give one of them with the label")
        label = self._read_label(y)
        notes = None if position is None else _position_note(position)
        with self._lock:
            row = read_row(x) if key is None else self._engine.keyed.find(key)
            self._expect_open()
            self._expect([row], [label])
            pending = None if key is None else self._engine.keyed.remove(key)
            self._engine.take_one(row, label, notes, pending)
            if position is None:
                self._engine.put()
            return self._news()

    def expect(self, X: Any, y: Iterable[Any] = ()) -> None:
        """Refuse rows and labels that could not be learned; nothing changes."""
        rows = _read_rows(X)
        labels = read_label_list(y, self._read_label)
        with self._lock:
            self._expect(rows, labels)

    def unfit(self, X: Any, y: Iterable[Any]) -> dict[int, str]:
        """Rows that could not be learned after those before them, by number, and why."""
        rows = _read_rows(X)
        labels = read_label_list(y, self._read_label)
        with self._lock:
            columns = self._engine.columns
            return columns.unfit(rows, labels, strangers=self._takes_strangers)

    def learn_many(
        self,
        X: Any,
        y: Iterable[Any],
        *,
        notes: Sequence[State] | None = None,
        pending: Sequence[PendingChange] | None = None,
    ) -> list[Event]:
        """Learn the rows of a table or list, in order, as `learn_one` would; all or none.

        With a note for each row, state of the store that becomes safe together with that row,
        rows are safe by the next `flush`; with `pending`, a change of the store's pending rows
        for each row as well.
        """
        rows = _read_rows(X)
        labels = read_label_list(y, self._read_label)
        if len(rows) != len(labels):
            raise InputError(
                f"there are {len(rows)} rows but {len(labels)} labels; give one label per row"
            )
        for name, others in (("notes", notes), ("pending changes", pending)):
            if others is not None and len(others) != len(rows):
                raise InputError(
                    f"there are {len(rows)} rows but {len(others)} {name}; give one for each row"
                )
        for note in notes or ():
            _check_note(note)
        with self._lock:
            self._expect_open()
            self._expect(rows, labels)
            for at, (row, label) in enumerate(zip(rows, labels, strict=True)):
                self._engine.take_one(
                    row,
                    label,
                    None if notes is None else notes[at],
                    None if pending is None else pending[at],
                )
            if notes is None and pending is None:
                self._engine.put()
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
        _check_note(note or {})
        with self._lock:
            self._expect_model(version)
            self._engine.roll_back(version, note or {})

    def note(self, state: State) -> None:
        """Let state of the store become safe with the rows so far, by the next `flush`."""
        _check_note(state)
        with self._lock:
            self._expect_open()
            self._engine.note(state)

    def flush(self, position: Any = None) -> int:
        """Make every row durable now, and that the source was read to a position; how many rows."""
        notes = {} if position is None else _position_note(position)
        with self._lock:
            self._engine.note(notes)
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
                labels = f"labels so far are {self.classes}" if self.classes else "labels are equal"
                raise InputError(
                    f"there is nothing to adapt to: the current segment has "
                    f"{plural(self._engine.n_current, 'row')}, and {labels}; it takes rows, "
                    "and two classes or different numbers"
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
                    self._engine.checkpoint()
            finally:
                self._engine.store.close(discard=discard)
            if self._unraised is not None and not closed:
                raise self._unraised

    def expect_label(self, x: Any, key: Key, *, position: Any = None) -> RowForgotten | None:
        """Let a row wait for its label without a prediction.

        With the position after the row in its source it becomes safe together with that, at the
        latest by the next `flush`. Return the event if another row had to go for it.
        """
        row = read_row(x)
        notes = {} if position is None else _position_note(position)
        with self._lock:
            self._expect([row])
            forgotten = self._let_wait(key, row)
            self._engine.note(notes)
            if position is None:
                self._engine.put()
            return forgotten

    def expect_key(self, x: Any, key: Key) -> None:
        """Refuse a row that could not wait under this key; nothing changes."""
        row = read_row(x)
        with self._lock:
            self._expect_open()
            self._expect([row])
            self._engine.keyed.expect(key, row)

    def forget(self, key: Key) -> None:
        """Let a row go that waits for its label, because the label will never come."""
        with self._lock:
            self._expect_open()
            self._engine.note({}, self._engine.keyed.remove(key))
            self._engine.put()

    def status(self) -> StreamStatus:
        """Return how the stream stands; the same value until something changes."""
        with self._lock:
            return self._engine.status()

    def __repr__(self) -> str:
        # Without the lock: a debugger is not to wait for a training.
        return f"<QuiltStream: {self._engine.status()}>"

    @property
    def n_rows(self) -> int:
        """Rows learned so far."""
        return self._engine.learning.n_rows

    @property
    def n_right(self) -> int:
        """Rows that were predicted right, each right before it was learned."""
        return self._engine.learning.n_right

    @property
    def absolute_error(self) -> float:
        """How far answers were off, of all rows together; 0 of classes."""
        return self._engine.learning.task.absolute_error

    @property
    def task(self) -> str:
        """Whether labels are classes, "classification", or numbers, "regression"."""
        return self._engine.setup.task

    @property
    def mean_absolute_error(self) -> float | None:
        """How far answers were off on average, each before the row was learned; of numbers."""
        return self.status().mean_absolute_error

    @property
    def accuracy(self) -> float:
        """Share of rows that were predicted right, each right before it was learned.

        With late labels this is not what was answered when the row came.
        """
        return self.n_right / self.n_rows if self.n_rows else 0.0

    @property
    def n_at_once(self) -> int:
        """Rows that can be learned by one call with one training at most, at the last of them."""
        n_wait, n_left = self.settings.n_wait, self._engine.n_until_training
        return max(1, n_wait if n_left is None else min(n_wait, n_left))

    @property
    def n_durable(self) -> int:
        """Rows that a crash would not lose."""
        return self._engine.store.n_durable

    @property
    def n_waiting(self) -> int:
        """Predicted rows whose label is still to come."""
        return len(self._engine.keyed)

    @property
    def id(self) -> str:
        """What tells this stream from others; empty in early stores."""
        return self._engine.id

    @property
    def seed(self) -> int:
        """What everything random in the stream follows from."""
        return self._engine.setup.seed

    @property
    def estimator(self) -> Estimator:
        """The estimator, not fitted, that its models are copies of."""
        own: Estimator = clone(self._engine.setup.estimator)
        return own

    @property
    def class_weight(self) -> Mapping[Any, float] | str | None:
        """Weights of classes that its models are trained with and answer by."""
        return self._engine.setup.class_weight

    @property
    def position(self) -> Any:
        """Where the source was read to; after `open`, where to read on."""
        return self._engine.position

    @property
    def classes(self) -> list[Label]:
        """Labels so far, in order of appearance."""
        return list(self._engine.learning.classes)

    @property
    def columns(self) -> dict[str, str]:
        """Columns so far, each with "number" or "text"; a date is the columns of its parts."""
        return self._engine.columns.kinds

    @property
    def used(self) -> dict[int, float]:
        """How much each past segment was used by recent trainings."""
        return dict(self._engine.history.used)

    @property
    def failure(self) -> BaseException | None:
        """What stopped the stream from learning, if something did."""
        return self._engine.failure

    @property
    def events(self) -> tuple[Event, ...]:
        """What happened, oldest first; the last thousand, of columns the last 200."""
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
        return list(self._engine.versions)

    @property
    def settings(self) -> StreamSettings:
        """The numbers it runs by."""
        return self._engine.setup.settings

    @property
    def store(self) -> Store:
        """Where rows are stored."""
        return self._engine.store

    def snapshot(self) -> Snapshot:
        """Return what answers now: it does not learn, and any number of threads may ask it."""
        with self._lock:
            return self._engine.learning.snapshot()

    def classifier(self, version: int | None = None) -> QuiltClassifier:
        """Return a classifier as it was trained; see `fitted`."""
        self._expect_classes("classifier")
        return cast(QuiltClassifier, self.fitted(version))

    def fitted(self, version: int | None = None) -> Estimator:
        """Return a model as it was trained: the one in use, or another version.

        >>> stream = QuiltStream(n_wait=50, wait=True)
        >>> _ = stream.learn_one({"age": 31.0}, "yes")
        >>> stream.fitted()
        Traceback (most recent call last):
        driftquilt.errors.InputError: there is no model yet: the first is trained when 50 rows of \
a segment are gathered, 49 from now, and rows of two classes, but all so far are 'yes'
        """
        with self._lock:
            version = self.model if version is None else version
            if version is None:
                raise InputError(f"there is no model yet: {_when(self._engine)}")
            self._expect_model(version)
            return self._engine.read_model(version)

    def plot(self) -> Drawing:
        """Draw the quilt so far, for notebooks: a row for each model that can be rolled back to.

        A row is named by the model's version and the row of the stream at which it took over.
        """
        from driftquilt.report.drawing import draw_selections  # noqa: PLC0415  # it stands above

        rows = {event.model: event.row for event in self.events if isinstance(event, ModelPromoted)}
        with self._lock:
            chosen = {
                f"model {v}, row {rows[v]:,}" if v in rows else f"model {v}": (
                    self.fitted(v).selection_
                )
                for v in self.models
            }
        if not chosen:
            raise InputError(f"there is no model yet: {_when(self._engine)}")
        return draw_selections(chosen)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _predict(self, x: Any, key: Key | None) -> NDArray[Any]:
        row = read_row(x)
        with self._lock:
            self._expect([row])
            self._collect()
            answer = self._engine.learning.predict(row)
            if key is not None:
                self._let_wait(key, row)
                self._engine.put()
            return answer

    def _read_label(self, y: Any) -> Label:
        label: Label = reader(self.task)(y)
        return label

    def _expect_classes(self, what: str) -> None:
        if self.task == REGRESSION:
            raise InputError(
                f"{what} is for classes, and the labels of this stream are numbers; use "
                "predict_one, or fitted for a model"
            )

    def _collect(self) -> None:
        try:
            self._engine.collect()
        except StoreError as error:  # the old model answers
            self._unraised = error

    def _learn_pair(self, pair: Any) -> list[Event]:
        return self.learn_one(*read_pair(pair))

    def _news(self) -> list[Event]:
        news, self._engine.news = self._engine.news, []
        return news

    def _let_wait(self, key: Key, row: Row) -> RowForgotten | None:
        self._expect_open()
        change, oldest = self._engine.keyed.add(key, row)
        self._engine.note({}, change)
        if oldest is None:
            return None
        forgotten = RowForgotten(self.n_rows, oldest)
        self._engine.tell(forgotten, numbered=False)
        return forgotten

    def _expect(self, rows: Sequence[Row], labels: Sequence[Label] = ()) -> None:
        columns = self._engine.columns
        columns.expect(rows, labels, self._engine.setup.settings.max_columns)
        if not self._takes_strangers:
            columns.expect_related(rows)

    def _expect_open(self) -> None:
        if self._closed:
            raise StoreError("the stream is closed; go on with it: QuiltStream.open(path)")

    def _expect_model(self, version: int | None) -> None:
        if version not in self.models:
            raise InputError(f"there is no model {version!r}; there are {self.models}")


@contextlib.contextmanager
def _opened(place: Place) -> Iterator[Store]:
    """Open a store; close it if something fails, unless the caller had opened it."""
    store = DiskStore(place) if isinstance(place, str | os.PathLike) else place
    try:
        yield store
    except BaseException:
        if store is not place:
            store.close()
        raise


def _read_rows(X: Any) -> list[Row]:
    return [read_at(number, read_row, row) for number, row in enumerate(iter_rows(X))]


def _expect_trainer(trainer: Trainer, setup: Setup) -> None:
    if isinstance(trainer, Workers):
        trainer.expect(setup.estimator)


def _check_note(state: State) -> None:
    """Refuse state that is not JSON, or that the stream keeps itself."""
    names = state_to_json(state)
    own = [name for name in names if name in _OWN_STATE or name.startswith(SLOT)]
    if own:
        raise InputError(f"the stream itself keeps {own[0]!r} in the store; give another name")


def _position_note(position: Any) -> State:
    """Return a position as state to be stored; `InputError` if it is not a JSON value."""
    notes = {"position": position}
    state_to_json(notes)
    return notes


def _when(engine: Engine) -> str:
    """Say when there will be the first model."""
    if engine.training:
        return "it is being trained; finish_training() waits for it"
    failed = [event for event in engine.events if isinstance(event, TrainingFailed)]
    if failed:
        return f"the last training failed at row {failed[-1].row}, {failed[-1].why}"
    n_left, classes = engine.n_until_training, engine.learning.classes
    if n_left is None:
        return "the next training comes after a drift"
    n_wait = engine.n_current + n_left
    when = f"the first is trained when {n_wait} rows of a segment are gathered, {n_left} from now"
    if len(classes) == 1:
        when += f", and rows of two classes, but all so far are {classes[0]!r}"
    return when
