"""What a disk refused, in words, and of the file that was meant.

Files are written under another name first, and the system's errors speak of that one.

>>> with about("out/model.safetensors"):
...     raise OSError(errno.ENOSPC, "No space left on device", "out/.model.safetensors.7.tmp")
Traceback (most recent call last):
OSError: [Errno 28] No space left on device: 'out/model.safetensors'
>>> why(OSError(errno.ENOSPC, "No space left on device"))
'the disk is full; free some room, or choose another place'
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["about", "why"]

_FULL = "the disk is full; free some room, or choose another place"
_RIGHTS = "no permission; see to its rights, or choose another place"
_WORDS = {
    errno.ENOENT: "No such file or folder, or none can be made there; check the path",
    errno.ENOTDIR: "a part of that path is a file, not a folder; choose another place",
    errno.EEXIST: "something else has that name already; choose another place",
    errno.EISDIR: "it is a folder; name a file",
    errno.EACCES: _RIGHTS,
    errno.EPERM: _RIGHTS,
    errno.EROFS: "the disk can only be read; choose another place",
    errno.ENOSPC: _FULL,
    errno.EDQUOT: _FULL,
    errno.EFBIG: "the file grew larger than is allowed here; choose another place",
}


def why(error: BaseException) -> str:
    """What went wrong and what to do, in one line that names no file."""
    code = getattr(error, "errno", None)
    if code in _WORDS:
        return _WORDS[code]
    said = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return " ".join(str(said).split())


@contextmanager
def about(path: str | os.PathLike[str]) -> Iterator[None]:
    """Inside, an error of the system speaks of `path`, whichever file it came from."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), os.fspath(path)) from error
