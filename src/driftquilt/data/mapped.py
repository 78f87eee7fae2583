"""A file mapped into memory; `resident` tells how little of it stays there.

The file must not change while it is mapped.
"""

from __future__ import annotations

import contextlib
import mmap
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

from driftquilt.data.mapped_memory import MOST, held_down

__all__ = ["Mapping", "bounded"]


class Mapping:
    """All bytes of a file as an Arrow buffer; the file may be closed meanwhile."""

    def __init__(self, file: Any) -> None:
        self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.buffer = pa.py_buffer(self._map)

    def holds(self, batch: Any) -> bool:
        """Whether the values of a record batch lie in here, and not in memory of their own."""
        buffers = [part for column in batch.columns for part in column.buffers()]
        start, end = self.buffer.address, self.buffer.address + self.buffer.size
        return all(
            start <= part.address < end for part in buffers if part is not None and part.size
        )

    def give_back(self) -> None:
        """Make all pages non-resident; their contents stay."""
        if hasattr(mmap, "MADV_DONTNEED"):  # which Windows lacks
            self._map.madvise(mmap.MADV_DONTNEED)


@contextlib.contextmanager
def bounded(mappings: Sequence[Mapping]) -> Iterator[None]:
    """While inside, hold the resident part of the mappings down."""
    if sum(mapping.buffer.size for mapping in mappings) <= MOST:
        yield
        return
    with contextlib.ExitStack() as stack:
        for mapping in mappings:
            stack.enter_context(held_down(mapping.give_back))
        yield
