"""The course of Algorithm 2 over a store: learn rows, seal segments, train, change the model.

Rows are learned first and stored right after, before anything that looks into the store (a seal,
a training, a checkpoint) and before the caller is told. If anything fails half way, memory is
ahead of the store: the engine learns no further, and opening the store again finds the state
before. It still predicts.

A row from a source comes with a note of the position after it. Notes go into the state of the
store together with the rows taken before them, whatever makes those be stored.

Every change of model and every seal ends in a checkpoint, before another row is stored. So rows
after the last checkpoint have been learned and nothing else, which `Learning` does the same way
each time: after a crash they are learned again. At the last of them a segment may have been
sealed or a training begun; a segment is found by its first row and not sealed twice, and a
training that did not end begins again.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from driftquilt.data.row import Row
from driftquilt.errors import StoreError
from driftquilt.quilt.classifier import QuiltClassifier
from driftquilt.store.base import State, Store
from driftquilt.stream.champion import Champion
from driftquilt.stream.checkpoint import (
    drop_models,
    put_checkpoint,
    put_model,
    read_checkpoint,
    read_model,
)
from driftquilt.stream.columns import Columns
from driftquilt.stream.events import (
    ClassAppeared,
    ColumnAppeared,
    ColumnVanished,
    DriftFound,
    Event,
    ModelKept,
    ModelPromoted,
    ModelRolledBack,
    ModelTrained,
    SegmentDropped,
    SegmentSealed,
    TrainingFailed,
    keep,
    read_event,
)
from driftquilt.stream.learning import Learning
from driftquilt.stream.past import Past, rows_after
from driftquilt.stream.rows import Label
from driftquilt.stream.setup import Setup
from driftquilt.stream.training import Job, Outcome, Trainer, Training, begin, on_thread

__all__ = ["Engine"]


class Engine:
    """A stream at work."""

    def __init__(self, setup: Setup, store: Store, trainer: Trainer = on_thread) -> None:
        self.setup, self.store, self._trainer = setup, store, trainer
        self.id = str(store.state.get("id", ""))  # early stores have none
        self.learning = Learning(setup.detector, setup.seed, setup.settings.n_wait)
        self.columns = Columns()
        self.past = Past(store, setup.settings)
        self.events: list[Event] = []
        self.news: list[Event] = []  # since the caller last asked
        self._first_row = 0  # of the open segment
        self._last_drift = 0
        self._next_training: int | None = setup.settings.n_wait
        self._n_trainings = self._n_versions = self._n_events = self.n_drifts = 0
        self._checkpoint_row = 0
        self._taken: tuple[list[Row], list[Label]] = ([], [])  # learned, not yet stored
        self._notes: dict[str, Any] = {}  # state that is stored with them
        self.position: Any = None  # in the source, after the last row that came with one
        self._job: Job | None = None
        self.failure: BaseException | None = None

    @property
    def n_current(self) -> int:
        """Rows of the open segment."""
        return self.learning.n_rows - self._first_row

    @property
    def n_until_training(self) -> int | None:
        """Rows of the open segment still to come before a model is trained; None: no more."""
        due = self._next_training
        return None if due is None else max(0, due - self.n_current)

    @property
    def training(self) -> bool:
        """Whether a training is under way."""
        return self._job is not None and not self._job.future.done()

    def take(self, rows: Sequence[Row], labels: Sequence[Label]) -> None:
        """Learn rows in order and keep them; they have been checked."""
        for row, label in zip(rows, labels, strict=True):
            self.take_one(row, label, {})
        self.put()

    def take_one(self, row: Row, label: Label, notes: State) -> None:
        """Learn a row; it is kept together with the notes, at the latest by the next `put`."""
        with self._going_on():
            self.collect()
            self._taken[0].append(row)
            self._taken[1].append(label)
            self.note(notes)
            self._take(row, label)

    def note(self, notes: State) -> None:
        """Let state be stored with the rows taken so far."""
        self._notes.update(notes)
        self.position = notes.get("position", self.position)

    def put(self) -> None:
        """Store what was taken and noted."""
        if self._taken[0] or self._notes:
            with self._going_on():
                self._put_rows()

    def adapt(self) -> None:
        """Train for the current segment now, unless a training is under way."""
        with self._going_on():
            self.collect()
            if self._job is None:
                self._train()

    def collect(self, *, wait: bool = False) -> None:
        """Let the outcome of a training take effect, if there is one or it is waited for."""
        job = self._job
        if job is None or not (wait or job.future.done()):
            return
        outcome = job.outcome()
        with self._going_on():
            self._job = None
            self._finish(outcome, job.first_row, job.meanwhile)

    def tell(self, event: Event, *, numbered: bool = True) -> None:
        """Note that something happened."""
        if numbered:
            self._n_events += 1
            event = replace(event, number=self._n_events)
        keep(self.news, event)
        keep(self.events, event)

    def checkpoint(self, waiting: Any = None) -> None:
        """Write down where the stream stands."""
        with self._going_on():
            if self._taken[0]:
                self._put_rows()
            tensors, learning = self.learning.pack()
            champion = self.learning.champion
            record = {
                "learning": learning,
                "columns": self.columns.to_json(),
                "champion": None if champion is None else champion.number,
                "events": [event.to_json() for event in self.events],
                "rows": [self._first_row, self._last_drift, self._next_training],
                "counts": [
                    self._n_trainings,
                    self._n_versions,
                    self._n_events,
                    self.n_drifts,
                ],
                "used": self.past.to_json(),
                "waiting": waiting,
            }
            notes, self._notes = self._notes, {}
            put_checkpoint(self.store, tensors, record, notes)
            self._checkpoint_row = self.learning.n_rows

    def restore(self) -> Any:
        """Go on from the last checkpoint and the rows after it; gives what was waiting."""
        self.position = self.store.state.get("position")
        found = read_checkpoint(self.store)
        waiting = None if found is None else self._unpack(*found)
        self._drop_unused()
        for row, label in rows_after(self.store, self._checkpoint_row):
            self.collect()
            self._take(row, label)
        if self.n_current and not self.store.n_open:  # its detector could not keep its state
            self._seal(full=self.n_current >= self.setup.settings.segment_rows)
        return waiting

    def roll_back(self, version: int, notes: State) -> None:
        """Let an earlier model take over; the notes are stored in the same step."""
        champion = self._read_champion(version, self.learning.classes)
        with self._going_on():
            self.note(notes)
            self.learning.crown(champion)
            self.tell(ModelRolledBack(self.learning.n_rows, version))
            self.checkpoint()

    @contextlib.contextmanager
    def _going_on(self) -> Iterator[None]:
        """Refuse to go on after a failure, and remember one."""
        if self.failure is not None:
            raise StoreError(
                f"the stream learns no further since this went wrong: {self.failure!r}; open it "
                f"again, it then has the {self.store.n_durable} rows that were durable"
            ) from self.failure
        try:
            yield
        except BaseException as error:
            self.failure = error
            raise

    def _take(self, row: Row, label: Label) -> None:
        learning, settings = self.learning, self.setup.settings
        if self._job is not None:
            self._job.meanwhile.append((row, label))
        fired = self._learn(row, label)
        # Only after a restart: later rows are stored, so this one ended nothing.
        again = learning.n_rows < self.store.n_appended
        if fired and not again and self._accepts_drift():
            self.tell(DriftFound(learning.n_rows))
            self._last_drift = learning.n_rows
            self.n_drifts += 1
            self._seal(full=False)
        elif fired:
            learning.detector = learning.detector.fresh()
        if self.n_current >= settings.segment_rows and not again:
            self._seal(full=True)
        due = self._next_training is not None and self.n_current >= self._next_training
        if due and self._job is None and not (again and self.can_train):
            self._train()
        if learning.n_rows - self._checkpoint_row >= settings.checkpoint_rows and not again:
            self.checkpoint()

    def _learn(self, row: Row, label: Label) -> bool:
        """One row further, and what is new in it; whether the detector fired."""
        learning = self.learning
        n_classes, tells = len(learning.classes), learning.champion is not None
        new = self.columns.remember(row, label)
        fired = learning.learn(row, label)
        if tells:
            for column in new:
                self.tell(ColumnAppeared(learning.n_rows, column))
            for known in learning.classes[n_classes:]:
                self.tell(ClassAppeared(learning.n_rows, known))
        return fired

    def _accepts_drift(self) -> bool:
        since = self.learning.n_rows - self._last_drift
        return self.setup.guard.accepts_drift(self.n_current, since)

    def _seal(self, *, full: bool) -> None:
        self._put_rows()
        sealed, n_rows = self.past.seal(self._first_row), self.learning.n_rows
        self.tell(SegmentSealed(n_rows, sealed.number, self._first_row, sealed.n_rows, full))
        for column in self.columns.end_segment():
            self.tell(ColumnVanished(n_rows, column))
        self._first_row, self._next_training = n_rows, self.setup.settings.n_wait
        self.learning.begin_segment(drift=not full)
        for segment, used in self.past.forget_least_used():
            self.tell(SegmentDropped(n_rows, segment.number, segment.n_rows, round(used, 6)))
        self.checkpoint()
        self._drop_unused()

    def _drop_unused(self) -> None:
        """Remove what the last checkpoint does not speak of any more."""
        self.past.drop_unused(self._first_row)
        drop_models(self.store, last=self._n_versions, most=self.setup.settings.max_models)

    @property
    def can_train(self) -> bool:
        """Whether rows of two classes and with a column have come."""
        return len(self.learning.classes) > 1 and len(self.learning.online.features) > 0

    def _train(self) -> None:
        if not self.can_train:
            self._next_training = self.setup.settings.next_training(self.n_current)
            return
        self._put_rows()
        self._n_trainings += 1
        seed = (self.setup.seed + self._n_trainings) % 2**31
        training = begin(self.store, self.setup.estimator, seed)
        if self.setup.wait:
            self._finish(training.run(), self._first_row, [])
        else:
            self._job = Job(self._begin(training), self._first_row, self.n_current)

    def _begin(self, training: Training) -> Future[Outcome]:
        """Have it trained elsewhere; if that cannot be, a training that has failed."""
        try:
            return self._trainer(training)
        except Exception as error:  # a trainer may be the user's code, or closed
            future = Future[Outcome]()
            future.set_exception(error)
            return future

    def _finish(
        self, outcome: Outcome, first_row: int, meanwhile: Sequence[tuple[Row, Label]]
    ) -> None:
        learning, n_rows = self.learning, self.learning.n_rows
        if first_row == self._first_row:  # the segment is still the one that it was trained for
            self._next_training = self.setup.settings.next_training(outcome.n_current)
        if outcome.clf is None:
            self.tell(TrainingFailed(n_rows, str(outcome.failure)))
            self.checkpoint()
            return
        self.tell(
            ModelTrained(
                n_rows, outcome.n_current, outcome.shares, outcome.loss, outcome.seconds,
                outcome.explanation,
            )
        )  # fmt: skip
        self.past.use(outcome.shares)
        previous = learning.recent_loss
        if previous is not None and not self.setup.guard.promotes(outcome.loss, previous):
            self.tell(ModelKept(n_rows, outcome.loss, previous))
        else:
            self._promote(outcome, outcome.clf, meanwhile, previous)
        self.checkpoint()
        self._drop_unused()

    def _promote(
        self,
        outcome: Outcome,
        clf: QuiltClassifier,
        meanwhile: Sequence[tuple[Row, Label]],
        previous: float | None,
    ) -> None:
        learning = self.learning
        self._n_versions += 1
        put_model(self.store, self._n_versions, outcome.tensors, outcome.record)
        champion = Champion(clf, self._n_versions, learning.classes)
        for row, label in meanwhile:
            champion.learn(row, learning.classes.index(label), len(learning.classes))
        learning.crown(champion)
        self.tell(ModelPromoted(learning.n_rows, self._n_versions, outcome.loss, previous))

    def _put_rows(self) -> None:
        (rows, labels), notes = self._taken, self._notes
        self._taken, self._notes = ([], []), {}
        if rows:
            self.store.append(self.columns.to_batch(rows, labels), notes)
        elif notes:
            self.store.write_state(notes)

    def _unpack(self, tensors: dict[str, Any], record: dict[str, Any]) -> Any:
        learning = record["learning"]
        champion = self._read_champion(record["champion"], learning["classes"])
        self.learning.unpack(tensors, learning, champion)
        self.columns = Columns.from_json(record["columns"])
        told = enumerate(record["events"], 1)  # early stores do not say the numbers
        self.events = [read_event({"number": number, **event}) for number, event in told]
        self._first_row, self._last_drift, self._next_training = record["rows"]
        self._n_trainings, self._n_versions, *later = record["counts"]
        drifts = [event for event in self.events if isinstance(event, DriftFound)]
        counted = [*later, *(len(self.events), len(drifts))[len(later) :]]  # new since early stores
        self._n_events, self.n_drifts = counted
        self.past.restore(record["used"])
        self._checkpoint_row = self.learning.n_rows
        return record["waiting"]

    def _read_champion(self, version: int | None, classes: Sequence[Label]) -> Champion | None:
        if version is None:
            return None
        clf = read_model(self.store, version, self.setup.estimator.learner)
        return Champion(clf, version, classes)
