"""How often each caller may ask: a bucket that fills by so many requests a second.

It holds two seconds' worth, so a short burst passes.

>>> rate = Rate(2.0, clock=lambda: 0.0)
>>> for _ in range(4):
...     rate.expect("app")
>>> rate.expect("app")
Traceback (most recent call last):
driftquilt.server.problems.Problem: at most 2 requests a second are answered
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from driftquilt.server.problems import Problem

__all__ = ["Rate"]

_SECONDS = 2.0


class Rate:
    """A bucket for each caller; there are as many callers as tokens."""

    def __init__(self, per_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second, self._clock = per_second, clock
        self._left: dict[str | None, tuple[float, float]] = {}

    def expect(self, caller: str | None) -> None:
        """Refuse a request too many."""
        now = self._clock()
        most = max(1.0, self._per_second * _SECONDS)
        left, at = self._left.get(caller, (most, now))
        left = min(most, left + (now - at) * self._per_second)
        if left < 1:
            wait = max(1, math.ceil((1 - left) / self._per_second))
            raise Problem(
                "rate-exceeded",
                f"at most {self._per_second:g} requests a second are answered",
                {"Retry-After": str(wait)},
            )
        self._left[caller] = (left - 1, now)
