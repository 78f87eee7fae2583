"""One training on everything: no bound, no test, rows of the past and the present drawn alike.

It is what the selection has to beat, and what a blended model falls back on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from driftquilt.core.selection import Rule
from driftquilt.core.training import M, Run, Task, train
from driftquilt.search.base import Trial, finish

__all__ = ["Everything"]


@dataclass(frozen=True)
class Everything:
    """The training on all past segments and the current one."""

    @property
    def n_trials(self) -> int:
        return 1

    def split(self, n_parts: int) -> list[Everything]:  # noqa: ARG002 - there is one training
        return [self]

    def trials(self, task: Task, start: Callable[[], M]) -> Iterator[Trial[M]]:
        rule = Rule(use_disparity=False, use_gain=False)
        run = Run(replace(task, rule=rule, evenly=True), start())
        for _epoch in train(run, math.inf):
            pass
        yield finish(run, math.inf)
