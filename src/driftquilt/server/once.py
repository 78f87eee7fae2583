"""A request that is sent again under the same key is answered again, and done once.

How far a request has come is state of the store, in the very step that learns its rows: after a
crash in the middle the request goes on where it stopped. The last `MOST` keys of a stream are
remembered, by their hashes.

>>> once = Once({})
>>> once.find("order-7", "sha")
>>> note = once.note("order-7", "sha", n_done=2, answer={"learned": 2})
>>> note
{'once.0': [0, 'bdbeeb7686a17a2b05e0bc0ea6c91696', 'sha', 2, {'learned': 2}]}
>>> Once(note).find("order-7", "sha")
Entry(number=0, digest='sha', n_done=2, answer={'learned': 2})
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from driftquilt.server.problems import Problem

__all__ = ["MOST", "Entry", "Once", "short_digest"]

MOST = 50_000
_PREFIX = "once."


class Entry(NamedTuple):
    """How far the request of a key has come; `digest` is of what it asked."""

    number: int
    digest: str
    n_done: int
    answer: dict[str, Any] | None


class Once:
    """The last keys; answers are to be short."""

    def __init__(self, state: Mapping[str, Any], most: int = MOST) -> None:
        kept = [value for name, value in state.items() if name.startswith(_PREFIX)]
        self._most = most
        self._entries = {
            key: Entry(number, digest, n_done, answer)
            for number, key, digest, n_done, answer in sorted(kept, key=lambda value: value[0])
        }
        self._n = max((entry.number + 1 for entry in self._entries.values()), default=0)

    def find(self, key: str, digest: str) -> Entry | None:
        """What is known of a key; a `Problem` if it was another request's."""
        entry = self._entries.get(short_digest(key.encode()))
        if entry is not None and entry.digest != digest:
            raise Problem("key-reused", "another request came with this Idempotency-Key")
        return entry

    def note(
        self, key: str, digest: str, n_done: int, answer: dict[str, Any] | None
    ) -> dict[str, Any]:
        """Remember how far a request has come; the state to be stored with it."""
        key = short_digest(key.encode())
        entry = self._entries.get(key)
        if entry is None:
            if len(self._entries) >= self._most:
                del self._entries[next(iter(self._entries))]
            number, self._n = self._n, self._n + 1
        else:
            number = entry.number
        self._entries[key] = Entry(number, digest, n_done, answer)
        return {f"{_PREFIX}{number % self._most}": [number, key, digest, n_done, answer]}


def short_digest(content: bytes) -> str:
    """Content in few letters that no other content has."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()
