"""The contract of a search: bounds go in, finished trainings come out.

A search is handed a `Task` and a function that starts the model; it yields one `Trial` per
candidate bound as soon as that training is finished, and never says which is best: `best` does.
Promises:

- Every trial starts from the same model and sees its rows in the same order, so a trial's
  outcome depends on its bound alone: any two searches that finish a bound agree on it, bit for
  bit. A search may give up on a bound only when another is ahead of it.
- `split` gives searches that together have the same trials, whichever order they run in.
- The winner is already trained. Nothing is trained again.

`Everything` is the simplest search: one training on all segments, without a bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, Protocol

from driftquilt.core.segment import join
from driftquilt.core.training import Epoch, M, Rule, Run, Task, expect_finite, train

__all__ = ["DISPARITY_RANGE", "Everything", "Search", "Trial", "best", "finish"]

#: Beyond 2 a segment is useless: about 80 % of its labels differ (the paper's appendix).
DISPARITY_RANGE = (0.0, 2.0)

_MOST_HELD_OUT = 0.2  # of the past rows


@dataclass(frozen=True)
class Trial(Generic[M]):
    """One bound and the training it led to; one that was given up on is not finished.

    `candidate` is what the search tried: the bound itself, or what it was computed from, which is
    the same in every fold.
    """

    candidate: float
    disparity_max: float
    validation_loss: float
    finished: bool
    epochs: tuple[Epoch, ...] = field(repr=False)
    model: M = field(repr=False)


class Search(Protocol):
    """Tries disparity bounds."""

    def trials(self, task: Task, start: Callable[[], M]) -> Iterator[Trial[M]]: ...

    @property
    def n_trials(self) -> int:
        """How many trials there will be."""

    def split(self, n_parts: int) -> Sequence[Search]:
        """At most so many searches that do not depend on each other; perhaps only this one."""


def finish(run: Run[M], disparity_max: float, candidate: float | None = None) -> Trial[M]:
    """Return the trial that a run stands for when nothing more is done with it."""
    tried = disparity_max if candidate is None else candidate
    return Trial(tried, disparity_max, run.best_loss, run.finished, tuple(run.epochs), run.best)


def best(trials: Iterable[Trial[M]]) -> Trial[M]:
    """Return the trial with the lowest validation loss; of equal ones, the smallest bound."""
    winner = min(trials, key=lambda trial: (trial.validation_loss, trial.disparity_max))
    expect_finite(winner.validation_loss)
    return winner


@dataclass(frozen=True)
class Everything:
    """One training on everything: no bound, no test, rows of past and present drawn alike.

    It is what the selection has to beat, and what a blended model falls back on. It must be good
    where the few current rows do not stand for those to come, so they alone don't decide when it
    ends: the last rows of every past segment, up to `max_held_out` of them all, don't train, and
    validate with the current ones. As a few current rows more hardly count in it, one training
    serves `n_folds` folds, and sees the own rows of none of them.
    """

    max_held_out: int = 1024
    n_folds: int = 2

    @property
    def n_trials(self) -> int:
        return 1

    def split(self, n_parts: int) -> list[Everything]:  # noqa: ARG002 - there is one training
        return [self]

    def trials(self, task: Task, start: Callable[[], M]) -> Iterator[Trial[M]]:
        rule = Rule(use_disparity=False, use_gain=False)
        run = Run(replace(self._hold_out(task), rule=rule, evenly=True), start())
        for _epoch in train(run, math.inf):
            pass
        yield finish(run, math.inf)

    def _hold_out(self, task: Task) -> Task:
        """Return the task with the last rows of each past segment moved to the validation part."""
        n_past = sum(map(len, task.history))
        share = min(self.max_held_out / max(n_past, 1), _MOST_HELD_OUT)
        ends = [len(segment) - int(share * len(segment)) for segment in task.history]
        parts = list(zip(task.history, ends, strict=True))
        held_out = [segment.take(slice(end, None)) for segment, end in parts if end < len(segment)]
        return replace(
            task,
            history=[segment.take(slice(None, end)) for segment, end in parts],  # copies nothing
            validation=join([*held_out, task.validation]),
        )
