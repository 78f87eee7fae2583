"""Rows that wait in files of an earlier version move into the store, and keep their ids."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from driftquilt.server.bodies import IdLabels
from driftquilt.server.registry import StreamRegistry
from driftquilt.server.settings import load_settings
from driftquilt.server.waiting_files import move_waiting_files
from driftquilt.store import DiskStore, PendingRows
from driftquilt.stream import QuiltStream

ASSETS = Path(__file__).parent / "assets"
IDS = [f"1972b5cee00-{place}" for place in range(4)]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A stream of the service, its second row with its label, and a feed's row that waits."""
    shutil.copytree(ASSETS / "v1", tmp_path / "orders")
    return tmp_path / "orders"


def test_rows_of_files_wait_in_the_store(folder: Path) -> None:
    with DiskStore(folder / "store") as store:
        assert move_waiting_files(folder / "waiting", store) == 4
        assert not (folder / "waiting").exists()
        pending = PendingRows(store, max_rows=100, born=0)
        places = [pending.find(row_id) for row_id in IDS]
        assert places[1] == "labelled"
        assert pending.n_rows == 3
        (first, last) = (
            pending.read(place) for place in (places[0], places[3]) if isinstance(place, int)
        )
        assert first is not None
        assert last is not None
        assert (first.n_rows, first.kind) == (3, "application/json")
        assert last.content == b'{"rows":[{"a":0.7,"b":0.8}]}'


def test_a_crash_before_the_files_are_gone_does_not_bring_rows_back(folder: Path) -> None:
    with DiskStore(folder / "store") as store:
        shutil.copytree(folder / "waiting", folder / "copy")
        move_waiting_files(folder / "waiting", store)
        (folder / "copy").rename(folder / "waiting")
        pending = PendingRows(store, max_rows=100, born=0)
        number = pending.find(IDS[3])
        assert isinstance(number, int)
        request = pending.read(number)
        assert request is not None
        store.write_state({}, pending.label(number, request))
        assert move_waiting_files(folder / "waiting", store) == 0
        assert store.read_pending(number) is None


def test_rows_of_a_feed_wait_in_the_store(folder: Path) -> None:
    for _ in range(2):
        with QuiltStream.open(folder / "store") as stream:
            assert (stream.n_rows, stream.n_waiting) == (22, 1)
    with QuiltStream.open(folder / "store") as stream:
        stream.learn_one(y="yes", key="feed 2")
        assert stream.n_rows == 23
        assert not any(
            key.startswith("waiting.") and value for key, value in stream.store.state.items()
        )


@pytest.mark.anyio
async def test_a_service_takes_labels_of_rows_that_waited_in_files(folder: Path) -> None:
    streams = folder.parent / "state" / "streams"
    streams.mkdir(parents=True)
    folder.rename(streams / "orders")
    registry = StreamRegistry(load_settings(store=folder.parent / "state"))
    registry.open(asyncio.get_running_loop())
    try:
        worker = registry["orders"]
        labels = IdLabels([(row_id, "yes") for row_id in IDS])
        answer, _ = await worker.learn(labels, None, "")
        assert (answer.learned, answer.repeated, answer.refused) == (3, 1, [])
    finally:
        await registry.close()
