"""What a net for numbers is trained by, and the gradient of it that reaches the last layer.

A net with the outputs `z` (n, Q) and the targets `y` (n,) has the loss

    squared   (z - y)² / 2
    huber     the same up to a distance of `delta`, and linear beyond
    quantile  (z - y)·(1 - level) above the target, (y - z)·level below; the mean over the levels

The gradient by the outputs is closed: z - y, clipped by the Huber loss, and for a quantile no more
than its sign, (1 - level) or -level. Times the embedding of the row that is its gradient by the
head (`core.gradients`), by which Quilt compares segments.

>>> loss = Loss("quantile", (0.1, 0.5, 0.9))
>>> z = np.array([[1.0, 2.0, 3.0]])
>>> loss.of_rows(z, np.array([2.5])).round(3)
array([0.15])
>>> (3 * loss.residuals(z, np.array([2.5]))).round(3).tolist()
[[-0.1, -0.5, 0.1]]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from driftquilt.errors import InputError

__all__ = ["LOSSES", "Loss", "LossName"]

LossName: TypeAlias = Literal["squared", "huber", "quantile"]

#: The names of the losses.
LOSSES: tuple[LossName, ...] = ("squared", "huber", "quantile")

_MEDIAN = 0.5


@dataclass(frozen=True)
class Loss:
    """A loss; `levels` are those of the quantiles, rising, and `delta` is the width of Huber's."""

    name: LossName = "huber"
    levels: tuple[float, ...] = (_MEDIAN,)
    delta: float = 1.0

    def __post_init__(self) -> None:
        if self.name not in LOSSES:
            raise InputError(f"unknown loss {self.name!r}; give one of {', '.join(LOSSES)}")
        rising = [*sorted({*self.levels})] == [*self.levels]
        if not self.levels or not rising or not all(0 < level < 1 for level in self.levels):
            raise InputError(f"levels are rising numbers between 0 and 1, not {self.levels}")
        if self.name != "quantile" and self.levels != (_MEDIAN,):
            raise InputError(f"the loss {self.name!r} has one output, not the levels {self.levels}")
        if not self.delta > 0:
            raise InputError(f"delta is {self.delta}; give a number above 0")

    @property
    def n_outputs(self) -> int:
        """How many outputs the net has."""
        return len(self.levels)

    @property
    def middle(self) -> int:
        """The output that is the answer: the quantile nearest to the median."""
        return int(np.argmin(np.abs(np.array(self.levels) - _MEDIAN)))

    def residuals(self, outputs: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
        """Return the gradient of each row's loss by its outputs, (n, Q)."""
        off = np.asarray(outputs, dtype=np.float64) - y[:, None]
        if self.name == "huber":
            off = np.clip(off, -self.delta, self.delta)
        elif self.name == "quantile":
            levels = np.array(self.levels)
            off = np.where(off > 0, 1 - levels, -levels) / len(levels)
        residuals: NDArray[np.float64] = off
        return residuals

    def of_rows(self, outputs: NDArray[Any], y: NDArray[Any]) -> NDArray[np.float64]:
        """Return the loss of each row (n,)."""
        off, slope = np.asarray(outputs, dtype=np.float64) - y[:, None], self.residuals(outputs, y)
        parts = slope * off if self.name == "quantile" else slope * (off - slope / 2)
        losses: NDArray[np.float64] = parts.sum(axis=1)
        return losses
