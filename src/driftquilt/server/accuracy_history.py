"""Accuracy over the life of a stream, in so few numbers that a page can draw them.

Rows are counted in buckets; when there are too many buckets, neighbours are merged. So the
history always covers everything, and never has more than `MAX_BUCKETS` numbers. The last thousand
rows are counted apart.

>>> history = AccuracyHistory()
>>> for number in range(1, 251):
...     _ = history.add(number, n_right=number // 2)
>>> history.buckets(), round(history.recent, 3)
((100, 0, [0.5, 0.5]), 0.5)
"""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

__all__ = ["BUCKET", "MAX_BUCKETS", "AccuracyHistory"]

BUCKET = 100
MAX_BUCKETS = 400
_RECENT = 1_000


class AccuracyHistory:
    """Right answers by bucket."""

    def __init__(self, data: dict[str, Any] | None = None) -> None:
        self._size: int = data["size"] if data else BUCKET
        self._right: list[int] = list(data["right"]) if data else []
        self._before: tuple[int, int] = tuple(data["before"]) if data else (0, 0)
        # Rows and right answers in all, at the ends of the last small buckets.
        self._ends: deque[tuple[int, int]] = deque(maxlen=_RECENT // BUCKET + 1)
        self._ends.extend(tuple(end) for end in data["ends"]) if data else None
        self._now = self._before
        self._lock = threading.Lock()  # a page looks on while rows are counted

    def n_to_end(self, n_rows: int) -> int:
        """Return how many more rows end a bucket."""
        return BUCKET - n_rows % BUCKET

    def add(self, n_rows: int, n_right: int) -> bool:
        """Set the totals of rows and right answers; return whether a bucket ended."""
        with self._lock:
            return self._add(n_rows, n_right)

    def _add(self, n_rows: int, n_right: int) -> bool:
        self._now = (n_rows, n_right)
        if n_rows % BUCKET or (self._ends and n_rows == self._ends[-1][0]):
            return False
        self._ends.append(self._now)
        while (n_new := n_rows - self._before[0]) >= self._size:
            # More rows than a bucket has if a crash forgot its end: each gets an equal share.
            share = (n_right - self._before[1]) * self._size // n_new
            self._right.append(share)
            self._before = (self._before[0] + self._size, self._before[1] + share)
            if len(self._right) > MAX_BUCKETS:
                self._merge()
        return True

    @property
    def recent(self) -> float | None:
        """Accuracy of about the last thousand rows."""
        first = self._ends[0] if len(self._ends) == self._ends.maxlen else (0, 0)
        n_rows = self._now[0] - first[0]
        return (self._now[1] - first[1]) / n_rows if n_rows else None

    def buckets(self) -> tuple[int, int, list[float]]:
        """Return rows per bucket, the first row, and the accuracy of each bucket."""
        with self._lock:
            size, end, right = self._size, self._before[0], [*self._right]
        return size, end - size * len(right), [round(count / size, 4) for count in right]

    def state(self) -> dict[str, Any]:
        """Return what `AccuracyHistory` restores."""
        return {
            "size": self._size, "right": [*self._right], "before": self._before,
            "ends": list(self._ends),
        }  # fmt: skip

    def _merge(self) -> None:
        odd = len(self._right) % 2
        pairs = zip(self._right[0:-1:2], self._right[1::2], strict=False)
        last = self._right[-1] if odd else 0
        self._right = [first + second for first, second in pairs]
        if odd:  # its half begins the next bucket
            self._before = (self._before[0] - self._size, self._before[1] - last)
        self._size *= 2
