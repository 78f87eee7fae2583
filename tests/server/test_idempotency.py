"""A key is remembered with what was done under it, and so are many keys after it."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from driftquilt.server.ingestion import IdempotencyKeys, short_digest


def test_a_request_that_has_come_half_way_is_known_after_a_crash() -> None:
    keys, state = IdempotencyKeys({}), dict[str, Any]()
    state |= keys.note("key", "digest", 3, None)
    found = IdempotencyKeys(state).find("key", "digest")
    assert found is not None
    assert (found.n_done, found.answer) == (3, None)
    state |= keys.note("key", "digest", 5, {"learned": 5})
    found = IdempotencyKeys(state).find("key", "digest")
    assert found is not None
    assert (found.n_done, found.answer) == (5, {"learned": 5})
    assert len(state) == 1


@given(st.lists(st.integers(0, 130), max_size=60), st.integers(0, 240))
def test_the_last_keys_are_known_and_no_others_with_or_without_a_crash(
    again: list[int], n_before: int
) -> None:
    limit = 80
    keys, state, order = IdempotencyKeys({}, limit), dict[str, Any](), list[str]()
    for number in [*range(n_before), *again]:
        key = f"key {number}"
        if keys.find(key, "digest") is None:
            order.append(key)
        state |= keys.note(key, "digest", number, {})
    for known in (keys, IdempotencyKeys(state, limit)):
        assert list(known._entries) == [short_digest(key.encode()) for key in order[-limit:]]
        assert all(
            known.find(key, "digest") is None for key in set(order[:-limit]) - {*order[-limit:]}
        )
    assert len(state) <= limit
