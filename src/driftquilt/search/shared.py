"""All candidate bounds in one pass: those that have chosen alike so far share one training.

A bound matters only through the segments it selects. All candidates begin as one run; where a
segment's disparity tells some of them apart, the run is forked and they part for good. Each
fork goes on exactly as a training of its own would have, so the outcome for a bound equals a
lone training with it, bit for bit, while sixteen candidates cost about as much as the three
or so different trainings among them.

Runs go side by side, epoch by epoch, so that hopeless ones can be given up early: from epoch
`drop_from` on, a run whose best loss is above that of the best run by more than a share of
`drop_by` divided by the number of epochs. The longer they have run, the less is forgiven.

>>> Shared((0.1, 0.5)).n_trials
2
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from driftquilt.core.training import M, Run, Task
from driftquilt.errors import InputError
from driftquilt.search.base import Trial, finish

__all__ = ["Shared"]


@dataclass(frozen=True)
class Shared:
    """Fixed candidates, trained together for as long as they agree; by default none is dropped."""

    candidates: tuple[float, ...]
    drop_by: float = math.inf
    drop_from: int = 4

    def __post_init__(self) -> None:
        if not self.candidates or not all(bound >= 0 for bound in self.candidates):
            raise InputError(
                f"candidates are disparity bounds of at least 0, one or more; got {self.candidates}"
            )
        if not self.drop_by >= 0:
            raise InputError(f"drop_by is {self.drop_by}; it takes a share of at least 0")

    @property
    def n_trials(self) -> int:
        return len(set(self.candidates))

    def trials(self, task: Task, start: Callable[[], M]) -> Iterator[Trial[M]]:
        running = [(Run(task, start()), sorted(set(self.candidates)))]
        lowest = math.inf
        while running:
            running = [pair for run, bounds in running for pair in _part(run, bounds)]
            for run, bounds in running:
                run.advance(task.rule.keep(run.score(), bounds[0]))
            lowest = min(lowest, *(run.best_loss for run, _ in running))
            ended = [run.finished or self._is_hopeless(run, lowest) for run, _ in running]
            for (run, bounds), over in zip(running, ended, strict=True):
                yield from (finish(run, bound) for bound in bounds if over)
            running = [pair for pair, over in zip(running, ended, strict=True) if not over]

    def _is_hopeless(self, run: Run[M], lowest: float) -> bool:
        n_epochs = len(run.epochs)
        forgiven = 1 + self.drop_by / max(n_epochs, 1)
        return n_epochs >= self.drop_from and run.best_loss > lowest * forgiven


def _part(run: Run[M], bounds: Sequence[float]) -> list[tuple[Run[M], list[float]]]:
    """The run for the bounds that agree with the first, and a fork for each other choice."""
    groups: dict[bytes, list[float]] = {}
    for bound in bounds:
        selected = run.task.rule.keep(run.score(), bound)
        groups.setdefault(selected.tobytes(), []).append(bound)
    first, *others = groups.values()
    return [(run, first), *((run.fork(), other) for other in others)]
