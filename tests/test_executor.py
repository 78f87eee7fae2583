"""Works side by side give what they give one after the other, and leave nothing running."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info

from driftquilt.executor import one_blas_thread, side_by_side

THREADS = [1, 2, 5]


class BrokenWorkError(Exception):
    """What a work raises here."""


def breaks(error: BaseException) -> Iterator[int]:
    yield from ()
    raise error


@settings(max_examples=30)
@given(st.lists(st.lists(st.integers(), max_size=4), max_size=6), st.sampled_from(THREADS))
def test_items_come_in_the_order_of_works_whatever_the_threads(
    works: list[list[int]], n_threads: int
) -> None:
    items = list(side_by_side([iter(work) for work in works], n_threads))
    assert items == [(number, item) for number, work in enumerate(works) for item in work]


def test_a_late_first_work_still_comes_first() -> None:
    second_is_done = threading.Event()

    def first() -> Iterator[str]:
        assert second_is_done.wait(timeout=60)
        yield "first"

    def second() -> Iterator[str]:
        yield "second"
        second_is_done.set()

    assert list(side_by_side([first(), second()], 2)) == [(0, "first"), (1, "second")]


def test_works_run_at_the_same_time() -> None:
    everyone = threading.Barrier(3, timeout=60)  # passed by all three or by none

    def work() -> Iterator[int]:
        everyone.wait()
        yield threading.get_ident()

    idents = {ident for _, ident in side_by_side([work() for _ in range(3)], 3)}
    assert len(idents) == 3
    assert threading.get_ident() not in idents


@pytest.mark.parametrize(("n_works", "n_threads"), [(3, 1), (1, 4)])
def test_one_thread_or_one_work_stays_on_the_calling_thread_and_waits_to_be_asked(
    n_works: int, n_threads: int
) -> None:
    begun: list[int] = []

    def work() -> Iterator[int]:
        begun.append(threading.get_ident())
        yield 0

    items = side_by_side([work() for _ in range(n_works)], n_threads)
    next(items)
    assert len(begun) == 1
    list(items)
    assert begun == [threading.get_ident()] * n_works


@pytest.mark.parametrize("n_threads", THREADS)
@pytest.mark.parametrize("error", [BrokenWorkError("fold 1"), KeyboardInterrupt()])
def test_an_exception_comes_out_as_it_is_after_the_works_before_it(
    n_threads: int, error: BaseException
) -> None:
    before, came = threading.active_count(), list[tuple[int, int]]()
    works = [iter([7, 8]), breaks(error), iter([9])]
    with pytest.raises(type(error)) as caught:
        came.extend(side_by_side(works, n_threads))
    assert caught.value is error
    assert came == [(0, 7), (0, 8)]
    assert threading.active_count() == before


@pytest.mark.parametrize("n_threads", THREADS)
def test_nothing_runs_on_when_no_more_is_asked_for(n_threads: int) -> None:
    before = threading.active_count()
    items = side_by_side([iter(range(3)) for _ in range(4)], n_threads)
    assert next(items) == (0, 0)
    del items
    assert threading.active_count() == before


def test_blas_has_one_thread_inside_the_block_and_as_many_as_before_after_it() -> None:
    def n_threads() -> list[int]:
        return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

    before = n_threads()
    with one_blas_thread():
        assert n_threads() == [1] * len(before)
    assert n_threads() == before
