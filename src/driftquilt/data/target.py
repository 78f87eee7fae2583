"""The scale on which a net learns a target that is a number.

The middle is the median. The spread is the interquartile range as that of a normal distribution, so
that a few enormous values do not squeeze all others together; where more than half of the values
are the same, it is the mean distance to the median.

>>> target = Target.fit(np.array([1.0, 2, 3, 4, 1e6]), np.ones(5))
>>> target
Target(middle=3.0, spread=1.4826)
>>> target.restore(target.scale(np.array([1.0, 1e6]))).round(3).tolist()
[1.0, 1000000.0]
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

__all__ = ["Target"]

_NORMAL = 1.4826  # standard deviations of a normal distribution in half of its quartile range


@dataclass(frozen=True)
class Target:
    """Middle and spread of a target."""

    middle: float
    spread: float

    @classmethod
    def fit(cls, y: NDArray[np.float64], weight: NDArray[np.float64]) -> Self:
        """Look at the rows of a training."""
        low, middle, high = weighted_quantiles(y, weight, (0.25, 0.5, 0.75))
        spread = (high - low) / 2 * _NORMAL
        if not spread:
            spread = float(np.average(np.abs(y - middle), weights=weight))
        return cls(float(middle), float(spread) or 1.0)

    def scale(self, y: NDArray[Any]) -> NDArray[np.float64]:
        """Return targets as the net learns them."""
        scaled: NDArray[np.float64] = (np.asarray(y, dtype=np.float64) - self.middle) / self.spread
        return scaled

    def restore(self, z: NDArray[Any]) -> NDArray[np.float64]:
        """Return what `scale` was given."""
        y: NDArray[np.float64] = np.asarray(z, dtype=np.float64) * self.spread + self.middle
        return y


def weighted_quantiles(
    values: NDArray[np.float64], weight: NDArray[np.float64], levels: Any
) -> NDArray[np.float64]:
    """Return the least value up to which at least the share `level` of the weights lies.

    >>> weighted_quantiles(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 2.0]), [0.25, 0.5, 0.9])
    array([1., 2., 3.])
    """
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weight[order])
    places = np.searchsorted(total, np.asarray(levels) * total[-1] * (1 - 1e-12))
    found: NDArray[np.float64] = values[order[np.minimum(places, len(values) - 1)]]
    return found
