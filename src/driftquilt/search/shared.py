"""All candidate bounds in one pass: those that have chosen alike so far share one training.

A bound matters only through the segments it selects. All candidates begin as one run; where a
segment's disparity tells some of them apart, the run is forked and they part for good. Each
fork goes on exactly as a training of its own would have, so the outcome for a bound equals a
lone training with it, bit for bit, while sixteen candidates cost about as much as the three
or so different trainings among them.

>>> Shared((0.1, 0.5)).n_trials
2
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from driftquilt.core.training import M, Run, Task
from driftquilt.errors import InputError
from driftquilt.search.base import Trial, finish

__all__ = ["Shared"]


@dataclass(frozen=True)
class Shared:
    """Fixed candidates, trained together for as long as they agree."""

    candidates: tuple[float, ...]

    def __post_init__(self) -> None:
        if not self.candidates or not all(bound >= 0 for bound in self.candidates):
            raise InputError(
                f"candidates are disparity bounds of at least 0, one or more; got {self.candidates}"
            )

    @property
    def n_trials(self) -> int:
        return len(set(self.candidates))

    def trials(self, task: Task, start: Callable[[], M]) -> Iterator[Trial[M]]:
        waiting = [(Run(task, start()), sorted(set(self.candidates)))]
        while waiting:
            run, bounds = waiting.pop()
            while not run.finished:
                bounds, *others = _agreeing(run, bounds)
                waiting.extend((run.fork(), other) for other in others)
                run.advance(task.rule.keep(run.score(), bounds[0]))
            yield from (finish(run, bound) for bound in bounds)


def _agreeing(run: Run[M], bounds: Sequence[float]) -> list[list[float]]:
    """The bounds, grouped by what they would select now; a larger bound selects no less."""
    groups: dict[bytes, list[float]] = {}
    for bound in bounds:
        selected = run.task.rule.keep(run.score(), bound)
        groups.setdefault(selected.tobytes(), []).append(bound)
    return list(groups.values())
