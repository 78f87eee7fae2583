"""Rows that wait for their label, as state of a store: one key of the state for each row.

A slot is filled again when its row is gone, so there are never more of them than rows that
waited at once, and a row that comes or goes writes one small value.

>>> slots = Slots()
>>> slots.fill("order 7", {"sum": 12.0}), slots.fill("order 8", {"sum": 30.0})
({'waiting.0': [1, 'order 7', {'sum': 12.0}]}, {'waiting.1': [2, 'order 8', {'sum': 30.0}]})
>>> slots.empty("order 7"), "order 7" in slots
({'waiting.0': None}, False)
>>> slots.fill("order 9", {"sum": 1.5})
{'waiting.0': [3, 'order 9', {'sum': 1.5}]}
"""

from __future__ import annotations

from typing import Any

from driftquilt.data.row import Row
from driftquilt.store.base import State

__all__ = ["Slots"]

_PREFIX = "waiting."


class Slots:
    """Which row is kept in which slot; each change is given as state to be stored."""

    def __init__(self) -> None:
        self._numbers: dict[Any, int] = {}
        self._free: list[int] = []
        self._turn = 0  # rows kept so far: their order

    def __contains__(self, key: Any) -> bool:
        return key in self._numbers

    def fill(self, key: Any, row: Row) -> dict[str, Any]:
        """Keep a row; its key is not there yet."""
        number = self._free.pop() if self._free else len(self._numbers)
        self._numbers[key] = number
        self._turn += 1
        return {f"{_PREFIX}{number}": [self._turn, key, row]}

    def empty(self, key: Any) -> dict[str, Any]:
        """Let a row go; nothing to store if it is not kept."""
        number = self._numbers.pop(key, None)
        if number is None:
            return {}
        self._free.append(number)
        return {f"{_PREFIX}{number}": None}

    def restore(self, state: State) -> list[tuple[Any, Row]]:
        """Go on from what was stored; the rows by key, in the order they came."""
        kept = []
        for name, value in state.items():
            if not name.startswith(_PREFIX):
                continue
            number = int(name.removeprefix(_PREFIX))
            if value is None:
                self._free.append(number)
            else:
                kept.append((*value, number))
        kept.sort(key=lambda slot: slot[0])
        self._numbers = {key: number for _, key, _, number in kept}
        self._turn = kept[-1][0] if kept else 0
        return [(key, row) for _, key, row, _ in kept]
