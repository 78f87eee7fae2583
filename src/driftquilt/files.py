"""Files that are written completely or not at all, and readable reasons when that fails.

A file is written under another name in the same folder, synced and then renamed. Readers see the
old file or the new one, never a part, and it survives a power cut once `atomic_write` is left.
The system's errors would name the temporary file; here they name the one that was meant.

>>> import tempfile
>>> folder = Path(tempfile.mkdtemp())
>>> with atomic_write(folder / "note.txt") as file:
...     _ = file.write(b"all of it")
>>> (folder / "note.txt").read_text(), len(list(folder.iterdir()))
('all of it', 1)
>>> describe_os_error(OSError(errno.ENOSPC, "No space left on device"))
'the disk is full; free some space, or choose another path'
"""

from __future__ import annotations

import errno
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]
try:
    import msvcrt
except ImportError:  # everywhere else
    msvcrt = None  # type: ignore[assignment]

__all__ = [
    "atomic_write",
    "describe_os_error",
    "lock_file",
    "os_errors_name",
    "sync_file",
    "sync_folder",
]

_FULL = "the disk is full; free some space, or choose another path"
_DENIED = "permission denied; change its permissions, or choose another path"
_REASONS = {
    errno.ENOENT: "No such file or folder; check the path",
    errno.ENOTDIR: "a part of that path is a file, not a folder; choose another path",
    errno.EEXIST: "a file of that name already exists; choose another path",
    errno.EISDIR: "it is a folder; name a file",
    errno.EACCES: _DENIED,
    errno.EPERM: _DENIED,
    errno.EROFS: "the disk is read-only; choose another path",
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: "the file is larger than is allowed here; choose another path",
}


_LOCKED_BYTE = 2**30  # Windows locks ranges: one past the end leaves the contents readable


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a binary file that replaces `path` when the block ends, durably.

    After an exception, Ctrl-C included, `path` is as it was and nothing else is left. Raises
    `OSError` with the name `path` if it cannot be written.
    """
    target = Path(path)
    with os_errors_name(target):
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(target))
        draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
        try:
            with draft.open("xb") as file:
                yield file
                file.flush()
                sync_file(file.fileno())
            draft.replace(target)
            sync_folder(target.parent)
        except BaseException:
            with suppress(OSError):
                draft.unlink()
            raise


def sync_file(descriptor: int) -> None:
    """Wait until everything written to an open file is on the disk."""
    full = getattr(fcntl, "F_FULLFSYNC", None)  # macOS, where fsync stops at the drive's cache
    if full is None:
        os.fsync(descriptor)
    else:
        fcntl.fcntl(descriptor, full)


def sync_folder(path: str | os.PathLike[str]) -> None:
    """Wait until the names in a folder are on the disk."""
    if os.name != "posix":  # elsewhere a folder cannot be opened
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        sync_file(descriptor)
    finally:
        os.close(descriptor)


def lock_file(descriptor: int, *, wait: bool = False) -> None:
    """Lock an open file for this process alone, until it is closed or the process ends.

    If another process has it, `wait` for that one, or raise `BlockingIOError`.
    """
    if fcntl is not None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        return
    try:
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK, 1)
    except PermissionError as error:
        raise BlockingIOError(errno.EAGAIN, "another process has locked the file") from error


def describe_os_error(error: BaseException) -> str:
    """Return what went wrong and what to do, in one line that names no file."""
    code = getattr(error, "errno", None)
    if code in _REASONS:
        return _REASONS[code]
    message = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(str(message).split())


@contextmanager
def os_errors_name(path: str | os.PathLike[str]) -> Iterator[None]:
    """Make errors of the system name `path` inside the block, whichever file they came from.

    >>> with os_errors_name("out/model.safetensors"):
    ...     raise OSError(errno.ENOSPC, "No space left on device", "out/.model.safetensors.7.tmp")
    Traceback (most recent call last):
    OSError: [Errno 28] No space left on device: 'out/model.safetensors'
    """
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), os.fspath(path)) from error
