"""All candidate bounds in one pass: those that have chosen alike so far share one training.

A bound matters only through the segments it selects. All candidates begin as one run; where a
segment's disparity divides them, the run is forked and they part for good. Each
fork goes on exactly as a training of its own would have, so the outcome for a bound equals a
lone training with it, bit for bit, while sixteen candidates cost about as much as the three
or so different trainings among them.

Runs go side by side, epoch by epoch, so that hopeless ones can be given up early: a run whose
best loss is above that of the best run by more than a share of `drop_by` divided by the number
of epochs. The longer they have run, the less is forgiven. Few selected rows make short epochs,
so a run on few rows looks worse than it is and may be given up wrongly; the default drops none.

How large disparities are depends on the data: with rare classes all are small, and no bound of a
fixed grid divides them. With `relative`, candidates are shares of the largest disparity before
training: 0 uses nothing of the past, infinity everything that passes the test of gain.

>>> Shared((0.1, 0.5)).n_trials
2
>>> Shared((0.0, 0.5, 1.0), relative=True).bounds(np.array([0.2, 0.4]))
{0.0: 0.0, 0.5: 0.2, 1.0: 0.4}
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Generic, NamedTuple

import numpy as np
from numpy.typing import NDArray

from driftquilt.core.training import M, Run, Task
from driftquilt.errors import InputError
from driftquilt.search.base import Trial, finish

__all__ = ["Shared"]


@dataclass(frozen=True)
class Shared:
    """Candidate bounds, trained together for as long as they agree; by default none is dropped."""

    candidates: tuple[float, ...]
    drop_by: float = math.inf
    relative: bool = False

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

    def split(self, n_parts: int) -> list[Shared]:
        """Neighbours stay together, as they choose alike; to give up on some, all must be seen."""
        if self.drop_by < math.inf:
            return [self]
        bounds = sorted(set(self.candidates))
        n_parts = min(n_parts, len(bounds))
        cuts = [len(bounds) * part // n_parts for part in range(n_parts + 1)]
        return [replace(self, candidates=tuple(bounds[a:b])) for a, b in pairwise(cuts)]

    def bounds(self, disparity: NDArray[np.float64]) -> dict[float, float]:
        """Return the bound of each candidate, by the disparities before training."""
        candidates = sorted(set(self.candidates))
        if not self.relative:
            return {candidate: candidate for candidate in candidates}
        largest = float(disparity.max(initial=0.0))
        return {c: c * largest if c < math.inf else math.inf for c in candidates}

    def trials(self, task: Task, start: Callable[[], M]) -> Iterator[Trial[M]]:
        run = Run(task, start())
        bounds = self.bounds(run.score().disparity)
        running = _part(run, bounds, list(bounds))
        lowest = math.inf
        while running:
            for branch in running:
                branch.run.advance(branch.selected)
            lowest = min(lowest, *(branch.run.best_loss for branch in running))
            ended = [b.run.finished or self._is_hopeless(b.run, lowest) for b in running]
            for branch, over in zip(running, ended, strict=True):
                yield from (
                    finish(branch.run, bounds[candidate], candidate)
                    for candidate in branch.candidates
                    if over
                )
            left = [branch for branch, over in zip(running, ended, strict=True) if not over]
            running = [part for branch in left for part in _go_on(branch, bounds)]

    def _is_hopeless(self, run: Run[M], lowest: float) -> bool:
        return run.best_loss > lowest * (1 + self.drop_by / len(run.epochs))


class _Branch(NamedTuple, Generic[M]):
    """A run for all candidates that have chosen alike, and what they choose now."""

    run: Run[M]
    candidates: list[float]
    selected: NDArray[np.bool_]


def _go_on(branch: _Branch[M], bounds: Mapping[float, float]) -> list[_Branch[M]]:
    """Return the branch until its run has new scores, which may divide its candidates."""
    if not branch.run.is_due_for_scores:
        return [branch]
    return _part(branch.run, bounds, branch.candidates)


def _part(
    run: Run[M], bounds: Mapping[float, float], candidates: Sequence[float]
) -> list[_Branch[M]]:
    """Return the run for candidates that agree with the first, and a fork for other choices."""
    groups: dict[bytes, list[float]] = {}
    chosen = {c: run.task.rule.keep(run.score(), bounds[c]) for c in candidates}
    for candidate, selected in chosen.items():
        groups.setdefault(selected.tobytes(), []).append(candidate)
    first, *others = groups.values()
    branches = [_Branch(run.fork(), other, chosen[other[0]]) for other in others]
    return [_Branch(run, first, chosen[first[0]]), *branches]
