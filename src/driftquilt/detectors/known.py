"""Drifts that are known beforehand, and drifts by the calendar.

`KnownDrifts(points)` fires at given rows: row p, counted from 0 at the start of the stream, is
the first of a new concept. The count goes on over drifts, so `fresh()` keeps it; that is the
one thing a fresh detector of this kind has "seen". `EveryRows(n)` fires at every n-th row since
it was made.

Both look at nothing but the number of updates: a stream has to give them every row, from the
first one on.

>>> detector = KnownDrifts([2, 5])
>>> found = []
>>> for row in range(8):
...     detector.update(0.0)
...     if detector.drift_detected:
...         found.append(row)
...         detector = detector.fresh()
>>> found
[2, 5]
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

from driftquilt.detectors.base import Watched, check_error, check_settings, count, shown
from driftquilt.errors import InputError

__all__ = ["EveryRows", "KnownDrifts"]


class KnownDrifts:
    """Fires at the rows of the stream that are named in `points`, counted from 0."""

    watches: Watched = "error"

    def __init__(self, points: Iterable[int]) -> None:
        if isinstance(points, str) or not isinstance(points, Iterable):
            raise InputError(f"points are row numbers, such as [1000, 2000]; got {shown(points)}")
        self.points = tuple(_point(point) for point in points)
        self._points = frozenset(self.points)
        self._n_rows = 0
        self.drift_detected = False

    def update(self, value: Any) -> None:
        check_error(value)
        self.drift_detected = self._n_rows in self._points
        self._n_rows += 1

    def settings(self) -> dict[str, Any]:
        return {"kind": "known", "points": list(self.points)}

    def skip(self, n_rows: int) -> None:
        """Do as after so many updates."""
        self._n_rows += n_rows

    def start_at(self, row: int) -> None:
        """Take the next update for this row of the stream."""
        self._n_rows = row

    def fresh(self) -> Self:
        """Return a detector of the same points that counts on from the last row."""
        twin = type(self)(self.points)
        twin._n_rows = self._n_rows
        return twin


class EveryRows:
    """Fires at every n-th row."""

    watches: Watched = "error"

    def __init__(self, n_rows: int) -> None:
        self.n_rows: int = check_settings("every_rows", {"n_rows": n_rows}, {"n_rows": count(1)})[
            "n_rows"
        ]
        self._seen = 0

    @property
    def drift_detected(self) -> bool:
        return self._seen > 0 and self._seen % self.n_rows == 0

    def update(self, value: Any) -> None:
        check_error(value)
        self._seen += 1

    def settings(self) -> dict[str, Any]:
        return {"kind": "every_rows", "n_rows": self.n_rows}

    def skip(self, n_rows: int) -> None:
        """Do as after so many updates."""
        self._seen += n_rows

    def fresh(self) -> Self:
        return type(self)(self.n_rows)


def _point(value: Any) -> int:
    if not count().accepts(value):
        raise InputError(f"points are row numbers of at least 0, and one is {shown(value)}")
    return int(value)
