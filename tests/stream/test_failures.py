"""Whichever write or sync fails, the stream says so, still predicts, and loses nothing."""

from __future__ import annotations

import errno
import os
import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from driftquilt.errors import StoreError
from driftquilt.store.disk import DiskStore
from driftquilt.store.files import NewFile
from driftquilt.store.memory import MemoryStore
from driftquilt.stream import QuiltStream
from driftquilt.stream.settings import LET_ALL_THROUGH
from tests.crash.disk import SimulatedDisk, SimulatedFiles, UnsyncedDisk
from tests.stream.streams import LabelledRow, estimator, hasty, learn, left, rows, start

ROWS = rows(66)
SETTINGS: dict[str, Any] = {
    "detector": {"kind": "known", "points": [20, 43]},
    "guard": LET_ALL_THROUGH,
    "n_wait": 10,
    "max_segments": 1,
    "max_models": 1,
    "checkpoint_rows": 16,
    "estimator": estimator(max_epochs=2, hidden_units=4),
}
BATCH = 6


def batches() -> list[list[LabelledRow]]:
    return [ROWS[first : first + BATCH] for first in range(0, len(ROWS), BATCH)]


def learn_batch(stream: QuiltStream, batch: list[LabelledRow]) -> None:
    stream.learn_many([x for x, _ in batch], [y for _, y in batch])


@cache
def undisturbed() -> dict[str, Any]:
    found = left(learn(start(MemoryStore(), **SETTINGS), ROWS))
    kinds = [event["event"] for event in found["record"]["events"]]
    assert kinds.count("SegmentSealed") == 2
    assert kinds.count("SegmentDropped") == 1
    assert kinds.count("ModelPromoted") > 2
    return found


def live(folder: Path, disk: SimulatedDisk) -> tuple[int, StoreError | None]:
    """How many rows were acknowledged until something failed, and how it failed."""
    n_said, failed = 0, None
    store = DiskStore(folder, disk=disk)
    stream = start(store, **SETTINGS)
    try:
        for batch in batches():
            learn_batch(stream, batch)
            n_said = stream.n_durable
    except StoreError as error:
        failed = error
        expect_no_further(stream)
    return n_said, failed


def expect_no_further(stream: QuiltStream) -> None:
    answer = stream.predict_proba_one(ROWS[0][0])
    with pytest.raises(StoreError, match="stopped learning after an error"):
        stream.learn_one(*ROWS[0])
    with pytest.raises(StoreError, match="open it again"):
        stream.learn_many([ROWS[0][0]], ["yes"])
    assert stream.predict_proba_one(ROWS[0][0]) == answer


def go_on(folder: Path, n_said: int) -> dict[str, Any]:
    """What the stream leaves that is opened after the failure and learns the rest."""
    with hasty(folder) as store:
        assert n_said <= store.n_appended
        begun = bool(store.state)
        stream = QuiltStream.open(store, wait=True) if begun else start(store, **SETTINGS)
        return left(learn(stream, ROWS[stream.n_rows :]))


def fail_at(folder: Path, step: int, code: int) -> StoreError | None:
    disk = SimulatedDisk(SimulatedFiles())
    disk.files.fail_at, disk.files.failure = step, code
    n_said, failed = live(folder / "live", disk)
    disk.files.lay_out(folder / "live", folder / "after")
    disk.close()
    if failed is not None:
        assert "then open it again" in str(failed)
        assert ("free some space" in str(failed)) == (code == errno.ENOSPC)
    assert go_on(folder / "after", n_said) == undisturbed()
    return failed


def count_steps(folder: Path) -> tuple[int, int]:
    """Steps of a life until its first row, and until its end."""
    disk = SimulatedDisk(SimulatedFiles())
    store = DiskStore(folder, disk=disk)
    stream = start(store, **SETTINGS)
    n_before = disk.files.n_steps
    for batch in batches():
        learn_batch(stream, batch)
    disk.close()
    return n_before, disk.files.n_steps


def fail_at_each(folder: Path, every: int) -> None:
    first, last = count_steps(folder / "whole")
    steps = range(first + 1, last + 1, every)
    codes = (errno.EIO, errno.ENOSPC)
    failures = [fail_at(folder / str(n), n, codes[n // every % 2]) for n in steps]
    n_failed = sum(failed is not None for failed in failures)
    assert n_failed > 0.8 * len(steps)  # SQLite puts up with a failed checkpoint of its own
    assert len(steps) > 200 / every


def test_whichever_step_fails_nothing_is_lost_and_nothing_changed(tmp_path: Path) -> None:
    fail_at_each(tmp_path, every=13)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_each_single_step_may_fail(tmp_path: Path) -> None:
    fail_at_each(tmp_path, every=1)


class NoRoom(UnsyncedDisk):
    """A disk on which no file can be made for a while."""

    full = False

    def create(self, path: Path) -> NewFile:
        if self.full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return super().create(path)


def test_closing_after_a_failure_writes_nothing_of_what_was_half_done(tmp_path: Path) -> None:
    disk = NoRoom()
    stream = learn(start(DiskStore(tmp_path, disk=disk), **SETTINGS), ROWS[:20])
    disk.full = True
    with pytest.raises(StoreError, match=r"sealing .*free some space"):
        stream.learn_one(*ROWS[20])
    disk.full = False
    expect_no_further(stream)  # there is room again, but memory is ahead of the store
    stream.close()
    stream.close()
    assert go_on(tmp_path, 21) == undisturbed()


def test_a_model_that_could_not_be_kept_is_told_by_learning_and_by_closing(tmp_path: Path) -> None:
    disk = NoRoom()
    store = DiskStore(tmp_path, disk=disk)
    stream = learn(start(store, detector="never", refresh=None, wait=False), ROWS[:30])
    disk.full = True
    while stream.training:
        time.sleep(0.01)
    answer = stream.predict_proba_one(ROWS[0][0])  # finds the training over
    assert stream.predict_proba_one(ROWS[0][0]) == answer
    assert stream.model is None
    with pytest.raises(StoreError, match="stopped learning"):
        stream.learn_one(*ROWS[30])
    with pytest.raises(StoreError, match="keeping a model failed"):
        stream.close()
    disk.full = False
    with QuiltStream.open(tmp_path, wait=True) as again:
        assert (again.n_rows, again.model) == (30, 1)  # trained anew
