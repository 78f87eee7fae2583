"""The paper, readable in one sitting: arrays in, values out.

Nothing here reads a file, looks at the clock, logs, or draws a random number that the
caller did not seed. Read the modules in this order: `segment`, `gradients`, `training`; then
`sampling`, for long histories, and `loss`, for targets that are numbers.
"""

from __future__ import annotations

from driftquilt.core.gradients import cross_entropy, head_gradient, mean_gradients
from driftquilt.core.loss import LOSSES, Loss, LossName
from driftquilt.core.sampling import EVERY_ROW, Sampling
from driftquilt.core.segment import History, Segment, cut, folds, join
from driftquilt.core.training import (
    EarlyStopping,
    Epoch,
    Plateau,
    Rule,
    Run,
    Scores,
    Task,
    Time,
    Trainable,
    disparity,
    gain,
    train,
)

__all__ = [
    "EVERY_ROW",
    "LOSSES",
    "EarlyStopping",
    "Epoch",
    "History",
    "Loss",
    "LossName",
    "Plateau",
    "Rule",
    "Run",
    "Sampling",
    "Scores",
    "Segment",
    "Task",
    "Time",
    "Trainable",
    "cross_entropy",
    "cut",
    "disparity",
    "folds",
    "gain",
    "head_gradient",
    "join",
    "mean_gradients",
    "train",
]
