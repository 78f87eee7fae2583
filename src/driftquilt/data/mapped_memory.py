"""Files mapped into memory, of which a bounded part stays there.

Pages of a mapping count as the process's memory once they are read, so a pass over a large file
would seem to take as much memory as the file is long. Whoever reads rows of a table that may be
mapped calls `note_read` with the number of bytes. Whenever `LIMIT` bytes were read, the pages of
all mapped files are released; a page that is read again comes from the system's cache or the disk.

A file must not change while it is mapped.

>>> import tempfile
>>> with tempfile.TemporaryFile() as file:
...     _ = file.write(b"rows")
...     file.flush()
...     mapped = MappedFile(file)
>>> with limit_memory([mapped]):
...     note_read(len(mapped.buffer))
"""

from __future__ import annotations

import contextlib
import mmap
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

__all__ = ["LIMIT", "MappedFile", "limit_memory", "note_read"]

LIMIT = 128 << 20  # bytes
_BYTES_AROUND_ROW = 2 * 65_536  # of text: the pages of its offset and of its characters

_lock = threading.Lock()
_limited: list[MappedFile] = []
_n_read = 0


class MappedFile:
    """All bytes of a file as an Arrow buffer; the file may be closed meanwhile."""

    def __init__(self, file: Any) -> None:
        self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.buffer = pa.py_buffer(self._map)

    def holds(self, batch: Any) -> bool:
        """Return whether the values of a record batch are in here, not in memory of their own."""
        buffers = [part for column in batch.columns for part in column.buffers()]
        start, end = self.buffer.address, self.buffer.address + self.buffer.size
        return all(
            start <= part.address < end for part in buffers if part is not None and part.size
        )

    def release_pages(self) -> None:
        """Make all pages non-resident; their contents stay."""
        if hasattr(mmap, "MADV_DONTNEED"):  # which Windows lacks
            self._map.madvise(mmap.MADV_DONTNEED)


@contextlib.contextmanager
def limit_memory(files: Sequence[MappedFile]) -> Iterator[None]:
    """Bound the resident part of the files inside the block."""
    if sum(file.buffer.size for file in files) <= LIMIT:
        yield
        return
    _limited.extend(files)
    try:
        yield
    finally:
        for file in files:
            _limited.remove(file)


def note_read(n_bytes: int, n_rows: int | None = None) -> None:
    """Count bytes that were read, or `n_rows` scattered rows among them; release pages in time."""
    global _n_read  # noqa: PLW0603  # the memory of the process is counted
    if not _limited:
        return
    with _lock:
        _n_read += n_bytes if n_rows is None else min(n_bytes, n_rows * _BYTES_AROUND_ROW)
        if _n_read >= LIMIT:
            _n_read = 0
            for file in _limited:
                file.release_pages()
