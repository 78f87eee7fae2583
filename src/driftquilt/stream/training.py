"""Select and train: the rows of a store become a fitted classifier.

The sealed segments are the history and the open rows the current segment. Arrow tables are read
in place, so a long history is not loaded. A `Training` can run here and now, or on a thread of
its own while the stream goes on.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.base import clone

from driftquilt.errors import DriftquiltError
from driftquilt.estimator import QuiltClassifier
from driftquilt.estimator_file import pack
from driftquilt.store.base import SealedSegment, Store
from driftquilt.stream.rows import LABEL

__all__ = ["Outcome", "Training", "begin"]


@dataclass(frozen=True, eq=False)
class Outcome:
    """A trained classifier, taken apart; or why there is none."""

    tensors: dict[str, NDArray[Any]] = field(default_factory=dict)
    record: dict[str, Any] = field(default_factory=dict)
    shares: dict[int, float] = field(default_factory=dict)
    loss: float = 0.0
    explanation: str = ""
    n_current: int = 0
    seconds: float = 0.0
    failure: str | None = None


@dataclass(frozen=True, eq=False)
class Training:
    """What a classifier is to be trained on; tables do not change while it runs."""

    clf: QuiltClassifier
    numbers: Sequence[int]
    tables: Sequence[pa.Table]  # one per number, then the current rows
    names: Sequence[str]

    def run(self) -> Outcome:
        """Train; errors of our own become a failure."""
        started = time.perf_counter()
        table = pa.concat_tables(self.tables, promote_options="permissive")
        held = [name for name in table.column_names if table[name].null_count < len(table)]
        segments = np.repeat(np.array(self.names), [len(part) for part in self.tables])
        features = table.select([name for name in held if name != LABEL])
        try:
            fitted = self.clf.fit(features, table[LABEL], segments=segments)
        except DriftquiltError as error:
            return Outcome(failure=str(error))
        tensors, record = pack(fitted)
        uses = zip(self.numbers, fitted.selection_, strict=True)
        return Outcome(
            tensors=tensors,
            record=record,
            shares={number: float(use.share) for number, use in uses},
            loss=float(np.mean([f.validation_loss[f.best] for f in fitted.selection_.folds])),
            explanation=fitted.selection_.explain(),
            n_current=len(self.tables[-1]),
            seconds=time.perf_counter() - started,
        )

    def start(self) -> Future[Outcome]:
        """Train on a thread of its own."""
        pool = ThreadPoolExecutor(1, thread_name_prefix="driftquilt-training")
        future = pool.submit(self.run)
        pool.shutdown(wait=False)
        return future


def begin(store: Store, estimator: QuiltClassifier, seed: int) -> Training:
    """The training for the store as it is now."""
    sealed = store.segments
    clf = clone(estimator).set_params(random_state=seed, progress=False)
    return Training(
        clf,
        [segment.number for segment in sealed],
        [*(store.read(segment.number) for segment in sealed), store.open_rows()],
        [*map(_name, sealed), "the current segment"],
    )


def _name(segment: SealedSegment) -> str:
    first = int(segment.name or 0)
    return f"segment {segment.number} (rows {first} to {first + segment.n_rows - 1})"
