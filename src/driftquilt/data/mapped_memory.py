"""How much of the mapped files stays in memory while rows of them are read.

Pages of a mapping count as the process's memory once they are touched, so a pass over a large
file would seem to take as much memory as the file is long. Whoever reads rows of a table that may
be mapped says how many bytes that touched; whoever mapped a file gives its pages back whenever
`MOST` bytes were touched since the last time. A page that is touched again comes from the
system's cache or the disk.

>>> with held_down(lambda: print("given back")):
...     touched(MOST // 2)
...     touched(MOST // 2)
given back
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator

__all__ = ["MOST", "held_down", "touched"]

MOST = 128 << 20  # bytes
_AROUND = 2 * 65_536  # bytes that come along with a row: of text, where it stands and its letters

_lock = threading.Lock()
_ways_back: list[Callable[[], None]] = []
_n_touched = 0


@contextlib.contextmanager
def held_down(give_back: Callable[[], None]) -> Iterator[None]:
    """While inside, call `give_back` in time."""
    _ways_back.append(give_back)
    try:
        yield
    finally:
        _ways_back.remove(give_back)


def touched(n_bytes: int, n_rows: int | None = None) -> None:
    """So many bytes were read, or so many scattered rows among them."""
    global _n_touched  # noqa: PLW0603  # it is memory of the process that is counted
    if not _ways_back:
        return
    with _lock:
        _n_touched += n_bytes if n_rows is None else min(n_bytes, n_rows * _AROUND)
        if _n_touched >= MOST:
            _n_touched = 0
            for give_back in _ways_back:
                give_back()
