"""What can be asked of a stream at any time: counts, classes, events, models. Nothing changes it.

>>> from driftquilt.stream.runner import QuiltStream
>>> stream = QuiltStream(n_wait=50, wait=True)
>>> _ = stream.learn_one({"age": 31.0}, "yes")
>>> stream
<QuiltStream: 1 row, accuracy 0.000, 0 past segments, no model yet, not training>
>>> stream.classifier()
Traceback (most recent call last):
driftquilt.errors.InputError: there is no model yet: the first is trained when 50 rows of a \
segment are gathered, 49 from now, and rows of two classes, but all so far are 'yes'
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from driftquilt.errors import InputError
from driftquilt.estimator import QuiltClassifier
from driftquilt.store.base import Store
from driftquilt.stream.checkpoint import read_model, versions
from driftquilt.stream.engine import Engine
from driftquilt.stream.events import Event, TrainingFailed
from driftquilt.stream.rows import Label
from driftquilt.stream.waiting import Waiting

if TYPE_CHECKING:
    from driftquilt.report.drawing import Drawing

__all__ = ["Status"]


class Status:
    """The asking side of a stream."""

    _lock: threading.RLock
    _engine: Engine
    _waiting: Waiting

    def __repr__(self) -> str:
        # Without the lock: a debugger is not to wait for a training.
        n_segments = len(self._engine.past)
        parts = [
            f"{self.n_rows} row{'' if self.n_rows == 1 else 's'}",
            f"accuracy {self.accuracy:.3f}",
            f"{n_segments} past segment{'' if n_segments == 1 else 's'}",
            "no model yet" if self.model is None else f"model {self.model}",
            "training" if self.training else "not training",
        ]
        return f"<QuiltStream: {', '.join(parts)}>"

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
        return sorted(versions(self._engine.store))

    @property
    def store(self) -> Store:
        """Where rows are kept."""
        return self._engine.store

    def classifier(self, version: int | None = None) -> QuiltClassifier:
        """A model as it was trained: the one in use, or another version."""
        with self._lock:
            version = self.model if version is None else version
            if version is None:
                raise InputError(f"there is no model yet: {_when(self._engine)}")
            self._expect_model(version)
            return read_model(self.store, version, self._engine.setup.estimator.learner)

    def plot(self) -> Drawing:
        """The quilt so far, for notebooks: a row for each model that can be rolled back to."""
        from driftquilt.report.drawing import draw_selections  # noqa: PLC0415  # it stands above

        with self._lock:
            chosen = [self.classifier(version).selection_ for version in self.models]
        if not chosen:
            raise InputError(f"there is no model yet: {_when(self._engine)}")
        return draw_selections(chosen)

    def _expect_model(self, version: int | None) -> None:
        if version not in self.models:
            raise InputError(f"there is no model {version!r}; there are {self.models}")


def _when(engine: Engine) -> str:
    """When there will be the first model, in words."""
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
