"""How a stream stands, as one value: for `repr`, the service, its metrics, its page and clients.

>>> from driftquilt.stream import QuiltStream
>>> stream = QuiltStream(n_wait=50, wait=True)
>>> _ = stream.learn_one({"age": 31.0}, "yes")
>>> status = stream.status()
>>> status.n_rows, status.columns, status.rows_until_training
(1, {'age': 'number'}, 49)
>>> status is stream.status()                 # made once per change
True
>>> status.to_json()["accuracy"]
0.0
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any

from driftquilt.data.frame import Label
from driftquilt.quilt.metrics import Metric
from driftquilt.quilt.model_file import CLASSIFICATION, REGRESSION
from driftquilt.stream.recent import Window
from driftquilt.text import json_safe, plural

__all__ = ["StreamStatus"]


@dataclass(frozen=True)
class StreamStatus:
    """A stream at one moment.

    n_rows               rows learned so far
    task                 whether labels are classes or numbers
    n_right              rows that were predicted right, each right before it was learned
    absolute_error       how far answers were off, of all rows together; 0 of classes
    n_durable            rows that a crash would not lose
    n_current            rows of the current segment
    n_waiting            rows with a key whose label is still to come
    n_segments           past segments
    n_damaged            segments that trainings leave out because their files are damaged
    n_drifts             drifts so far
    last_drift           row of the last drift
    last_event           number of the last event; 0 before the first
    rows_until_training  rows still to come before the next training; None if that takes a drift
    classes              labels so far, in order of appearance
    columns              columns so far, each "number", "text", "date" or "time"
    model, models        version in use, and those that can be rolled back to
    training             whether a training is under way
    failure              what stopped the stream from learning, if something did
    detector, guard, settings, class_weight   what it was set up with, as plain values
    metric               what `score` is by, if a metric was chosen
    recent               the last rows as they were answered, which are scored
    experts              who answers, each with its share
    """

    n_rows: int
    n_right: int
    n_durable: int
    n_current: int
    n_waiting: int
    n_segments: int
    n_drifts: int
    last_drift: int | None
    last_event: int
    rows_until_training: int | None
    classes: tuple[Label, ...]
    columns: Mapping[str, str] = field(hash=False)
    model: int | None
    models: tuple[int, ...]
    training: bool
    failure: str | None
    detector: Mapping[str, Any] = field(hash=False)
    guard: Mapping[str, Any] = field(hash=False)
    settings: Mapping[str, Any] = field(hash=False)
    class_weight: Mapping[str, float] | str | None = field(default=None, hash=False)
    task: str = CLASSIFICATION
    n_damaged: int = 0
    absolute_error: float = 0.0
    metric: Metric | None = field(default=None, compare=False)
    recent: Window | None = field(default=None, repr=False, compare=False)
    experts: Mapping[str, float] = field(default_factory=dict, hash=False, compare=False)

    @property
    def accuracy(self) -> float | None:
        """Share of rows that were predicted right; None before the first row, and of numbers."""
        return None if self.task == REGRESSION else _share(self.n_right, self.n_rows)

    @property
    def mean_absolute_error(self) -> float | None:
        """How far answers were off on average; None before the first answer, and of classes."""
        if self.task != REGRESSION:
            return None
        return _share(self.absolute_error, self.n_rows - 1)  # the first row has no answer

    @cached_property
    def score(self) -> float | None:
        """Score by the metric of the last rows, a thousand at most; None where it is not defined.

        It is computed when it is first asked for. Losses and costs have no sign.
        """
        if self.metric is None or self.recent is None:
            return None
        return self.recent.score(self.metric, self.classes)

    def to_json(self) -> dict[str, Any]:
        """Return plain values, with accuracy and score to six digits."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        values |= {"metric": self.metric and self.metric.name, "score": json_safe(self.score, 6)}
        del values["recent"]
        values["experts"] = {name: round(share, 6) for name, share in self.experts.items()}
        for name in ("classes", "models"):
            values[name] = list(values[name])
        for name in ("columns", "detector", "guard", "settings"):
            values[name] = dict(values[name])
        accuracy = self.accuracy
        return {
            **values,
            "accuracy": None if accuracy is None else round(accuracy, 6),
            "mean_absolute_error": self.mean_absolute_error,
        }

    def _score_words(self) -> str:
        if self.task == REGRESSION:
            return f"mean absolute error {self.mean_absolute_error or 0.0:.4g}"
        return f"accuracy {self.accuracy or 0.0:.3f}"

    def __str__(self) -> str:
        name = "" if self.metric is None else self.metric.name
        parts = [
            plural(self.n_rows, "row"),
            self._score_words(),
            *([] if self.score is None else [f"recent {name} {self.score:.3f}"]),
            plural(self.n_segments, "past segment"),
            "no model yet" if self.model is None else f"model {self.model}",
            "training" if self.training else "not training",
        ]
        return ", ".join(parts)


def _share(total: float, n_rows: int) -> float | None:
    return total / n_rows if n_rows > 0 else None
