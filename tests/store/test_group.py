"""Commits in groups: what waits, for how long, and what happens when such a commit fails."""

from __future__ import annotations

import math
import shutil
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from driftquilt.errors import InputError, StoreError
from driftquilt.store.disk import DiskStore
from tests.crash.disk import SimulatedDisk, SimulatedFiles
from tests.crash.numbered import rows
from tests.processes import wait_for


def batch(n_rows: int = 1) -> pa.RecordBatch:
    return pa.record_batch({"x": list(range(n_rows))})


def found_by_another(path: Path, aside: Path) -> int:
    """Rows that a process would find if this one died now."""
    shutil.copytree(path, aside)
    with DiskStore(aside) as store:
        return store.n_appended


def test_by_default_every_append_is_durable_when_it_returns(tmp_path: Path) -> None:
    with DiskStore(tmp_path / "store") as store:
        for n in (1, 2, 3):
            assert store.append(batch()) == store.n_durable == n
            assert found_by_another(tmp_path / "store", tmp_path / str(n)) == n


def test_rows_wait_until_there_are_enough(tmp_path: Path) -> None:
    with DiskStore(tmp_path / "store", commit_rows=10, commit_delay=math.inf) as store:
        assert store.append(batch(9), {"position": 9}) == 9
        assert store.n_durable == 0
        assert store.state == {"position": 9}
        assert found_by_another(tmp_path / "store", tmp_path / "before") == 0
        assert store.append(batch(1)) == store.n_durable == 10
        assert found_by_another(tmp_path / "store", tmp_path / "after") == 10


def test_rows_wait_no_longer_than_they_may(tmp_path: Path) -> None:
    with DiskStore(tmp_path / "store", commit_rows=1000, commit_delay=0.01) as store:
        for n in (1, 2):
            store.append(batch())
            wait_for(lambda n=n: store.n_durable == n)  # type: ignore[misc]


@pytest.mark.parametrize(
    "write",
    [
        lambda store: store.flush(),
        lambda store: store.seal(),
        lambda store: store.put_model(b"", {}),
        lambda store: store.write_state({"a": 1}),
        lambda store: store.drop(1),
        lambda store: store.open_rows(),
        lambda store: store.close(),
    ],
)
def test_whatever_is_written_next_takes_what_waits_along(
    tmp_path: Path, write: Callable[[DiskStore], object]
) -> None:
    with DiskStore(tmp_path / "store", commit_rows=1000, commit_delay=math.inf) as store:
        store.append(batch())
        store.seal()
        store.append(batch(2), {"position": 3})
        assert store.n_durable == 1
        write(store)
        assert store.n_durable == 3
    with DiskStore(tmp_path / "store") as store:
        assert store.state["position"] == store.n_appended == 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"commit_rows": 0}, "commit_rows is 0; it takes an int of at least 1"),
        ({"commit_rows": 2.5, "commit_delay": 1}, "commit_rows is 2.5"),
        ({"commit_rows": True}, "commit_rows is True"),
        ({"commit_delay": -1}, "commit_delay is -1; it takes seconds, at least 0"),
        ({"commit_delay": math.nan}, "commit_delay is nan"),
        ({"commit_rows": 5}, "rows would wait and nothing says how long; give commit_delay"),
    ],
)
def test_a_pace_that_makes_no_sense_is_refused(
    tmp_path: Path, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        DiskStore(tmp_path / "store", **settings)
    assert not (tmp_path / "store").exists()


def failing(folder: Path, delay: float) -> tuple[DiskStore, SimulatedFiles]:
    """A store whose next commit will fail, with two rows safe and three waiting."""
    files = SimulatedFiles()
    store = DiskStore(folder, commit_rows=100, commit_delay=delay, disk=SimulatedDisk(files))
    store.append(rows(0, 2))
    store.flush()
    files.fail_at = files.n_steps + 1
    store.append(rows(2, 3))
    return store, files


def test_a_commit_that_fails_behind_the_scenes_is_raised_by_the_next_call(tmp_path: Path) -> None:
    store, files = failing(tmp_path / "live", delay=0.01)
    assert files.fail_at is not None
    wait_for(lambda: files.n_steps >= (files.fail_at or 0))
    for _ in range(2):
        with pytest.raises(StoreError, match=r"failed commit.* 2 rows"):
            store.append(rows(5, 1))
    assert store.n_durable == 2
    store.close()


def test_closing_raises_a_failure_that_nobody_was_told_of(tmp_path: Path) -> None:
    store, files = failing(tmp_path / "live", delay=0.01)
    wait_for(lambda: files.n_steps >= (files.fail_at or 0))
    with pytest.raises(StoreError, match="after a failed commit"):
        store.close()
    store.close()
    again, _ = failing(tmp_path / "again", delay=math.inf)
    with pytest.raises(StoreError, match="commit failed"):
        again.close()
    DiskStore(tmp_path / "other").close()


def test_what_an_interrupt_left_half_taken_is_not_committed_later(tmp_path: Path) -> None:
    class Interrupted(list[Any]):
        def __iadd__(self, _: object) -> Any:  # type: ignore[misc]
            raise KeyboardInterrupt

    store = DiskStore(tmp_path / "store", commit_rows=100, commit_delay=0.2)
    store.append(batch(2))
    group = store._journal._group
    group.layouts = Interrupted(group.layouts)  # Ctrl-C before the new columns are noted
    with pytest.raises(KeyboardInterrupt):
        store.append(pa.record_batch({"word": ["new"]}))
    with pytest.raises(StoreError, match="KeyboardInterrupt"):
        store.flush()
    time.sleep(0.5)
    store.close()
    with DiskStore(tmp_path / "store") as again:
        assert again.n_appended == again.open_rows().num_rows


def test_threads_that_append_while_the_timer_commits_lose_nothing(tmp_path: Path) -> None:
    def work(thread: int) -> None:
        for k in range(200):
            store.append(pa.record_batch({"id": [1000 * thread + k]}), {f"{thread}": k})

    with DiskStore(tmp_path / "store", commit_rows=40, commit_delay=0.002) as store:
        threads = [threading.Thread(target=work, args=[n]) for n in range(4)]
        for thread in threads:
            thread.start()
        while any(thread.is_alive() for thread in threads):
            assert store.n_durable <= store.n_appended
            time.sleep(0.001)
        wait_for(lambda: store.n_durable == 800)
    with DiskStore(tmp_path / "store") as store:
        ids = store.open_rows()["id"].to_pylist()
        assert sorted(ids) == [1000 * n + k for n in range(4) for k in range(200)]
        assert store.state == {str(n): 199 for n in range(4)}


def test_a_call_that_was_interrupted_leaves_a_store_to_be_opened_again(tmp_path: Path) -> None:
    class Interrupted(SimulatedDisk):
        def rename(self, old: Path, new: Path) -> None:
            raise KeyboardInterrupt(f"while {old} became {new}")

    store = DiskStore(tmp_path / "store", disk=Interrupted(SimulatedFiles()))
    store.append(rows(0, 2))
    with pytest.raises(KeyboardInterrupt):
        store.seal()
    with pytest.raises(StoreError, match="open it again"):
        store.append(rows(2, 1))
    store.close()
