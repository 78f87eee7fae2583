"""Damage is an error that names the file, and is never read as data."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pyarrow as pa
import pytest

from driftquilt.errors import StoreError
from driftquilt.store.disk import DiskStore
from tests.crash.disk import UnsyncedDisk
from tests.store.test_folder import fill
from tests.store.test_laws import snapshot


@pytest.fixture
def path(tmp_path: Path) -> Path:
    fill(tmp_path / "store")
    return tmp_path / "store"


def flip(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 0x10
    path.write_bytes(data)


@pytest.mark.parametrize("at", [0, 700, -1])
def test_a_flipped_bit_in_a_segment_is_found_at_the_first_read(path: Path, at: int) -> None:
    flip(path / "segments" / "000001.arrow", at)
    with DiskStore(path) as store:
        for _ in range(2):
            with pytest.raises(
                StoreError, match=r"000001\.arrow.*segment 1 \('may', 400 rows\).*SHA-256"
            ):
                store.read(1)
        assert store.read(2).num_rows == 400
        store.drop(1)
        assert [segment.number for segment in store.segments] == [2]


@pytest.mark.parametrize("size", [0, 1000])
def test_a_segment_cut_short_is_found(path: Path, size: int) -> None:
    file = path / "segments" / "000002.arrow"
    n_bytes = file.stat().st_size
    file.write_bytes(file.read_bytes()[:size])
    with (
        DiskStore(path) as store,
        pytest.raises(StoreError, match=f"{size} bytes.* {n_bytes}"),
    ):
        store.read(2)


def test_a_missing_segment_is_named_and_can_be_dropped(path: Path) -> None:
    (path / "segments" / "000001.arrow").unlink()
    with DiskStore(path) as store:
        with pytest.raises(StoreError, match=r"000001\.arrow.*segment 1"):
            store.read(1)
        store.drop(1)
        assert store.append(pa.record_batch({"x": [1.0]})) == 804


def test_a_damaged_model_is_found(path: Path) -> None:
    file = path / "models" / "000001.safetensors"
    flip(file, 5)
    with DiskStore(path) as store:
        with pytest.raises(StoreError, match=r"000001\.safetensors.*model 1"):
            store.model(1)
        file.unlink()
        with pytest.raises(StoreError, match=r"missing.*model 1"):
            store.model(1)


def test_the_checksum_of_a_segment_is_looked_at_once(path: Path) -> None:
    with DiskStore(path) as store:
        store.read(1)
        flip(path / "segments" / "000001.arrow", 700)  # a new file in its place
        assert store.read(1).num_rows == 400


def test_a_segment_that_is_damaged_after_that_look_is_told_if_it_cannot_be_read(
    path: Path,
) -> None:
    file = path / "segments" / "000001.arrow"
    with DiskStore(path) as store:
        store.read(1)
        file.write_bytes(b"\xff" * file.stat().st_size)
        with pytest.raises(StoreError, match=r"000001\.arrow"):
            store.read(1)
        assert store.append(pa.record_batch({"x": [1.0]})) == 804


def test_a_segment_is_mapped_and_not_copied(path: Path) -> None:
    with DiskStore(path) as store:
        before = pa.total_allocated_bytes()
        table = store.read(1)
        assert pa.total_allocated_bytes() - before < 400
        assert table["x"].chunk(0).to_numpy(zero_copy_only=True)[0] == 0.5


def test_what_is_no_database_is_named(path: Path) -> None:
    (path / "store.sqlite").write_bytes(b"garbage " * 1000)
    with pytest.raises(StoreError, match=r"store\.sqlite is damaged"):
        DiskStore(path)


def test_whatever_is_garbled_in_the_database_is_an_error_or_harmless(path: Path) -> None:
    """2,500 places of it; a byte between the rows may be garbled without meaning anything."""
    file, rng = path / "store.sqlite", Random(0)  # noqa: S311
    whole = file.read_bytes()
    with DiskStore(path, disk=UnsyncedDisk()) as store:
        expected = snapshot(store)
    messages = list[str]()
    for _ in range(250):
        data = bytearray(whole)
        for _ in range(10):
            data[rng.randrange(100, len(data))] ^= rng.randrange(1, 256)
        file.write_bytes(data)
        try:
            with DiskStore(path, disk=UnsyncedDisk()) as store:
                found = snapshot(store)
        except StoreError as error:
            messages.append(str(error))
        else:
            assert found == expected
    assert len(messages) > 50
    assert all(str(path) in message for message in messages)
