"""Work until the power goes, then open what the disk has left."""

from __future__ import annotations

import contextlib
import math
from pathlib import Path
from random import Random

from driftquilt.errors import StoreError
from driftquilt.store.disk import DiskStore
from driftquilt.store.folder import MANIFEST
from tests.store.crash.vfs import HastyDisk, WorldDisk
from tests.store.crash.work import Seen, do_something, expect_all, look, rows
from tests.store.crash.world import World

LONGEST = 1200  # steps; some hundred commits


def survive(folder: Path, seed: int, disk: WorldDisk | None = None) -> Seen:
    """One run and one cut; returns what was found after it, an error if something was lost."""
    rng = Random(seed)  # noqa: S311
    disk = disk or WorldDisk(World())
    disk.world.cut_at = rng.randint(1, LONGEST)
    live, after = folder / f"{seed}-live", folder / f"{seed}-after"
    said = work_until_cut(live, disk, rng)
    disk.world.lay_out(live, after, rng)
    disk.let_go()
    with DiskStore(after, disk=HastyDisk()) as store:
        found = expect_all(store, after, said)
        store.append(rows(store.n_appended, 1))
    with DiskStore(after, disk=HastyDisk()) as store:
        assert store.n_appended == found.n_rows + 1
    return found


def work_until_cut(folder: Path, disk: WorldDisk, rng: Random) -> Seen:
    """What was acknowledged before the power went; now and then the store is opened anew."""
    said, store = Seen(), None
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
                do_something(store, rng)
                said = look(store)
            store.close()
            said = said._replace(n_rows=store.n_durable)
            (folder / MANIFEST).write_bytes(disk.world.names[folder / MANIFEST].data)
    except StoreError as error:
        if not disk.world.is_cut:
            raise RuntimeError("the store failed before the power did") from error
    if store is not None:
        release(store)
    return said


def release(store: DiskStore) -> None:
    """Let go of the folder; that a store whose disk is gone says so is no news."""
    with contextlib.suppress(StoreError):
        store.close()
