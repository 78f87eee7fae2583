"""Rows that were predicted and whose label is still to come, by the caller's key.

At most so many wait; when there are more, the one that has waited longest is forgotten.

>>> waiting = Waiting(most=1)
>>> waiting.add("order 7", {"sum": 12.0}), waiting.add("order 8", {"sum": 30.0})
(None, 'order 7')
>>> waiting.find("order 8")
{'sum': 30.0}
"""

from __future__ import annotations

from typing import Any, TypeAlias

from driftquilt.errors import InputError
from driftquilt.inputs.row import Row

__all__ = ["Key", "Waiting"]

Key: TypeAlias = str | int


class Waiting:
    """Rows by key, in order of arrival."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._rows: dict[Key, Row] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def add(self, key: Any, row: Row) -> Key | None:
        """Keep a row; gives the key of the one that had to go for it."""
        if type(key) not in (str, int):
            raise InputError(f"the key {key!r} is a {type(key).__name__}; give a string or an int")
        if key in self._rows:
            raise InputError(f"the key {key!r} waits for its label already; give each row its own")
        self._rows[key] = row
        if len(self._rows) <= self._most:
            return None
        oldest = next(iter(self._rows))
        del self._rows[oldest]
        return oldest

    def find(self, key: Any) -> Row:
        """The row of a key."""
        if type(key) not in (str, int) or key not in self._rows:
            raise InputError(
                f"no row waits under the key {key!r}: it was never predicted, has its label "
                f"already, was forgotten behind {self._most} others, or was lost in a crash; give "
                "the row itself, learn_one(x, y)"
            )
        return self._rows[key]

    def remove(self, key: Key) -> None:
        """Let a row go whose label has come."""
        del self._rows[key]

    def to_json(self) -> list[list[Any]]:
        """Plain values."""
        return [[key, row] for key, row in self._rows.items()]

    def restore(self, data: list[tuple[Key, Row]]) -> None:
        """Go on from what `to_json` gave."""
        self._rows = dict(data)
