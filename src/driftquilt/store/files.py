"""The files of a store, and the only door through which it touches a disk.

    store.sqlite                  the manifest: open rows, what is sealed, models, state
    segments/000001.arrow ...     sealed segments
    models/000001.safetensors ... models
    lock                          held by the process that has the store open; its pid is inside

One folder is one store, and one process at a time holds it. The lock goes with the process, however
it ends, and is not handed on to processes it starts.

A new file is written under a temporary name, synced, renamed, and its folder is synced: when
`write_file` returns, the file survives a power cut; until then nobody sees it. Files are named
by number, so no name from a caller ever becomes part of a path. They are read back as they were
written, or not at all: a file is as long as the manifest says and has the SHA-256 that it says,
else it is damaged. A segment's file is mapped, so its table takes no memory of its own until its
columns are looked at.

`Disk` is everything that the store asks of the machine: the database connection and six steps
on files. What stands in its place in the tests forgets whatever was not synced.

>>> import tempfile
>>> folder = Path(tempfile.mkdtemp())
>>> n_bytes, sha256 = write_file(DISK, folder / "000001.arrow", lambda sink: sink.write(b"rows"))
>>> n_bytes, sha256[:8], [path.name for path in folder.iterdir()]
(4, 'bc51e9e6', ['000001.arrow'])
>>> hold = take_hold(DISK, folder / "store")
>>> (folder / "store" / "lock").read_text() == str(os.getpid())
True
>>> hold.release()
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import hashlib
import io
import os
import re
import sqlite3
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from driftquilt.errors import DamagedModelError, DamagedSegmentError, StoreError
from driftquilt.files import lock_file, sync_file, sync_folder
from driftquilt.store.base import SealedSegment, StoredModel, reading

__all__ = [
    "APPLICATION",
    "DISK",
    "MANIFEST",
    "Connection",
    "Disk",
    "Hold",
    "NewFile",
    "Sink",
    "make_folders",
    "model_path",
    "not_ours",
    "open_sqlite",
    "prepare",
    "read_model_file",
    "read_segment_file",
    "remove_leftovers",
    "segment_path",
    "take_hold",
    "translated",
    "trouble",
    "write_file",
]

MANIFEST = "store.sqlite"
#: In the head of the manifest, so that it is not taken for somebody else's database.
APPLICATION = 0x51756C74  # "Qult"

_LOCK = "lock"
_OWN = {MANIFEST, f"{MANIFEST}-wal", f"{MANIFEST}-journal", _LOCK, "segments", "models"}
_FILE = re.compile(r"(\d{6,})\.(arrow|safetensors)(\.tmp)?")
_MAGIC = b"SQLite format 3\0"
_FULL = (errno.ENOSPC, errno.EDQUOT)


class Connection(Protocol):
    """What the manifest needs of a database connection; errors are `sqlite3.Error`s."""

    def execute(self, sql: str, parameters: Sequence[Any] = ..., /) -> Iterable[Any]: ...

    def close(self) -> None: ...


class NewFile:
    """A file being written."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb", buffering=0)

    def write(self, data: bytes) -> int:
        """Write all of `data`; a full disk may take only a part at a time."""
        left = memoryview(data).cast("B")
        while left:
            left = left[self._file.write(left) :]
        return memoryview(data).nbytes

    def sync(self) -> None:
        sync_file(self._file.fileno())

    def close(self) -> None:
        self._file.close()


class Disk:
    """The machine's own disk."""

    def connect(self, path: Path) -> Connection:
        """Open the one connection that writes and checkpoints: WAL, and a sync at every commit."""
        return open_sqlite(path)

    def create(self, path: Path) -> NewFile:
        return NewFile(path)

    def rename(self, old: Path, new: Path) -> None:
        old.rename(new)

    def remove(self, path: Path) -> None:
        path.unlink(missing_ok=True)

    def make_folder(self, path: Path) -> None:
        """Make a folder and those on the way to it, durably."""
        missing = [folder for folder in (path, *path.parents) if not folder.exists()]
        path.mkdir(parents=True, exist_ok=True)
        for folder in missing:
            sync_folder(folder.parent)

    def sync_folder(self, path: Path) -> None:
        """Make the names in a folder durable."""
        sync_folder(path)


DISK = Disk()


class Sink(io.RawIOBase):
    """Passes bytes on to a new file, and counts and hashes them."""

    def __init__(self, file: NewFile) -> None:
        self._file = file
        self._digest = hashlib.sha256()
        self.n_bytes = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        n_bytes = self._file.write(data)
        self._digest.update(data)
        self.n_bytes += n_bytes
        return n_bytes

    @property
    def sha256(self) -> str:
        return self._digest.hexdigest()


