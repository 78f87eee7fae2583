"""What stands between a suspicion and a new model.

    cool_down  rows after a drift during which no other drift counts
    min_rows   rows that a segment needs before a drift may end it
    margin     how much worse than the present model a new one may be, as a share of its loss,
               and still take its place; negative: how much better it has to be

Both losses are means over the current segment: the new model's over the rows that its folds held
out, the present one's over the last `n_wait` rows, each predicted before it was learned.

>>> guard = Guard(min_rows=50, cool_down=200, margin=0.1)
>>> guard.accepts_drift(n_current=60, since_drift=150), guard.promotes(0.52, 0.50)
(False, True)
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from driftquilt.errors import InputError

__all__ = ["LET_ALL_THROUGH", "Guard"]


@dataclass(frozen=True)
class Guard:
    """Limits on how often the model may change, and for what."""

    cool_down: int = 0
    min_rows: int = 100
    margin: float = 0.1

    def __post_init__(self) -> None:
        for name in ("cool_down", "min_rows"):
            value = getattr(self, name)
            if type(value) is not int or value < 0:
                raise InputError.of_setting(name, value, "a whole number of rows")
        if type(self.margin) not in (int, float) or not self.margin > -1:
            raise InputError.of_setting("margin", self.margin, "a share above -1")

    def accepts_drift(self, n_current: int, since_drift: int) -> bool:
        """Whether a drift counts, so many rows into a segment and after the last drift."""
        return n_current >= self.min_rows and since_drift > self.cool_down

    def promotes(self, challenger: float, champion: float) -> bool:
        """Whether a model with the first loss may take the place of one with the second."""
        if math.isnan(challenger):
            return False
        return self.margin == math.inf or challenger <= champion * (1 + self.margin)


#: The guard that does nothing.
LET_ALL_THROUGH = Guard(cool_down=0, min_rows=0, margin=math.inf)
