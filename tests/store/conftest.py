"""Every kind of store: in memory, on disk, and on disk with commits in groups."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from driftquilt.store import DiskStore, MemoryStore, Store

MAKERS: dict[str, Callable[[Path], Store]] = {
    "memory": lambda _: MemoryStore(),
    "disk": lambda path: DiskStore(path / "store"),
    "groups": lambda path: DiskStore(path / "store", commit_rows=50, commit_delay=math.inf),
}


@pytest.fixture(params=MAKERS)
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    with MAKERS[request.param](tmp_path) as made:
        yield made
