"""Rows wait under keys, at most so many, and each key is one row's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftquilt.errors import InputError
from driftquilt.store import MemoryStore
from driftquilt.store.pending import KeyedRows

keys = st.integers(-5, 5) | st.sampled_from(["a", "b", "1"])


@given(st.lists(keys, unique_by=lambda key: (type(key), key), max_size=9), st.integers(0, 5))
def test_the_newest_rows_wait_and_the_oldest_are_forgotten(some: list[Any], limit: int) -> None:
    store = MemoryStore()
    waiting = KeyedRows(store, limit)
    forgotten = []
    for at, key in enumerate(some):
        change, oldest = waiting.add(key, {"n": float(at)})
        store.hold(change)
        forgotten += [] if oldest is None else [oldest]
    left = some[max(len(some) - limit, 0) :]
    assert forgotten == some[: len(some) - len(left)]
    again = KeyedRows(store, limit)
    assert len(again) == len(waiting) == len(left) == len(store.pending())
    for key in left:
        assert again.find(key) == waiting.find(key) == {"n": float(some.index(key))}
        store.hold(again.remove(key))
        with pytest.raises(InputError, match="no row waits under the key"):
            again.find(key)
    assert len(KeyedRows(store, limit)) == 0


def test_keys_are_strings_or_ints_and_each_is_of_one_row() -> None:
    waiting = KeyedRows(MemoryStore(), 5)
    for wrong in (1.5, None, True, (1,), b"a", np.True_, np.timedelta64(1), np.float64(1)):
        with pytest.raises(InputError, match="give a string or an int"):
            waiting.add(wrong, {})
        with pytest.raises(InputError, match="no row waits"):
            waiting.find(wrong)
        with pytest.raises(InputError, match="no row waits"):
            waiting.remove(wrong)
    waiting.add("a", {})
    with pytest.raises(InputError, match="'a' waits for its label"):
        waiting.add("a", {"x": 1.0})
    assert len(waiting) == 1


def test_a_retry_keeps_its_place_and_pushes_nobody_out() -> None:
    waiting = KeyedRows(MemoryStore(), 2)
    for key in ("a", "b", "a", "b"):
        assert waiting.add(key, {"x": 1.0, "gap": None})[1] is None
    change, oldest = waiting.add("a", {"x": 1.0})  # a gap by another spelling
    assert not change
    assert oldest is None
    assert waiting.add("c", {"x": 3.0})[1] == "a"


@pytest.mark.parametrize("kind", [np.int8, np.int64, np.uint16])
def test_an_integer_of_numpy_is_the_key_that_the_int_is(kind: type[np.integer[Any]]) -> None:
    waiting = KeyedRows(MemoryStore(), 5)
    change, _ = waiting.add(kind(7), {"x": 1.0})
    assert type(change.held[0].key) is int
    assert waiting.find(7) == waiting.find(np.int32(7)) == {"x": 1.0}
    waiting.remove(kind(7))
    waiting.add(np.str_("7"), {"x": 2.0})
    assert waiting.find("7") == {"x": 2.0}
    assert len(waiting) == 1
