"""One service for one store: a second one is refused before it touches anything.

>>> import tempfile
>>> folder = Path(tempfile.mkdtemp())
>>> with hold(folder), hold(folder):
...     pass
Traceback (most recent call last):
driftquilt.errors.StoreError: ... is served by another process already; stop that one, or give \
another --store
"""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from pathlib import Path

from driftquilt.errors import StoreError
from driftquilt.store.files import translated

__all__ = ["hold"]


@contextlib.contextmanager
def hold(store: Path) -> Iterator[None]:
    """Nobody else serves the store inside the block; the system ends it with the process."""
    with translated(store, "opening"):
        store.mkdir(parents=True, exist_ok=True)
        lock = (store / "serve.lock").open("a")
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StoreError(
                f"{store} is served by another process already; stop that one, or give another "
                "--store"
            ) from error
        yield
