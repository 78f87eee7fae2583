"""Training on a part of all rows, chosen again every few epochs: what GLISTER and GRAD-MATCH share.

A budget says how many rows; each budget is a training of its own, and the lowest validation
loss decides between them. How the rows are chosen is up to the method: `choose`.

Paper: "Baselines", data subset selection methods.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from driftquilt.core.segment import History, Segment, join
from driftquilt.core.training import Run, Task, expect_finite
from driftquilt.errors import InputError
from driftquilt.learners.base import Model
from driftquilt.quilt.executor import one_blas_thread
from driftquilt.quilt.method import Average, Training

__all__ = ["BUDGETS", "SubsetModel", "SubsetTraining", "TriedBudget"]

#: Shares of the training rows that are tried by default.
BUDGETS = tuple(k / 10 for k in range(1, 11))

_NOTHING_TO_SELECT = np.zeros(0, dtype=bool)
# Tells the generator of a choice from that of the epoch's order of rows.
_CHOICE = 1


class TriedBudget(NamedTuple):
    """One training of the search, in a line."""

    fold: int
    budget: float
    validation_loss: float
    n_epochs: int


@dataclass(frozen=True)
class SubsetModel(Average):
    """The best training of each fold, and every budget that was tried."""

    models: Sequence[Model]
    budgets: tuple[float, ...]
    tried_budgets: tuple[TriedBudget, ...] = field(repr=False)


@dataclass(frozen=True)
class SubsetTraining(Training, ABC):
    """Trains on a part of all rows that is chosen again every `every` epochs.

    `budgets` are shares of the training rows; the one with the lowest validation loss wins, of
    equal ones the smallest.
    """

    budgets: tuple[float, ...] = BUDGETS
    every: int = 20

    def __post_init__(self) -> None:
        if not self.budgets or not all(0 < budget <= 1 for budget in self.budgets):
            raise InputError(f"budgets are {self.budgets}; it takes shares above 0 and up to 1")
        if self.every < 1:
            raise InputError(f"every is {self.every}; it counts epochs, so at least 1")

    @abstractmethod
    def choose(
        self,
        model: Model,
        rows: Segment,
        validation: Segment,
        n_rows: int,
        rng: np.random.Generator,
    ) -> Segment:
        """Return the rows to train on next, about `n_rows` of those given."""

    def adapt(self, history: History, current: Segment) -> SubsetModel:
        n_classes = self.count_classes(history, current)
        winners, tried = list[_Trial](), list[TriedBudget]()
        with one_blas_thread():
            for fold, task in enumerate(self.tasks((), current)):
                everything = replace(task, current=join([*history, task.current]))
                start = self.learner.start(everything.current.X, n_classes, task.seed)
                trials = [self._train(everything, start.copy(), b) for b in sorted(self.budgets)]
                winners.append(_best(trials))
                tried += [TriedBudget(fold, b, r.best_loss, len(r.epochs)) for b, r in trials]
        return SubsetModel(
            [run.best for _, run in winners],
            tuple(budget for budget, _ in winners),
            tuple(tried),
            trainings=[run.epochs for _, run in winners],
        )

    def _train(self, everything: Task, model: Model, budget: float) -> _Trial:
        n_rows = max(1, round(budget * len(everything.current)))
        run = Run(everything, model)
        while not run.finished:
            started = everything.clock()
            if len(run.epochs) % self.every == 0:
                rng = np.random.default_rng((everything.seed, len(run.epochs), _CHOICE))
                chosen = self.choose(model, everything.current, everything.validation, n_rows, rng)
                run.task = replace(everything, current=chosen)
            run.advance(_NOTHING_TO_SELECT)
            run.epochs[-1] = replace(run.epochs[-1], time=everything.clock().since(started))
        return _Trial(budget, run)


class _Trial(NamedTuple):
    budget: float
    run: Run[Model]


def _best(trials: Sequence[_Trial]) -> _Trial:
    winner = min(trials, key=lambda trial: trial.run.best_loss)
    expect_finite(winner.run.best_loss)
    return winner
