"""Disparity and gain of the past segments, and which of them stay for the coming epoch.

Both compare a past segment's mean head gradient with that of the present. Disparity is the
distance between the two vectors; it stays high for another concept however long one trains. Gain
is their inner product: while it is positive, a step on the segment lowers the loss of the present.

    segments  (S, P)  mean head gradient of each past segment
    present   (P,)    mean head gradient of the validation part

A segment stays when its gain is positive and its disparity below the bound, both strictly.
Either test can be switched off (the paper's ablation). The training part of the current
segment is not a candidate: it always stays.

Paper: Definitions 1 and 2; Algorithm 1, steps 5 to 11.

>>> import numpy as np
>>> segments = np.array([[3.0, 4.0], [-1.0, 0.0]])
>>> disparity(segments, np.array([0.0, 0.0])).tolist()
[5.0, 1.0]
>>> gain(segments, np.array([2.0, 1.0])).tolist()
[10.0, -2.0]
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

__all__ = ["Rule", "Scores", "disparity", "gain"]


def disparity(segments: NDArray[np.float64], present: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the distance of each segment's gradient to the present's, shape (S,)."""
    norms: NDArray[np.float64] = np.linalg.norm(segments - present, axis=1)
    return norms


def gain(segments: NDArray[np.float64], present: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the inner product of each segment's gradient with the present's, shape (S,)."""
    products: NDArray[np.float64] = segments @ present
    return products


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
