"""A stream killed at any moment loses no acknowledged row, and ends as one that was not killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest

from driftquilt.store.base import Store
from driftquilt.store.memory import MemoryStore
from driftquilt.stream.past import first_row
from tests.store.test_kill import ROOT, Zygote
from tests.stream.crash_zygote import N_ROWS, SETTINGS, stream_rows
from tests.stream.streams import as_stored, hasty, learn, left_in, start, stored_rows

ROWS = stream_rows()


class StreamZygote(Zygote):
    """Starts streams, and kills them."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.stream.crash_zygote"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )

    def kill_stream(self, folder: Path, rng: Random) -> tuple[int, bool]:
        """Kill a stream after it has said some things; the last count of rows, and if it ended."""
        orders, answers = self.pipes
        orders.write(f"{folder} {rng.random()}\n")
        word, pid = answers.readline().split()
        assert word == "pid"
        said = ["0"]
        for _ in range(rng.randint(0, 18)):
            if said[-1] != "done":
                said.append(answers.readline().strip())
        time.sleep(rng.uniform(0, 0.03))
        os.kill(int(pid), signal.SIGKILL)
        orders.write("reap\n")
        while not (line := answers.readline()).startswith("dead"):
            said.append(line.strip())
        done = "done" in said
        assert line == f"dead {-signal.SIGKILL}\n" or done  # else it fell, and said why
        return int([word for word in said if word != "done"][-1]), done


@pytest.fixture
def zygote() -> Iterator[StreamZygote]:
    started = StreamZygote()
    yield started
    started.close()


@cache
def undisturbed() -> dict[str, Any]:
    stream = learn(start(MemoryStore(), **SETTINGS), ROWS)
    stream._engine.checkpoint(stream._waiting.to_json())
    return left_in(stream.store)


def expect_rows(store: Store, n_said: int) -> None:
    """Acknowledged rows are there once and in order, but for segments that were dropped."""
    assert n_said <= store.n_appended <= N_ROWS
    kept = [range(first_row(s), first_row(s) + s.n_rows) for s in store.segments]
    kept.append(range(store.n_appended - store.n_open, store.n_appended))
    assert stored_rows(store) == as_stored([ROWS[n] for part in kept for n in part])


def kill_often(zygote: StreamZygote, folder: Path, n_kills: int, seed: int) -> int:
    """Kill and look, again and again; how many streams came to their end meanwhile."""
    rng, n_done, n_said = Random(seed), 0, 0  # noqa: S311
    for _ in range(n_kills):
        path = folder / str(n_done)
        said, done = zygote.kill_stream(path, rng)
        n_said = max(n_said, said)
        with hasty(path) as store:
            expect_rows(store, n_said)
            if done:
                assert left_in(store) == undisturbed()
                n_done, n_said = n_done + 1, 0
    return n_done


def test_the_streams_to_be_killed_do_everything_a_stream_does() -> None:
    happened = {event["event"] for event in undisturbed()["record"]["events"]}
    assert happened >= {
        "DriftFound", "SegmentSealed", "SegmentDropped", "ModelTrained", "ModelPromoted",
        "ModelKept",
    }  # fmt: skip


def test_fifty_kills_lose_nothing_and_change_nothing(zygote: StreamZygote, tmp_path: Path) -> None:
    assert kill_often(zygote, tmp_path, 50, seed=0) >= 1


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_five_hundred_kills_lose_nothing_and_change_nothing(
    zygote: StreamZygote, tmp_path: Path
) -> None:
    assert kill_often(zygote, tmp_path, 500, seed=1) >= 10
