"""A process killed at any moment loses nothing that it acknowledged, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import IO

import pytest

from driftquilt.store.disk import DiskStore
from tests.store.crash.work import Seen, expect_all

ROOT = Path(__file__).parents[2]


class Zygote:
    """Starts workers, and kills them."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.store.crash.zygote"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    @property
    def pipes(self) -> tuple[IO[str], IO[str]]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        return self.process.stdin, self.process.stdout

    def kill_one(self, folder: Path, rng: Random) -> Seen | None:
        """Kill a worker after it has said some things; the last of them, if any."""
        orders, answers = self.pipes
        orders.write(f"{folder} {rng.random()}\n")
        word, pid = answers.readline().split()
        assert word == "pid"
        said = None
        for _ in range(rng.randint(0, 25)):
            said = Seen(*map(int, answers.readline().split()))
        time.sleep(rng.uniform(0, 0.01))
        os.kill(int(pid), signal.SIGKILL)
        orders.write("reap\n")
        while not (line := answers.readline()).startswith("dead"):
            said = Seen(*map(int, line.split()))
        assert line == f"dead {-signal.SIGKILL}\n"
        return said

    def close(self) -> None:
        for pipe in self.pipes:
            pipe.close()
        self.process.wait(timeout=30)


@pytest.fixture
def zygote() -> Iterator[Zygote]:
    started = Zygote()
    yield started
    started.close()


def kill_often(zygote: Zygote, folder: Path, n_kills: int, seed: int) -> Seen:
    """Kill and look, again and again, at one store that goes on through all of it."""
    rng, said = Random(seed), Seen()  # noqa: S311
    for _ in range(n_kills):
        said = zygote.kill_one(folder, rng) or said
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
