"""How sure a measured accuracy is, and whether one model is better than another.

Both are asked about the same rows, so only those count that one has right and the other wrong:
if the models were equally good, each of these would be a toss of a coin (McNemar's test, exact).

>>> low, high = interval(90, 100)
>>> round(low, 3), round(high, 3)
(0.826, 0.945)
>>> round(p_value(8, 1), 3), verdict(80, 8), verdict(3, 2)
(0.039, 'better', 'no clear difference')
"""

from __future__ import annotations

import math
from typing import Literal

__all__ = ["Verdict", "interval", "p_value", "verdict"]

Verdict = Literal["better", "no clear difference", "worse"]

_Z = 1.959963984540054  # 95 % of a normal distribution lie within so many deviations
_CLEAR = 0.05


def interval(n_right: int, n_rows: int) -> tuple[float, float]:
    """95 % interval of an accuracy, after Wilson; (0, 1) where nothing was measured."""
    if n_rows == 0:
        return 0.0, 1.0
    share, z2 = n_right / n_rows, _Z**2 / n_rows
    middle = (share + z2 / 2) / (1 + z2)
    half = _Z * math.sqrt(share * (1 - share) / n_rows + z2 / (4 * n_rows)) / (1 + z2)
    return max(0.0, middle - half), min(1.0, middle + half)


def p_value(wins: int, losses: int) -> float:
    """How probable so uneven a count, or a more uneven one, is among equals; two-sided."""
    n = wins + losses
    if wins == losses:
        return 1.0
    tail = (
        math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) - n * math.log(2)
        for k in range(min(wins, losses) + 1)
    )
    return min(1.0, 2 * math.fsum(map(math.exp, tail)))


def verdict(wins: int, losses: int) -> Verdict:
    """Whether who has `wins` is better, at a chance of 5 % to say so of equals."""
    if p_value(wins, losses) >= _CLEAR:
        return "no clear difference"
    return "better" if wins > losses else "worse"
