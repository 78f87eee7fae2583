"""Stores written by every format there ever was can be opened, read and written to."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from driftquilt.store import DiskStore, PendingHead, PendingRequest
from driftquilt.store.manifest import FORMAT

ASSETS = Path(__file__).parent / "assets"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    shutil.copytree(ASSETS / "v1", tmp_path / "store")
    return tmp_path / "store"


def test_every_format_has_an_asset() -> None:
    assert sorted(path.name for path in ASSETS.glob("v*")) == [f"v{n + 1}" for n in range(FORMAT)]


def test_a_store_of_format_1_is_read(path: Path) -> None:
    with DiskStore(path) as store:
        assert [(s.number, s.name, s.n_rows) for s in store.segments] == [(1, "may", 2), (3, 7, 1)]
        assert store.read(1).to_pylist() == [{"x": 0.5, "label": 0}, {"x": 1.5, "label": 1}]
        assert store.read(3).to_pylist() == [{"x": 2.5, "city": "Rome"}]
        assert store.open_rows().to_pylist() == [
            {"x": 3.5, "label": 1, "city": None},
            {"x": 4.5, "label": 0, "city": None},
            {"x": None, "label": None, "city": "Oslo"},
        ]
        assert store.model(1) == (b"not a net", {"accuracy": 0.9})
        assert store.state == {"position": 7, "champion": 1}
        assert (store.n_appended, store.n_open) == (7, 3)


def test_a_store_of_format_1_goes_on(path: Path) -> None:
    with DiskStore(path) as store:
        assert store.append(pa.record_batch({"x": [1.0], "label": [1]}), {"position": 8}) == 8
        assert store.seal("june").number == 4
        assert store.put_model(b"", {}) == 2
    with DiskStore(path) as store:
        assert store.read(4)["x"].to_pylist() == [3.5, 4.5, None, 1.0]
        assert store.state["position"] == 8


def test_pending_rows_of_format_2_are_read(tmp_path: Path) -> None:
    shutil.copytree(ASSETS / "v2", tmp_path / "store")
    first = 1 << 60
    with DiskStore(tmp_path / "store") as store:
        assert store.pending() == [
            PendingHead(1, 1, 10, "order 7"),
            PendingHead(first, 3, 13, None),
        ]
        assert store.read_pending(1) == PendingRequest(1, 1, 0.0, "row", "order 7", b'{"x": 0.5}')
        assert [number in store.labelled for number in range(first, first + 3)] == [0, 1, 0]
        assert (store.n_appended, store.state["position"]) == (8, 8)
