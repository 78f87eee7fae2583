"""A power cut at any moment loses nothing that was acknowledged, and the simulation can tell."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from driftquilt.errors import StoreError
from driftquilt.store import DiskStore
from driftquilt.store.files import MANIFEST, NewFile
from tests.crash.disk import SimulatedDisk, SimulatedFiles, SimulatedNewFile, UnsyncedDisk
from tests.crash.numbered import Contents, change, contents, expect_all, rows

LONGEST = 1200  # steps; some hundred commits


def survive(folder: Path, seed: int, disk: SimulatedDisk | None = None) -> Contents:
    """Work until a power cut; return what is there after it, or fail if something was lost."""
    rng = Random(seed)  # noqa: S311
    disk = disk or SimulatedDisk(SimulatedFiles())
    disk.files.cut_at = rng.randint(1, LONGEST)
    live, after = folder / f"{seed}-live", folder / f"{seed}-after"
    acknowledged = work_until_cut(live, disk, rng)
    disk.files.lay_out(live, after, rng)
    disk.close()
    with DiskStore(after, disk=UnsyncedDisk()) as store:
        present = expect_all(store, after, acknowledged)
        store.append(rows(store.n_appended, 1))
    with DiskStore(after, disk=UnsyncedDisk()) as store:
        assert store.n_appended == present.n_rows + 1
    return present


def work_until_cut(folder: Path, disk: SimulatedDisk, rng: Random) -> Contents:
    """Return what was acknowledged; now and then the store is closed and opened again."""
    acknowledged, store = Contents(), None
    groups = rng.random() < 0.3
    try:
        while True:
            store = DiskStore(
                folder,
                commit_rows=20 if groups else 1,
                commit_delay=math.inf if groups else 0,
                disk=disk,
            )
            for _ in range(rng.randint(1, 120)):
                change(store, rng)
                acknowledged = contents(store)
            store.close()
            acknowledged = acknowledged._replace(n_rows=store.n_durable)
            (folder / MANIFEST).write_bytes(disk.files.names[folder / MANIFEST].data)
    except StoreError as error:
        if not disk.files.is_cut:
            raise RuntimeError("the store failed before the power did") from error
    if store is not None:
        with contextlib.suppress(StoreError):  # without power it cannot close in order
            store.close()
    return acknowledged


class FileNeverSynced(SimulatedNewFile):
    def sync(self) -> None: ...


class ForgetsFiles(SimulatedDisk):
    """Sealed files and models are renamed before they are on the disk."""

    def create(self, path: Path) -> NewFile:
        return FileNeverSynced(self.files, path)


class ForgetsNames(SimulatedDisk):
    """Renames are not made to last; SQLite still syncs its own folder."""

    def sync_folder(self, path: Path) -> None: ...


def n_harmed(folder: Path, n_cuts: int, make: Callable[[SimulatedFiles], SimulatedDisk]) -> int:
    harmed = 0
    for seed in range(n_cuts):
        try:
            survive(folder, seed, make(SimulatedFiles()))
        except (AssertionError, StoreError):
            harmed += 1
    return harmed


def test_a_hundred_power_cuts_lose_nothing(tmp_path: Path) -> None:
    present = [survive(tmp_path, seed) for seed in range(100)]
    assert sum(after.n_rows for after in present) > 10_000  # the runs had something to lose
    assert sum(after.last_segment for after in present) > 300


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_thousand_power_cuts_lose_nothing(tmp_path: Path) -> None:
    present = [survive(tmp_path, seed) for seed in range(100, 1100)]
    assert sum(after.n_rows for after in present) > 100_000


@pytest.mark.parametrize("synchronous", ["NORMAL", "OFF"])
def test_without_a_sync_at_every_commit_rows_would_be_lost(
    tmp_path: Path, synchronous: str
) -> None:
    assert n_harmed(tmp_path, 20, lambda files: SimulatedDisk(files, synchronous)) > 5


@pytest.mark.parametrize("forgetful", [ForgetsFiles, ForgetsNames])
def test_without_syncs_of_files_and_folders_segments_would_be_lost(
    tmp_path: Path, forgetful: Callable[[SimulatedFiles], SimulatedDisk]
) -> None:
    assert n_harmed(tmp_path, 20, forgetful) > 5
