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
from typing import TYPE_CHECKING, Any

from driftquilt.errors import InputError
from driftquilt.quilt.classifier import QuiltClassifier
from driftquilt.store.base import Store
from driftquilt.stream.checkpoint import read_model, versions
from driftquilt.stream.engine import Engine
from driftquilt.stream.events import Event, ModelPromoted, TrainingFailed
from driftquilt.stream.learning import FrozenLearning
from driftquilt.stream.rows import Label
from driftquilt.stream.settings import StreamSettings
from driftquilt.stream.waiting import Waiting
from driftquilt.text import plural

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
        parts = [
            plural(self.n_rows, "row"),
            f"accuracy {self.accuracy:.3f}",
            plural(len(self._engine.past), "past segment"),
            "no model yet" if self.model is None else f"model {self.model}",
            "training" if self.training else "not training",
        ]
        return f"<QuiltStream: {', '.join(parts)}>"

    @property
    def n_rows(self) -> int:
        """Rows learned so far."""
        return self._engine.learning.n_rows

    @property
    def n_at_once(self) -> int:
        """Rows that can be learned by one call with one training at most, at the last of them."""
        n_wait, n_left = self._engine.setup.settings.n_wait, self._engine.n_until_training
        return max(1, n_wait if n_left is None else min(n_wait, n_left))

    @property
    def n_durable(self) -> int:
        """Rows that a crash would not lose."""
        return self._engine.store.n_durable

    @property
    def n_waiting(self) -> int:
        """Predicted rows whose label is still to come."""
        return len(self._waiting)

    @property
    def id(self) -> str:
        """What tells this stream from others; empty in early stores."""
        return self._engine.id

    @property
    def position(self) -> Any:
        """Where the source was read to; after `open`, where to read on."""
        return self._engine.position

    @property
    def accuracy(self) -> float:
        """Share of rows that were predicted right, each right before it was learned.

        With late labels this is not what was answered when the row came.
        """
        return self.n_right / self.n_rows if self.n_rows else 0.0

    @property
    def n_right(self) -> int:
        """Rows that were predicted right, each right before it was learned."""
        return self._engine.learning.n_right

    @property
    def classes(self) -> list[Label]:
        """Labels so far, in order of appearance."""
        return list(self._engine.learning.classes)

    @property
    def columns(self) -> dict[str, str]:
        """Columns so far, each with "number" or "text"."""
        return self._engine.columns.kinds

    @property
    def n_current(self) -> int:
        """Rows of the current segment."""
        return self._engine.n_current

    @property
    def n_until_training(self) -> int | None:
        """Rows still to come before the next training; None if that takes a drift."""
        return self._engine.n_until_training

    @property
    def n_drifts(self) -> int:
        """Drifts that were found, those among them whose events are forgotten."""
        return self._engine.n_drifts

    @property
    def used(self) -> dict[int, float]:
        """How much each past segment was used by trainings of late."""
        return self._engine.past.used

    @property
    def setup(self) -> dict[str, Any]:
        """Detector, guard and settings, as plain values."""
        told = self._engine.setup.to_json()
        return {name: told[name] for name in ("detector", "guard", "settings")}

    @property
    def seed(self) -> int:
        """What everything random in the stream follows from."""
        return self._engine.setup.seed

    @property
    def failure(self) -> BaseException | None:
        """What stopped the stream from learning, if something did."""
        return self._engine.failure

    def frozen(self) -> FrozenLearning:
        """What answers now: it does not learn, and any number of threads may ask it at once."""
        with self._lock:
            return self._engine.learning.frozen()

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
    def settings(self) -> StreamSettings:
        """The numbers it runs by."""
        return self._engine.setup.settings

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
        """The quilt so far, for notebooks: a row for each model that can be rolled back to.

        A row is named by the model's version and the row of the stream at which it took over.
        """
        from driftquilt.report.drawing import draw_selections  # noqa: PLC0415  # it stands above

        with self._lock:
            chosen = {name: self.classifier(v).selection_ for v, name in self._model_names()}
        if not chosen:
            raise InputError(f"there is no model yet: {_when(self._engine)}")
        return draw_selections(chosen)

    def _model_names(self) -> list[tuple[int, str]]:
        """Each version with its name; where its promotion is not among the events, half of it."""
        rows = {event.model: event.row for event in self.events if isinstance(event, ModelPromoted)}
        return [
            (v, f"model {v}, row {rows[v]:,}" if v in rows else f"model {v}") for v in self.models
        ]

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
