"""What answers at one moment: the experts of a stream, each with its share, as frozen values.

Everything that a stream predicts comes from `Snapshot.predict`, one row or many, here or in the
service. A row's answer does not depend on the rows that come with it. (That of a learner of your
own does if its `predict_proba` rounds differently for a matrix.)
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftquilt.data.encoder import Encoder
from driftquilt.data.frame import Frame, Label, Row
from driftquilt.data.rows import Target
from driftquilt.learners.mlp import Nets

__all__ = ["Expert", "NumberExpert", "NumberSnapshot", "Snapshot"]

_SLACK = 1e-9  # so that a tenth of ten is one


@dataclass(frozen=True, eq=False)
class Expert:
    """An encoder and the nets that take its rows; class c of the nets is `codes[c]` in the stream.

    One that sees labels takes rows with the columns of `LabelHistory`. That of a model that learns
    changes with it; a `copy` does not.
    """

    encoder: Encoder
    nets: Nets
    codes: NDArray[np.int64]
    sees_labels: bool = False

    def encode(self, frame: Frame) -> NDArray[np.float32]:
        """Rows as the nets see them; before the first column, a column of zeros."""
        if self.encoder.width:
            return self.encoder.encode(frame)
        return np.zeros((len(frame), 1), dtype=np.float32)

    def add(self, frame: Frame, share: float, probabilities: NDArray[np.float32]) -> None:
        """Add the answers for some rows to the probabilities (n, C) of the stream's classes."""
        self.nets.add(self.encode(frame), share, self.codes, probabilities)

    def copy(self) -> Expert:
        """Return the expert as it is now."""
        return replace(self, encoder=self.encoder.copy(), nets=self.nets.copy())


@dataclass(frozen=True, eq=False)
class NumberExpert(Expert):
    """An expert whose nets answer with numbers on the scale of `target`.

    Of several quantiles, `middle` is the answer.
    """

    target: Target = field(default_factory=lambda: Target(0.0, 1.0))
    middle: int = 0

    def add(self, frame: Frame, share: float, answers: NDArray[Any]) -> None:
        """Add the answers for some rows, times the share, to numbers (n, 1)."""
        outputs = np.zeros((len(frame), len(self.codes)), dtype=np.float32)
        self.nets.add(self.encode(frame), 1.0, self.codes, outputs)
        answers[:, 0] += share * self.restore(outputs)

    def restore(self, outputs: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return the numbers (n,) that outputs (n, Q) of the nets stand for."""
        return self.target.restore(np.sort(outputs, axis=1)[:, self.middle])


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The classes of a stream, and the experts that answer together, each with its share.

    `weights` are class weights by which the answer is chosen, if there are any. `label_columns`
    say what the last labels were, and `base` (C,) is what those alone say of the next
    one, times its share.
    """

    classes: tuple[Label, ...]
    experts: tuple[tuple[Expert, float], ...]
    weights: NDArray[np.float32] | None = None
    label_columns: Row = field(default_factory=dict)
    base: NDArray[np.float32] | None = None

    def predict(self, frame: Frame) -> NDArray[Any]:
        """Probabilities (n, C) of the classes; any number of threads may ask a copy."""
        return self._sum(frame, np.zeros((len(frame), len(self.classes)), dtype=np.float32))

    def _sum(self, frame: Frame, answers: NDArray[Any]) -> NDArray[Any]:
        """Add up the answers of all."""
        if self.base is not None:
            answers += self.base
        with_labels = frame
        if any(expert.sees_labels for expert, _ in self.experts):
            with_labels = frame.with_constants(self.label_columns)
        for expert, share in self.experts:
            expert.add(with_labels if expert.sees_labels else frame, share, answers)
        return answers

    def labels(self, answers: NDArray[Any]) -> list[Any]:
        """Return the answer to each row: the most probable class, or that of the highest product.

        It is None before the first row is learned.
        """
        if not self.classes:
            return [None] * len(answers)
        weighed = answers if self.weights is None else answers * self.weights
        return [self.classes[code] for code in weighed.argmax(axis=1).tolist()]

    def copy(self) -> Snapshot:
        """Copy the snapshot, so that later learning does not change it."""
        return replace(self, experts=self._copied())

    def _copied(self) -> tuple[tuple[Expert, float], ...]:
        return tuple((expert.copy(), share) for expert, share in self.experts)


@dataclass(frozen=True, eq=False)
class NumberSnapshot(Snapshot):
    """The same of a stream of numbers, which has no classes: the answer is the weighted mean.

    Intervals follow the errors of the last answers: `ratios` are label minus answer, in sizes of
    errors at that time, and `size` is that of errors now.
    """

    ratios: Collection[float] = ()
    size: float = 0.0

    def predict(self, frame: Frame) -> NDArray[Any]:
        """Return the answers (n, 1); before the first row there is none, (n, 0)."""
        n_outputs = 1 if self.experts or self.base is not None else 0
        return self._sum(frame, np.zeros((len(frame), n_outputs)))

    def labels(self, answers: NDArray[Any]) -> list[Any]:
        """Return the answer to each row; it is None before the first row is learned."""
        return answers[:, 0].tolist() if answers.shape[1] else [None] * len(answers)

    def intervals(self, answers: NDArray[Any], coverage: float) -> NDArray[np.float64] | None:
        """Return both ends (n, 2) of intervals that would have held this share of the last labels.

        They are None as long as there are too few errors to leave one out at either end.
        """
        ratios = np.sort(np.fromiter(self.ratios, dtype=np.float64))
        n_out = int((len(ratios) + 1) * (1 - coverage) / 2 + _SLACK)  # at either end
        if not n_out:
            return None
        return answers + self.size * ratios[[n_out - 1, len(ratios) - n_out]]

    def copy(self) -> NumberSnapshot:
        """Copy the snapshot, so that later learning does not change it."""
        return replace(self, experts=self._copied(), ratios=tuple(self.ratios))
