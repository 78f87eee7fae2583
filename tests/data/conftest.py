"""A temporary folder of its own for every test, in which nothing may be left."""

from __future__ import annotations

import contextlib
import gc
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def temporary_folder(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("temporary")
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    before = _open_temporary(folder)
    yield folder
    assert list(folder.iterdir()) == []
    if _open_temporary(folder):
        gc.collect()  # an error that was caught holds what was open when it was raised
    assert _open_temporary(folder) == before


def _open_temporary(folder: Path) -> list[str]:
    """Files of the folder that are open or mapped, with or without a name."""
    links = []
    for handle in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # a thread of Arrow's may close one meanwhile
            links.append(str(handle.readlink()))
    return [link for link in links if link.startswith(str(folder))]
