"""How the numeric work is spread over cores.

The products in one training are so small that a second BLAS thread costs more than it
brings, and its rounding would depend on the machine's load. `one_blas_thread` keeps them on
one core; `side_by_side` gives the other cores trainings of their own, on threads, because the
kernels release the GIL.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache
from typing import TypeVar

from threadpoolctl import ThreadpoolController

__all__ = ["one_blas_thread", "side_by_side"]

T = TypeVar("T")


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Inside the block, BLAS runs on the calling thread alone."""
    with _libraries(len(sys.modules)).limit(limits=1, user_api="blas"):
        yield


@lru_cache(maxsize=1)
def _libraries(n_modules: int) -> ThreadpoolController:  # noqa: ARG001 - an import may bring one
    # Looking for them takes milliseconds, longer than many a prediction.
    return ThreadpoolController()


def side_by_side(works: Sequence[Iterable[T]], n_threads: int) -> Iterator[tuple[int, T]]:
    """Everything that each work yields, with the work's number, in the order of works."""
    if min(n_threads, len(works)) <= 1:
        for number, work in enumerate(works):
            yield from ((number, item) for item in work)
        return
    with ThreadPoolExecutor(min(n_threads, len(works))) as pool:
        done: Iterator[list[T]] = pool.map(list, works)
        for number, items in enumerate(done):
            yield from ((number, item) for item in items)
