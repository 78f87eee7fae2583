"""One folder is one store, and one process at a time holds it.

    store.sqlite                  the manifest: open rows, what is sealed, models, state
    segments/000001.arrow ...     sealed segments
    models/000001.safetensors ... models
    lock                          held by the process that has the store open; its pid is inside

The lock goes with the process, however it ends, and is not handed on to processes it starts.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp())
>>> expect_ours(path)                           # an empty folder will do
>>> hold = Hold(path)
>>> (path / "lock").read_text() == str(os.getpid())
True
>>> hold.release()
"""

from __future__ import annotations

import ctypes
import os
import re
import weakref
from collections.abc import Collection
from pathlib import Path

from driftquilt.errors import StoreError
from driftquilt.files import lock_file
from driftquilt.store.files import Disk

__all__ = [
    "APPLICATION",
    "MANIFEST",
    "Hold",
    "expect_ours",
    "make_folders",
    "model_path",
    "not_ours",
    "remove_leftovers",
    "segment_path",
    "take_hold",
]

MANIFEST = "store.sqlite"
#: In the head of the manifest, so that it is not taken for somebody else's database.
APPLICATION = 0x51756C74  # "Qult"

_LOCK = "lock"
_OWN = {MANIFEST, f"{MANIFEST}-wal", f"{MANIFEST}-journal", _LOCK, "segments", "models"}
_FILE = re.compile(r"(\d{6,})\.(arrow|safetensors)(\.tmp)?")
_MAGIC = b"SQLite format 3\0"


def segment_path(store: Path, number: int) -> Path:
    """The file of a segment."""
    return store / "segments" / f"{number:06}.arrow"


def model_path(store: Path, number: int) -> Path:
    """The file of a model."""
    return store / "models" / f"{number:06}.safetensors"


def expect_ours(path: Path) -> None:
    """Refuse what is neither a store nor a place for a new one; touches nothing."""
    if not path.exists():
        return
    if not path.is_dir():
        raise StoreError(f"{path} is a file; a store is a folder, so give another path")
    names = {found.name for found in path.iterdir()}
    if MANIFEST in names:
        _expect_our_manifest(path / MANIFEST)
    elif names - _OWN:
        raise StoreError(
            f"the folder {path} is not a store: it has {sorted(names - _OWN)[0]!r} but no "
            f"{MANIFEST}; give another path, or an empty folder"
        )
    if not _is_begun(path / MANIFEST) and any(
        any(folder.iterdir()) for folder in (path / "segments", path / "models") if folder.is_dir()
    ):
        raise StoreError(
            f"{path / MANIFEST} is missing or empty, yet there are segments or models; restore it "
            "from a copy of the store"
        )


def remove_leftovers(
    disk: Disk, path: Path, segments: Collection[int], models: Collection[int]
) -> None:
    """Remove files of ours that the manifest does not know: a crash came in between."""
    for folder, known in ((path / "segments", segments), (path / "models", models)):
        for found in sorted(folder.iterdir()):
            match = _FILE.fullmatch(found.name)
            if match and (match[3] or int(match[1]) not in known):
                disk.remove(found)


class Hold:
    """The lock on a folder, from making it to `release`; `guards` is what needs it."""

    guards: object = None

    def __init__(self, path: Path) -> None:
        self._file = os.open(path / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            self._take(path)
        except BaseException:  # such as a full disk: nobody would ever let go of it
            self.release()
            raise
        _HELD.add(self)

    def release(self) -> None:
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
            _HELD.discard(self)

    def _take(self, path: Path) -> None:
        try:
            lock_file(self._file)
        except BlockingIOError as error:
            os.lseek(self._file, 0, os.SEEK_SET)
            holder = os.read(self._file, 20).decode(errors="replace") or "unknown"
            raise StoreError(
                f"the store {path} is open in process {holder}; one process at a time can use "
                "it, so close it there"
            ) from error
        os.ftruncate(self._file, 0)
        os.lseek(self._file, 0, os.SEEK_SET)
        os.write(self._file, str(os.getpid()).encode())


def take_hold(disk: Disk, path: Path) -> Hold:
    """The lock on a store's folder, which is made if it is missing."""
    expect_ours(path)
    disk.make_folder(path)
    return Hold(path)


def make_folders(disk: Disk, path: Path) -> None:
    """The folders inside, which last when this returns."""
    for folder in ("segments", "models"):
        disk.make_folder(path / folder)
    disk.sync_folder(path)


_HELD: weakref.WeakSet[Hold] = weakref.WeakSet()


def _let_go_in_child() -> None:
    """Keep a forked process from harming the store of this one.

    It shares the lock, and would hold it when this one has died. It has a copy of the database
    connection, and SQLite, closing that copy, would remove the log that this one still writes to.
    So the copy gets a reference that nobody gives back, and is never closed.
    """
    for hold in list(_HELD):
        hold.release()
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(hold.guards))


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_let_go_in_child)


def not_ours(path: Path, whose: str) -> StoreError:
    """The error for a manifest that is `whose` database."""
    return StoreError(
        f"{path} is damaged or not ours: it is {whose} database; restore the store from a copy, "
        "or give another path"
    )


def _is_begun(file: Path) -> bool:
    return file.exists() and file.stat().st_size > 0


def _expect_our_manifest(path: Path) -> None:
    """Look at the head of the database, unless a crash may have left a part of it in a log."""
    if any(_is_begun(path.with_name(path.name + log)) for log in ("-wal", "-journal")):
        return
    with path.open("rb") as file:
        head = file.read(100)
    application = int.from_bytes(head[68:72], "big")
    if head and (not head.startswith(_MAGIC) or application not in (0, APPLICATION)):
        raise not_ours(path, "another program's" if head.startswith(_MAGIC) else "no")
