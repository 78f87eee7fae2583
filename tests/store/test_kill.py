"""A process killed at any moment loses nothing that it acknowledged, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from driftquilt.store.disk import DiskStore
from tests.killing import Zygote
from tests.store.crash.work import Seen, expect_all


@pytest.fixture
def zygote() -> Iterator[Zygote]:
    with Zygote("tests.store.crash.zygote") as started:
        yield started


def kill_one(zygote: Zygote, folder: Path, rng: Random) -> Seen | None:
    """Kill a worker after it has said some things; the last of them, if any."""
    seed, n_words, seconds = rng.random(), rng.randint(0, 25), rng.uniform(0, 0.01)
    said = zygote.kill(folder, seed, n_words=n_words, seconds=seconds).said
    return Seen(*map(int, said[-1].split())) if said else None


def kill_often(zygote: Zygote, folder: Path, n_kills: int, seed: int) -> Seen:
    """Kill and look, again and again, at one store that goes on through all of it."""
    rng, said = Random(seed), Seen()  # noqa: S311
    for _ in range(n_kills):
        said = kill_one(zygote, folder, rng) or said
        with DiskStore(folder) as store:
            said = expect_all(store, folder, said)
    return said


def test_fifty_kills_lose_nothing(zygote: Zygote, tmp_path: Path) -> None:
    found = kill_often(zygote, tmp_path / "store", 50, seed=0)
    assert found.n_rows > 1000  # there was something to lose
    assert found.last_segment > 20


@pytest.mark.slow
def test_five_hundred_kills_lose_nothing(zygote: Zygote, tmp_path: Path) -> None:
    found = kill_often(zygote, tmp_path / "store", 500, seed=1)
    assert found.n_rows > 10_000
    assert found.last_segment > 200
