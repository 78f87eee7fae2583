"""What a stream predicts: classes, or numbers.

A task knows what a label is, which experts there are, what an answer costs and how it is scored.
Everything else (the mixture, segments, trainings, the store) is the same for both.

    answer  (C,)  probabilities of the classes so far, or (1,) a number; before the first row (0,)
    y             the code of a class, or a number

Of numbers, the mixture weighs experts by their distance to the label in usual distances, the
running mean of how far answers were off:

    loss = min(LOSS_MAX, |answer - y| / usual)        so it is bounded by `LOSS_MAX`

which is, but for a constant, the log loss of a Laplace distribution of that width: gains are in
nats, as those of classes are. An answer is "wrong" if it is further off than four fifths of those
of the newest model; that is what detectors of errors are given, and what the detector "experts"
bets on. Another expert is better where it is nearer by a usual distance or more.

>>> task = Regression()
>>> for y in [1.0, 2.0, 4.0]:
...     task.count(np.array([1.0]), task.read(y))
>>> round(task.absolute_error, 2), task.loss(np.array([9.0]), 9.0)
(4.0, 0.0)
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from driftquilt.core.loss import Loss
from driftquilt.data.frame import Label, Row, read_label, read_target
from driftquilt.learners.base import Learner
from driftquilt.learners.mlp import MLP, MLPRegression
from driftquilt.quilt.classifier import QuiltClassifier
from driftquilt.quilt.model_file import CLASSIFICATION, REGRESSION
from driftquilt.quilt.regressor import QuiltRegressor
from driftquilt.stream.experts.labels import (
    LabelHistory,
    NumberHistory,
    with_label_columns,
    with_number_columns,
)
from driftquilt.stream.experts.mixture import LOSS_MAX, loss
from driftquilt.stream.experts.nets import (
    Champion,
    NumberChampion,
    OnlineNet,
    OnlineRegression,
)
from driftquilt.stream.snapshot import Expert, NumberSnapshot, Snapshot

__all__ = [
    "ESTIMATORS",
    "Classification",
    "Estimator",
    "Regression",
    "Task",
    "learner_of",
    "make_task",
    "reader",
]

Estimator: TypeAlias = QuiltClassifier | QuiltRegressor

#: What a stream trains, by its task.
ESTIMATORS: dict[str, type[Estimator]] = {
    CLASSIFICATION: QuiltClassifier,
    REGRESSION: QuiltRegressor,
}

_RATE = 0.01  # of the online nets
_LARGE, _LARGE_RATE = 0.8, 0.01  # which distances are large, and how fast that is followed
_USUAL_RATE, _JUMP = 0.005, 20.0  # of usual distances; one row counts so many of them at most
_APART = 1.0  # usual distances
_ERRORS, _SIZE_RATE = 500, 0.02  # of the last answers, and how fast their size is followed
_RATIO_MAX = 1e9


class Task(Protocol):
    """What a stream predicts."""

    name: str
    dtype: Any  # of an answer
    classes: list[Label]  # none of numbers
    n_right: int
    absolute_error: float  # the sum; 0 of classes
    needs_labels: bool  # whether the online nets need the history of labels

    @property
    def history(self) -> LabelHistory | NumberHistory:
        """The last labels."""

    @property
    def n_outputs(self) -> int:
        """How many values an answer has now."""

    @property
    def can_train(self) -> bool:
        """Whether the labels so far can be told apart."""

    def read(self, label: Any) -> Any:
        """Return a label as experts learn it."""

    def online(self, seed: int, *, sees_labels: bool = False) -> OnlineNet:
        """Make a net that learns online."""

    def champion(self, model: Any, number: int) -> Champion:
        """Make an expert of a trained model."""

    def snapshot(
        self, experts: tuple[tuple[Expert, float], ...], columns: Row, base: Any, weights: Any
    ) -> Snapshot:
        """Return what answers, of these experts and the last labels."""

    def with_label_columns(self, tables: Sequence[pa.Table], label: str) -> list[pa.Table]:
        """Return past rows with the columns of the labels before each."""

    def loss(self, answer: NDArray[Any], y: Any) -> float:
        """Return what the mixture weighs an answer by."""

    def cost(self, answer: NDArray[Any], y: Any) -> float:
        """Return what the guard compares models by."""

    def is_wrong(self, answer: NDArray[Any], y: Any, weights: NDArray[Any] | None) -> bool:
        """Whether an answer counts as an error."""

    def better(
        self, other: NDArray[Any], answer: NDArray[Any], y: Any, weights: Any, *, wrong: bool
    ) -> bool | None:
        """Whether another answer is better (True) or worse than one, which may be wrong.

        It is None where both are alike.
        """

    def count(self, answer: NDArray[Any], y: Any, wrong: bool = False) -> None:
        """Take in the answer of the stream to a row."""

    def watch(self, answer: NDArray[Any], y: Any) -> None:
        """Take in the answer whose errors a detector watches."""

    def pack(self) -> dict[str, Any]:
        """Plain values."""

    def unpack(self, record: dict[str, Any]) -> None:
        """Go on from what `pack` gave."""


class Classification:
    """Classes, in order of appearance."""

    name, dtype = CLASSIFICATION, np.float32
    absolute_error, needs_labels = 0.0, False

    def __init__(self) -> None:
        self.history = LabelHistory()
        self.classes: list[Label] = []
        self.n_right = 0
        self._codes: dict[Label, int] = {}

    @property
    def n_outputs(self) -> int:
        return len(self.classes)

    @property
    def can_train(self) -> bool:
        return len(self.classes) > 1

    def read(self, label: Label) -> int:
        code = self._codes.setdefault(label, len(self.classes))
        if code == len(self.classes):
            self.classes.append(label)
        return code

    def online(self, seed: int, *, sees_labels: bool = False) -> OnlineNet:
        return OnlineNet(MLP(learning_rate=_RATE), seed, sees_labels=sees_labels)

    def champion(self, model: QuiltClassifier, number: int) -> Champion:
        return Champion(model, number, self.classes)

    def snapshot(
        self, experts: tuple[tuple[Expert, float], ...], columns: Row, base: Any, weights: Any
    ) -> Snapshot:
        return Snapshot(tuple(self.classes), experts, weights, columns, base)

    def with_label_columns(self, tables: Sequence[pa.Table], label: str) -> list[pa.Table]:
        return with_label_columns(tables, label, self.classes)

    def loss(self, answer: NDArray[Any], y: int) -> float:
        return loss(answer, y)

    cost = loss

    def is_wrong(self, answer: NDArray[Any], y: int, weights: NDArray[Any] | None) -> bool:
        return len(answer) > 0 and _choose(answer, weights) != y

    def better(
        self,
        other: NDArray[Any],
        answer: NDArray[Any],  # noqa: ARG002
        y: int,
        weights: Any,
        *,
        wrong: bool,
    ) -> bool | None:
        right = len(other) > 0 and _choose(other, weights) == y
        return right if right == wrong else None

    def count(self, answer: NDArray[Any], y: int, wrong: bool = False) -> None:  # noqa: ARG002
        self.n_right += len(answer) > 0 and not wrong

    def watch(self, answer: NDArray[Any], y: int) -> None:
        pass

    def pack(self) -> dict[str, Any]:
        return {"classes": self.classes, "n_right": self.n_right}

    def unpack(self, record: dict[str, Any]) -> None:
        self.classes, self.n_right = list(record["classes"]), record["n_right"]
        self._codes = {label: code for code, label in enumerate(self.classes)}


class Regression:
    """Numbers."""

    name, dtype = REGRESSION, np.float64
    n_right, needs_labels = 0, True

    def __init__(self) -> None:
        self.history = NumberHistory()
        self.classes: list[Label] = []
        self.absolute_error = 0.0
        self.n_outputs = 0
        self._counts = [0, 0]  # rows answered and watched
        self._usual = 0.0  # distance of answers
        self._large = 0.0  # of the watched answer
        # Label minus answer, in sizes of errors before it; intervals follow both.
        self._ratios: deque[float] = deque(maxlen=_ERRORS)
        self._size = 0.0

    @property
    def can_train(self) -> bool:
        return self.history.target.spread > 0

    def read(self, label: float) -> float:
        self.n_outputs = 1
        return label

    def online(self, seed: int, *, sees_labels: bool = False) -> OnlineNet:
        learner = MLPRegression(learning_rate=_RATE, loss=Loss("huber"))
        return OnlineRegression(learner, seed, self.history, sees_labels=sees_labels)

    def champion(self, model: QuiltRegressor, number: int) -> Champion:
        return NumberChampion(model, number)

    def snapshot(
        self,
        experts: tuple[tuple[Expert, float], ...],
        columns: Row,
        base: Any,
        weights: Any,  # noqa: ARG002
    ) -> Snapshot:
        return NumberSnapshot((), experts, None, columns, base, self._ratios, self._size)

    def with_label_columns(self, tables: Sequence[pa.Table], label: str) -> list[pa.Table]:
        return with_number_columns(tables, label)

    def loss(self, answer: NDArray[Any], y: float) -> float:
        off = self.cost(answer, y)
        return min(LOSS_MAX, off / self._usual) if self._usual else LOSS_MAX * (off > 0)

    def cost(self, answer: NDArray[Any], y: float) -> float:
        return abs(float(answer[0]) - y) if len(answer) else 0.0

    def is_wrong(self, answer: NDArray[Any], y: float, weights: Any) -> bool:  # noqa: ARG002
        return self.cost(answer, y) > self._large

    def better(
        self,
        other: NDArray[Any],
        answer: NDArray[Any],
        y: float,
        weights: Any,  # noqa: ARG002
        *,
        wrong: bool,  # noqa: ARG002
    ) -> bool | None:
        nearer = self.cost(answer, y) - self.cost(other, y)
        return nearer > 0 if abs(nearer) > _APART * self._usual else None

    def count(self, answer: NDArray[Any], y: float, wrong: bool = False) -> None:  # noqa: ARG002
        if not len(answer):
            return
        off = self.cost(answer, y)
        error = y - float(answer[0])
        ratio = error / self._size if self._size else np.sign(error)
        self._ratios.append(float(np.clip(ratio, -_RATIO_MAX, _RATIO_MAX)))
        self.absolute_error += off
        self._counts[0] += 1
        self._usual = self._followed(self._usual, off, _USUAL_RATE)
        self._size = self._followed(self._size, off, _SIZE_RATE)

    def _followed(self, mean: float, off: float, rate: float) -> float:
        """Take a distance into a faded mean, which starts as a plain one; one row does little."""
        n_rows = self._counts[0]
        if mean and n_rows > 1 / rate:
            off = min(off, _JUMP * mean)
        return mean + max(rate, 1 / n_rows) * (off - mean)

    def watch(self, answer: NDArray[Any], y: float) -> None:
        if not len(answer):
            return
        self._counts[1] += 1
        step = max(_LARGE_RATE, 1 / self._counts[1]) * self._usual
        self._large += step * (_LARGE if self.is_wrong(answer, y, None) else _LARGE - 1)

    def pack(self) -> dict[str, Any]:
        names = ("absolute_error", "n_outputs", "_counts", "_usual", "_large", "_size")
        record = {name.strip("_"): getattr(self, name) for name in names}
        return {"classes": [], "n_right": 0, "ratios": list(self._ratios), **record}

    def unpack(self, record: dict[str, Any]) -> None:
        self.absolute_error, self.n_outputs = record["absolute_error"], record["n_outputs"]
        self._counts = list(record["counts"])
        self._usual, self._large = record["usual"], record["large"]
        self._ratios, self._size = deque(record["ratios"], maxlen=_ERRORS), record["size"]


def make_task(name: str) -> Task:
    """Return the task of a stream that begins."""
    return Regression() if name == REGRESSION else Classification()


def learner_of(estimator: Estimator) -> Learner | None:
    """Return a learner of the caller's own; regressors have none."""
    return getattr(estimator, "learner", None)


def reader(name: str) -> Callable[[Any], Any]:
    """Return what reads the labels of a task."""
    return read_target if name == REGRESSION else read_label


def _choose(answer: NDArray[Any], weights: NDArray[Any] | None) -> int:
    """Return the class of an answer."""
    if weights is not None:
        answer = answer * weights[: len(answer)]
    return int(answer.argmax())
