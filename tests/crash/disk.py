"""A simulated disk that can lose its power, and whose writes and syncs can fail.

`SimulatedFiles` knows each file twice: as the running program sees it, and as the last sync left
it. The same goes for the names in folders. At a power cut every 512-byte sector that was written
since is, at random, old, new, or garbage; every name that was not synced is there or is not.

    write, truncate, rename, remove  change what the program sees
    sync, sync_folder                make it last
    cut_at, fail_at                  the step at which power goes, or at which one step fails

Bytes outside a write are never harmed, which is what SQLite expects of disks by default.

`SimulatedDisk` puts a store on these files: SQLite through an apsw VFS (apsw brings its own SQLite
and lets Python be its file system), all other files beside it. Files that the store maps into
memory are also written to the real folder, which a cut does not touch: what comes after a cut is
laid out in another folder and opened with the standard library's SQLite.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import apsw

from driftquilt.store.files import Connection, Disk, NewFile, open_sqlite, prepare

SECTOR = 512
_NUMBERS = itertools.count()


class PowerCutError(OSError):
    """Nothing can be done any more."""


@dataclass
class Inode:
    data: bytearray = field(default_factory=bytearray)
    synced: bytes = b""

    def after_cut(self, rng: Random) -> bytes:
        size = rng.choice([len(self.synced), len(self.data)])
        parts = [
            _survivor(self.synced[at : at + SECTOR], bytes(self.data[at : at + SECTOR]), rng)
            for at in range(0, size, SECTOR)
        ]
        return b"".join(parts)[:size]


class SimulatedFiles:
    """All files by path, and a count of the steps that change them."""

    def __init__(self) -> None:
        self.names: dict[Path, Inode] = {}
        self.synced_names: dict[Path, Inode] = {}
        self.n_steps = 0
        self.cut_at: int | None = None
        self.fail_at: int | None = None
        self.failure = errno.EIO

    @property
    def is_cut(self) -> bool:
        return self.cut_at is not None and self.n_steps >= self.cut_at

    def step(self) -> None:
        """To be called before every change."""
        if self.is_cut:
            raise PowerCutError(errno.EIO, "the power is gone")
        self.n_steps += 1
        if self.n_steps == self.fail_at:
            raise OSError(self.failure, os.strerror(self.failure))

    def write(self, path: Path, data: bytes, at: int) -> None:
        self.step()
        file = self.names[path].data
        if len(file) < at:
            file.extend(bytes(at - len(file)))
        file[at : at + len(data)] = data

    def truncate(self, path: Path, size: int) -> None:
        self.step()
        del self.names[path].data[size:]

    def create(self, path: Path) -> None:
        self.step()
        self.names[path] = Inode()

    def rename(self, old: Path, new: Path) -> None:
        self.step()
        self.names[new] = self.names.pop(old)

    def remove(self, path: Path) -> None:
        self.step()
        self.names.pop(path, None)

    def sync(self, path: Path) -> None:
        self.step()
        inode = self.names[path]
        inode.synced = bytes(inode.data)

    def sync_folder(self, folder: Path) -> None:
        self.step()
        for path in self.names.keys() | self.synced_names.keys():
            if path.parent == folder:
                _copy_name(self.names, self.synced_names, path)

    def lay_out(self, source: Path, target: Path, rng: Random | None = None) -> None:
        """Write the files under `source` to a real folder: as seen, or as a cut leaves them."""
        for folder in ("segments", "models"):
            (target / folder).mkdir(parents=True)
        for path in sorted(self.names.keys() | self.synced_names.keys()):
            names = rng.choice([self.names, self.synced_names]) if rng else self.names
            inode = names.get(path)
            if inode is not None:
                data = inode.after_cut(rng) if rng else bytes(inode.data)
                (target / path.relative_to(source)).write_bytes(data)


def _copy_name(here: dict[Path, Inode], there: dict[Path, Inode], path: Path) -> None:
    if path in here:
        there[path] = here[path]
    else:
        there.pop(path, None)


def _survivor(old: bytes, new: bytes, rng: Random) -> bytes:
    """What is left of a sector; its length is that of the longer of the two."""
    if old == new:
        return new
    size = max(len(old), len(new))
    old, new = old.ljust(size, b"\0"), new.ljust(size, b"\0")
    fate = rng.random()
    if fate < 0.4:
        return old
    if fate < 0.8:
        return new
    noise = rng.randbytes(size)
    return bytes(n if a != b else a for a, b, n in zip(old, new, noise, strict=True))


class DatabaseFile:
    """A file of a database."""

    def __init__(self, files: SimulatedFiles, path: Path, *, is_log: bool) -> None:
        self.files, self.path, self.is_log = files, path, is_log
        if path not in files.names:
            _attempt(files.create, path)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        return bytes(self.files.names[self.path].data[offset : offset + amount])

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802
        _attempt(self.files.write, self.path, bytes(data), offset)

    def xTruncate(self, size: int) -> None:  # noqa: N802
        _attempt(self.files.truncate, self.path, size)

    def xSync(self, flags: int) -> None:  # noqa: N802, ARG002
        _attempt(self.files.sync, self.path)
        if self.is_log:  # SQLite's own file system syncs the folder with a new log
            _attempt(self.files.sync_folder, self.path.parent)

    def xFileSize(self) -> int:  # noqa: N802
        return len(self.files.names[self.path].data)

    def xLock(self, level: int) -> None: ...  # noqa: N802

    def xUnlock(self, level: int) -> None: ...  # noqa: N802

    def xCheckReservedLock(self) -> bool:  # noqa: N802
        return False

    def xFileControl(self, op: int, pointer: int) -> bool:  # noqa: N802, ARG002
        return False

    def xSectorSize(self) -> int:  # noqa: N802
        return 512

    def xDeviceCharacteristics(self) -> int:  # noqa: N802
        return apsw.SQLITE_IOCAP_POWERSAFE_OVERWRITE

    def xClose(self) -> None: ...  # noqa: N802


class SimulatedVFS(apsw.VFS):
    """The file system that SQLite sees."""

    def __init__(self, files: SimulatedFiles) -> None:
        self.files = files
        self.name = f"simulated-{next(_NUMBERS)}"
        super().__init__(self.name, base="")

    def xOpen(self, name: Any, flags: list[int]) -> Any:  # noqa: N802
        path = Path(name.filename() if isinstance(name, apsw.URIFilename) else name)
        flags[1] = flags[0]
        return DatabaseFile(self.files, path, is_log=bool(flags[0] & apsw.SQLITE_OPEN_WAL))

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        _attempt(self.files.remove, Path(filename))
        if syncdir:
            _attempt(self.files.sync_folder, Path(filename).parent)

    def xAccess(self, pathname: str, flags: int) -> bool:  # noqa: N802, ARG002
        return Path(pathname) in self.files.names

    def xFullPathname(self, name: str) -> str:  # noqa: N802
        return name


class SimulatedConnection:
    """apsw with the interface of `sqlite3`."""

    def __init__(self, path: Path, vfs: SimulatedVFS) -> None:
        with _translated():
            self._apsw = apsw.Connection(str(path), vfs=vfs.name)

    def execute(self, sql: str, parameters: Sequence[Any] = ()) -> Iterable[Any]:
        with _translated():
            return list(self._apsw.execute(sql, tuple(parameters)))

    def close(self) -> None:
        with _translated():
            self._apsw.close()


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except apsw.FullError as error:
        raise sqlite3.OperationalError("database or disk is full") from error
    except apsw.Error as error:
        raise sqlite3.OperationalError(str(error)) from error


class SimulatedNewFile(NewFile):
    def __init__(self, files: SimulatedFiles, path: Path) -> None:
        files.create(path)
        super().__init__(path)
        self._files, self._path, self._size = files, path, 0

    def write(self, data: bytes) -> int:
        raw = bytes(data)
        self._files.write(self._path, raw, self._size)
        self._size += len(raw)
        return super().write(raw)

    def sync(self) -> None:
        self._files.sync(self._path)


class SimulatedDisk(Disk):
    """The disk of a store, on simulated files."""

    def __init__(self, files: SimulatedFiles, synchronous: str = "FULL") -> None:
        self.files = files
        self.vfs = SimulatedVFS(files)
        self.synchronous = synchronous
        self.connections: list[Connection] = []  # kept: one that is collected writes once more

    def connect(self, path: Path) -> Connection:
        connection = SimulatedConnection(path, self.vfs)
        self.connections.append(connection)
        prepare(connection, self.synchronous)
        connection.execute("PRAGMA wal_autocheckpoint=20")  # pages, so that a short run has some
        return connection

    def close(self) -> None:
        """Close all connections; writes work again for it."""
        self.files.cut_at = self.files.fail_at = None
        for connection in self.connections:
            connection.close()

    def create(self, path: Path) -> NewFile:
        return SimulatedNewFile(self.files, path)

    def rename(self, old: Path, new: Path) -> None:
        self.files.rename(old, new)
        super().rename(old, new)

    def remove(self, path: Path) -> None:
        self.files.remove(path)
        super().remove(path)

    def sync_folder(self, path: Path) -> None:
        self.files.sync_folder(path)


class UnsyncedFile(NewFile):
    def sync(self) -> None: ...


class UnsyncedDisk(Disk):
    """The real disk without syncs: to look at what a crash has left."""

    def connect(self, path: Path) -> Connection:
        return open_sqlite(path, synchronous="OFF")

    def create(self, path: Path) -> NewFile:
        return UnsyncedFile(path)

    def sync_folder(self, path: Path) -> None: ...


def _attempt(change: Any, *arguments: Any) -> None:
    """Make a change; a failure is raised as one of SQLite's."""
    try:
        change(*arguments)
    except OSError as error:
        kind = apsw.FullError if error.errno == errno.ENOSPC else apsw.IOError
        raise kind(str(error)) from error
