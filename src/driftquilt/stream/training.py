"""Select and train: the rows of a store become a fitted classifier.

The sealed segments are the history and the open rows the current segment. Arrow tables are read
in place, so a long history is not loaded. A `Training` can run here and now, or elsewhere
while the stream goes on: a `Trainer` decides.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.base import clone

from driftquilt.data.frame import Label, Row
from driftquilt.errors import DriftquiltError
from driftquilt.quilt.classifier import QuiltClassifier, present_weights
from driftquilt.quilt.model_file import pack, unpack
from driftquilt.store.base import SealedSegment, Store
from driftquilt.stream.columns import LABEL
from driftquilt.stream.persistence import first_row
from driftquilt.stream.task import Estimator, learner_of

__all__ = ["Job", "Outcome", "Trainer", "Training", "begin", "on_thread"]

_WIDE = 100  # encoded columns


@dataclass(frozen=True, eq=False)
class Outcome:
    """A trained classifier, whole and taken apart; or why there is none."""

    n_current: int
    model: Estimator | None = None
    tensors: dict[str, NDArray[Any]] = field(default_factory=dict)
    record: dict[str, Any] = field(default_factory=dict)
    weights: dict[int, float] = field(default_factory=dict)
    blend: dict[str, float] = field(default_factory=dict)
    loss: float = 0.0
    work: int = 0  # rows that the trainings went through, epoch by epoch
    explanation: str = ""
    seconds: float = 0.0
    failure: str | None = None


@dataclass(frozen=True, eq=False)
class Training:
    """What a classifier is to be trained on; tables do not change while it runs."""

    estimator: Estimator
    seed: int
    numbers: Sequence[Sequence[int]]  # of the past segments that count as one
    tables: Sequence[pa.Table]  # one for each of these, then the current rows
    names: Sequence[str]

    def run(self) -> Outcome:
        """Train; whatever goes wrong becomes a failure, because the stream goes on without."""
        started = time.perf_counter()
        n_current = len(self.tables[-1])
        try:
            outcome = self._train()
        except DriftquiltError as error:
            return Outcome(n_current, failure=str(error))
        except Exception as error:  # a learner is the user's code
            return Outcome(n_current, failure=repr(error))
        return replace(outcome, seconds=time.perf_counter() - started)

    def _train(self) -> Outcome:
        fitted = self._fit()
        tensors, record = pack(fitted)
        uses = zip(self.numbers, fitted.selection_, strict=True)
        return Outcome(
            len(self.tables[-1]),
            # As it will come back from the store, and not as it is now: the two must not differ.
            unpack(type(fitted), tensors, record, learner_of(fitted), "the new model"),
            tensors=tensors,
            record=record,
            weights={number: float(use.weight) for some, use in uses for number in some},
            blend=fitted.selection_.parts,
            loss=_held_out_loss(fitted),
            work=_count_work(fitted),
            explanation=fitted.selection_.explain(),
        )

    def _fit(self) -> Estimator:
        table = pa.concat_tables(self.tables, promote_options="permissive")
        # In order of name, so that it plays no part which row had a column first.
        names = sorted(
            name
            for name in table.column_names
            if name != LABEL and table[name].null_count < len(table)
        )
        codes = np.repeat(
            np.arange(len(self.names), dtype=np.int32), [len(part) for part in self.tables]
        )
        segments = pa.DictionaryArray.from_arrays(codes, self.names)
        model: Estimator = clone(self.estimator).set_params(random_state=self.seed, progress=False)
        if isinstance(model, QuiltClassifier):
            # A class may be weighed before its first row has come.
            weights = present_weights(model.class_weight, table[LABEL].unique().to_pylist())
            model.set_params(class_weight=weights)
        model.checks_openings = False
        return model.fit(table.select(names), table[LABEL], segments=segments)


#: What runs a training beside the stream, and when it can: on a thread, in a process, elsewhere.
Trainer: TypeAlias = Callable[[Training], Future[Outcome]]


def on_thread(training: Training) -> Future[Outcome]:
    """Train on a thread of its own, at once."""
    pool = ThreadPoolExecutor(1, thread_name_prefix="driftquilt-training")
    future = pool.submit(training.run)
    pool.shutdown(wait=False)
    return future


@dataclass(frozen=True, eq=False)
class Job:
    """A training that runs beside the stream, for so many rows of the segment that begins at a row.

    Rows that come meanwhile are kept, for the new model to learn before it takes over.
    """

    future: Future[Outcome]
    first_row: int
    n_current: int
    meanwhile: list[tuple[Row, Label]] = field(default_factory=list)

    def outcome(self) -> Outcome:
        """Wait for the outcome; a training that was cancelled, or could not begin, has failed."""
        try:
            return self.future.result()
        except (Exception, CancelledError) as error:  # a trainer may be the user's code
            return Outcome(self.n_current, failure=str(error) or "the training was stopped")


def begin(
    store: Store,
    estimator: Estimator,
    seed: int,
    groups: Sequence[Sequence[SealedSegment]],
    tails: Mapping[int, int],
    with_label_columns: Callable[[Sequence[pa.Table], str], list[pa.Table]] | None = None,
) -> Training:
    """Return the training for the store as it is now.

    Segments of a group count as one. A segment's last rows, as many as its tail, belong to the next
    one. With `with_label_columns`, rows have the columns that say what the labels before them were.
    """
    tables, names, held = [], [], None
    for group in groups:
        parts = []
        for segment in group:
            table = store.read(segment.number)
            n_own = len(table) - tails.get(segment.number, 0)
            parts += [*([] if held is None else [held]), table.slice(0, n_own)]
            held = table.slice(n_own) if n_own < len(table) else None
        tables.append(_join(parts))
        names.append(_name(group))
    tables.append(_join([*([] if held is None else [held]), store.open_rows()]))
    if with_label_columns is not None:
        tables = with_label_columns(tables, LABEL)
    numbers = [[segment.number for segment in group] for group in groups]
    return Training(estimator, seed, numbers, tables, [*names, "the current segment"])


def _join(tables: Sequence[pa.Table]) -> pa.Table:
    if len(tables) == 1:
        return tables[0]
    return pa.concat_tables(tables, promote_options="permissive")


def _held_out_loss(fitted: Estimator) -> float:
    """Return the mean loss of rows that models were not trained on; of numbers the mean distance.

    That is what the stream has of the models before, too.
    """
    if isinstance(fitted, QuiltClassifier):
        return float(np.mean([f.validation_loss[f.best] for f in fitted.selection_.folds]))
    outputs, y, weight = fitted.held_out_
    off = np.abs(outputs[:, fitted.net_loss.middle] - y)
    return float(np.average(off, weights=weight)) * fitted.target_.spread


def _count_work(fitted: Estimator) -> int:
    """Rows that all trials went through; shared parts count for each.

    A row of many columns takes as much longer, and counts for as many rows of `_WIDE` columns.
    """
    most = fitted.epoch_rows
    rows = (epoch.n_rows for trial in fitted.model_.trials for epoch in trial.trial.epochs)
    n_rows = sum(n if most is None else min(n, most) for n in rows)
    width = 0 if fitted.encoder_ is None else fitted.encoder_.width
    return round(n_rows * max(1.0, width / _WIDE))


def _name(group: Sequence[SealedSegment]) -> str:
    first, last = first_row(group[0]), first_row(group[-1]) + group[-1].n_rows - 1
    numbers = f"segment {group[0].number}"
    if len(group) > 1:
        numbers = f"segments {group[0].number} to {group[-1].number}"
    return f"{numbers} (rows {first} to {last})"
