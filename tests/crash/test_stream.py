"""A stream killed at any moment loses no acknowledged row, and ends as one that was not killed."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from driftquilt.store import DiskStore, Store
from driftquilt.stream import QuiltStream
from driftquilt.stream.persistence import first_row
from tests.crash.killing import Workers, report
from tests.stream.streams import TURN, as_stored, hasty, learn, left_in, rows, start, stored_rows

N_ROWS = 900
ROWS = rows(N_ROWS, seed=7)
SETTINGS: dict[str, Any] = {
    "checkpoint_rows": 40,
    "max_segments": 4,
    "max_models": 3,
    "refresh": 1.7,
    "segment_rows": 160,
}


def warm_up() -> None:
    """Have everything imported and compiled, kernels too."""
    assert learn(start(), ROWS[: 2 * TURN]).model is not None


def open_or_start(folder: Path, **settings: Any) -> QuiltStream:
    """The stream of the folder; a kill may have come before there was one."""
    store = DiskStore(folder)
    return QuiltStream.open(store, wait=True) if store.state else start(store, **settings)


def work(folder: Path, rng: Random) -> None:
    """Learn what is left, in batches and by rows that first wait for their label.

    Reports how many rows are durable, and how many wait.
    """
    with open_or_start(folder, **SETTINGS) as stream:
        report(stream.n_durable, stream.n_waiting)
        while (n := stream.n_rows) < N_ROWS:
            batch = ROWS[n : n + rng.choice([1, 1, 1, 1, 5, 60])]
            if stream.n_waiting or len(batch) == 1:
                if not stream.n_waiting:
                    stream.predict_one(ROWS[n][0], key=n)
                    report(stream.n_durable, stream.n_waiting)
                stream.learn_one(y=ROWS[n][1], key=n)
            else:
                stream.learn_many([x for x, _ in batch], [y for _, y in batch])
            report(stream.n_durable, stream.n_waiting)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a stream leaves that nobody kills."""
    folder = tmp_path_factory.mktemp("undisturbed") / "store"
    with start(hasty(folder), **SETTINGS) as stream:
        learn(stream, ROWS)
    with hasty(folder) as store:
        return left_in(store)


def expect_rows(store: Store, n_durable: int, n_waiting: int) -> None:
    """Acknowledged rows are there once and in order, but for segments that were dropped."""
    assert n_durable <= store.n_appended <= N_ROWS
    if store.n_appended == n_durable:
        assert len(store.pending()) >= n_waiting
    stored = [range(first_row(s), first_row(s) + s.n_rows) for s in store.segments]
    stored.append(range(store.n_appended - store.n_open, store.n_appended))
    assert stored_rows(store) == as_stored([ROWS[n] for part in stored for n in part])


def kill_often(
    workers: Workers, undisturbed: dict[str, Any], folder: Path, n_kills: int, seed: int
) -> int:
    """Kill and look, again and again; return how many streams came to their end meanwhile."""
    n_done, acknowledged = 0, (0, 0)
    for killed in workers.kills(folder, n_kills, seed=seed, reports=(0, 18), seconds=0.03):
        for line in killed.reports[-1:]:
            n_durable, n_waiting = map(int, line.split())
            acknowledged = n_durable, n_waiting
        with hasty(killed.folder) as store:
            expect_rows(store, *acknowledged)
            if killed.done:
                assert left_in(store) == undisturbed
                n_done, acknowledged = n_done + 1, (0, 0)
    return n_done


def test_the_streams_to_be_killed_do_everything_a_stream_does(undisturbed: dict[str, Any]) -> None:
    happened = {event["event"] for event in undisturbed["record"]["events"]}
    assert happened >= {
        "DriftFound", "SegmentSealed", "SegmentDropped", "ModelTrained", "ModelPromoted",
        "ModelKept",
    }  # fmt: skip


def test_fifty_kills_lose_nothing_and_change_nothing(
    workers: Workers, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    assert kill_often(workers, undisturbed, tmp_path, 50, seed=0) >= 1


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_five_hundred_kills_lose_nothing_and_change_nothing(
    workers: Workers, undisturbed: dict[str, Any], tmp_path: Path
) -> None:
    assert kill_often(workers, undisturbed, tmp_path, 500, seed=1) >= 10
