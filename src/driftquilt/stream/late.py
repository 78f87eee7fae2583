"""The side of a stream that waits: rows whose label is still to come, and what survives of them.

A row that was predicted under a key waits in memory: it survives `close`, but not a crash. A row
of `expect_label` is kept in the store as well. It leaves the store in the same step in which the
row goes in among the learned ones, so that it is learned once, whatever dies and when.
"""

from __future__ import annotations

from typing import Any

from driftquilt.data.row import Row, read_row
from driftquilt.errors import InputError, StoreError
from driftquilt.store.base import State, state_to_json
from driftquilt.stream.events import RowForgotten
from driftquilt.stream.slots import Slots
from driftquilt.stream.status import Status
from driftquilt.stream.waiting import Key, plain_key

__all__ = ["Late", "check_note", "position_note"]

_OWN = ("stream", "id")
_OWN_PREFIX = "waiting."


class Late(Status):
    """Rows that wait, in memory or in the store."""

    _slots: Slots
    _closed: bool

    def expect_label(self, x: Any, key: Key, *, position: Any = None) -> RowForgotten | None:
        """Let a row wait for its label without a prediction; a crash does not lose it.

        With the position after the row in its source it becomes safe together with that, at the
        latest by the next `flush`. Gives the event if another row had to go for it.
        """
        row, notes = read_row(x), position_note(position)
        key = plain_key(key)
        with self._lock:
            self._expect_row(row)
            forgotten = self._wait(key, row)
            if key not in self._slots and key in self._waiting:
                self._engine.note(self._slots.fill(key, row))
            self._engine.note(notes)
            if position is None:
                self._engine.put()
            return forgotten

    def expect_key(self, x: Any, key: Key) -> None:
        """Refuse a row that could not wait under this key; nothing changes."""
        row = read_row(x)
        with self._lock:
            self._expect_open()
            self._expect_row(row)
            self._waiting.expect(key, row)

    def forget(self, key: Key) -> None:
        """Let a row go that waits for its label, because the label will never come."""
        with self._lock:
            self._expect_open()
            self._waiting.remove(key)
            self._engine.note(self._slots.empty(plain_key(key)))
            self._engine.put()

    def _wait(self, key: Key, row: Row) -> RowForgotten | None:
        self._expect_open()
        oldest = self._waiting.add(key, row)
        if oldest is None:
            return None
        forgotten = RowForgotten(self.n_rows, oldest)
        self._engine.tell(forgotten, numbered=False)
        self._engine.note(self._slots.empty(oldest))
        return forgotten

    def _waiting_in_memory(self) -> list[list[Any]]:
        """Rows that only a checkpoint can save."""
        return [pair for pair in self._waiting.to_json() if pair[0] not in self._slots]

    def _expect_open(self) -> None:
        if self._closed:
            raise StoreError("the stream is closed; go on with it: QuiltStream.open(path)")

    def _expect_row(self, row: Row) -> None:
        raise NotImplementedError


def check_note(state: State) -> None:
    """Refuse state that is no JSON, or that the stream keeps itself."""
    own = [name for name in state_to_json(state) if name in _OWN or name.startswith(_OWN_PREFIX)]
    if own:
        raise InputError(f"the stream itself keeps {own[0]!r} in the store; give another name")


def position_note(position: Any) -> State:
    """A position as state to be stored; `InputError` if it is no JSON value."""
    if position is None:
        return {}
    notes = {"position": position}
    state_to_json(notes)
    return notes
