"""Which past segments stay for the coming epoch.

A segment stays when its gain is positive and its disparity below the bound, both strictly.
Either test can be switched off (the paper's ablation). The training part of the current
segment is not a candidate: it always stays.

Paper: Algorithm 1, steps 5 to 11.

>>> import numpy as np
>>> scores = Scores(disparity=np.array([0.1, 0.9, 0.1]), gain=np.array([0.2, 0.2, -0.1]))
>>> Rule().keep(scores, disparity_max=0.5).tolist()
[True, False, False]
>>> Rule(use_gain=False).keep(scores, disparity_max=0.5).tolist()
[True, False, True]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["Rule", "Scores"]


@dataclass(frozen=True, eq=False)
class Scores:
    """Both scores of every past segment at one moment of training, each of shape (S,)."""

    disparity: NDArray[np.float64]
    gain: NDArray[np.float64]


@dataclass(frozen=True)
class Rule:
    """Which of the two tests a segment has to pass."""

    use_disparity: bool = True
    use_gain: bool = True

    def keep(self, scores: Scores, disparity_max: float) -> NDArray[np.bool_]:
        """Return a mask over the past segments, shape (S,)."""
        mask = np.ones(len(scores.gain), dtype=bool)
        if self.use_gain:
            mask &= scores.gain > 0
        if self.use_disparity:
            mask &= scores.disparity < disparity_max
        return mask
