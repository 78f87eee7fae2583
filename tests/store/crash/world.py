"""A disk that can lose its power, and whose writes and syncs can fail.

The world knows each file twice: as the running program sees it, and as the last sync left it. The
same goes for the names in folders. At a power cut every 512-byte sector that was written
since is, at random, old, new, or garbage; every name that was not synced is there or is not.

    write, truncate, rename, remove  change what the program sees
    sync, sync_folder                make it last
    cut_at, fail_at                  the step at which power goes, or at which one step fails

Bytes outside a write are never harmed, which is what SQLite expects of disks by default.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

SECTOR = 512


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


class World:
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