def write_file(disk: Disk, path: Path, fill: Callable[[Sink], object]) -> tuple[int, str]:
    """Write what `fill` gives to the sink, durably; returns its length and SHA-256."""
    draft = path.with_name(f"{path.name}.tmp")
    try:
        file = disk.create(draft)
        try:
            sink = Sink(file)
            fill(sink)
            file.sync()
        finally:
            file.close()
        disk.rename(draft, path)
        disk.sync_folder(path.parent)
    except BaseException:
        with contextlib.suppress(OSError):  # if it stays, the next opening removes it
            disk.remove(draft)
        raise
    return sink.n_bytes, sink.sha256


def open_sqlite(path: Path, synchronous: str = "FULL") -> sqlite3.Connection:
    """Return a connection of the standard library's, ready for the manifest."""
    connection = sqlite3.connect(path, timeout=1, isolation_level=None, check_same_thread=False)
    try:
        prepare(connection, synchronous)
    except BaseException:
        connection.close()
        raise
    return connection


def prepare(connection: Connection, synchronous: str = "FULL") -> None:
    """Set the connection up; exclusive, so that no second one can come in between."""
    for setting in ("locking_mode=EXCLUSIVE", "journal_mode=WAL", f"synchronous={synchronous}"):
        list(connection.execute(f"PRAGMA {setting}"))
    list(connection.execute("PRAGMA fullfsync=1"))  # macOS: a sync that reaches the platter


def trouble(path: Path, doing: str, error: BaseException) -> StoreError:
    """Return an error of the disk or the database, as an error of ours."""
    full = getattr(error, "errno", None) in _FULL or "disk is full" in str(error)
    damaged = isinstance(error, sqlite3.DatabaseError) and any(
        sign in str(error) for sign in ("malformed", "not a database", "decode")
    )
    advice = "free some space, then " if full else "see to the disk and its permissions, then "
    if damaged:
        advice = "its database is damaged, restore the store from a copy, then "
    elif not isinstance(error, OSError | sqlite3.Error):  # such as Ctrl-C
        advice = ""
    return StoreError(f"{doing} failed in the store {path}: {error!r}; {advice}open it again")


@contextlib.contextmanager
def translated(path: Path, doing: str) -> Iterator[None]:
    """Errors of the disk and the database become `StoreError`s that say what failed."""
    try:
        yield
    except StoreError:
        raise
    except (sqlite3.Error, OSError) as error:
        raise trouble(path, doing, error) from error


def read_segment_file(path: Path, segment: SealedSegment, *, check: bool) -> pa.Table:
    """Return the mapped rows; `check` also compares the checksum, which reads the whole file.

    A file that is missing or damaged is a `DamagedSegmentError`; one that the disk does not give
    is not, as it may be sound.
    """
    what = f"segment {segment.number} ({segment.name!r}, {segment.n_rows} rows)"
    try:
        _expect_length(path, segment.n_bytes, what)
        data = pa.memory_map(str(path)).read_buffer()
        if check:
            _expect_sha256(path, data, segment.sha256, what)
        with reading(path):
            return pa.ipc.open_file(data).read_all()
    except StoreError as error:
        raise DamagedSegmentError(str(error)) from error


def read_model_file(path: Path, model: StoredModel) -> bytes:
    """Return the bytes, with the checksum they were written with."""
    what = f"model {model.number}"
    try:
        _expect_length(path, model.n_bytes, what)
        data = path.read_bytes()
        _expect_sha256(path, data, model.sha256, what)
    except StoreError as error:
        raise DamagedModelError(str(error)) from error
    return data


def _expect_length(path: Path, n_bytes: int, what: str) -> None:
    if not path.is_file():
        raise StoreError(f"{path} is missing, the file of {what}; {_advice(what)}")
    found = path.stat().st_size
    if found != n_bytes:
        raise StoreError(
            f"{path}, the file of {what}, is damaged: it has {found} bytes and was written with "
            f"{n_bytes}; {_advice(what)}"
        )


def _expect_sha256(path: Path, data: Any, sha256: str, what: str) -> None:
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise StoreError(
            f"{path}, the file of {what}, is damaged: its SHA-256 begins with {found[:12]} and "
            f"was {sha256[:12]} when written; {_advice(what)}"
        )


def _advice(what: str) -> str:
    return f"restore it from a copy, or drop {what.partition(' (')[0]}"


def segment_path(store: Path, number: int) -> Path:
    """Return the file of a segment."""
    return store / "segments" / f"{number:06}.arrow"


def model_path(store: Path, number: int) -> Path:
    """Return the file of a model."""
    return store / "models" / f"{number:06}.safetensors"


def _expect_ours(path: Path) -> None:
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
    """Return the lock on a store's folder, which is made if it is missing."""
    _expect_ours(path)
    disk.make_folder(path)
    return Hold(path)


def make_folders(disk: Disk, path: Path) -> None:
    """Make the folders inside, which last when this returns."""
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
    """Return the error for a manifest that is `whose` database."""
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
