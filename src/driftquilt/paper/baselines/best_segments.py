"""Best Segments: try every subset of the history and keep the best.

The gold standard that the paper measures Quilt's choice against, and the most expensive method
there is: S past segments take 2^S trainings. Each subset is trained on together with the
training part of the current segment, exactly as the naive methods train on all of the history
or on none of it. The subset with the highest accuracy on the validation part is the gold set;
of equal ones the lower validation loss wins, then fewer segments, then the older ones.

With several folds a subset is trained once per fold, and its accuracy and loss are the means
over the folds: there is always one gold set. Only the best subset's models are kept.

Paper: "Data Segment Selection Analysis".

>>> import numpy as np
>>> from driftquilt.core.segment import cut
>>> from driftquilt.learners.mlp import MLP
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(600, 2)).astype(np.float32)
>>> month = np.repeat([0, 1, 2], 200)
>>> y = ((X[:, 0] > 0) ^ (month == 0)).astype(np.int64)      # April was the other way round
>>> history, current = cut(X, y, month, ["April", "May", "June"])
>>> model = BestSegments(MLP(hidden_units=32)).adapt(history, current)
>>> model.gold, len(model.tried_subsets)
(('May',), 4)
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import NamedTuple

import numpy as np

from driftquilt.core.segment import History, Segment, join
from driftquilt.core.training import Run, Task, expect_finite, train
from driftquilt.errors import InputError
from driftquilt.learners.base import Model
from driftquilt.quilt.executor import one_blas_thread
from driftquilt.quilt.method import Average, Training

__all__ = ["BestSegments", "BestSegmentsModel", "TriedSubset"]


class TriedSubset(NamedTuple):
    """One subset of the history, in a line; means over the folds."""

    names: tuple[Hashable, ...]
    validation_accuracy: float
    validation_loss: float


_UNTRIED = TriedSubset((), 0.0, math.inf)


@dataclass(frozen=True)
class BestSegmentsModel(Average):
    """The models trained on the gold set, one per fold, and how every subset did."""

    models: Sequence[Model]
    gold: tuple[Hashable, ...]
    tried_subsets: tuple[TriedSubset, ...] = field(repr=False)

    @property
    def equals(self) -> list[tuple[Hashable, ...]]:
        """All subsets with the gold set's validation accuracy, the gold set among them."""
        accuracy = {tried.names: tried.validation_accuracy for tried in self.tried_subsets}
        return [names for names, value in accuracy.items() if value == accuracy[self.gold]]


@dataclass(frozen=True)
class BestSegments(Training):
    """The method; more than `max_segments` past segments are refused."""

    max_segments: int = 14

    def adapt(self, history: History, current: Segment) -> BestSegmentsModel:
        self._expect_few(len(history))
        n_classes = self.count_classes(history, current)
        tasks, tried = self.tasks((), current), []
        gold, winners = _UNTRIED, list[Run[Model]]()
        with one_blas_thread():
            starts = [self.learner.start(task.current.X, n_classes, task.seed) for task in tasks]
            for subset in _subsets(history):
                runs = [_train(*pair, subset) for pair in zip(tasks, starts, strict=True)]
                tried.append(_judge(subset, runs))
                if _rank(tried[-1]) < _rank(gold):
                    gold, winners = tried[-1], runs
        expect_finite(gold.validation_loss)
        return BestSegmentsModel(
            [run.best for run in winners],
            gold.names,
            tuple(tried),
            trainings=[run.epochs for run in winners],
        )

    def _expect_few(self, n_segments: int) -> None:
        if n_segments > self.max_segments:
            raise InputError(
                f"{n_segments} past segments take {self.n_folds * 2**n_segments:,} trainings, "
                f"one per subset and fold; hand over at most max_segments={self.max_segments} of "
                "them, or raise it"
            )


def _subsets(history: History) -> Iterator[tuple[Segment, ...]]:
    """Every subset, small ones first; of one size, those with the oldest segments first."""
    for size in range(len(history) + 1):
        yield from combinations(history, size)


def _train(task: Task, start: Model, subset: Sequence[Segment]) -> Run[Model]:
    run = Run(replace(task, current=join([*subset, task.current])), start.copy())
    for _ in train(run, math.inf):
        pass
    return run


def _judge(subset: Sequence[Segment], runs: Sequence[Run[Model]]) -> TriedSubset:
    return TriedSubset(
        tuple(segment.name for segment in subset),
        float(np.mean([_accuracy(run.best, run.task.validation) for run in runs])),
        float(np.mean([run.best_loss for run in runs])),
    )


def _accuracy(model: Model, rows: Segment) -> float:
    right = model.predict_proba(rows.X).argmax(axis=1) == rows.y
    return float(np.average(right, weights=rows.weight))


def _rank(tried: TriedSubset) -> tuple[float, float, int]:
    """Return what to sort by, the best first; a training that diverged is as bad as none."""
    if math.isinf(tried.validation_loss):
        return math.inf, math.inf, 0
    return -tried.validation_accuracy, tried.validation_loss, len(tried.names)
