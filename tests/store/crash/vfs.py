"""The store on a simulated disk: SQLite through an apsw VFS, all other files beside it.

apsw brings its own SQLite and lets Python be its file system. Files live in a `World`; those that
the store maps into memory are also written to the real folder, which a cut does not touch: what
comes after a cut is laid out in another folder and opened with the stdlib's SQLite.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import apsw

from driftquilt.store.files import Connection, Disk, NewFile, open_sqlite, prepare
from tests.store.crash.world import World

_NUMBERS = itertools.count()


class WorldFile:
    """A file of SQLite's."""

    def __init__(self, world: World, path: Path, *, is_log: bool) -> None:
        self.world, self.path, self.is_log = world, path, is_log
        if path not in world.names:
            _told(world.create, path)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802
        return bytes(self.world.names[self.path].data[offset : offset + amount])

    def xWrite(self, data: Any, offset: int) -> None:  # noqa: N802
        _told(self.world.write, self.path, bytes(data), offset)

    def xTruncate(self, size: int) -> None:  # noqa: N802
        _told(self.world.truncate, self.path, size)

    def xSync(self, flags: int) -> None:  # noqa: N802, ARG002
        _told(self.world.sync, self.path)
        if self.is_log:  # SQLite's own file system syncs the folder with a new log
            _told(self.world.sync_folder, self.path.parent)

    def xFileSize(self) -> int:  # noqa: N802
        return len(self.world.names[self.path].data)

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


class WorldVFS(apsw.VFS):
    """The file system that SQLite sees."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.name = f"world-{next(_NUMBERS)}"
        super().__init__(self.name, base="")

    def xOpen(self, name: Any, flags: list[int]) -> Any:  # noqa: N802
        path = Path(name.filename() if isinstance(name, apsw.URIFilename) else name)
        flags[1] = flags[0]
        return WorldFile(self.world, path, is_log=bool(flags[0] & apsw.SQLITE_OPEN_WAL))

    def xDelete(self, filename: str, syncdir: bool) -> None:  # noqa: N802
        _told(self.world.remove, Path(filename))
        if syncdir:
            _told(self.world.sync_folder, Path(filename).parent)

    def xAccess(self, pathname: str, flags: int) -> bool:  # noqa: N802, ARG002
        return Path(pathname) in self.world.names

    def xFullPathname(self, name: str) -> str:  # noqa: N802
        return name


class WorldConnection:
    """apsw behind the stdlib's manners."""

    def __init__(self, path: Path, vfs: WorldVFS) -> None:
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


class WorldNewFile(NewFile):
    def __init__(self, world: World, path: Path) -> None:
        world.create(path)
        super().__init__(path)
        self._world, self._path, self._size = world, path, 0

    def write(self, data: bytes) -> int:
        raw = bytes(data)
        self._world.write(self._path, raw, self._size)
        self._size += len(raw)
        return super().write(raw)

    def sync(self) -> None:
        self._world.sync(self._path)


class WorldDisk(Disk):
    """The disk of a world."""

    def __init__(self, world: World, synchronous: str = "FULL") -> None:
        self.world = world
        self.vfs = WorldVFS(world)
        self.synchronous = synchronous
        self.connections: list[Connection] = []  # kept: one that is collected writes once more

    def connect(self, path: Path) -> Connection:
        connection = WorldConnection(path, self.vfs)
        self.connections.append(connection)
        prepare(connection, self.synchronous)
        connection.execute("PRAGMA wal_autocheckpoint=20")  # pages, so that a short run has some
        return connection

    def let_go(self) -> None:
        """Close what is open, with power for it; nobody looks at these files any more."""
        self.world.cut_at = self.world.fail_at = None
        for connection in self.connections:
            connection.close()

    def create(self, path: Path) -> NewFile:
        return WorldNewFile(self.world, path)

    def rename(self, old: Path, new: Path) -> None:
        self.world.rename(old, new)
        super().rename(old, new)

    def remove(self, path: Path) -> None:
        self.world.remove(path)
        super().remove(path)

    def sync_folder(self, path: Path) -> None:
        self.world.sync_folder(path)


class HastyFile(NewFile):
    def sync(self) -> None: ...


class HastyDisk(Disk):
    """The real disk without waiting for it: to look at what a crash has left."""

    def connect(self, path: Path) -> Connection:
        return open_sqlite(path, synchronous="OFF")

    def create(self, path: Path) -> NewFile:
        return HastyFile(path)

    def sync_folder(self, path: Path) -> None: ...


def _told(change: Any, *arguments: Any) -> None:
    """Make a change, and tell SQLite in its own terms if it fails."""
    try:
        change(*arguments)
    except OSError as error:
        kind = apsw.FullError if error.errno == errno.ENOSPC else apsw.IOError
        raise kind(str(error)) from error
