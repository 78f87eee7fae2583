"""Whichever write or sync fails, the error is clear and everything acknowledged stays."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from driftquilt.errors import StoreError
from driftquilt.store import DiskStore
from tests.crash.disk import SimulatedDisk, SimulatedFiles, UnsyncedDisk
from tests.crash.numbered import Contents, append, contents, expect_all, tensors

NAMES = {errno.EIO: "EIO", errno.ENOSPC: "ENOSPC"}


def seal(store: DiskStore) -> None:
    store.seal(store.n_appended - store.n_open, {"sealed": store.n_appended})


#: A short life with every kind of call that writes.
LIFE: list[Callable[[DiskStore], object]] = [
    lambda store: append(store, 3),
    lambda store: append(store, 40),
    lambda store: append(store, 1),  # with text
    seal,
    lambda store: store.put_model(tensors(1), {"number": 1}, {"model": 1}),
    lambda store: append(store, 1),
    lambda store: store.write_state({"note": "all is well"}),
    lambda store: append(store, 2),
    seal,
    lambda store: store.drop(1),
    lambda store: store.put_model(tensors(2), {"number": 2}, {"model": 2}),
    lambda store: store.drop_model(1),
    lambda store: append(store, 5),
]


def live(folder: Path, disk: SimulatedDisk) -> tuple[Contents, StoreError | None]:
    """What was acknowledged until something failed, and how it failed."""
    acknowledged, failed = Contents(), None
    try:
        with DiskStore(folder, disk=disk) as store:
            for step in LIFE:
                step(store)
                acknowledged = contents(store)
    except StoreError as error:
        failed = error
    return acknowledged, failed


def fail_at(folder: Path, step: int, code: int) -> StoreError | None:
    disk = SimulatedDisk(SimulatedFiles())
    disk.files.fail_at, disk.files.failure = step, code
    acknowledged, failed = live(folder / "live", disk)
    for name, rng in (("seen", None), ("cut", Random(step))):  # noqa: S311
        after = folder / name
        disk.files.lay_out(folder / "live", after, rng)
        with DiskStore(after, disk=UnsyncedDisk()) as store:
            expect_all(store, after, acknowledged)
    disk.close()
    return failed


@pytest.mark.parametrize("code", NAMES, ids=NAMES.values())
def test_whichever_step_fails_everything_acknowledged_stays(tmp_path: Path, code: int) -> None:
    disk = SimulatedDisk(SimulatedFiles())
    _, failed = live(tmp_path / "whole", disk)
    assert failed is None
    n_steps, n_failed = disk.files.n_steps, 0
    disk.close()
    for step in range(1, n_steps + 1):
        failed = fail_at(tmp_path / str(step), step, code)
        if failed is not None:
            n_failed += 1
            assert f"failed in the store {tmp_path / str(step)}" in str(failed)
            assert "then open it again" in str(failed)
            assert ("free some space" in str(failed)) == (code == errno.ENOSPC)
    assert n_failed > 0.8 * n_steps  # SQLite puts up with a failed checkpoint


def test_after_a_commit_that_failed_nothing_is_acknowledged(tmp_path: Path) -> None:
    disk = SimulatedDisk(SimulatedFiles())
    store = DiskStore(tmp_path / "live", disk=disk)
    append(store, 3)
    disk.files.fail_at = disk.files.n_steps + 1
    with pytest.raises(StoreError, match="commit failed"):
        append(store, 4)
    with pytest.raises(StoreError, match="commit failed"):
        append(store, 4)
    with pytest.raises(StoreError, match="3 rows"):
        store.flush()
    assert store.n_durable == 3
    store.close()
    disk.files.lay_out(tmp_path / "live", tmp_path / "after")
    with DiskStore(tmp_path / "after", disk=UnsyncedDisk()) as again:
        assert again.n_appended == 3


def test_a_seal_that_found_the_disk_full_can_be_tried_again(tmp_path: Path) -> None:
    disk = SimulatedDisk(SimulatedFiles())
    with DiskStore(tmp_path / "live", disk=disk) as store:
        append(store, 3)
        disk.files.fail_at, disk.files.failure = disk.files.n_steps + 3, errno.ENOSPC
        with pytest.raises(StoreError, match=r"sealing .*free some space"):
            seal(store)
        assert [path.name for path in (tmp_path / "live" / "segments").iterdir()] == []
        append(store, 2)
        seal(store)
        assert [(s.number, s.n_rows) for s in store.segments] == [(1, 5)]
        assert store.read(1)["id"].to_pylist() == [0, 1, 2, 3, 4]
