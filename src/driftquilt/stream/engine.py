"""The course of Algorithm 2 over a store: learn rows, seal segments, train, change the model.

Rows are learned first and stored right after, before anything that looks into the store (a seal,
a training, a checkpoint) and before the caller is told. If storing fails, memory is ahead of the
store: the engine goes no further, and opening the store again finds the state before.

Every change of model and every seal ends in a checkpoint. Between two checkpoints nothing
happens but learning, which `Learning` does the same way each time, so after a crash the rows
since the last one are learned again; a segment that was sealed meanwhile is found by its first
row and not sealed twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from typing import Any

import pyarrow as pa

from driftquilt.errors import StoreError
from driftquilt.estimator import QuiltClassifier
from driftquilt.estimator_file import unpack
from driftquilt.inputs.row import Row
from driftquilt.store.base import SealedSegment, Store
from driftquilt.stream.champion import Champion
from driftquilt.stream.checkpoint import (
    drop_models,
    put_checkpoint,
    put_model,
    read_checkpoint,
    read_model,
    versions,
)
from driftquilt.stream.events import (
    DriftFound,
    Event,
    ModelKept,
    ModelPromoted,
    ModelRolledBack,
    ModelTrained,
    SegmentDropped,
    SegmentSealed,
    TrainingFailed,
    read_event,
)
from driftquilt.stream.learning import Learning
from driftquilt.stream.rows import LABEL, Columns, Label
from driftquilt.stream.setup import Setup
from driftquilt.stream.training import Outcome, begin

__all__ = ["Engine"]

_MOST_EVENTS = 1_000
_FADE_USE = 0.5


class Engine:
    """A stream at work."""

    def __init__(self, setup: Setup, store: Store, *, wait: bool) -> None:
        self.setup, self.store, self._wait = setup, store, wait
        self.learning = Learning(setup.detector, setup.seed, setup.settings.n_wait)
        self.columns = Columns()
        self.events: list[Event] = []
        self.news: list[Event] = []  # since the caller last asked
        self._first_row = 0  # of the open segment
        self._last_drift = 0
        self._next_training: int | None = setup.settings.n_wait
        self._n_trainings = self._n_versions = 0
        self._used: dict[int, float] = {}  # how much each sealed segment was used of late
        self._checkpoint_row = 0
        self._taken: tuple[list[Row], list[Label]] = ([], [])  # learned, not yet stored
        self._job: Future[Outcome] | None = None
        self._meanwhile: list[tuple[Row, Label]] = []
        self._broken: StoreError | None = None

    @property
    def n_current(self) -> int:
        """Rows of the open segment."""
        return self.learning.n_rows - self._first_row

    @property
    def training(self) -> bool:
        """Whether a training is under way."""
        return self._job is not None

    def take(self, rows: Sequence[Row], labels: Sequence[Label]) -> None:
        """Learn rows in order and keep them; they have been checked."""
        if self._broken is not None:
            raise self._broken
        try:
            for row, label in zip(rows, labels, strict=True):
                self._taken[0].append(row)
                self._taken[1].append(label)
                self._take(row, label)
            self._put_rows()
        except StoreError as error:
            self._broken = error
            raise

    def collect(self, *, wait: bool = False) -> None:
        """Let the outcome of a training take effect, if there is one or it is waited for."""
        if self._job is None or not (wait or self._job.done()):
            return
        job, self._job = self._job, None
        meanwhile, self._meanwhile = self._meanwhile, []
        self._finish(job.result(), meanwhile)

    def tell(self, event: Event) -> None:
        """Note that something happened."""
        self.news.append(event)
        self.events.append(event)
        del self.events[:-_MOST_EVENTS]

    def checkpoint(self, waiting: Any = None) -> None:
        """Write down where the stream stands."""
        self._put_rows()
        tensors, record = self.learning.pack()
        champion = self.learning.champion
        record = {
            "learning": record,
            "columns": self.columns.to_json(),
            "champion": None if champion is None else champion.number,
            "events": [event.to_json() for event in self.events],
            "rows": [self._first_row, self._last_drift, self._next_training],
            "counts": [self._n_trainings, self._n_versions],
            "used": [[number, used] for number, used in self._used.items()],
            "waiting": waiting,
        }
        put_checkpoint(self.store, tensors, record)
        self._checkpoint_row = self.learning.n_rows

    def restore(self) -> Any:
        """Go on from the last checkpoint and the rows after it; gives what was waiting."""
        found = read_checkpoint(self.store)
        waiting = None
        if found is not None:
            waiting = self._unpack(*found)
        drop_models(self.store, above=self._n_versions)
        self._drop_unused(before=self._checkpoint_row)
        for row, label in self._rows_after(self._checkpoint_row):
            self.columns.expect([row], [label])
            self._take(row, label)
        return waiting

    def roll_back(self, version: int) -> None:
        """Let an earlier model take over."""
        clf = read_model(self.store, version, self.setup.estimator.learner)
        self.learning.crown(Champion(clf, version, self.learning.classes))
        self.tell(ModelRolledBack(self.learning.n_rows, version))
        self.checkpoint()

    def _take(self, row: Row, label: Label) -> None:
        learning, settings = self.learning, self.setup.settings
        self.collect()
        if self._job is not None:
            self._meanwhile.append((row, label))
        if learning.learn(row, label):
            if self.setup.guard.accepts_drift(self.n_current, learning.n_rows - self._last_drift):
                self.tell(DriftFound(learning.n_rows))
                self._last_drift = learning.n_rows
                self._seal(full=False)
            else:
                learning.detector = learning.detector.fresh()
        elif self.n_current >= settings.segment_rows:
            self._seal(full=True)
        due = self._next_training is not None and self.n_current >= self._next_training
        if due and self._job is None:
            self._train()
        if learning.n_rows - self._checkpoint_row >= settings.checkpoint_rows:
            self.checkpoint()

    def _seal(self, *, full: bool) -> None:
        self._put_rows()
        sealed = self._find_sealed() or self.store.seal(self._first_row)
        n_rows = self.learning.n_rows
        self.tell(SegmentSealed(n_rows, sealed.number, self._first_row, sealed.n_rows, full))
        self._used[sealed.number] = 1.0
        self._first_row, self._next_training = n_rows, self.setup.settings.n_wait
        self.learning.begin_segment(drift=not full)
        self._choose_dropped()
        self.checkpoint()
        self._drop_unused(before=n_rows)

    def _find_sealed(self) -> SealedSegment | None:
        """The segment that begins with the open rows, if it was sealed before a crash."""
        return next((s for s in self.store.segments if s.name == self._first_row), None)

    def _choose_dropped(self) -> None:
        """Strike the least used segments off until the rest is within bounds."""
        settings = self.setup.settings
        kept = [segment for segment in self.store.segments if segment.number in self._used]
        while len(kept) > 1 and (
            len(kept) > settings.max_segments
            or sum(segment.n_rows for segment in kept) > settings.max_rows
        ):
            least = min(kept[:-1], key=lambda segment: self._used[segment.number])
            kept.remove(least)
            used = self._used.pop(least.number)
            self.tell(
                SegmentDropped(self.learning.n_rows, least.number, least.n_rows, round(used, 6))
            )

    def _drop_unused(self, before: int) -> None:
        for segment in self.store.segments:
            if segment.number not in self._used and int(segment.name or 0) < before:
                self.store.drop(segment.number)

    def _train(self) -> None:
        self._put_rows()
        self._next_training = self.setup.settings.next_training(self.n_current)
        if len(self.learning.classes) < 2 or not self.learning.online.features.names:  # noqa: PLR2004
            return
        self._n_trainings += 1
        seed = (self.setup.seed + self._n_trainings) % 2**31
        training = begin(self.store, self.setup.estimator, seed)
        if self._wait:
            self._finish(training.run(), [])
        else:
            self._job = training.start()

    def _finish(self, outcome: Outcome, meanwhile: Sequence[tuple[Row, Label]]) -> None:
        learning, n_rows = self.learning, self.learning.n_rows
        if outcome.failure is not None:
            self.tell(TrainingFailed(n_rows, outcome.failure))
            self.checkpoint()
            return
        self.tell(
            ModelTrained(
                n_rows, outcome.n_current, outcome.shares, outcome.loss, outcome.seconds,
                outcome.explanation,
            )
        )  # fmt: skip
        for number, share in outcome.shares.items():
            if number in self._used:
                self._used[number] = _FADE_USE * self._used[number] + (1 - _FADE_USE) * share
        previous = learning.recent_loss
        if previous is not None and not self.setup.guard.promotes(outcome.loss, previous):
            self.tell(ModelKept(n_rows, outcome.loss, previous))
        else:
            self._promote(outcome, meanwhile, previous)
        self.checkpoint()

    def _promote(
        self, outcome: Outcome, meanwhile: Sequence[tuple[Row, Label]], previous: float | None
    ) -> None:
        learning = self.learning
        self._n_versions += 1
        put_model(self.store, self._n_versions, outcome.tensors, outcome.record)
        learner = self.setup.estimator.learner
        clf = unpack(QuiltClassifier, outcome.tensors, outcome.record, learner, "the new model")
        champion = Champion(clf, self._n_versions, learning.classes)
        for row, label in meanwhile:
            champion.learn(row, learning.classes.index(label), len(learning.classes))
        learning.crown(champion)
        self.tell(ModelPromoted(learning.n_rows, self._n_versions, outcome.loss, previous))
        kept = versions(self.store)
        for version in sorted(kept)[: -self.setup.settings.max_models]:
            self.store.drop_model(kept[version])

    def _put_rows(self) -> None:
        rows, labels = self._taken
        if rows:
            self._taken = ([], [])
            self.store.append(self.columns.to_batch(rows, labels))

    def _unpack(self, tensors: dict[str, Any], record: dict[str, Any]) -> Any:
        version, learning = record["champion"], record["learning"]
        champion = None
        if version is not None:
            clf = read_model(self.store, version, self.setup.estimator.learner)
            champion = Champion(clf, version, learning["classes"])
        self.learning.unpack(tensors, learning, champion)
        self.columns = Columns.from_json(record["columns"])
        self.events = [read_event(event) for event in record["events"]]
        self._first_row, self._last_drift, self._next_training = record["rows"]
        self._n_trainings, self._n_versions = record["counts"]
        self._used = dict(record["used"])
        self._checkpoint_row = self.learning.n_rows
        return record["waiting"]

    def _rows_after(self, row: int) -> Iterator[tuple[Row, Label]]:
        """Rows of the store that the checkpoint does not know."""
        tables = [
            (int(segment.name or 0), self.store.read(segment.number))
            for segment in self.store.segments
            if int(segment.name or 0) + segment.n_rows > row
        ]
        first = self.store.n_appended - self.store.n_open
        for start, table in [*tables, (first, self.store.open_rows())]:
            yield from _labelled(table.slice(max(row - start, 0)))


def _labelled(table: pa.Table) -> Iterator[tuple[Row, Label]]:
    for batch in table.to_batches(max_chunksize=1_000):
        for row in batch.to_pylist():
            label = row.pop(LABEL)
            yield row, label
