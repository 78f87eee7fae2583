"""How the numeric work is spread over cores.

The products in one training are so small that a second BLAS thread costs more than it
brings, and its rounding would depend on the machine's load. `one_blas_thread` keeps them on
one core.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits

__all__ = ["one_blas_thread"]


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Inside the block, BLAS runs on the calling thread alone."""
    with threadpool_limits(limits=1, user_api="blas"):
        yield
