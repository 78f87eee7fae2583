r"""Where an outcome comes from: what was typed, on which files, when, with which version.

An auditor who has the files can see by their checksums that they are the same, and run the
command again.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp(), "may.csv")
>>> _ = path.write_text("a,b\n1,2\n")
>>> origin = trace("driftquilt select may.csv", [str(path)])
>>> [(file.n_bytes, file.sha256[:8]) for file in origin.data]
[(8, '492d5ea4')]
>>> Origin.from_json(origin.to_json()) == origin
True
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from driftquilt import __version__
from driftquilt.data.paths import find_files

__all__ = ["DataFile", "Origin", "trace"]


@dataclass(frozen=True)
class DataFile:
    """A file of rows; of a pipe neither size nor checksum is known."""

    name: str
    n_bytes: int | None = None
    sha256: str | None = None


@dataclass(frozen=True)
class Origin:
    """`made` is the time, in UTC."""

    command: str = ""
    data: tuple[DataFile, ...] = ()
    made: str = ""
    version: str = __version__

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Origin:
        return cls(**{**data, "data": tuple(DataFile(**file) for file in data["data"])})


def trace(command: str, paths: Sequence[str]) -> Origin:
    """The origin of what is made now of these data files."""
    files = [DataFile("standard input")] if "-" in paths else map(_look, find_files(paths))
    made = datetime.now(UTC).isoformat(timespec="seconds")
    return Origin(command, tuple(files), made)


def _look(path: Path) -> DataFile:
    if not path.is_file():  # a named pipe, which is gone
        return DataFile(str(path))
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return DataFile(str(path), path.stat().st_size, digest)
