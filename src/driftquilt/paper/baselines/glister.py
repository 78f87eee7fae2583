"""GLISTER: train on the rows whose gradients point where the present's do.

Every `every` epochs rows are picked again from the whole history and the training part of the
current segment, as many as a budget allows. A row's gain is the inner product of its head
gradient with that of the validation part: how far a step on the row would lower the validation
loss, to first order. Rows are taken greedily in `n_rounds` rounds, those with the highest gain
first; after each round the head makes one step of size `step` on the sum of all rows taken so
far, and the validation gradient is taken again from there. Each budget is a training of its own,
and the lowest validation loss decides between them.

    residual   (n, C)      p - y, times the row's weight
    embedding  (n, H)      what a row sends into the head
    gradient   (C, 1+H)    a row's is its residual ⊗ (1, embedding), and is never written out

What the papers leave open, and the choice here: `step` is the learning rate of training (it is
η in GLISTER); the rows of the current segment compete for the budget like all others; the rows
taken weigh what they weighed before; a training may stop between two picks, since the patience
of 10 epochs is shorter than the 20 between them.

Reference: Killamsetty, Sivasubramanian, Ramakrishnan, Iyer, "GLISTER: Generalization based
Data Subset Selection for Efficient and Robust Learning", AAAI 2021 (online, Taylor, r-greedy).
Paper: "Baselines", data subset selection methods.

>>> from driftquilt.core.segment import cut
>>> from driftquilt.learners.mlp import MLP
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(600, 2)).astype(np.float32)
>>> month = np.repeat([0, 1, 2], 200)
>>> y = ((X[:, 0] > 0) ^ (month == 0)).astype(np.int64)      # April was the other way round
>>> history, current = cut(X, y, month, ["April", "May", "June"])
>>> model = Glister(MLP(hidden_units=32, learning_rate=0.01)).adapt(history, current)
>>> bool((model.predict_proba(X[200:]).argmax(axis=1) == y[200:]).mean() > 0.95)
True
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from driftquilt.core.segment import Segment
from driftquilt.errors import InputError
from driftquilt.learners.base import Model
from driftquilt.paper.baselines.subset import SubsetTraining

__all__ = ["Glister"]


@dataclass(frozen=True)
class Glister(SubsetTraining):
    """The method; `step` is the size of the head's step, `n_rounds` how often it is made."""

    step: float = 1e-3
    n_rounds: int = 20

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_rounds < 1:
            raise InputError(f"n_rounds is {self.n_rounds}; rows are taken in at least 1 round")

    def choose(
        self,
        model: Model,
        rows: Segment,
        validation: Segment,
        n_rows: int,
        rng: np.random.Generator,  # noqa: ARG002
    ) -> Segment:
        if n_rows == len(rows):
            return rows
        candidates = HeadGradients.under(model, rows)
        present = Present.under(model, validation, self.step)
        return rows.take(take_greedily(candidates, present, n_rows, self.n_rounds))


@dataclass(frozen=True)
class HeadGradients:
    """The head gradient of every row, as the two factors it is the product of."""

    residual: NDArray[np.float32]
    embedding: NDArray[np.float32]

    @classmethod
    def under(cls, model: Model, rows: Segment) -> HeadGradients:
        embedding, probabilities = model.embed(rows.X)
        return cls(_residual(probabilities, rows), embedding)

    def total(self, rows: NDArray[np.intp]) -> NDArray[np.float32]:
        """Sum of some rows' gradients, shape (C, 1+H)."""
        residual = self.residual[rows]
        return np.column_stack([residual.sum(axis=0), residual.T @ self.embedding[rows]])

    def gains(self, direction: NDArray[np.float32]) -> NDArray[np.float32]:
        """Inner product of each row's gradient with `direction` (C, 1+H), shape (n,)."""
        along = self.embedding @ direction[:, 1:].T + direction[:, 0]
        products: NDArray[np.float32] = np.einsum("nc,nc->n", self.residual, along)
        return products


@dataclass(frozen=True)
class Present:
    """The validation rows, under the head as it is and as it would be after a step."""

    rows: Segment
    embedding: NDArray[np.float32]
    log_probabilities: NDArray[np.float32]
    step: float

    @classmethod
    def under(cls, model: Model, rows: Segment, step: float) -> Present:
        embedding, probabilities = model.embed(rows.X)
        tiny = np.finfo(np.float32).tiny
        return cls(rows, embedding, np.log(np.maximum(probabilities, tiny)), step)

    def gradient_after(self, total: NDArray[np.float32]) -> NDArray[np.float32]:
        """Mean validation gradient once the head made a step along `total`; both (C, 1+H)."""
        # Log-probabilities are logits up to a constant per row, which softmax does not see.
        z = self.log_probabilities - self.step * (self.embedding @ total[:, 1:].T + total[:, 0])
        z = np.exp(z - z.max(axis=1, keepdims=True))
        residual = _residual(z / z.sum(axis=1, keepdims=True), self.rows)
        gradients = HeadGradients(residual / self.rows.weight.sum(), self.embedding)
        return gradients.total(np.arange(len(self.rows)))


def take_greedily(
    candidates: HeadGradients, present: Present, n_rows: int, n_rounds: int
) -> NDArray[np.intp]:
    """Numbers of the `n_rows` rows taken, ascending; of equal gains the earlier row goes first."""
    taken = np.zeros(len(candidates.residual), dtype=bool)
    total = candidates.total(np.flatnonzero(taken))
    for part in np.array_split(np.arange(n_rows), min(n_rounds, n_rows)):
        # Without NaN, so that a training that diverges still has rows to do it on.
        gains = np.nan_to_num(candidates.gains(present.gradient_after(total)))
        gains[taken] = -np.inf
        best = highest(gains, len(part))
        taken[best] = True
        total += candidates.total(best)
    return np.flatnonzero(taken)


def highest(values: NDArray[np.float32], n: int) -> NDArray[np.intp]:
    """Where the n highest values stand; faster than sorting, and of equal ones the earlier."""
    bar = np.partition(values, -n)[-n]
    above, level = np.flatnonzero(values > bar), np.flatnonzero(values == bar)
    return np.append(above, level[: n - len(above)])


def _residual(probabilities: NDArray[np.float32], rows: Segment) -> NDArray[np.float32]:
    """Weight times p - y of each row, shape (n, C)."""
    residual = probabilities.copy()
    residual[np.arange(len(rows)), rows.y] -= 1
    residual *= rows.weight[:, None]
    return residual
