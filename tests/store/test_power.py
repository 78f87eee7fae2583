"""A power cut at any moment loses nothing that was acknowledged, and the simulation can tell."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from driftquilt.errors import StoreError
from driftquilt.store.files import NewFile
from tests.store.crash.power import survive
from tests.store.crash.vfs import WorldDisk, WorldNewFile
from tests.store.crash.world import World


class FileNeverSynced(WorldNewFile):
    def sync(self) -> None: ...


class ForgetsFiles(WorldDisk):
    """Sealed files and models are renamed before they are on the disk."""

    def create(self, path: Path) -> NewFile:
        return FileNeverSynced(self.world, path)


class ForgetsNames(WorldDisk):
    """Renames are not made to last; SQLite still syncs its own folder."""

    def sync_folder(self, path: Path) -> None: ...


def n_harmed(folder: Path, n_cuts: int, make: Callable[[World], WorldDisk]) -> int:
    harmed = 0
    for seed in range(n_cuts):
        try:
            survive(folder, seed, make(World()))
        except (AssertionError, StoreError):
            harmed += 1
    return harmed


def test_a_hundred_power_cuts_lose_nothing(tmp_path: Path) -> None:
    found = [survive(tmp_path, seed) for seed in range(100)]
    assert sum(seen.n_rows for seen in found) > 10_000  # the runs had something to lose
    assert sum(seen.last_segment for seen in found) > 300


@pytest.mark.slow
def test_a_thousand_power_cuts_lose_nothing(tmp_path: Path) -> None:
    found = [survive(tmp_path, seed) for seed in range(100, 1100)]
    assert sum(seen.n_rows for seen in found) > 100_000


@pytest.mark.parametrize("synchronous", ["NORMAL", "OFF"])
def test_without_a_sync_at_every_commit_rows_would_be_lost(
    tmp_path: Path, synchronous: str
) -> None:
    assert n_harmed(tmp_path, 20, lambda world: WorldDisk(world, synchronous)) > 5


@pytest.mark.parametrize("forgetful", [ForgetsFiles, ForgetsNames])
def test_without_syncs_of_files_and_folders_segments_would_be_lost(
    tmp_path: Path, forgetful: Callable[[World], WorldDisk]
) -> None:
    assert n_harmed(tmp_path, 20, forgetful) > 5
