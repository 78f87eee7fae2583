"""How long a call takes: CPU and wall seconds, the median over repeats.

CPU time is what counts on a machine that others use too.

>>> measure(lambda: sum(range(1000)), repeats=3)[0] == sum(range(1000))
True
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import TypeVar

from driftquilt.core.training import Time
from driftquilt.quilt.method import read_clock

__all__ = ["measure"]

T = TypeVar("T")


def measure(work: Callable[[], T], repeats: int) -> tuple[T, Time]:
    """What the last call gave, and the medians over all calls."""
    spent = list[Time]()
    for _ in range(repeats):
        started = read_clock()
        answer = work()
        spent.append(read_clock().since(started))
    wall, cpu = (statistics.median(values) for values in zip(*spent, strict=True))
    return answer, Time(wall, cpu)
