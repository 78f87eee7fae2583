"""The two answers that need no thought: train on everything, or only on the present.

Both train the learner exactly as Quilt does: same start, same batches, same stopping on the
validation part of the current segment. They are what Quilt has to beat, and its limits: with
a bound of 0 Quilt is `CurrentSegment`, and without gain at a bound of infinity `FullData`.

Paper: "Baselines", naïve methods.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from driftquilt.core.segment import History, Segment, join
from driftquilt.core.training import Epoch, Run, expect_finite, train
from driftquilt.learners.base import Model
from driftquilt.quilt.executor import one_blas_thread
from driftquilt.quilt.method import Average, Training

__all__ = ["CurrentSegment", "FullData"]


@dataclass(frozen=True)
class FullData(Training):
    """Train on all past segments and the current one."""

    def adapt(self, history: History, current: Segment) -> Average:
        return _train(self, history, current, self.count_classes(history, current))


@dataclass(frozen=True)
class CurrentSegment(Training):
    """Train on the current segment alone."""

    def adapt(self, history: History, current: Segment) -> Average:
        return _train(self, (), current, self.count_classes(history, current))


def _train(settings: Training, past: History, current: Segment, n_classes: int) -> Average:
    models: list[Model] = []
    trainings: list[list[Epoch]] = []
    with one_blas_thread():
        for task in settings.tasks((), current):
            rows = join([*past, task.current])
            model = settings.learner.start(rows.X, n_classes, task.seed)
            run = Run(replace(task, current=rows), model)
            trainings.append(list(train(run, math.inf)))
            expect_finite(run.best_loss)
            models.append(run.best)
    return Average(models, trainings=trainings)
