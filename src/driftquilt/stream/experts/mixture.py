"""Fixed share: experts weighed by their losses, so that the mixture follows whoever is best now.

    w_k <- w_k · exp(-loss_k)          then all weights are scaled to the sum 1
    w_k <- (1 - share) w_k + share / n

The second line lets an expert that was useless for long take over within some rows: its weight
never falls below `share / n`. The loss of the mixture exceeds that of the best sequence of experts
with m changes over T rows by at most (m + 1) ln n + m ln(1 / share) + T · share nats or so.

An expert may sleep: one that was not asked about a row keeps its part of the whole. One that comes
late takes its part from all others. Weights are plain floats that JSON keeps exactly.

Experts are weighed by `loss` alone: another kind of target needs another loss, and nothing else
here.

Reference: Herbster and Warmuth, "Tracking the best expert", 1998; Freund and others, "Using and
combining predictors that specialize", 1997.

>>> mixture = FixedShare(share=0.01)
>>> for name in ("net", "last label"):
...     mixture.add(name, 0.5)
>>> for row in range(5):
...     mixture.update({"net": 0.1, "last label": 2.0})
>>> mixture.best(), round(mixture.weights["last label"], 3)
('net', 0.006)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from numpy.typing import NDArray

__all__ = ["LOSS_MAX", "SHARE", "FixedShare", "loss"]

#: Of the weight that is spread over all experts after each row.
SHARE = 0.01
#: The loss of a row on which an expert gives the true class no chance, which bounds every loss.
LOSS_MAX = -math.log(1e-3)


class FixedShare:
    """Experts by name, each with its weight; the weights of all add up to 1."""

    def __init__(self, share: float = SHARE) -> None:
        self.share = share
        self.weights: dict[str, float] = {}

    def add(self, name: str, part: float) -> None:
        """Let an expert have this part of the whole, the first one all of it."""
        self.remove(name)
        part = part if self.weights else 1.0
        self.weights = {n: w * (1 - part) for n, w in self.weights.items()}
        self.weights[name] = part

    def remove(self, name: str) -> None:
        """Let an expert go, if it is there; the others share what it had."""
        if name in self.weights:
            del self.weights[name]
            self._scale()

    def update(self, losses: Mapping[str, float]) -> None:
        """Take in a row: the loss of each expert that was asked."""
        before = sum(self.weights[name] for name in losses)
        least = min(losses.values(), default=0.0)
        weighed = {n: self.weights[n] * math.exp(least - loss) for n, loss in losses.items()}
        after = sum(weighed.values())
        if after > 0:
            self.weights |= {name: w * before / after for name, w in weighed.items()}
        self._scale()
        spread = self.share / max(len(self.weights), 1)
        self.weights = {n: (1 - self.share) * w + spread for n, w in self.weights.items()}

    def best(self) -> str:
        """Return who has the most weight; of equal ones the first."""
        return max(self.weights, key=self.weights.__getitem__)

    def _scale(self) -> None:
        total = sum(self.weights.values())
        if total > 0:
            self.weights = {name: weight / total for name, weight in self.weights.items()}


def loss(answer: NDArray[Any], code: int) -> float:
    """Return the log loss of an answer, at most `LOSS_MAX`.

    >>> import numpy as np
    >>> loss(np.array([0.5, 0.5]), 1)
    0.6931471805599453
    >>> loss(np.array([0.5, 0.5]), 2) == LOSS_MAX    # a class that the expert does not know
    True
    """
    likelihood = float(answer[code]) if code < len(answer) else 0.0
    return min(LOSS_MAX, -math.log(likelihood)) if likelihood > 0 else LOSS_MAX
