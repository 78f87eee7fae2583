"""Pending rows: the laws of every store, and the ids that are handed out for them."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from driftquilt.errors import StoreError
from driftquilt.store import DiskStore, MemoryStore, PendingChange, PendingRequest, PendingRows
from driftquilt.store.base import Store
from driftquilt.store.pending import PAGE_ROWS, LabelledRows, page_place, read_id
from tests.store.test_laws import batch


def request(number: int, n_rows: int = 1, content: bytes = b"rows") -> PendingRequest:
    return PendingRequest(number, n_rows, 1.5, "application/json", None, content)


def test_a_request_comes_back_with_all_it_had(store: Store) -> None:
    requests = [PendingRequest(7, 2, 0.25, "kind", "a key", b"\0\xff"), request(9)]
    store.hold(PendingChange(held=requests))
    assert [store.read_pending(number) for number in range(6, 11)] == [
        None, requests[0], requests[0], requests[1], None,
    ]  # fmt: skip
    assert [(head.number, head.n_rows, head.n_bytes, head.key) for head in store.pending()] == [
        (7, 2, 2, "a key"),
        (9, 1, 4, None),
    ]


def test_a_number_that_is_there_is_replaced(store: Store) -> None:
    store.hold(PendingChange(held=[request(7, content=b"old")]))
    store.hold(PendingChange(held=[request(7, content=b"new")]))
    assert [head.number for head in store.pending()] == [7]
    assert store.read_pending(7) == request(7, content=b"new")


def test_a_request_goes_when_it_is_released(store: Store) -> None:
    store.hold(PendingChange(held=[request(7), request(8)]))
    store.write_state({}, PendingChange(released=[7, 1_000]))
    assert [head.number for head in store.pending()] == [8]
    assert store.read_pending(7) is None


def test_labels_are_remembered(store: Store) -> None:
    store.hold(PendingChange(held=[request(7, 2)]))
    store.append(batch(1), {"position": 1}, PendingChange(labelled=[8]))
    store.flush()
    assert [number in store.labelled for number in (7, 8, 9)] == [False, True, False]


def reopened(path: Path, change: Callable[[DiskStore], object]) -> DiskStore:
    """The store after a change and what a crash leaves of it."""
    store = DiskStore(path / "store", commit_rows=50, commit_delay=math.inf)
    store.hold(PendingChange(held=[request(7, 2)]))
    store.flush()
    change(store)
    store.close(discard=True)
    return DiskStore(path / "store")


def test_rows_and_what_is_pending_survive_together(tmp_path: Path) -> None:
    def learn(store: DiskStore) -> None:
        store.append(batch(1), {"position": 1}, PendingChange(labelled=[7]))
        store.append(batch(2), {"position": 2}, PendingChange(labelled=[8], released=[7]))
        store.flush()

    with reopened(tmp_path, learn) as store:
        assert (store.n_appended, store.pending(), store.state) == (2, [], {"position": 2})
        assert 7 in store.labelled
        assert 8 in store.labelled


def test_rows_and_what_is_pending_are_lost_together(tmp_path: Path) -> None:
    def learn(store: DiskStore) -> None:
        store.append(batch(1), {"position": 1}, PendingChange(labelled=[7], released=[7]))

    with reopened(tmp_path, learn) as store:
        assert (store.n_appended, store.state) == (0, {})
        assert store.read_pending(7) == request(7, 2)
        assert 7 not in store.labelled


def test_what_is_pending_is_held_in_groups_like_rows(tmp_path: Path) -> None:
    store = DiskStore(tmp_path / "store", commit_rows=2, commit_delay=math.inf)
    store.hold(PendingChange(held=[request(7)]))
    store.append(batch(1))
    store.hold(PendingChange(held=[request(8)]))  # waits, and is lost
    store.close(discard=True)
    with DiskStore(tmp_path / "store") as again:
        assert [head.number for head in again.pending()] == [7]
        assert again.n_appended == 1


def test_damage_is_an_error(tmp_path: Path) -> None:
    with DiskStore(tmp_path / "store") as store:
        store.hold(PendingChange(held=[request(7, content=b"the content of a request")]))
    path = tmp_path / "store" / "store.sqlite"
    path.write_bytes(path.read_bytes().replace(b"content of", b"contend of"))
    with DiskStore(tmp_path / "store") as store, pytest.raises(StoreError, match="damaged"):
        store.read_pending(7)


def test_pages_of_labels_go_when_there_are_very_many() -> None:
    labelled = LabelledRows({})
    labelled.mark(page * PAGE_ROWS for page in range(1_024))
    changed, gone = labelled.mark([1_024 * PAGE_ROWS + 5])
    assert (changed, gone) == ({1_024}, [0])
    assert 0 not in labelled
    assert PAGE_ROWS in labelled
    assert labelled.first == PAGE_ROWS


def add(pending: PendingRows, n_rows: int = 1, content: bytes = b"rows") -> list[str]:
    return pending.add(content, "application/json", n_rows, came=0.0)


def label(store: Store, pending: PendingRows, row_id: str) -> None:
    number = pending.find(row_id)
    assert isinstance(number, int)
    found = pending.read(number)
    assert found is not None
    rows = pa.record_batch({"x": [float(number)]})
    store.append(rows, None, pending.label(number, found))


def test_rows_wait_until_each_has_its_label(store: Store) -> None:
    pending = PendingRows(store, max_rows=100, first=16)
    ids = add(pending, 3)
    pending.write()
    assert (ids, pending.n_rows) == (["10", "11", "12"], 3)
    for row_id in ("12", "10"):
        label(store, pending, row_id)
    assert [pending.find(row_id) for row_id in ids] == ["labelled", 17, "labelled"]
    assert (pending.n_rows, len(store.pending())) == (1, 1)
    label(store, pending, "11")
    assert (pending.n_rows, store.pending()) == (0, [])
    assert pending.find("11") == "labelled"


def test_a_label_counts_before_its_row_is_stored(store: Store) -> None:
    pending = PendingRows(store, max_rows=100)
    (row_id,) = add(pending)
    pending.write()
    found = pending.read(0)
    assert found is not None
    change = pending.label(0, found)
    assert pending.find(row_id) == "labelled"
    pending.write()
    assert pending.find(row_id) == "labelled"
    assert (change.labelled, change.released) == ([0], [0])


@pytest.mark.parametrize("row_id", ["", "-1", "zz", "0x10", "010", "F", "10", "9" * 40, "f-", "-"])
def test_other_ids_are_unknown(row_id: str) -> None:
    assert PendingRows(MemoryStore(), max_rows=100, first=16).find(row_id) == "unknown"


def test_ids_of_early_stores_have_two_parts() -> None:
    assert read_id("6af31f-a03") == page_place(0x6AF31F, 0xA03)


def test_the_oldest_are_forgotten_when_too_many_wait(store: Store) -> None:
    pending = PendingRows(store, max_rows=3)
    ids = [row_id for n_rows in (2, 1, 2) for row_id in add(pending, n_rows)]
    pending.write()
    assert [pending.find(row_id) for row_id in ids] == ["forgotten", "forgotten", 2, 3, 4]
    assert (pending.n_rows, pending.n_forgotten) == (3, 2)
    add(pending, 1)
    pending.write()
    assert len(store.pending()) == 3  # what was forgotten left with this write


def test_the_oldest_are_forgotten_when_they_take_too_much(store: Store) -> None:
    pending = PendingRows(store, max_rows=100, max_bytes=1_000)
    ids = [add(pending, content=bytes(400))[0] for _ in range(3)]
    pending.write()
    assert [pending.find(row_id) for row_id in ids] == ["forgotten", 1, 2]


def test_ids_outlive_the_process(tmp_path: Path) -> None:
    with DiskStore(tmp_path / "store") as store:
        pending = PendingRows(store, max_rows=100, first=16)
        add(pending, 3)
        pending.write()
        label(store, pending, "11")
    with DiskStore(tmp_path / "store") as store:
        pending = PendingRows(store, max_rows=100, first=1_000, born=16)
        assert [pending.find(row_id) for row_id in ("f", "10", "11", "12")] == [
            "unknown", 16, "labelled", 18,
        ]  # fmt: skip
        assert pending.n_rows == 2
        assert read_id(add(pending)[0]) > 18  # type: ignore[operator]


def test_what_could_not_be_written_does_not_wait(tmp_path: Path) -> None:
    store = DiskStore(tmp_path / "store")
    pending = PendingRows(store, max_rows=100)
    add(pending, 3)
    store.close()
    with pytest.raises(StoreError, match="closed"):
        pending.write()
    assert pending.n_rows == 0
