"""Works side by side give what they give one after the other, and leave nothing running."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from driftquilt.errors import DriftquiltError, InputError
from driftquilt.quilt.executor import Executor, Processes, Threads, find_executor, one_blas_thread

THREADS = [1, 2, 5]
EXECUTORS: list[Executor] = [Threads(1), Threads(3), Processes(2)]


class BrokenWorkError(Exception):
    """What a work raises here."""


def repeat(times: int, letter: str) -> Iterator[str]:
    yield from letter * times


def breaks(_: None, item: int) -> Iterator[int]:
    if item == 1:
        raise BrokenWorkError("item 1")
    yield item


def die(_: None, item: int) -> Iterator[int]:
    yield os._exit(item)


def note(folder: Path, item: int) -> Iterator[int]:
    (folder / str(item)).touch()
    yield item


@pytest.mark.parametrize("executor", EXECUTORS, ids=repr)
def test_every_piece_comes_once_with_its_number_and_in_the_order_of_its_work(
    executor: Executor,
) -> None:
    pieces = list(executor.run(repeat, 2, iter("abcdefg")))
    assert sorted(pieces) == [(n, letter) for n, letter in enumerate("abcdefg") for _ in range(2)]


@settings(max_examples=30)
@given(st.lists(st.lists(st.integers(), max_size=4), max_size=6), st.sampled_from(THREADS))
def test_on_threads_too(works: list[list[int]], n_threads: int) -> None:
    pieces = list(Threads(n_threads).run(lambda _, work: iter(work), None, works))
    for number, work in enumerate(works):
        assert [piece for of, piece in pieces if of == number] == work
    assert len(pieces) == sum(map(len, works))


def test_what_is_finished_first_comes_first() -> None:
    second_came = threading.Event()

    def work(_: None, name: str) -> Iterator[str]:
        assert name == "second" or second_came.wait(timeout=60)
        yield name

    pieces = Threads(2).run(work, None, ["first", "second"])
    assert next(pieces) == (1, "second")
    second_came.set()
    assert next(pieces) == (0, "first")


def test_works_run_at_the_same_time() -> None:
    everyone = threading.Barrier(3, timeout=60)  # passed by all three or by none

    def work(_: None, __: int) -> Iterator[int]:
        everyone.wait()
        yield threading.get_ident()

    idents = {ident for _, ident in Threads(3).run(work, None, range(3))}
    assert len(idents) == 3
    assert threading.get_ident() not in idents


@pytest.mark.parametrize(("n_works", "n_threads"), [(3, 1), (1, 4)])
def test_one_thread_or_one_work_stays_on_the_calling_thread_and_waits_to_be_asked(
    n_works: int, n_threads: int
) -> None:
    begun: list[int] = []

    def work(_: None, __: int) -> Iterator[int]:
        begun.append(threading.get_ident())
        yield 0

    pieces = Threads(n_threads).run(work, None, range(n_works))
    next(pieces)
    assert len(begun) == 1
    list(pieces)
    assert begun == [threading.get_ident()] * n_works


@pytest.mark.parametrize("executor", EXECUTORS, ids=repr)
def test_an_exception_comes_out_as_it_is(executor: Executor) -> None:
    before = threading.active_count()
    with pytest.raises(BrokenWorkError, match="item 1"):
        list(executor.run(breaks, None, range(4)))
    assert threading.active_count() == before


@pytest.mark.parametrize("n_threads", THREADS)
def test_nothing_is_begun_after_an_exception(n_threads: int) -> None:
    begun: list[int] = []

    def work(_: None, item: int) -> Iterator[int]:
        begun.append(item)
        return breaks(None, item)

    with pytest.raises(BrokenWorkError):
        list(Threads(n_threads).run(work, None, range(100)))
    assert len(begun) <= 2 + 2 * n_threads


@pytest.mark.parametrize("executor", [Threads(2), Processes(2)], ids=repr)
def test_few_works_are_begun_ahead_and_none_when_no_more_is_asked_for(
    executor: Executor, tmp_path: Path
) -> None:
    before = threading.active_count()
    pieces = executor.run(note, tmp_path, range(100))
    next(pieces)
    del pieces
    assert threading.active_count() == before
    assert len(list(tmp_path.iterdir())) <= 2 * executor.n_workers


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="chooses the thread that hears")
def test_ctrl_c_that_another_thread_hears_does_not_wait_for_works() -> None:
    begun, stop, stopped = threading.Event(), threading.Event(), list[bool]()

    def work(_: None, __: int) -> Iterator[int]:
        begun.set()
        stopped.append(stop.wait(timeout=60))
        yield 0

    def hear() -> None:
        begun.wait(timeout=60)
        time.sleep(0.2)  # the caller waits for results by now
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    def end(*_: object) -> None:
        stop.set()
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, end)
    hearing = threading.Thread(target=hear)
    try:
        hearing.start()
        with pytest.raises(KeyboardInterrupt):
            list(Threads(2).run(work, None, range(2)))
    finally:
        signal.signal(signal.SIGINT, before)
        hearing.join()
    assert stopped == [True, True]


def test_a_process_that_dies_is_told() -> None:
    with pytest.raises(DriftquiltError, match="a worker process died"):
        list(Processes(2).run(die, None, range(2)))


@pytest.mark.parametrize(
    ("work", "shared"), [(lambda _, item: [item], None), (repeat, threading.Lock())], ids=["a", "b"]
)
def test_what_cannot_travel_is_told(work: Callable[[Any, Any], Any], shared: Any) -> None:
    with pytest.raises(InputError, match="cannot be sent to other processes"):
        list(Processes(2).run(work, shared, range(2)))


def test_engines_have_names() -> None:
    assert find_executor("local", 3) == Threads(3)
    assert find_executor("processes", 3) == Processes(3)
    assert find_executor(EXECUTORS[1], 9) is EXECUTORS[1]


def n_blas_threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_blas_has_one_thread_inside_a_block_and_as_many_as_before_after_it() -> None:
    with threadpool_limits(2, user_api="blas"):
        with one_blas_thread():
            assert n_blas_threads() == {1}
        assert n_blas_threads() == {2}


def test_blocks_of_one_thread_may_overlap() -> None:
    with threadpool_limits(2, user_api="blas"):
        first, second = one_blas_thread(), one_blas_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert n_blas_threads() == {1}
        second.__exit__(None, None, None)
        assert n_blas_threads() == {2}
