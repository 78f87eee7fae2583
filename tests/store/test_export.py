"""An export has every row of the store once, with its segment."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from driftquilt.errors import InputError, StoreError
from driftquilt.store.base import Store
from driftquilt.store.disk import DiskStore
from driftquilt.store.export import export
from driftquilt.store.memory import MemoryStore


def test_all_rows_are_there_with_their_segments(tmp_path: Path) -> None:
    with DiskStore(tmp_path / "store") as store:
        store.append(pa.record_batch({"x": [1, 2]}))
        store.seal("may")
        store.append(pa.record_batch({"x": [0.5], "word": ["a"]}))
        store.seal(6)
        store.append(pa.record_batch({"word": ["b"]}))
        (tmp_path / "all.parquet").write_bytes(b"what was there before")
        assert export(store, tmp_path / "all.parquet") == 4
    assert pq.read_table(tmp_path / "all.parquet").to_pylist() == [
        {"segment": 1, "segment_name": '"may"', "x": 1.0, "word": None},
        {"segment": 1, "segment_name": '"may"', "x": 2.0, "word": None},
        {"segment": 2, "segment_name": "6", "x": 0.5, "word": "a"},
        {"segment": 3, "segment_name": None, "x": None, "word": "b"},
    ]
    assert [path.name for path in tmp_path.glob("*.tmp")] == []


@pytest.mark.parametrize("dropped", [1, 2])
def test_the_open_rows_have_the_number_that_they_will_be_sealed_under(
    store: Store, tmp_path: Path, dropped: int
) -> None:
    for number in (1, 2):
        store.append(pa.record_batch({"x": [number]}))
        store.seal()
    store.drop(dropped)
    store.append(pa.record_batch({"x": [3]}))
    export(store, tmp_path / "all.parquet")
    found = pq.read_table(tmp_path / "all.parquet")["segment"].to_pylist()
    assert found == [3 - dropped, 3]
    assert store.seal().number == 3


def test_rows_that_are_sealed_meanwhile_are_there_once(tmp_path: Path) -> None:
    class Busy(MemoryStore):
        """Somebody else seals and appends at the first look at what is open."""

        def open_rows(self) -> pa.Table:
            rows = super().open_rows()
            if self.next_segment == 1:
                self.seal("a")
                self.append(pa.record_batch({"x": [2]}))
            return rows

    store = Busy()
    store.append(pa.record_batch({"x": [1]}))
    assert export(store, tmp_path / "all.parquet") == 2
    assert pq.read_table(tmp_path / "all.parquet").to_pylist() == [
        {"segment": 1, "segment_name": '"a"', "x": 1},
        {"segment": 2, "segment_name": None, "x": 2},
    ]


@pytest.mark.parametrize(
    ("place", "why"),
    [("no/all.parquet", "No such file or folder"), ("folder", "it is a folder; name a file")],
)
def test_a_place_that_cannot_be_written_to_is_told(tmp_path: Path, place: str, why: str) -> None:
    (tmp_path / "folder").mkdir()
    store = MemoryStore()
    store.append(pa.record_batch({"x": [1]}))
    with pytest.raises(StoreError, match=rf"the rows cannot be written to .*{place}: {why}"):
        export(store, tmp_path / place)
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_damage_is_told_as_such(tmp_path: Path) -> None:
    with DiskStore(tmp_path / "store") as store:
        store.append(pa.record_batch({"x": [1]}))
        store.seal()
        (tmp_path / "store" / "segments" / "000001.arrow").unlink()
        with pytest.raises(StoreError, match=r"missing.*segment 1"):
            export(store, tmp_path / "all.parquet")


def test_an_empty_store_is_an_empty_table(tmp_path: Path) -> None:
    assert export(MemoryStore(), tmp_path / "none.parquet") == 0
    assert pq.read_table(tmp_path / "none.parquet").column_names == ["segment", "segment_name"]


def test_a_column_that_an_export_adds_is_refused(tmp_path: Path) -> None:
    store = MemoryStore()
    store.append(pa.record_batch({"segment": [1]}))
    with pytest.raises(InputError, match="column 'segment'"):
        export(store, tmp_path / "all.parquet")
    assert list(tmp_path.iterdir()) == []
