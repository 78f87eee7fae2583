"""An export has every row of the store once, with its segment."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from driftquilt.errors import InputError
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


def test_the_open_segment_has_the_next_number_after_a_drop_too(tmp_path: Path) -> None:
    store = MemoryStore()
    for number in (1, 2):
        store.append(pa.record_batch({"x": [number]}))
        store.seal()
    store.drop(1)
    store.append(pa.record_batch({"x": [3]}))
    export(store, tmp_path / "all.parquet")
    assert pq.read_table(tmp_path / "all.parquet")["segment"].to_pylist() == [2, 3]


def test_an_empty_store_is_an_empty_table(tmp_path: Path) -> None:
    assert export(MemoryStore(), tmp_path / "none.parquet") == 0
    assert pq.read_table(tmp_path / "none.parquet").column_names == ["segment", "segment_name"]


def test_a_column_that_an_export_adds_is_refused(tmp_path: Path) -> None:
    store = MemoryStore()
    store.append(pa.record_batch({"segment": [1]}))
    with pytest.raises(InputError, match="the rows have a column 'segment', which an export adds"):
        export(store, tmp_path / "all.parquet")
    assert list(tmp_path.iterdir()) == []
