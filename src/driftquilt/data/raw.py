r"""The bytes of one input: a file, or what came through a pipe, unpacked if they are gzipped.

A `Source` can be read from the start as often as needed, and knows how far reading has come.
Readings of one source do not disturb each other, even if a library still reads ahead on a thread
of its own for one that has ended. A pipe is first copied to a temporary file without a name: the
system takes that back with the last handle on it, so that nothing is left behind, however the
process ends.

>>> source = spool("standard input", io.BytesIO(gzip.compress(b"a,b\n1,2\n")))
>>> source.packed, source.head()
(True, b'a,b\n1,2\n')
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import os
import shutil
import tempfile
import threading
import weakref
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import pyarrow as pa

from driftquilt.data.recoded import Recoded
from driftquilt.errors import InputError

__all__ = ["BLOCK", "Source", "check_room", "one_line", "open_file", "reading", "spool", "storing"]

BLOCK = 8 << 20  # bytes read at a time
_GZIP = b"\x1f\x8b"


@dataclass(eq=False)
class Source:
    """An input that `opener` opens anew; `name` is for messages, `done` counts bytes of `size`.

    `encoding` is that of its text, where it is text.
    """

    name: str
    opener: Callable[[], IO[bytes]]
    size: int
    encoding: str = field(default="utf-8", init=False)
    done: int = field(default=0, init=False)
    packed: bool = field(init=False)
    lock: threading.RLock = field(default_factory=threading.RLock, init=False, repr=False)

    def __post_init__(self) -> None:
        with self.raw() as file:
            self.packed = file.read(len(_GZIP)) == _GZIP

    @contextlib.contextmanager
    def raw(self) -> Iterator[io.BufferedIOBase]:
        """The bytes as they lie, seekable."""
        self.done = 0
        with reading(self.name), _Counted(self.opener(), self) as file:
            yield file

    @contextlib.contextmanager
    def unpacked(self) -> Iterator[io.BufferedIOBase]:
        """The bytes that are meant, from the first on."""
        with self.raw() as file:
            if not self.packed:
                yield file
                return
            with gzip.GzipFile(fileobj=file) as unpacked:
                yield unpacked

    @contextlib.contextmanager
    def text(self) -> Iterator[io.BufferedIOBase]:
        """The bytes that are meant, as UTF-8 if their encoding is another."""
        with self.unpacked() as file:
            plain = self.encoding == "utf-8"
            yield file if plain else Recoded(file, self.encoding, self.name)

    def head(self, n_bytes: int = 1 << 20) -> bytes:
        """The first bytes, or all if there are fewer."""
        with self.unpacked() as file:
            return _first(file, n_bytes)

    def text_head(self, n_bytes: int = 1 << 20) -> bytes:
        """The first bytes of `text`."""
        with self.text() as file:
            return _first(file, n_bytes)


class _Counted(io.BufferedIOBase):
    """Reads at a position of its own, and tells the source how many bytes went by.

    Handles of a copied pipe share one position in the system, and a number of a closed file is
    soon that of another; so the lock is held from looking where to read until it is read.
    """

    def __init__(self, file: IO[bytes], source: Source) -> None:
        self._file = file
        self._source = source
        self._at = 0

    def read(self, size: int | None = -1, /) -> bytes:
        with self._source.lock:
            self._file.seek(self._at)
            data = self._file.read(-1 if size is None else size)
            self._at += len(data)
            self._source.done = min(self._source.done + len(data), self._source.size)
        return data

    def read1(self, size: int = -1, /) -> bytes:
        return self.read(size)

    def seek(self, offset: int, whence: int = 0, /) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._source.size}[whence]
        self._at = start + offset
        return self._at

    def tell(self) -> int:
        return self._at

    def fileno(self) -> int:
        return self._file.fileno()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        with self._source.lock:
            self._file.close()
        super().close()


def _first(file: io.BufferedIOBase, n_bytes: int) -> bytes:
    parts = bytearray()
    while len(parts) < n_bytes and (part := file.read(n_bytes - len(parts))):
        parts += part
    return bytes(parts)


def open_file(path: Path) -> Source:
    """A file as a source; a named pipe, which can be read only once, is copied first."""
    with reading(str(path)):
        if not path.is_file():
            with path.open("rb") as file:
                return spool(str(path), file)
        return Source(str(path), lambda: path.open("rb", buffering=0), path.stat().st_size)


def spool(
    name: str,
    stream: IO[bytes] | io.BufferedIOBase,
    watch: Callable[[int, int], None] | None = None,
) -> Source:
    """All bytes of a stream in a temporary file; `watch` is told 0 as their total."""
    size = 0
    with storing(), tempfile.TemporaryFile() as file:
        while block := _read(name, stream):
            file.write(block)
            size += len(block)
            if watch is not None:
                watch(size, 0)
        file.flush()
        handle = os.dup(file.fileno())
    source = Source(name, lambda: _again(handle), size)
    weakref.finalize(source, os.close, handle)
    return source


def _read(name: str, stream: IO[bytes] | io.BufferedIOBase) -> bytes:
    with reading(name):
        return stream.read(BLOCK)


def _again(handle: int) -> IO[bytes]:
    os.lseek(handle, 0, os.SEEK_SET)
    return os.fdopen(os.dup(handle), "rb", buffering=0)


@contextlib.contextmanager
def reading(name: str) -> Iterator[None]:
    """Whatever is wrong with an input becomes an `InputError` that names it."""
    try:
        yield
    except PermissionError as error:
        raise InputError(f"{name} cannot be read: no permission; see to its rights") from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(
            f"{name} is damaged or cut short: {one_line(error)}; fetch it again"
        ) from error
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{name} cannot be read: {one_line(error)}; if it is damaged, fetch it again"
        ) from error


@contextlib.contextmanager
def storing() -> Iterator[None]:
    """A temporary folder that takes no more becomes an `InputError`."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        problem = "is full" if full else f"cannot be used ({one_line(error)})"
        raise InputError(
            f"the folder for temporary files {problem}; set TMPDIR to a folder with more room"
        ) from error


def check_room(written: int, share: float, free: int | None = None) -> None:
    """Refuse to go on if, with `share` of the input read, the rest will not find room.

    >>> check_room(written=1 << 30, share=0.5, free=2 << 30)
    """
    with storing():
        folder = tempfile.gettempdir()
        free = shutil.disk_usage(folder).free if free is None else free
    rest = written / max(share, 1e-9) - written
    if rest > free:
        raise InputError(
            f"{(written + rest) / 1e9:.1f} GB are needed for temporary files, but {folder} has "
            f"only {(written + free) / 1e9:.1f} GB; set TMPDIR to a folder with more room"
        )


def one_line(error: BaseException) -> str:
    """What an error says, without line breaks."""
    return " ".join(str(error).split())
