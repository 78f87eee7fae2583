"""Drifts with evidence: a detector that asks whether the newest model is still as good as it was.

It bets against the hypothesis that nothing changed, which says of the newest model *as it was
trained*, a copy that does not learn, that for each row, given those before,

- its chance of an error is at most the usual one plus `_SLACK`, and
- wherever it and another expert disagree and one of them is right, the chance that it is the other
  one is at most its usual share plus `_SLACK`, and at least `_EVEN`.

The usual ones are running means over the rows before. A bet multiplies its stake by the ratio of
two chances of what came, one that a change would bring and the largest the hypothesis allows, so
under the hypothesis a stake does not grow on average. With R <- (1 + R) · ratio, a stake of 1 is
added at every row (the Shiryaev-Roberts form of an e-detector), so R less the number of rows does
not grow on average, nor does the mean of several R with fixed weights. The alarm comes when that
mean reaches `rows`: under the hypothesis at least `rows` rows pass on average before a false alarm,
whatever else is true of the stream.

Where the change began is the row from which the strongest bet has won all the time: the start of
the run in its cumulative sum.

Reference: Shin, Ramdas and Rinaldo, "E-detectors: a nonparametric framework for sequential change
detection", 2024.

>>> evidence = Evidence(rows=1_000)
>>> for row in range(220):
...     evidence.update(row, wrong=row > 200 or row % 20 == 0, others={})
...     if evidence.drift_detected:
...         break
>>> row, evidence.began                                # `began`: so many rows came before it
(204, 200)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Self

from driftquilt.detectors.base import check_settings, count

__all__ = ["KIND", "SETTINGS", "Evidence"]

KIND = "experts"
SETTINGS = {"rows": count(10)}

_SLACK = 0.05
_EVEN = 0.55
_FADE = 0.998  # of what is usual, per row or disagreement
_BETS = (0.25, 0.7)  # how far between the largest chance and 1 a change would lead
_ERRORS = "errors"
# The weights of bets in the mean; those on archived models share the rest.
_WEIGHTS = {_ERRORS: 0.4, "all": 0.1, "online": 0.1, "online with labels": 0.1, "newest": 0.1}
_ARCHIVED_MAX = 32


class Evidence:
    """The detector of a panel; `rows` is how many come at least, on average, to a false alarm."""

    watches = "experts"

    def __init__(self, rows: int = 10_000) -> None:
        self.rows: int = check_settings(KIND, {"rows": rows}, SETTINGS)["rows"]
        self._usual: dict[str, list[float]] = {}  # faded: how often it won, of how many
        self._stakes: dict[str, list[list[float]]] = {}  # R, sum and begin of each bet
        self.value = 0.0
        self.began = 0
        self.winner = ""

    @property
    def drift_detected(self) -> bool:
        """Whether the evidence of the last row was enough."""
        return self.value >= self.rows

    def update(self, row: int, *, wrong: bool, others: Mapping[str, bool]) -> None:
        """Take in row number `row`.

        `wrong` is whether the newest model was; `others` has those that disagreed with it where
        one of both was right, and whether it was the other one.
        """
        self._bet(_ERRORS, row, won=wrong, least=0.0)
        for name, won in others.items():
            self._bet(name, row, won=won, least=_EVEN)
        self.value, strongest = 0.0, 0.0
        archived = (1 - sum(_WEIGHTS.values())) / _ARCHIVED_MAX
        for name, bets in self._stakes.items():
            for stake, _, begin in bets:
                weighed = _WEIGHTS.get(name, archived) * stake / len(_BETS)
                self.value += weighed
                if weighed > strongest:
                    strongest, self.began, self.winner = weighed, int(begin), name

    def restart(self) -> None:
        """Start a new bet: there was an alarm, or a new newest model; what is usual stays."""
        self._stakes, self.value, self.winner = {}, 0.0, ""

    def forget(self, name: str) -> None:
        """Forget an expert that is gone."""
        self._stakes.pop(name, None)
        self._usual.pop(name, None)

    def fresh(self) -> Self:
        """Return a detector of the same settings that has seen nothing."""
        return type(self)(self.rows)

    def settings(self) -> dict[str, Any]:
        """Plain values."""
        return {"kind": KIND, "rows": self.rows}

    def pack(self) -> dict[str, Any]:
        """Plain values."""
        return {"usual": self._usual, "stakes": self._stakes, "value": self.value}

    def unpack(self, record: dict[str, Any]) -> None:
        """Go on from what `pack` gave."""
        self._usual = {name: list(usual) for name, usual in record["usual"].items()}
        self._stakes = {n: [list(bet) for bet in bets] for n, bets in record["stakes"].items()}
        self.value = record["value"]

    def _bet(self, name: str, row: int, *, won: bool, least: float) -> None:
        usual = self._usual.setdefault(name, [1.0, 2.0] if least else [1.0, 10.0])
        most = min(0.95, max(least, usual[0] / usual[1] + _SLACK))
        bets = self._stakes.setdefault(name, [[0.0, 0.0, float(row)] for _ in _BETS])
        for bet, far in zip(bets, _BETS, strict=True):
            chance = most + far * (1 - most)
            ratio = chance / most if won else (1 - chance) / (1 - most)
            if bet[1] <= 0:
                bet[1], bet[2] = 0.0, float(row)
            bet[0] = (1 + bet[0]) * ratio
            bet[1] += math.log(ratio)
        usual[0] = _FADE * usual[0] + won
        usual[1] = _FADE * usual[1] + 1
