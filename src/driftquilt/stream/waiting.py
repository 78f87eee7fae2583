"""Rows that were predicted and whose label is still to come, by the caller's key.

At most so many wait; when there are more, the one that has waited longest is forgotten. A key is
one row's: the same row may come under it again, as after a lost answer, and another may not.

>>> waiting = Waiting(most=1)
>>> waiting.add("order 7", {"sum": 12.0}), waiting.add("order 8", {"sum": 30.0})
(None, 'order 7')
>>> waiting.add("order 8", {"sum": 30.0})
>>> waiting.find("order 8")
{'sum': 30.0}
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from driftquilt.data.row import Row
from driftquilt.errors import InputError

__all__ = ["Key", "Waiting", "plain_key"]

Key: TypeAlias = str | int | np.integer[Any]
_Plain: TypeAlias = str | int


class Waiting:
    """Rows by key, in order of arrival."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._rows: dict[_Plain, Row] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: Any) -> bool:
        key = plain_key(key)
        return type(key) in (str, int) and key in self._rows

    def expect(self, key: Any, row: Row) -> None:
        """Refuse what is no key, or the key of another row."""
        key = plain_key(key)
        if type(key) not in (str, int):
            raise InputError(f"the key {key!r} is a {type(key).__name__}; give a string or an int")
        if key in self._rows and _values(self._rows[key]) != _values(row):
            raise InputError(
                f"the key {key!r} waits for its label already, with another row; give each row "
                "its own"
            )

    def add(self, key: Any, row: Row) -> _Plain | None:
        """Keep a row; gives the key of the one that had to go for it."""
        self.expect(key, row)
        key = plain_key(key)
        if key in self._rows:
            return None
        self._rows[key] = row
        if len(self._rows) <= self._most:
            return None
        oldest = next(iter(self._rows))
        del self._rows[oldest]
        return oldest

    def find(self, key: Any) -> Row:
        """The row of a key."""
        if key not in self:
            raise InputError(
                f"no row waits under the key {key!r}: it was never predicted, has its label "
                f"already, was let go by forget, was forgotten behind {self._most} others, or was "
                "lost in a crash; give the row itself, learn_one(x, y)"
            )
        return self._rows[plain_key(key)]

    def remove(self, key: Any) -> None:
        """Let a row go whose label has come, or never will."""
        if key not in self:
            raise InputError(
                f"no row waits under the key {key!r}, so none can be forgotten: it was never "
                "predicted, has its label already, or is forgotten"
            )
        del self._rows[plain_key(key)]

    def to_json(self) -> list[list[Any]]:
        """Plain values."""
        return [[key, row] for key, row in self._rows.items()]

    def restore(self, data: list[tuple[_Plain, Row]]) -> None:
        """Go on from what `to_json` gave."""
        self._rows = dict(data)


def plain_key(key: Any) -> Any:
    """A whole number or a string of numpy as Python's own; anything else as it is."""
    whole = isinstance(key, np.integer) and not isinstance(key, np.timedelta64)
    return key.item() if whole or isinstance(key, np.str_) else key


def _values(row: Row) -> Row:
    return {name: value for name, value in row.items() if value is not None}
