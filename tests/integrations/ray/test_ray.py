"""The executor on Ray keeps the contract, survives what dies, and wants a token."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from driftquilt.errors import DriftquiltError, InputError, MissingExtraError, ServiceError
from driftquilt.integrations.ray.executor import Ray
from driftquilt.quilt.executor import Threads, find_executor
from tests.integrations.ray.processes import MARK
from tests.processes import expect_gone, find_processes, wait_for
from tests.quilt.test_executor import BrokenWorkError, breaks, die, note, repeat

pytestmark = pytest.mark.usefixtures("cluster")


def square(_: None, item: int) -> int:
    return item * item


def add(more: int, value: int) -> int:
    return value + more


def fall_once(folder: Path, item: int) -> Iterator[int]:
    """Die at the first try."""
    mark = folder / str(item)
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    yield item


def lack(_: None, __: int) -> Iterator[int]:
    raise MissingExtraError("x", extra="x")


def count_and_fail(folder: Path, item: int) -> int:
    (folder / uuid4().hex).touch()
    raise BrokenWorkError(f"item {item}")


def test_every_piece_comes_once_with_its_number_and_in_the_order_of_its_work() -> None:
    pieces = list(Ray().run(repeat, 2, iter("abcdefg")))
    assert sorted(pieces) == [(n, letter) for n, letter in enumerate("abcdefg") for _ in range(2)]


def test_what_is_kept_answers_in_the_order_of_items() -> None:
    kept = Ray().place(square, None, range(9))
    assert kept.map(add, 100) == [100 + n * n for n in range(9)]
    assert kept.map(add, 0) == [n * n for n in range(9)]


def test_an_exception_comes_out_as_it_is() -> None:
    with pytest.raises(BrokenWorkError, match="item 1") as caught:
        list(Ray().run(breaks, None, range(4)))
    assert type(caught.value) is BrokenWorkError


def test_a_value_that_cannot_be_made_says_why_when_it_is_asked_and_is_not_tried_twice(
    tmp_path: Path,
) -> None:
    kept = Ray().place(count_and_fail, tmp_path, [7])
    with pytest.raises(BrokenWorkError, match="item 7"):
        kept.map(add, 1)
    assert len(list(tmp_path.iterdir())) == 1


def test_few_works_are_begun_ahead_and_none_when_no_more_is_asked_for(tmp_path: Path) -> None:
    pieces = Ray().run(note, tmp_path, range(100))
    next(pieces)
    del pieces
    time.sleep(0.5)
    assert len(list(tmp_path.iterdir())) <= 2 * Ray().n_workers


def test_a_work_whose_worker_dies_is_done_again(tmp_path: Path) -> None:
    assert sorted(Ray().run(fall_once, tmp_path, range(3))) == [(0, 0), (1, 1), (2, 2)]


def test_a_work_that_always_kills_its_worker_is_an_error() -> None:
    with pytest.raises(DriftquiltError, match="gave up on a task") as caught:
        list(Ray().run(die, None, [1]))
    assert len(str(caught.value).splitlines()) == 1


class OfAnotherVersion:
    """What a worker cannot make anything of."""

    def __reduce__(self) -> tuple[object, ...]:
        return getattr, (os, "not_there")


def test_what_a_worker_cannot_read_is_told_in_a_line() -> None:
    for begin in (
        lambda: list(Ray().run(repeat, OfAnotherVersion(), "a")),  # type: ignore[arg-type]
        lambda: Ray().place(square, OfAnotherVersion(), [1]).map(add, 1),  # type: ignore[arg-type]
    ):
        with pytest.raises(DriftquiltError, match=r"not_there.*the versions of drift") as caught:
            begin()
        assert len(str(caught.value).splitlines()) == 1


def test_another_address_than_the_one_that_was_joined_is_refused(cluster: str) -> None:
    assert Ray(cluster).n_workers == 2
    with pytest.raises(InputError, match="has joined the Ray cluster at"):
        _ = Ray("ray.example:1").n_workers


def test_an_error_of_ours_travels_as_it_is() -> None:
    with pytest.raises(MissingExtraError, match=r"driftquilt\[x\]"):
        list(Ray().run(lack, None, [1]))
    error = ServiceError("no", status=404, kind="not-found", request_id="7")
    again = pickle.loads(pickle.dumps(error))  # noqa: S301  # our own bytes
    assert (str(again), again.status) == (str(error), 404)


def test_what_cannot_travel_is_told() -> None:
    with pytest.raises(InputError, match="cannot be sent to other processes"):
        list(Ray().run(repeat, threading.Lock(), "a"))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="cannot be sent to other processes"):
        Ray().place(square, None, [threading.Lock()])  # type: ignore[arg-type]


def test_auto_is_ray_only_for_what_is_worth_it() -> None:
    assert find_executor("ray", 2) == Ray()
    assert find_executor("auto", 2, effort=1e12) == Ray()
    assert find_executor("auto", 2, effort=1e4) == Threads(2)


def test_auto_is_local_where_no_cluster_is_at_hand() -> None:
    code = "from driftquilt.quilt.executor import find_executor; print(find_executor('auto', 3))"
    assert run(code, RAY_ADDRESS=None).stdout == "Threads(n_workers=3)\n"


# Security


def run(code: str, **environment: str | None) -> subprocess.CompletedProcess[str]:
    """Python code in a process of its own."""
    env = {**os.environ, **environment}
    return subprocess.run(
        [sys.executable, "-c", code],
        env={name: value for name, value in env.items() if value is not None},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


ASK = "from driftquilt.integrations.ray.executor import Ray; print(Ray().n_workers)"


def test_a_process_that_wants_no_token_is_refused() -> None:
    answer = run(ASK, RAY_AUTH_MODE="disabled")
    assert "InputError: this Ray cluster has no token authentication" in answer.stderr
    assert "RAY_AUTH_MODE=token" in answer.stderr


def test_a_cluster_without_tokens_is_refused_though_ray_itself_would_join_it() -> None:
    code = f"""
