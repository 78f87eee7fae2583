"""The laws of every store, in memory, on disk, and on disk with commits in groups."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import driftquilt.store
from driftquilt.errors import InputError, StoreError
from driftquilt.store.base import Store
from driftquilt.store.disk import DiskStore
from driftquilt.store.memory import MemoryStore


def batch(*numbers: float) -> pa.RecordBatch:
    return pa.record_batch({"x": list(numbers)})


def snapshot(store: Store) -> tuple[Any, ...]:
    """All that can be seen of a store."""
    tables = [store.read(segment.number).to_pylist() for segment in store.segments]
    open_rows = store.open_rows().to_pylist()
    rest = store.state, tables, open_rows, store.pending()
    return store.n_appended, store.segments, store.models, *rest


def test_every_store_there_is_obeys_them() -> None:
    found = set()
    for module in pkgutil.iter_modules(driftquilt.store.__path__, "driftquilt.store."):
        names = vars(importlib.import_module(module.name))
        found |= {
            thing
            for name, thing in names.items()
            if inspect.isclass(thing) and hasattr(thing, "open_rows") and name != "Store"
        }
    assert found == {MemoryStore, DiskStore}


def test_rows_come_back_in_order_and_are_counted(store: Store) -> None:
    assert store.append(batch(1, 2)) == 2
    assert store.append(batch(3)) == 3
    assert store.open_rows()["x"].to_pylist() == [1, 2, 3]
    assert (store.n_appended, store.n_open) == (3, 3)
    assert store.flush() == store.n_durable == 3


def test_a_new_store_is_empty(store: Store) -> None:
    assert snapshot(store) == (0, (), (), {}, [], [], [])
    assert store.n_open == store.n_durable == 0


def test_open_rows_become_a_segment(store: Store) -> None:
    store.append(batch(1, 2))
    segment = store.seal("may")
    assert (segment.number, segment.name, segment.n_rows) == (1, "may", 2)
    assert segment.n_bytes > 0
    assert store.segments == (segment,)
    assert store.n_open == 0
    assert store.open_rows().num_rows == 0
    assert store.read(1)["x"].to_pylist() == [1, 2]
    store.append(batch(3))
    assert store.read(1)["x"].to_pylist() == [1, 2]
    assert store.n_appended == 3


@pytest.mark.parametrize("name", ["../../etc", "", "may\n", 7, -1, 0.5, None, "ü" * 5000])
def test_a_segment_may_have_any_plain_name(store: Store, name: Any) -> None:
    store.append(batch(1))
    assert store.seal(name).name == name
    assert store.read(1).num_rows == 1


@pytest.mark.parametrize("name", [("a",), b"a", True, np.int64(3)])
def test_a_segment_cannot_have_another_name(store: Store, name: Any) -> None:
    store.append(batch(1))
    before = snapshot(store)
    with pytest.raises(InputError, match="a segment cannot be called"):
        store.seal(name)
    assert snapshot(store) == before


def test_nothing_cannot_be_sealed(store: Store) -> None:
    with pytest.raises(InputError, match="no open rows"):
        store.seal("empty")
    store.append(pa.record_batch({"x": pa.array([], pa.float64())}))
    with pytest.raises(InputError, match="no open rows"):
        store.seal("empty")


def test_numbers_are_never_given_twice(store: Store) -> None:
    for expected in (1, 2, 3):
        store.append(batch(expected))
        assert store.next_segment == expected
        assert store.seal().number == expected
        assert store.put_model(b"m", {}) == expected
        store.drop(expected)
        store.drop_model(expected)
    assert (store.segments, store.models) == ((), ())
    assert store.n_appended == 3


def test_a_dropped_segment_is_gone_and_the_others_stay(store: Store) -> None:
    for number in (1, 2, 3):
        store.append(batch(number))
        store.seal(number)
    store.drop(2)
    assert [segment.name for segment in store.segments] == [1, 3]
    with pytest.raises(InputError, match=r"segment 2 .*\[1, 3\]"):
        store.read(2)
    assert store.read(3)["x"].to_pylist() == [3]


@pytest.mark.parametrize(
    "call",
    [
        lambda store: store.read(9),
        lambda store: store.read([9]),
        lambda store: store.model([9]),
        lambda store: store.drop(9),
        lambda store: store.model(9),
        lambda store: store.drop_model(9),
    ],
)
def test_what_is_not_there_is_an_error_that_changes_nothing(
    store: Store, call: Callable[[Store], object]
) -> None:
    store.append(batch(1))
    store.seal()
    before = snapshot(store)
    with pytest.raises(InputError, match=r"(segment|model) (9|\[9\])"):
        call(store)
    assert snapshot(store) == before


def test_state_is_replaced_by_key_and_handed_out_as_a_copy(store: Store) -> None:
    store.append(batch(1), {"position": [0, 7], "mean": 0.1})
    store.append(batch(2), {"position": [0, 8]})
    store.seal(state={"drifts": 1})
    store.put_model(b"", {}, {"champion": 1})
    store.write_state({"note": None})
    everything = {"position": [0, 8], "mean": 0.1, "drifts": 1, "champion": 1, "note": None}
    assert store.state == everything
    store.state["position"].append(9)
    assert store.state == everything


@pytest.mark.parametrize(
    "state",
    [
        {"a": object()},
        {"a": {1, 2}},
        {1: 2},
        {None: 2},
        {"a": b"bytes"},
        {"\ud800": 1},
        "a",
        [[1, 2]],
    ],
)
def test_state_that_is_not_json_is_refused_with_the_rows(store: Store, state: Any) -> None:
    store.append(batch(1), {"a": 1})
    before = snapshot(store)
    for call in (
        lambda: store.append(batch(2), state),
        lambda: store.seal("may", state),
        lambda: store.put_model(b"", {}, state),
        lambda: store.write_state(state),
    ):
        with pytest.raises(InputError, match="state"):
            call()
    assert snapshot(store) == before


def test_models_come_back_as_they_were(store: Store) -> None:
    assert store.put_model(b"weights", {"accuracy": 0.9}) == 1
    assert store.put_model(b"", {}) == 2
    assert store.model(1) == (b"weights", {"accuracy": 0.9})
    assert store.model(2) == (b"", {})
    assert [(m.number, m.n_bytes, m.record) for m in store.models] == [
        (1, 7, {"accuracy": 0.9}),
        (2, 0, {}),
    ]
    with pytest.raises(InputError, match="record of the model"):
        store.put_model(b"", {"net": object()})


@pytest.mark.parametrize(
    ("tensors", "record", "message"),
    [
        ("weights", {}, "a model is kept as bytes, not as str"),
        (None, {}, "not as NoneType"),
        (7, {}, "not as int"),
        (b"", [1], "the record of the model is a list; give values by key"),
        (b"", None, "the record of the model is a NoneType"),
    ],
)
def test_a_model_that_is_not_one_is_refused_and_the_store_goes_on(
    store: Store, tensors: Any, record: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        store.put_model(tensors, record)
    assert store.put_model(memoryview(b"weights"), {}) == 1  # type: ignore[arg-type]
    assert store.model(1)[0] == b"weights"
    assert store.append(batch(1)) == 1


def test_numbers_are_found_whatever_they_are_made_of(store: Store) -> None:
    for _ in range(3):
        store.append(batch(1))
        store.seal()
        store.put_model(b"m", {})
    for number in (1.0, np.int64(2)):
        assert store.read(number).num_rows == 1  # type: ignore[arg-type]
        assert store.model(number) == (b"m", {})  # type: ignore[arg-type]
        store.drop(number)  # type: ignore[arg-type]
        store.drop_model(number)  # type: ignore[arg-type]
    assert [segment.number for segment in store.segments] == [3]
    if isinstance(store, DiskStore):
        assert len(list(store.path.glob("*/*"))) == 2


def test_what_is_appended_is_a_copy(store: Store) -> None:
    values = np.array([1.0, 2.0])
    store.append(pa.record_batch({"x": pa.array(values)}))
    values[:] = 99
    assert store.open_rows()["x"].to_pylist() == [1, 2]


def test_a_slice_is_only_its_rows(store: Store) -> None:
    store.append(batch(*range(10)).slice(3, 4))
    assert store.open_rows()["x"].to_pylist() == [3, 4, 5, 6]


def test_only_record_batches_are_taken(store: Store) -> None:
    with pytest.raises(InputError, match=r"RecordBatch, not dict"):
        store.append({"x": [1]})
    with pytest.raises(InputError, match="the batch has no columns"):
        store.append(pa.record_batch([], names=[]))
    with pytest.raises(InputError, match=r"columns \['x'\]"):
        store.append(pa.record_batch([pa.array([1]), pa.array([2])], names=["x", "x"]))
    assert store.n_appended == 0


def test_a_closed_store_says_so(store: Store) -> None:
    store.append(batch(1))
    store.close()
    store.close()
    for call in (store.flush, store.open_rows, lambda: store.append(batch(1)), lambda: store.state):
        with pytest.raises(StoreError, match="closed"):
            call()


def test_many_threads_may_append(store: Store) -> None:
    def work(thread: int) -> None:
        for k in range(25):
            store.append(pa.record_batch({"thread": [thread], "k": [k]}))

    threads = [threading.Thread(target=work, args=[n]) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert store.flush() == 100
    rows = store.open_rows().to_pylist()
    for n in range(4):
        assert [row["k"] for row in rows if row["thread"] == n] == list(range(25))
