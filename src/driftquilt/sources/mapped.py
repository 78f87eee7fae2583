"""A file mapped into memory, of which only a bounded part stays resident.

Pages of a mapping count as the process's memory once they are touched, so a pass over a large
file would seem to take as much memory as the file is long. `bounded` looks at the process from
time to time and gives the pages back when they are many; one that is touched again comes from
the system's cache or the disk. The bound is a soft one: on a crowded machine a pass may be ahead
of the looks by some hundred megabytes. Where the system does not tell (only Linux does), nothing
is given back, and the system itself takes pages when memory is short.

The file must not change while it is mapped.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

__all__ = ["RESIDENT_MAX", "Mapping", "bounded"]

RESIDENT_MAX = 128 << 20  # bytes of pages before they are given back
_EVERY = 0.01  # seconds between two looks; a core touches some 100 MB in that time
_STATM = Path("/proc/self/statm")


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
        self._map.madvise(mmap.MADV_DONTNEED)


@contextlib.contextmanager
def bounded(mappings: Sequence[Mapping]) -> Iterator[None]:
    """While inside, hold the resident part of the mappings to about `RESIDENT_MAX`."""
    if sum(mapping.buffer.size for mapping in mappings) <= RESIDENT_MAX or not _STATM.exists():
        yield
        return
    done = threading.Event()
    thread = threading.Thread(target=_watch, args=(mappings, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _watch(mappings: Sequence[Mapping], done: threading.Event) -> None:
    floor = _resident()  # the program itself is mapped too
    while not done.wait(_EVERY):
        if _resident() <= floor + RESIDENT_MAX:
            continue
        for mapping in mappings:
            mapping.give_back()
        floor = _resident()


def _resident() -> int:
    """Bytes of mapped files that are in memory."""
    return int(_STATM.read_text().split()[2]) * os.sysconf("SC_PAGE_SIZE")
