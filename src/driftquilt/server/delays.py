"""How long labels have taken: the last of them for people, all of them counted for Prometheus.

>>> delays = Delays()
>>> delays.add([0.5, 5.0, 30.0])
>>> delays.to_json(), delays.buckets()[:2]
({'n': 3, 'median': 5.0, 'p90': 5.0}, [('1', 1), ('10', 2)])
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

__all__ = ["Delays"]

_BOUNDS = (1, 10, 60, 600, 3_600, 21_600, 86_400, 604_800, 2_592_000)
_LAST = 1_000


class Delays:
    """Seconds from a prediction to its label."""

    def __init__(self) -> None:
        self._last: deque[float] = deque(maxlen=_LAST)
        self._counts = [0] * (len(_BOUNDS) + 1)
        self.total = 0.0

    def add(self, seconds: Sequence[float]) -> None:
        """Count some; a clock that was set back makes none negative."""
        for delay in seconds:
            self._last.append(max(delay, 0.0))
            self._counts[bisect_left(_BOUNDS, delay)] += 1
            self.total += max(delay, 0.0)

    def to_json(self) -> dict[str, Any] | None:
        """The last thousand in three numbers; None before the first."""
        last = sorted([*self._last])
        if not last:
            return None
        return {
            "n": len(last),
            "median": round(_at(last, 0.5), 3),
            "p90": round(_at(last, 0.9), 3),
        }

    def buckets(self) -> list[tuple[str, float]]:
        """How many were at most so long, by bound."""
        bounds = [*map(str, _BOUNDS), "+Inf"]
        return list(zip(bounds, accumulate(self._counts), strict=True))


def _at(ordered: Sequence[float], share: float) -> float:
    return ordered[int(share * (len(ordered) - 1))]
