"""A folder that is not ours, in use, too new or damaged is refused in words, and left alone."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest

from driftquilt.errors import DriftquiltError, StoreError
from driftquilt.files import sync_folder
from driftquilt.store import files
from driftquilt.store.disk import DiskStore
from driftquilt.store.manifest import FORMAT
from tests.processes import PATIENCE


def contents(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


def fill(path: Path) -> None:
    """Two segments, a model, three open rows of two schemas, some state."""
    with DiskStore(path) as store:
        for name in ("may", "june"):
            store.append(pa.record_batch({"x": [0.5] * 400, "y": [1] * 400}))
            store.seal(name)
        store.put_model(b"weights" * 100, {"accuracy": 0.9})
        store.append(pa.record_batch({"x": [1.5, 2.5], "y": [0, 1]}), {"position": 802})
        store.append(pa.record_batch({"x": [1.5], "word": ["text"]}), {"note": "some words"})


def test_a_store_error_is_an_error_of_ours_and_of_the_system() -> None:
    assert issubclass(StoreError, DriftquiltError)
    assert issubclass(StoreError, OSError)


def test_a_folder_of_somebody_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    with pytest.raises(StoreError, match=r"'thesis.tex\'"):
        DiskStore(tmp_path)
    assert contents(tmp_path) == {"thesis.tex": b"years of work"}


def test_a_file_is_not_a_folder(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("a")
    with pytest.raises(StoreError, match="is a file"):
        DiskStore(path)
    assert path.read_text() == "a"


def test_the_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "store.sqlite") as other:
        other.execute("PRAGMA application_id=7")
        other.execute("CREATE TABLE theirs (x)")
    other.close()
    before = contents(tmp_path)
    with pytest.raises(StoreError, match="another program"):
        DiskStore(tmp_path)
    assert contents(tmp_path) == before


def test_the_database_of_another_program_that_runs_is_left_alone(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / "store.sqlite")
    for setting in ("journal_mode=WAL", "application_id=7"):
        other.execute(f"PRAGMA {setting}")
    other.execute("CREATE TABLE theirs (x)")
    with pytest.raises(StoreError, match=r"database is locked|another program's database"):
        DiskStore(tmp_path)
    other.execute("INSERT INTO theirs VALUES (1)")
    shutil.copytree(tmp_path, tmp_path / "copy")  # as if it had crashed: its log is still there
    with pytest.raises(StoreError, match="another program"):
        DiskStore(tmp_path / "copy")
    assert other.execute("SELECT x FROM theirs").fetchall() == [(1,)]
    other.close()


def test_an_empty_folder_and_an_unfinished_one_become_stores(tmp_path: Path) -> None:
    for names in ([], ["lock"], ["store.sqlite"], ["lock", "store.sqlite", "store.sqlite-wal"]):
        path = tmp_path / "-".join(["a", *names])
        path.mkdir()
        for name in names:
            (path / name).touch()
        with DiskStore(path) as store:
            assert store.append(pa.record_batch({"x": [1]})) == 1


def test_folders_on_the_way_are_made_and_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = set[Path]()

    def watched(path: Path) -> None:
        assert path.is_dir()
        synced.add(path)
        sync_folder(path)

    monkeypatch.setattr(files, "sync_folder", watched)
    path = tmp_path / "a" / "b" / "store"
    with DiskStore(path) as store:
        assert store.n_appended == 0
    assert synced == {tmp_path, tmp_path / "a", tmp_path / "a" / "b", path}
    synced.clear()
    DiskStore(path).close()
    assert synced == {path}


@pytest.fixture
def _nobody(tmp_path: Path) -> Iterator[None]:
    """Somebody who may not write here."""
    (tmp_path / "theirs").mkdir()
    (tmp_path / "theirs").chmod(0o500)
    me = os.geteuid()
    if me == 0:
        os.seteuid(65534)
    yield
    os.seteuid(me)
    (tmp_path / "theirs").chmod(0o700)


@pytest.mark.usefixtures("_nobody")
def test_a_place_one_may_not_write_to_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"(?s)opening failed in the store .*Permission denied.*"):
        DiskStore(tmp_path / "theirs" / "store")


def test_a_second_process_is_told_who_holds_the_store(tmp_path: Path) -> None:
    path = tmp_path / "store"
    code = (
        "import sys\n"
        "from driftquilt.errors import StoreError\n"
        "from driftquilt.store.disk import DiskStore\n"
        "try:\n"
        "    DiskStore(sys.argv[1])\n"
        "except StoreError as error:\n"
        "    print(error)\n"
    )
    with DiskStore(path) as store:
        store.append(pa.record_batch({"x": [1]}))
        run = subprocess.run(
            [sys.executable, "-c", code, str(path)],
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE,
        )
        assert f"the store {path} is open in process {os.getpid()}; one process" in run.stdout
        with pytest.raises(StoreError, match=f"process {os.getpid()}"):
            DiskStore(path)
        assert store.append(pa.record_batch({"x": [2]})) == 2
    with DiskStore(path) as store:
        assert store.n_appended == 2


def test_a_newer_format_is_refused_with_what_to_do(tmp_path: Path) -> None:
    fill(tmp_path / "store")
    database = sqlite3.connect(tmp_path / "store" / "store.sqlite")
    database.execute(f"PRAGMA user_version={FORMAT + 1}")
    database.close()
    before = contents(tmp_path)
    with pytest.raises(StoreError, match="install a newer driftquilt"):
        DiskStore(tmp_path / "store")
    assert contents(tmp_path) == before


def test_leftovers_of_a_crash_go_and_other_files_stay(tmp_path: Path) -> None:
    path = tmp_path / "store"
    fill(path)
    before = contents(path)
    for name in ("segments/000003.arrow", "segments/000009.arrow.tmp", "models/000002.safetensors"):
        (path / name).write_bytes(b"half of it")
    (path / "segments" / "README").write_bytes(b"not ours")
    with DiskStore(path) as store:
        assert store.read(2).num_rows == 400
    assert contents(path) == before | {"segments/README": b"not ours", "lock": b"%d" % os.getpid()}


def test_a_lost_manifest_does_not_take_the_segments_along(tmp_path: Path) -> None:
    path = tmp_path / "store"
    fill(path)
    for lose in ((path / "store.sqlite").write_bytes, lambda _: (path / "store.sqlite").unlink()):
        lose(b"")
        before = contents(path)
        with pytest.raises(StoreError, match="missing or empty"):
            DiskStore(path)
        assert contents(path) == before


@pytest.mark.parametrize("step", ["ftruncate", "write"])
def test_a_disk_that_was_full_at_opening_does_not_keep_the_store_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    fill(tmp_path / "store")
    with monkeypatch.context() as patched:
        patched.setattr(os, step, full)
        with pytest.raises(StoreError, match="free some space"):
            DiskStore(tmp_path / "store")
    with DiskStore(tmp_path / "store") as store:
        assert store.n_appended == 803


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EROFS])
def test_what_the_system_said_is_passed_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(Path, "mkdir", fail)
    with pytest.raises(StoreError, match=os.strerror(code)) as caught:
        DiskStore(tmp_path / "store")
    assert ("free some space" in str(caught.value)) == (code != errno.EROFS)
