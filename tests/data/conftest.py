"""A temporary folder of its own for every test, in which nothing may be left; reading inputs."""

from __future__ import annotations

import contextlib
import gc
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from driftquilt.data import csv_files
from driftquilt.errors import InputError
from tests.processes import wait_for


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
    # A thread of Arrow may still read ahead.
    wait_for(lambda: _open_temporary(folder) == before, 30, "closing every temporary file")


def _open_temporary(folder: Path) -> list[str]:
    """Files of the folder that are open or mapped, with or without a name."""
    links = []
    for handle in Path("/proc/self/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # a thread of Arrow's may close one meanwhile
            links.append(str(handle.readlink()))
    return [link for link in links if link.startswith(str(folder))]


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that short CSV files are read in several blocks."""
    monkeypatch.setattr(csv_files, "_BLOCK", 256)


def read_rows(rows: Any) -> tuple[Any, list[str]]:
    """All rows of an input, begun again while its types change, and the notes."""
    while True:
        try:
            batches = list(rows.batches())
        except csv_files.TypesChanged:
            continue
        return pa.Table.from_batches(batches, rows.schema), rows.notes


def refusal_of(read: Callable[..., Any], *given: Any, **form: Any) -> str:
    """The one line in which an input is refused."""
    with pytest.raises(InputError) as caught:
        read(*given, **form)
    assert "\n" not in str(caught.value)
    return str(caught.value)
