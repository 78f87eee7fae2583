"""A request that is sent again under the same key is answered again, and carried out once.

How far a request has come is state of the store, in the very step that learns its rows: after a
crash in the middle the request goes on where it stopped. The last `MAX_KEYS` keys of a stream
are remembered, by their hashes.

>>> keys = IdempotencyKeys({})
>>> keys.find("order-7", "sha")
>>> note = keys.note("order-7", "sha", n_done=2, answer={"learned": 2})
>>> note
{'once.0': [0, 'bdbeeb7686a17a2b05e0bc0ea6c91696', 'sha', 2, {'learned': 2}]}
>>> IdempotencyKeys(note).find("order-7", "sha")
KeyEntry(number=0, digest='sha', n_done=2, answer={'learned': 2})
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple

from driftquilt.server.problems import Problem

__all__ = ["MAX_KEYS", "IdempotencyKeys", "KeyEntry", "short_digest"]

MAX_KEYS = 50_000
_PREFIX = "once."


class KeyEntry(NamedTuple):
    """How far the request of a key has come; `digest` is of what it asked."""

    number: int
    digest: str
    n_done: int
    answer: dict[str, Any] | None


class IdempotencyKeys:
    """The last keys of a stream, with their short answers."""

    def __init__(self, state: Mapping[str, Any], limit: int = MAX_KEYS) -> None:
        stored = [value for name, value in state.items() if name.startswith(_PREFIX)]
        self._limit = limit
        self._entries = {
            key: KeyEntry(number, digest, n_done, answer)
            for number, key, digest, n_done, answer in sorted(stored, key=lambda value: value[0])
        }
        self._n = max((entry.number + 1 for entry in self._entries.values()), default=0)

    def find(self, key: str, digest: str) -> KeyEntry | None:
        """Return what is known of a key; raise if it belongs to another request."""
        entry = self._entries.get(short_digest(key.encode()))
        if entry is not None and entry.digest != digest:
            raise Problem("key-reused", "another request came with this Idempotency-Key")
        return entry

    def note(
        self, key: str, digest: str, n_done: int, answer: dict[str, Any] | None
    ) -> dict[str, Any]:
        """Remember how far a request has come; return the state to store with it."""
        key = short_digest(key.encode())
        entry = self._entries.get(key)
        if entry is None:
            if len(self._entries) >= self._limit:
                del self._entries[next(iter(self._entries))]
            number, self._n = self._n, self._n + 1
        else:
            number = entry.number
        self._entries[key] = KeyEntry(number, digest, n_done, answer)
        return {f"{_PREFIX}{number % self._limit}": [number, key, digest, n_done, answer]}


def short_digest(content: bytes) -> str:
    """Return a short digest of content."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()
