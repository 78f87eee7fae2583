"""The course of Algorithm 2 over a store: learn rows, seal segments, train, change the model.

Rows are learned first and stored right after, before anything that looks into the store (a seal,
a training, a checkpoint) and before the caller is told. If anything fails half way, memory is
ahead of the store: the engine stops learning, and opening the store again finds the state
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
import logging
import math
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass, replace
from typing import Any

from driftquilt.data.frame import Label, Row
from driftquilt.errors import DamagedModelError, DamagedSegmentError, StoreError
from driftquilt.store.base import State, Store
from driftquilt.store.pending import KeyedRows, PendingChange
from driftquilt.stream.columns import Columns
from driftquilt.stream.events import (
    ClassAppeared,
    ColumnAppeared,
    ColumnVanished,
    DriftFound,
    Event,
    ModelDamaged,
    ModelKept,
    ModelPromoted,
    ModelRolledBack,
    ModelTrained,
    SegmentDamaged,
    SegmentDropped,
    SegmentSealed,
    TrainingFailed,
    keep,
    read_event,
)
from driftquilt.stream.experts.evidence import Evidence
from driftquilt.stream.experts.nets import Champion
from driftquilt.stream.learning import Learning
from driftquilt.stream.persistence import (
    History,
    drop_models,
    put_checkpoint,
    put_model,
    read_checkpoint,
    read_model,
    rows_after,
    versions,
    waiting_rows,
)
from driftquilt.stream.settings import Setup
from driftquilt.stream.status import StreamStatus
from driftquilt.stream.task import Estimator, make_task
from driftquilt.stream.training import Job, Outcome, Trainer, Training, begin, on_thread
from driftquilt.text import json_safe

__all__ = ["Engine"]

_log = logging.getLogger("driftquilt.stream")

# How a panel cuts segments and trains, when there is no drift; see `Engine._plan_segment`.
_SPAN = 4  # times n_wait: rows of a segment after a drift
_GROWTH = 1.5
_GAIN_LEAST = 0.01  # nats per row by which a new model has to be better than the one before
_SPAN_LONG = 1_000  # rows
_FIRST_PART, _FIRST_PART_LONG = 0.25, 0.5  # of a segment, before its first training
_GROUPS = 24  # of past segments, at most, that a training tells apart
_AHEAD_ROWS = 2_000  # that the budget has from the start


@dataclass
class Counters:
    """Numbers that a checkpoint keeps."""

    first_row: int = 0  # of the open segment
    last_drift: int = 0  # its row; 0 before the first
    next_training: int | None = None  # with how many rows of the open segment
    n_trainings: int = 0
    n_versions: int = 0  # of models
    n_events: int = 0
    n_drifts: int = 0
    tail: int = 0  # rows of the open segment that lie before `first_row`, in the last sealed one
    span: int = 0  # rows after which a panel ends the open segment
    work: int = 0  # rows that trainings went through


class Engine:
    """A stream at work."""

    def __init__(self, setup: Setup, store: Store, trainer: Trainer = on_thread) -> None:
        self.setup, self.store, self._trainer = setup, store, trainer
        self._setup = setup.to_json()
        self.id = str(store.state.get("id", ""))  # early stores have none
        self.learning = Learning(
            setup.detector,
            setup.seed,
            setup.settings.n_wait,
            keep_answers=setup.metric is not None,
            panel=setup.panel,
            max_models=setup.settings.max_models,
            task=make_task(setup.task),
        )
        self.columns = Columns()
        self.history = History(store, setup.settings)
        self.keyed = KeyedRows(store, setup.settings.max_waiting)
        self.events: list[Event] = []
        self.news: list[Event] = []  # since the caller last asked
        self.versions: tuple[int, ...] = ()  # of models that can be rolled back to
        self.counters = Counters(next_training=setup.settings.n_wait, span=self._span_least)
        self._checkpoint_row = 0
        self._damaged: dict[int, str] = {}  # models that cannot be read, and why; their files stay
        self._taken: tuple[list[Row], list[Label]] = ([], [])  # learned, not yet stored
        self._notes: dict[str, Any] = {}  # state that is stored with them
        self._pending: PendingChange | None = None  # and what changes about pending rows
        self.position: Any = None  # in the source, after the last row that came with one
        self._job: Job | None = None
        self.failure: BaseException | None = None
        self._status: StreamStatus | None = None  # until something changes

    @property
    def n_current(self) -> int:
        """Rows of the open segment."""
        return self.learning.n_rows - self.counters.first_row + self.counters.tail

    @property
    def _span_least(self) -> int:
        """Rows that a segment has at least, unless a drift ends it; a panel alone cuts so soon."""
        settings = self.setup.settings
        if not isinstance(self.setup.detector, Evidence):
            return settings.segment_rows
        return min(settings.segment_rows, _SPAN * settings.n_wait)

    @property
    def n_until_training(self) -> int | None:
        """Rows of the open segment still to come before a model is trained; None: no more."""
        due = self.counters.next_training
        return None if due is None else max(0, due - self.n_current)

    @property
    def training(self) -> bool:
        """Whether a training is under way."""
        return self._job is not None and not self._job.future.done()

    def status(self) -> StreamStatus:
        """How the stream stands; the same value until something changes."""
        status, n_durable = self._status, self.store.n_durable
        if status is None or (status.training, status.n_durable) != (self.training, n_durable):
            status = self._status = self._make_status()
        return status

    def _make_status(self) -> StreamStatus:
        learning, counters = self.learning, self.counters
        return StreamStatus(
            n_rows=learning.n_rows,
            task=learning.task.name,
            n_right=learning.n_right,
            absolute_error=learning.task.absolute_error,
            n_durable=self.store.n_durable,
            n_current=self.n_current,
            n_waiting=len(self.keyed),
            n_segments=len(self.history.used),
            n_damaged=len(self.history.damaged),
            n_drifts=counters.n_drifts,
            last_drift=counters.last_drift or None,
            last_event=counters.n_events,
            rows_until_training=self.n_until_training,
            classes=tuple(learning.classes),
            columns=self.columns.sources,
            model=None if learning.champion is None else learning.champion.number,
            models=self.versions,
            training=self.training,
            failure=None if self.failure is None else repr(self.failure),
            detector=self._setup["detector"],
            guard=self._setup["guard"],
            settings=self._setup["settings"],
            class_weight=json_safe(self.setup.class_weight),
            metric=self.setup.metric,
            recent=None if learning.answered is None else learning.answered.freeze(),
            experts=dict(learning.mixture.weights),
        )

    def take_one(
        self,
        row: Row,
        label: Label,
        notes: State | None = None,
        pending: PendingChange | None = None,
    ) -> None:
        """Learn a row; it is stored with notes and pending rows, at the latest by `put`."""
        with self._going_on():
            self.collect()
            self._taken[0].append(row)
            self._taken[1].append(label)
            if notes or pending:
                self.note(notes or {}, pending)
            self._take(row, label)

    def note(self, notes: State, pending: PendingChange | None = None) -> None:
        """Let state and a change of pending rows be stored with the rows taken so far."""
        self._status = None
        self._notes.update(notes)
        self.position = notes.get("position", self.position)
        if pending:
            self._pending = self._pending or PendingChange()
            self._pending.add(pending)

    def put(self) -> None:
        """Store what was taken and noted."""
        if self._taken[0] or self._notes or self._pending is not None:
            with self._going_on():
                self._put_rows()

    def adapt(self) -> None:
        """Train for the current segment now, unless a training is under way."""
        with self._going_on():
            self.collect()
            if self._job is None:
                self._train(asked=True)

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
        self._status = None
        if numbered:
            self.counters.n_events += 1
            event = replace(event, number=self.counters.n_events)
        keep(self.news, event)
        keep(self.events, event)

    def checkpoint(self) -> None:
        """Write down where the stream stands."""
        with self._going_on():
            if self._taken[0]:
                self._put_rows()
            elif self._pending is not None:
                pending, self._pending = self._pending, None
                self.store.hold(pending)
            tensors, learning = self.learning.pack()
            champion = self.learning.champion
            record = {
                "learning": learning,
                "columns": self.columns.to_json(),
                "champion": None if champion is None else champion.number,
                "events": [event.to_json() for event in self.events],
                "counters": asdict(self.counters),
                **self.history.to_json(),
            }
            notes, self._notes = self._notes, {}
            put_checkpoint(self.store, tensors, record, notes)
            self._checkpoint_row = self.learning.n_rows
            self._status = None

    def restore(self) -> None:
        """Go on from the last checkpoint and the rows after it."""
        state = self.store.state
        self.position = state.get("position")
        tensors, record = read_checkpoint(self.store) or ({}, None)
        waiting, slots = waiting_rows(state, record)
        if record is not None:
            self._unpack(tensors, record)
        self._drop_unused()
        for row, label in rows_after(self.store, self._checkpoint_row):
            self.collect()
            self._take(row, label)
        n_open = self.learning.n_rows - self.counters.first_row
        if n_open and not self.store.n_open:  # its detector could not keep its state
            self._seal(full=n_open >= self.counters.span)
        if self.setup.wait:  # of what followed from the last row, a crash may have left a part
            self._go_on()
        if waiting:
            for key, row in waiting:
                self.note({}, self.keyed.add(key, row)[0])
            self.note(slots)
            self.put()
            self.checkpoint()  # the one that has them does not know what becomes of them

    def roll_back(self, version: int, notes: State) -> None:
        """Let an earlier model take over; the notes are stored in the same step."""
        champion = self._read_champion(version)
        with self._going_on():
            self.put()
            self.note(notes)
            self.learning.crown(champion)
            self.tell(ModelRolledBack(self.learning.n_rows, version))
            self.checkpoint()

    @contextlib.contextmanager
    def _going_on(self) -> Iterator[None]:
        """Refuse to go on after a failure, and remember one."""
        if self.failure is not None:
            raise StoreError(
                f"the stream stopped learning after an error: {self.failure!r}; open it "
                f"again, it then has the {self.store.n_durable} rows that were durable"
            ) from self.failure
        try:
            yield
        except BaseException as error:
            self.failure = error
            raise

    def _take(self, row: Row, label: Label) -> None:
        learning, settings = self.learning, self.setup.settings
        self._status = None
        if self._job is not None:
            self._job.meanwhile.append((row, label))
        fired = self._learn(row, label)
        # Only after a restart: later rows are stored, so this one ended nothing.
        again = learning.n_rows < self.store.n_appended
        if fired and not again and self._accepts_drift():
            self._end_by_drift()
        elif fired:
            learning.restart_detector()
        if not again or not self._may_train:
            self._go_on()
        if learning.n_rows - self._checkpoint_row >= settings.checkpoint_rows and not again:
            self.checkpoint()

    def _end_by_drift(self) -> None:
        """Report a drift, and end the segment where it began."""
        learning, counters = self.learning, self.counters
        n_rows, tail = learning.n_rows, 0
        drift = DriftFound(n_rows)
        if isinstance(learning.detector, Evidence):
            began = max(learning.detector.began, counters.first_row + 1)
            tail = max(0, n_rows - began)
            evidence = round(learning.detector.value, 1)
            drift = DriftFound(n_rows, evidence, began, learning.resembles)
        self.tell(drift)
        counters.last_drift = n_rows
        counters.n_drifts += 1
        self._seal(full=False, tail=tail)

    def _go_on(self) -> None:
        """Train and end the segment as it is due; what is done already is not due any more."""
        counters = self.counters
        due = counters.next_training is not None and self.n_current >= counters.next_training
        if due and self._job is None:
            self._train()
        if self.n_current >= counters.span and self.learning.n_rows > counters.first_row:
            self._seal(full=True)

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
        since = self.learning.n_rows - self.counters.last_drift
        n_current = since if isinstance(self.setup.detector, Evidence) else self.n_current
        return self.setup.guard.accepts_drift(n_current, since)

    def _seal(self, *, full: bool, tail: int = 0) -> None:
        """End the open segment, all of it but the tail, with which the next one begins."""
        self._put_rows()
        counters, n_rows = self.counters, self.learning.n_rows
        sealed = self.history.seal(counters.first_row, tail)
        first, n_sealed = counters.first_row - counters.tail, self.n_current - tail
        self.tell(SegmentSealed(n_rows, sealed.number, first, n_sealed, full))
        for column in self.columns.end_segment():
            self.tell(ColumnVanished(n_rows, column))
        self._plan_segment(full=full)
        counters.first_row, counters.tail = n_rows, tail
        self.learning.begin_segment(drift=not full)
        for segment, used in self.history.forget_least_used():
            self.tell(SegmentDropped(n_rows, segment.number, segment.n_rows, round(used, 6)))
        self.checkpoint()
        self._drop_unused()

    def _plan_segment(self, *, full: bool) -> None:
        """How long the next segment may be, and when to train for it first.

        A panel ends segments by itself, so that models keep coming. While new models are no better
        than those before, there is nothing to gain: segments and waits grow.
        """
        counters, settings = self.counters, self.setup.settings
        counters.next_training = settings.n_wait
        if not isinstance(self.setup.detector, Evidence):
            return
        gain = self.learning.gain
        if not full:
            counters.span = self._span_least
        elif gain is not None and gain < _GAIN_LEAST:
            counters.span = min(settings.segment_rows, math.ceil(_GROWTH * counters.span))
        if full:
            part = _FIRST_PART if counters.span <= _SPAN_LONG else _FIRST_PART_LONG
            counters.next_training = max(settings.n_wait, math.ceil(part * counters.span))

    def _drop_unused(self) -> None:
        """Remove what the last checkpoint does not speak of any more."""
        self.history.drop_unused(self.counters.first_row)
        drop_models(self.store, self.learning.archive.keys() | self._kept_models())
        self.versions = tuple(sorted(versions(self.store)))
        self._status = None

    def _kept_models(self) -> set[int]:
        """Versions that answer, and where one model answers alone, those to roll back to."""
        champion, counters = self.learning.champion, self.counters
        kept = {*self._damaged} if champion is None else {champion.number, *self._damaged}
        if self.setup.panel == "model":
            n_first = counters.n_versions - self.setup.settings.max_models + 1
            kept |= set(range(n_first, counters.n_versions + 1))
        return kept

    @property
    def can_train(self) -> bool:
        """Whether rows of two classes, or of two numbers, and with a column have come."""
        return self.learning.task.can_train and len(self.learning.online.features) > 0

    @property
    def _may_train(self) -> bool:
        """Whether a training is possible, and within the budget."""
        allowed = self.setup.settings.train_budget * (self.learning.n_rows + _AHEAD_ROWS)
        within = self.counters.work <= allowed
        return self.can_train and (within or self._is_urgent)

    @property
    def _is_urgent(self) -> bool:
        """Whether the open segment began with a drift, and not long ago."""
        counters = self.counters
        began = counters.first_row == counters.last_drift > 0
        return began and self.n_current <= self._span_least

    def _train(self, *, asked: bool = False) -> None:
        counters = self.counters
        if not (self.can_train if asked else self._may_train):
            counters.next_training = self._next_training(self.n_current)
            return
        self._put_rows()
        self._status = None
        counters.n_trainings += 1
        seed = (self.setup.seed + counters.n_trainings) % 2**31
        try:
            training = self._prepare_training(seed)
        except DamagedSegmentError:
            self._leave_out_damaged()
            training = self._prepare_training(seed)
        if self.setup.wait:
            self._finish(training.run(), counters.first_row, [])
        else:
            self._job = Job(self._begin(training), counters.first_row, self.n_current)

    def _prepare_training(self, seed: int) -> Training:
        learning = self.learning
        return begin(
            self.store,
            self.setup.estimator,
            seed,
            self.history.groups(_GROUPS),
            self.history.tails,
            learning.task.with_label_columns if learning.labels_help else None,
        )

    def _leave_out_damaged(self) -> None:
        """Go on without segments whose files are damaged: the past is optional."""
        for segment, why in self.history.check():
            _log.error("trainings go on without segment %d: %s", segment.number, why)
            n_rows = self.learning.n_rows
            self.tell(SegmentDamaged(n_rows, segment.number, segment.n_rows, why))

    def _next_training(self, n_current: int) -> int | None:
        """With how many rows to train again; a panel does so at the end of the segment, too."""
        due, span = self.setup.settings.next_training(n_current), self.counters.span
        is_panel = isinstance(self.setup.detector, Evidence)
        return min(due, span) if is_panel and due is not None and n_current < span else due

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
        self.counters.work += outcome.work
        if first_row == self.counters.first_row:  # the segment that it was trained for is open
            self.counters.next_training = self._next_training(outcome.n_current)
        if outcome.model is None:
            self.tell(TrainingFailed(n_rows, str(outcome.failure)))
            self.checkpoint()
            return
        self.tell(
            ModelTrained(
                n_rows, outcome.n_current, outcome.weights, outcome.loss, outcome.seconds,
                outcome.explanation, blend=outcome.blend,
            )
        )  # fmt: skip
        self.history.use(outcome.weights)
        previous = learning.recent_loss
        if previous is not None and not self.setup.guard.promotes(outcome.loss, previous):
            self.tell(ModelKept(n_rows, outcome.loss, previous))
        else:
            self._promote(outcome, outcome.model, meanwhile, previous)
        self.checkpoint()
        self._drop_unused()

    def _promote(
        self,
        outcome: Outcome,
        model: Estimator,
        meanwhile: Sequence[tuple[Row, Label]],
        previous: float | None,
    ) -> None:
        learning = self.learning
        self.counters.n_versions += 1
        version = self.counters.n_versions
        put_model(self.store, version, outcome.tensors, outcome.record)
        champion = learning.task.champion(model, version)
        learning.catch_up(champion, meanwhile)
        learning.crown(champion)
        self.tell(ModelPromoted(learning.n_rows, version, outcome.loss, previous))

    def _put_rows(self) -> None:
        (rows, labels), notes, pending = self._taken, self._notes, self._pending
        self._taken, self._notes, self._pending = ([], []), {}, None
        if rows:
            self.store.append(self.columns.to_batch(rows, labels), notes, pending)
        elif notes:
            self.store.write_state(notes, pending)
        elif pending is not None:
            self.store.hold(pending)

    def _unpack(self, tensors: dict[str, Any], record: dict[str, Any]) -> None:
        learning, newest = record["learning"], record["champion"]
        self.learning.task.unpack(learning)  # models are read in its terms
        numbers = {number for number, _ in learning.get("archive", ())}
        if newest is not None:
            numbers.add(newest)
        models = {}
        for number in sorted(numbers):
            try:
                models[number] = self._read_champion(number)
            except DamagedModelError as error:
                self._damaged[number] = str(error)
        self.learning.unpack(tensors, learning, models, newest)
        self.columns = Columns.from_json(record["columns"])
        self.events = [read_event(event) for event in record["events"]]
        self.counters = Counters(**record["counters"])
        self.counters.span = self.counters.span or self._span_least
        self.history.restore(record)
        for number, why in self._damaged.items():
            _log.error("model %d cannot answer any more: %s", number, why)
            self.tell(ModelDamaged(self.learning.n_rows, number, why))
        if newest in self._damaged:  # a new one is due
            self.counters.next_training = self.n_current
        self._checkpoint_row = self.learning.n_rows

    def read_model(self, version: int) -> Estimator:
        """Return a model as it was trained."""
        return read_model(self.store, version, type(self.setup.estimator), self.setup.learner)

    def _read_champion(self, version: int) -> Champion:
        return self.learning.task.champion(self.read_model(version), version)
