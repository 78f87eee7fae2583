"""When to train more gently, and when to stop, from the validation loss alone.

Both are values: `after(loss)` gives the next state and leaves the old one as it was, so that
a training can be forked at any epoch.

Paper: "Parameters" (early stopping); the figures are those of the published evaluation.

>>> stopping = EarlyStopping(patience=2)
>>> for loss in [0.9, 0.5, 0.5, 0.49995]:
...     stopping = stopping.after(loss)
>>> stopping.over
True
>>> plateau = Plateau(patience=1)
>>> for loss in [0.9, 0.9, 0.9]:
...     plateau = plateau.after(loss)
>>> plateau.rate
0.1
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

__all__ = ["EarlyStopping", "Plateau"]


@dataclass(frozen=True)
class EarlyStopping:
    """Over after `patience` epochs in a row that did not improve by `min_delta`."""

    patience: int = 10
    min_delta: float = 1e-4
    best: float = math.inf
    waited: int = 0

    def after(self, loss: float) -> EarlyStopping:
        if loss < self.best - self.min_delta:
            return replace(self, best=loss, waited=0)
        return replace(self, waited=self.waited + 1)

    @property
    def over(self) -> bool:
        return self.waited >= self.patience


@dataclass(frozen=True)
class Plateau:
    """Cuts the learning rate to a tenth after more than `patience` epochs without progress.

    Progress is an improvement by a fraction of `min_fraction` of the best loss so far.
    `rate` multiplies the learner's own learning rate.
    """

    patience: int = 10
    min_fraction: float = 1e-4
    rate: float = 1.0
    best: float = math.inf
    waited: int = 0

    def after(self, loss: float) -> Plateau:
        if loss < self.best * (1 - self.min_fraction):
            return replace(self, best=loss, waited=0)
        if self.waited < self.patience:
            return replace(self, waited=self.waited + 1)
        return replace(self, rate=self.rate * 0.1, waited=0)
