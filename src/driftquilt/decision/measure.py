"""How good each model is on held-out rows, how certain that is, and whether one is better.

All models predict the same rows, so only the rows count that one predicts correctly and the other
does not: between two equally good models each of these is a coin toss (McNemar's exact test).

>>> low, high = interval(90, 100)
>>> round(low, 3), round(high, 3)
(0.826, 0.945)
>>> round(p_value(8, 1), 3), verdict(80, 8), verdict(3, 2)
(0.039, 'better', 'no clear difference')
>>> score = MethodScore("all data", validation=0.8, n_right=80, n_rows=100, wins=15, losses=2)
>>> score.accuracy, score.verdict
(0.8, 'better')
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

__all__ = ["ConstantAnswer", "MethodScore", "Verdict", "interval", "p_value", "verdict"]

Verdict = Literal["better", "no clear difference", "worse"]

_Z = 1.959963984540054  # 95 % of a normal distribution lie within so many deviations
_SIGNIFICANT = 0.05


@dataclass(frozen=True)
class MethodScore:
    """One way to train, and its score on held-out rows; `wins` and `losses` are Quilt's against it.

    `validation` is the accuracy on the current rows used for validation, averaged over folds. A
    win is a row that Quilt predicts correctly and this method does not; Quilt has none against
    itself.
    """

    name: str
    validation: float
    n_right: int = 0
    n_rows: int = 0
    wins: int = 0
    losses: int = 0

    @property
    def accuracy(self) -> float | None:
        """Accuracy on the held-out rows; None if there are none."""
        return self.n_right / self.n_rows if self.n_rows else None

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the accuracy."""
        return interval(self.n_right, self.n_rows)

    @property
    def verdict(self) -> Verdict:
        """How Quilt compares with this method."""
        return verdict(self.wins, self.losses)

    def to_json(self) -> dict[str, Any]:
        """Plain values, with what follows from them for readers of the file."""
        return {
            **asdict(self),
            "accuracy": self.accuracy,
            "interval": self.interval,
            "p_value": p_value(self.wins, self.losses),
            "quilt_is": self.verdict,
        }


class ConstantAnswer(NamedTuple):
    """The most common label of the current rows, and how many held-out rows have it."""

    label: str
    n_right: int


def interval(n_right: int, n_rows: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of an accuracy; (0, 1) without rows."""
    if n_rows == 0:
        return 0.0, 1.0
    share, z2 = n_right / n_rows, _Z**2 / n_rows
    middle = (share + z2 / 2) / (1 + z2)
    half = _Z * math.sqrt(share * (1 - share) / n_rows + z2 / (4 * n_rows)) / (1 + z2)
    return max(0.0, middle - half), min(1.0, middle + half)


def p_value(wins: int, losses: int) -> float:
    """Return the probability of a count at least as uneven if both are equally good; two-sided."""
    n = wins + losses
    if wins == losses:
        return 1.0
    tail = (
        math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) - n * math.log(2)
        for k in range(min(wins, losses) + 1)
    )
    return min(1.0, 2 * math.fsum(map(math.exp, tail)))


def verdict(wins: int, losses: int) -> Verdict:
    """Return whether the model with `wins` is better, at a significance level of 5 %."""
    if p_value(wins, losses) >= _SIGNIFICANT:
        return "no clear difference"
    return "better" if wins > losses else "worse"
