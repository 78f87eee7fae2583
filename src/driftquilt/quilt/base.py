"""The contract of a method: what was seen goes in, a model for the present comes out.

`adapt` is handed the history (past segments, oldest first, perhaps none) and the labelled
rows of the current segment; it answers with something that predicts. Promises:

- Column c of the answer is class c, for every class that any segment has.
- The same segments and settings give the same model, bit for bit.
- Segments are read, never changed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from driftquilt.core.gradients import RemoteScorer
from driftquilt.core.sampling import EVERY_ROW, Sampling
from driftquilt.core.segment import History, Segment, count_classes, folds
from driftquilt.core.selection import Rule
from driftquilt.core.training import Epoch, Task, Time
from driftquilt.errors import InputError
from driftquilt.learners.base import Learner
from driftquilt.learners.mlp import MLP

__all__ = ["Average", "Fitted", "Method", "Training", "look_at_clock"]

_PAPER_RULE = Rule()


class Fitted(Protocol):
    """A model that predicts."""

    def predict_proba(self, X: NDArray[Any]) -> NDArray[np.float32]:
        """Class probabilities of each row, shape (n, C)."""


class Method(Protocol):
    """A way to get a model for the current segment."""

    def adapt(self, history: History, current: Segment) -> Fitted: ...


def look_at_clock() -> Time:
    """The moment, on the wall and in CPU time of this process."""
    return Time(time.perf_counter(), time.process_time())


@dataclass(frozen=True)
class Training:
    """What every method that trains a learner can be told.

    `n_classes` is needed only where a class is known that no row has. `clock` times the epochs.
    `remote_scorer` scores a history whose rows are not all here; see `core.training.Task`.
    """

    learner: Learner = field(default_factory=MLP)
    n_folds: int = 1
    max_epochs: int = 2000
    patience: int = 10
    seed: int = 0
    sampling: Sampling = EVERY_ROW
    n_classes: int | None = None
    clock: Callable[[], Time] = look_at_clock
    remote_scorer: RemoteScorer | None = None

    def count_classes(self, history: History, current: Segment) -> int:
        counted = count_classes(history, current)
        if self.n_classes is not None and self.n_classes < counted:
            raise InputError(
                f"n_classes is {self.n_classes}, but a row has class code {counted - 1}; it takes "
                f"at least {counted}, or None to count them"
            )
        return self.n_classes or counted

    def tasks(self, history: History, current: Segment, rule: Rule = _PAPER_RULE) -> list[Task]:
        """One training to do per fold of the current segment."""
        return [
            Task(
                history,
                train,
                self.sampling.to_validate(validation),
                rule=rule,
                max_epochs=self.max_epochs,
                patience=self.patience,
                seed=self.seed + fold,
                sampling=self.sampling,
                clock=self.clock,
                remote_scorer=self.remote_scorer,
            )
            for fold, (train, validation) in enumerate(folds(current, self.n_folds))
        ]


@dataclass(frozen=True)
class Average:
    """Several models that answer with the mean of their probabilities.

    `trainings` are the epochs that made each of them, where they are known.
    """

    models: Sequence[Fitted]
    trainings: Sequence[Sequence[Epoch]] = field(default=(), repr=False, kw_only=True)

    def predict_proba(self, X: NDArray[Any]) -> NDArray[np.float32]:
        total = self.models[0].predict_proba(X)
        for model in self.models[1:]:
            total += model.predict_proba(X)
        total /= len(self.models)
        return total
