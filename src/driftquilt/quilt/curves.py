"""The winning trials of a selection, epoch by epoch, and what they add up to.

What counts are the epochs that made the model: of each fold those up to its best one, whose
weights are kept. The share of epochs that used a past segment, and its median scores, are over
all of them together, whichever fold they are of. Scores at a moment of training, and the bound,
are means over folds. Folds have bounds of their own, so before the median is taken a fold's
disparities are scaled as its bound has to be to become the mean one. So a segment that most
epochs used has a median disparity below the bound and a median gain above 0, and one that none
used fails at least one of the two.
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

    @property
    def n_made(self) -> int:
        """Epochs up to the best one."""
        return self.best + 1

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
    """A score at three moments of training, and its median over the epochs that made the model."""

    first: float
    best: float
    last: float
    median: float


class EpochShares(NamedTuple):
    """Shares of the epochs that made the model: used a segment, found it too far, or away."""

    used: float
    too_far: float
    away: float


def score_at(folds: Sequence[FoldCurves], score: Literal["disparity", "gain"], s: int) -> ScoreAt:
    """A score of segment `s`."""
    curves = [(getattr(fold, score)[:, s], fold.best) for fold in folds]
    moments = np.mean([(curve[0], curve[best], curve[-1]) for curve, best in curves], axis=0)
    scales = _scales(folds) if score == "disparity" else [1.0] * len(folds)
    made = [curve[: best + 1] * scale for (curve, best), scale in zip(curves, scales, strict=True)]
    return ScoreAt(*(float(value) for value in (*moments, np.median(np.concatenate(made)))))


def _scales(folds: Sequence[FoldCurves]) -> list[float]:
    """What each fold's bound has to be multiplied by to become the mean one."""
    if len({fold.disparity_max for fold in folds}) == 1:
        return [1.0] * len(folds)
    return [mean_bound(folds) / fold.disparity_max for fold in folds]


def epoch_shares(folds: Sequence[FoldCurves], s: int, rule: Rule) -> EpochShares:
    """What the tests that `rule` asks for said of segment `s`."""
    # Put as the rule puts it, so that a score that is not a number fails here too.
    epochs = [
        (
            fold.selected[: fold.n_made, s],
            rule.use_disparity & ~(fold.disparity[: fold.n_made, s] < fold.disparity_max),
            rule.use_gain & ~(fold.gain[: fold.n_made, s] > 0),
        )
        for fold in folds
    ]
    return EpochShares(*(float(np.concatenate(told).mean()) for told in zip(*epochs, strict=True)))


def mean_bound(folds: Sequence[FoldCurves]) -> float:
    """The bound found, averaged over folds; not a number if there is none."""
    return float(np.mean([fold.disparity_max for fold in folds])) if folds else float("nan")
