"""A stream killed at any moment loses no acknowledged row, and ends as one that was not killed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest

from driftquilt.store.base import Store
from driftquilt.store.memory import MemoryStore
from driftquilt.stream.past import first_row
from tests.killing import Zygote
from tests.stream.crash_zygote import N_ROWS, SETTINGS, stream_rows
from tests.stream.streams import as_stored, hasty, learn, left_in, start, stored_rows

ROWS = stream_rows()


@pytest.fixture
def zygote() -> Iterator[Zygote]:
    with Zygote("tests.stream.crash_zygote") as started:
        yield started


def kill_stream(zygote: Zygote, folder: Path, rng: Random) -> tuple[int, bool]:
    """Kill a stream after it has said some things; the last count of rows, and if it ended."""
    seed, n_words, seconds = rng.random(), rng.randint(0, 18), rng.uniform(0, 0.03)
    said, done = zygote.kill(folder, seed, n_words=n_words, seconds=seconds)
    return int(said[-1]) if said else 0, done


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


def kill_often(zygote: Zygote, folder: Path, n_kills: int, seed: int) -> int:
    """Kill and look, again and again; how many streams came to their end meanwhile."""
    rng, n_done, n_said = Random(seed), 0, 0  # noqa: S311
    for _ in range(n_kills):
        path = folder / str(n_done)
        said, done = kill_stream(zygote, path, rng)
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


def test_fifty_kills_lose_nothing_and_change_nothing(zygote: Zygote, tmp_path: Path) -> None:
    assert kill_often(zygote, tmp_path, 50, seed=0) >= 1


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_five_hundred_kills_lose_nothing_and_change_nothing(zygote: Zygote, tmp_path: Path) -> None:
    assert kill_often(zygote, tmp_path, 500, seed=1) >= 10
