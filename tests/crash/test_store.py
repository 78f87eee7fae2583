"""A process killed at any moment loses nothing that it acknowledged, and leaves nothing behind."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from driftquilt.store import DiskStore
from tests.crash.killing import Workers, report
from tests.crash.numbered import Contents, change, contents, expect_all, rows


def warm_up() -> None:
    for first in (0, 40):  # whatever is loaded at the first batch is loaded now
        rows(first, 1).serialize()


def work(folder: Path, rng: Random) -> None:
    """Change the store for ever, in groups or not, and report what is durable after every call."""
    groups = rng.random() < 0.5
    with DiskStore(
        folder, commit_rows=25 if groups else 1, commit_delay=0.002 if groups else 0
    ) as store:
        while True:
            report(*contents(store))
            change(store, rng)


def kill_often(workers: Workers, folder: Path, n_kills: int, seed: int) -> Contents:
    """Kill and look, again and again, at one store that goes on through all of it."""
    present = Contents()
    for killed in workers.kills(folder, n_kills, seed=seed):
        acknowledged = [Contents(*map(int, line.split())) for line in killed.reports[-1:]]
        with DiskStore(killed.folder) as store:
            present = expect_all(store, killed.folder, *(acknowledged or [present]))
    return present


def test_fifty_kills_lose_nothing(workers: Workers, tmp_path: Path) -> None:
    present = kill_often(workers, tmp_path, 50, seed=0)
    assert present.n_rows > 1000  # there was something to lose
    assert present.last_segment > 20


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_five_hundred_kills_lose_nothing(workers: Workers, tmp_path: Path) -> None:
    present = kill_often(workers, tmp_path, 500, seed=1)
    assert present.n_rows > 10_000
    assert present.last_segment > 200