import os, ray
ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False)
os.environ["RAY_AUTH_MODE"] = "token"
try:
    {ASK}
finally:
    print("still there" if ray.is_initialized() else "gone")
"""
    answer = run(code, RAY_AUTH_MODE="disabled")
    assert "InputError: this Ray cluster has no token authentication" in answer.stderr
    assert "some of its nodes, or all, were started without it" in answer.stderr
    assert "still there" in answer.stdout


def test_the_token_is_needed_and_the_right_one_will_do(cluster: str) -> None:
    assert run(ASK, RAY_ADDRESS=cluster).stdout == "2\n"
    answer = run(
        ASK, RAY_ADDRESS=cluster, RAY_AUTH_TOKEN=uuid4().hex, RAY_NUM_REDIS_GET_RETRIES="2"
    )
    assert "DriftquiltError: Ray at " in answer.stderr
    assert "has the token of that cluster" in answer.stderr


@pytest.mark.parametrize("address", ["127.0.0.1:9", "ray://127.0.0.1:9"])
def test_an_address_where_nobody_listens_is_told_at_once(address: str) -> None:
    answer = run(ASK, RAY_ADDRESS=address)  # Ray alone takes longer than it is given here
    assert f"DriftquiltError: Ray at {address} cannot be reached" in answer.stderr
    assert "refused" in answer.stderr


def test_a_cluster_started_here_has_a_token_and_sends_no_statistics(tmp_path: Path) -> None:
    code = f"""
{ASK}
import ray
from ray._private.authentication.authentication_utils import is_token_auth_enabled
from ray._common.usage import usage_lib
print(is_token_auth_enabled(), usage_lib.usage_stats_enabled())
"""
    answer = run(
        code,
        RAY_AUTH_MODE=None,
        RAY_AUTH_TOKEN=None,
        RAY_USAGE_STATS_ENABLED=None,
        HOME=str(tmp_path),
    )
    assert answer.stdout.splitlines()[1:] == ["True False"], answer.stderr
    assert not (tmp_path / ".ray" / "auth_token").exists()  # other clusters would have it


# The driver's death


def test_a_driver_that_is_killed_leaves_nothing_running(tmp_path: Path) -> None:
    mark, started = uuid4().hex, tmp_path / "started"
    code = f"""
import pathlib, time
from driftquilt.integrations.ray.executor import Ray
def work(_, item):
    pathlib.Path({str(started)!r}).touch()
    time.sleep(600)
    yield item
list(Ray().run(work, None, range(4)))
"""
    driver = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, MARK: mark})
    wait_for(started.exists, what="the start of a task")
    assert len(find_processes(mark)) > 3
    driver.kill()
    driver.wait()
    for name in ("ray::_run_task", "raylet/raylet", "gcs_server"):  # agents take a minute to notice
        expect_gone(mark, name)
