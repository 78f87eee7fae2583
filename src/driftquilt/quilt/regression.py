"""Quilt for targets that are numbers: the same method, judged by its loss.

Disparity and gain come from the head gradients of the loss (`core.loss`), and everything up to the
finished trials is that of `method`. What differs is what held-out rows say of them: candidates and
blends are compared by the loss of each labelled row under models that were not trained on it. A
blend is the weighted mean of predictions, and its caution is that of `blending`.

Labelled rows are the first of their segment, and say little of the rest if the rest looks
different, as those after the first days of a quarter do. How much the first rows of a segment stand
for the rest is seen in the past (`coverage`), and the blend is drawn back to "all" by as much.

>>> from driftquilt.core.segment import cut
>>> from driftquilt.search.shared import Shared
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(600, 2)).astype(np.float32)
>>> month = np.repeat([0, 1, 2], 200)
>>> y = np.where(month == 0, -1.0, 1.0) * X[:, 0]             # April was the other way round
>>> history, current = cut(X, y, month, ["April", "May", "June"])
>>> learner = MLPRegression(hidden_units=32, learning_rate=0.01)
>>> method = RegressionQuilt(learner, search=Shared((0.3, 1.0, 2.0)))
>>> [(use.name, use.used) for use in method.adapt(history, current).selection]
[('April', False), ('May', True)]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftquilt.core.loss import Loss
from driftquilt.core.segment import History, Segment
from driftquilt.learners.base import Model
from driftquilt.learners.mlp import MLPRegression
from driftquilt.quilt.blending import OTHER_FOLDS, blend_numbers, choose_by_merit
from driftquilt.quilt.method import DEFAULT, Quilt, TrialsByPart, by_part, same_candidates
from driftquilt.search.base import Everything, Trial, best

__all__ = ["DEFAULT_REGRESSION", "RegressionQuilt", "coverage"]


_MARGIN = 0.1  # of a range, by which a row may lie beyond it


@dataclass(frozen=True)
class RegressionQuilt(Quilt):
    """The method for numbers; the learner's loss is what everything is judged by.

    All folds train on all data by themselves and end by their own rows, as those of the other parts
    do: nothing else here keeps a blend from parts that look good by the rows that ended them.
    """

    learner: MLPRegression = field(default_factory=MLPRegression)
    everything: Everything = field(default_factory=lambda: Everything(max_held_out=0, n_folds=1))

    def _mix(
        self, history: History, current: Segment, of_folds: Sequence[TrialsByPart]
    ) -> tuple[list[list[Trial[Model]]], NDArray[np.float64]]:
        validations = [task.validation for task in self.tasks(history, current)]
        rows = _Rows(self.learner.loss, validations)
        selected = [best(parts["selected"]) for parts in of_folds]
        options = same_candidates(of_folds)
        if options:
            merits = np.stack([-rows.losses(rows.outputs(trials)) for trials in options])
            for fold in range(len(validations)):
                selected[fold] = options[choose_by_merit(merits, rows.heard_by(fold))][fold]
        chosen = by_part(of_folds, selected)
        outputs = np.stack([rows.outputs(trials) for trials in chosen])
        share = coverage(history, len(current)) ** 2
        return chosen, blend_numbers(outputs, rows.losses, rows.weight, share)


class _Rows:
    """The labelled rows of the present, fold by fold, as models that did not train on them see."""

    def __init__(self, loss: Loss, parts: Sequence[Segment]) -> None:
        self.loss, self.parts = loss, parts
        self.y = np.concatenate([part.y for part in parts])
        self.weight = np.concatenate([part.weight for part in parts]).astype(np.float64)
        self._fold_of = np.repeat(np.arange(len(parts)), [len(part) for part in parts])

    def outputs(self, trials: Sequence[Trial[Any]]) -> NDArray[np.float64]:
        """Return what the model of each fold says of its rows, (n, Q)."""
        parts = zip(trials, self.parts, strict=True)
        answers = [trial.model.predict(part.X) for trial, part in parts]
        return np.concatenate(answers).astype(np.float64)

    def losses(self, outputs: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the loss of each row (n,)."""
        return self.loss.of_rows(outputs, self.y)

    def heard_by(self, fold: int) -> NDArray[np.float64]:
        """Return what each row counts where a fold chooses."""
        shares: NDArray[np.float64] = np.where(self._fold_of == fold, 1.0, OTHER_FOLDS)
        return shares * self.weight


def coverage(history: History, n_rows: int) -> float:
    """Return how much the first rows of past segments look like all of their rows, from 0 to 1.

    A row looks like others if it lies in their range in every column, or a little beyond. Of the
    first rows, that is the share of all rows which look like them, over the same for as many rows
    that are drawn.

    >>> rows = np.column_stack([np.tile([0.0, 1.0], 50), np.arange(100.0)])
    >>> months = [Segment(k, rows, np.zeros(100), np.ones(100)) for k in range(2)]
    >>> round(coverage(months, 50), 2)
    0.54
    """
    rng = np.random.default_rng(0)  # even distances would fall in with the hours of a day
    drawn = [rng.choice(len(s), min(n_rows, len(s)), replace=False) for s in history]
    like_first = sum(_n_alike(s.X, s.X[:n_rows]) for s in history)
    like_drawn = sum(_n_alike(s.X, s.X[rows]) for s, rows in zip(history, drawn, strict=True))
    return min(like_first / like_drawn, 1.0)


def _n_alike(X: NDArray[Any], seen: NDArray[Any]) -> int:
    low, high = seen.min(axis=0), seen.max(axis=0)
    margin = _MARGIN * (high - low)
    return int(((low - margin <= X) & (high + margin >= X)).all(axis=1).sum())


#: The default for numbers: the classifier's, but for the learner.
DEFAULT_REGRESSION = RegressionQuilt(
    learner=MLPRegression(
        learning_rate=None, batch_size=64, loss=Loss("quantile", (0.1, 0.5, 0.9))
    ),
    n_folds=DEFAULT.n_folds,
    patience=DEFAULT.patience,
    sampling=DEFAULT.sampling,
    search=DEFAULT.search,
    blend=DEFAULT.blend,
)
