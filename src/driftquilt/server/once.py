"""A request that is sent again under the same key is answered again, and done once.

How far a request has come is state of the store, in the very step that learns its rows: after a
crash in the middle the request goes on where it stopped. The last `MOST` keys are remembered.

>>> once = Once({})
>>> once.find("order-7", "sha")
>>> note = once.note("order-7", "sha", n_done=2, answer={"learned": 2})
>>> note
{'once.0': [0, 'order-7', 'sha', 2, {'learned': 2}]}
>>> Once(note).find("order-7", "sha")
Entry(number=0, digest='sha', n_done=2, answer={'learned': 2})
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from driftquilt.server.problems import Problem

__all__ = ["MOST", "Entry", "Once"]

MOST = 1_000
_PREFIX = "once."


class Entry(NamedTuple):
    """How far the request of a key has come; `digest` is of what it asked."""

    number: int
    digest: str
    n_done: int
    answer: dict[str, Any] | None


class Once:
    """The last keys."""

    def __init__(self, state: Mapping[str, Any]) -> None:
        kept = [value for name, value in state.items() if name.startswith(_PREFIX)]
        self._entries = {
            key: Entry(number, digest, n_done, answer)
            for number, key, digest, n_done, answer in sorted(kept)
        }
        self._n = max((entry.number + 1 for entry in self._entries.values()), default=0)

    def find(self, key: str, digest: str) -> Entry | None:
        """What is known of a key; a `Problem` if it was another request's."""
        entry = self._entries.get(key)
        if entry is not None and entry.digest != digest:
            raise Problem("key-reused", "another request came with this Idempotency-Key")
        return entry

    def note(
        self, key: str, digest: str, n_done: int, answer: dict[str, Any] | None
    ) -> dict[str, Any]:
        """Remember how far a request has come; the state to be stored with it."""
        entry = self._entries.get(key)
        if entry is None:
            if len(self._entries) >= MOST:
                del self._entries[next(iter(self._entries))]
            number, self._n = self._n, self._n + 1
        else:
            number = entry.number
        self._entries[key] = Entry(number, digest, n_done, answer)
        return {f"{_PREFIX}{number % MOST}": [number, key, digest, n_done, answer]}
