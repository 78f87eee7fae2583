"""The winning trials of a selection, epoch by epoch, and what they add up to.

A figure of a past segment is taken within each fold, over its epochs, and averaged over folds:
so are the share of epochs that used it, its median scores, and the bound. A segment that is too
far in every epoch therefore has a median above the bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from driftquilt.core.selection import Rule
from driftquilt.search.base import Trial

__all__ = ["EpochShares", "FoldCurves", "ScoreAt", "epoch_shares", "mean_bound", "score_at"]


@dataclass(frozen=True, eq=False)
class FoldCurves:
    """The winning trial of one fold, epoch by epoch."""

    disparity_max: float
    best: int
    validation_loss: NDArray[np.float64]  # (E,)
    selected: NDArray[np.bool_]  # (E, S)
    disparity: NDArray[np.float64]  # (E, S)
    gain: NDArray[np.float64]  # (E, S)

    @classmethod
    def of(cls, trial: Trial[Any]) -> FoldCurves:
        """The curves of a trial."""
        losses = np.array([epoch.validation_loss for epoch in trial.epochs])
        return cls(
            trial.disparity_max,
            int(np.nanargmin(losses)),
            losses,
            np.array([epoch.selected for epoch in trial.epochs]),
            np.array([epoch.scores.disparity for epoch in trial.epochs]),
            np.array([epoch.scores.gain for epoch in trial.epochs]),
        )

    def to_json(self) -> dict[str, Any]:
        """Plain lists and numbers."""
        return {
            key: value.tolist() if isinstance(value, np.ndarray) else value
            for key, value in vars(self).items()
        }

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> FoldCurves:
        """What `to_json` told of; a damaged record raises what numpy or the look-up raises."""
        keys = ("validation_loss", "disparity", "gain")
        arrays = {key: np.array(record[key], dtype=np.float64) for key in keys}
        selected = np.array(record["selected"], dtype=bool)
        return cls(record["disparity_max"], record["best"], selected=selected, **arrays)


class ScoreAt(NamedTuple):
    """A score at three moments of training, and its median over epochs; means over folds."""

    first: float
    best: float
    last: float
    median: float


class EpochShares(NamedTuple):
    """Shares of epochs: that used a segment, that found it too far, or pointing away."""

    used: float
    too_far: float
    away: float


def score_at(folds: Sequence[FoldCurves], score: Literal["disparity", "gain"], s: int) -> ScoreAt:
    """A score of segment `s`."""
    curves = [(getattr(fold, score)[:, s], fold.best) for fold in folds]
    moments = [(c[0], c[best], c[-1], np.median(c)) for c, best in curves]
    return ScoreAt(*(float(value) for value in np.mean(moments, axis=0)))


def epoch_shares(folds: Sequence[FoldCurves], s: int, rule: Rule) -> EpochShares:
    """What the tests that `rule` asks for said of segment `s`."""
    # Put as the rule puts it, so that a score that is not a number fails here too.
    shares = [
        (
            fold.selected[:, s].mean(),
            (rule.use_disparity & ~(fold.disparity[:, s] < fold.disparity_max)).mean(),
            (rule.use_gain & ~(fold.gain[:, s] > 0)).mean(),
        )
        for fold in folds
    ]
    return EpochShares(*(float(value) for value in np.mean(shares, axis=0)))


def mean_bound(folds: Sequence[FoldCurves]) -> float:
    """The bound found, averaged over folds; not a number if there is none."""
    return float(np.mean([fold.disparity_max for fold in folds])) if folds else float("nan")
