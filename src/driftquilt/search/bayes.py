"""Random trials first, then trials guided by what they showed, as in the paper.

The guide is optuna's tree-structured Parzen estimator: on one dimension and a handful of
trials it finds bounds as good as a Gaussian process does, at a hundredth of the overhead. optuna
comes with the extra `paper`.

Paper: appendix, "More Details on Experimental Settings" (3 random and 3 guided trials).

>>> Bayes(n_random=3, n_guided=3).n_trials
6
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from threading import Lock
from typing import Any

from driftquilt.core.training import M, Run, Task, train
from driftquilt.errors import InputError, MissingExtraError
from driftquilt.search.base import DISPARITY_RANGE, Trial, finish

__all__ = ["Bayes"]

# The verbosity is the whole process's: folds on threads must not put back each other's.
_ONE_AT_A_TIME = Lock()


@dataclass(frozen=True)
class Bayes:
    """Sequential trials, each a training of its own."""

    n_random: int = 3
    n_guided: int = 3

    def __post_init__(self) -> None:
        if min(self.n_random, self.n_guided) < 0 or self.n_trials < 1:
            raise InputError(f"a search takes at least one trial; got {self}")

    @property
    def n_trials(self) -> int:
        return self.n_random + self.n_guided

    def split(self, n_parts: int) -> list[Bayes]:  # noqa: ARG002 - each trial learns from the last
        return [self]

    def trials(self, task: Task, start: Callable[[], M]) -> Iterator[Trial[M]]:
        optuna = _import_optuna()
        sampler = optuna.samplers.TPESampler(n_startup_trials=self.n_random, seed=task.seed)
        with _ONE_AT_A_TIME:
            verbosity = optuna.logging.get_verbosity()
            optuna.logging.set_verbosity(optuna.logging.WARNING)  # not for each new study
            study = optuna.create_study(sampler=sampler)
            optuna.logging.set_verbosity(verbosity)
        for _ in range(self.n_trials):
            asked = study.ask()
            bound = asked.suggest_float("disparity_max", *DISPARITY_RANGE)
            run = Run(task, start())
            for _epoch in train(run, bound):
                pass
            study.tell(asked, run.best_loss)
            yield finish(run, bound)


def _import_optuna() -> Any:
    """Import it at first use: only this search needs it, and it takes a quarter of a second."""
    try:
        return import_module("optuna")
    except ImportError as error:
        raise MissingExtraError("optuna", extra="paper") from error
