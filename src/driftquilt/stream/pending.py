"""Rows that were predicted and whose label is still to come, by the caller's key.

At most so many wait; when there are more, the one that has waited longest is forgotten. A key is
one row's: the same row may come under it again, as after a lost answer, and another may not.
Rows wait in the store (`store.pending`), and each change has to be stored: it is returned.

>>> from driftquilt.store import MemoryStore
>>> rows = KeyedRows(MemoryStore(), limit=1)
>>> first, forgotten = rows.add("order 7", {"sum": 12.0})
>>> first.held[0].key, first.held[0].content
('order 7', b'{"sum": 12.0}')
>>> second, forgotten = rows.add("order 8", {"sum": 30.0})
>>> forgotten, second.released == [first.held[0].number]
('order 7', True)
>>> rows.find("order 8")
{'sum': 30.0}
"""

from __future__ import annotations

import json
from typing import Any, TypeAlias

import numpy as np

from driftquilt.data.frame import Row
from driftquilt.errors import InputError
from driftquilt.store.base import Store
from driftquilt.store.pending import PendingChange, PendingRequest

__all__ = ["Key", "KeyedRows"]

Key: TypeAlias = str | int | np.integer[Any]
_KIND = "row"


class KeyedRows:
    """Rows by key, in order of arrival, as the store has them."""

    def __init__(self, store: Store, limit: int) -> None:
        self._limit = limit
        self._rows: dict[str | int, tuple[int, Row]] = {}
        self._last = 0
        for head in store.pending():
            if head.key is not None:
                request = store.read_pending(head.number)
                if request is not None:
                    self._rows[head.key] = (head.number, json.loads(request.content))
                    self._last = head.number

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: Any) -> bool:
        key = _plain(key)
        return type(key) in (str, int) and key in self._rows

    def expect(self, key: Any, row: Row) -> None:
        """Refuse what is not a key, or the key of another row."""
        key = _plain(key)
        if type(key) not in (str, int):
            raise InputError(f"the key {key!r} is a {type(key).__name__}; give a string or an int")
        if key in self._rows and _values(self._rows[key][1]) != _values(row):
            raise InputError(
                f"the key {key!r} waits for its label already, with another row; give each row "
                "its own"
            )

    def add(self, key: Any, row: Row) -> tuple[PendingChange, str | int | None]:
        """Let a row wait; return the change and the key of the row that was forgotten for it."""
        self.expect(key, row)
        key = _plain(key)
        if key in self._rows:
            return PendingChange(), None
        self._last += 1
        self._rows[key] = (self._last, row)
        content = json.dumps(row).encode()
        change = PendingChange(held=[PendingRequest(self._last, 1, 0.0, _KIND, key, content)])
        if len(self._rows) <= self._limit:
            return change, None
        oldest = next(iter(self._rows))
        change.add(self.remove(oldest))
        return change, oldest

    def find(self, key: Any) -> Row:
        """Return the row of a key."""
        if key not in self:
            raise InputError(
                f"no row waits under the key {key!r}: it was never predicted, has its label "
                f"already, was removed by forget, or was forgotten behind {self._limit} others; "
                "give the row itself, learn_one(x, y)"
            )
        return self._rows[_plain(key)][1]

    def remove(self, key: Any) -> PendingChange:
        """Let a row go whose label has come, or never will."""
        if key not in self:
            raise InputError(
                f"no row waits under the key {key!r}, so none can be forgotten: it was never "
                "predicted, has its label already, or is forgotten"
            )
        number, _ = self._rows.pop(_plain(key))
        return PendingChange(released=[number])


def _plain(key: Any) -> Any:
    """Return an integer or a string of numpy as Python's own; anything else as it is."""
    integer = isinstance(key, np.integer) and not isinstance(key, np.timedelta64)
    return key.item() if integer or isinstance(key, np.str_) else key


def _values(row: Row) -> Row:
    return {name: value for name, value in row.items() if value is not None}
