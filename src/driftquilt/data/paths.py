r"""What the user typed becomes a list of files: paths, globs, quoted or not.

The rows of the last file are the newest, so the order matters. The files of a glob are taken in
natural order (day9 before day10). Several paths keep their order, unless that is alphabetical,
which is how a shell expands a glob: then it is the natural order too.

>>> import tempfile
>>> folder = Path(tempfile.mkdtemp())
>>> for name in ("day10.csv", "day9.csv"):
...     _ = (folder / name).write_text("x\n1\n")
>>> [path.name for path in find_files([f"{folder}/*.csv"])]
['day9.csv', 'day10.csv']
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from pathlib import Path

from driftquilt.errors import InputError
from driftquilt.text import listing, suggest

__all__ = ["FORMATS", "find_files", "natural_key", "suffix_of"]

#: Formats by file suffix; each of them may end in .gz as well.
FORMATS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
}


def find_files(patterns: Sequence[str | os.PathLike[str]]) -> list[Path]:
    """Return the files, each once; raise `InputError` for a pattern that matches none."""
    if not patterns:
        raise InputError("no data file is named; give a path, a glob such as 'data/*.csv', or -")
    texts = [str(Path(pattern).expanduser()) for pattern in patterns]
    if texts == sorted(texts):
        texts.sort(key=natural_key)
    unique: dict[Path, Path] = {}
    for path in (path for text in texts for path in _find(text)):
        unique.setdefault(path.resolve(), path)
    return list(unique.values())


def suffix_of(file_name: str) -> str:
    """Return the last suffix before .gz, in lower case."""
    return Path(file_name.lower().removesuffix(".gz")).suffix


def natural_key(name: str) -> list[tuple[bool, int, str]]:
    """Return a key that sorts numbers inside names by value.

    >>> sorted(["day10", "day9", "Day1"], key=natural_key)
    ['Day1', 'day9', 'day10']
    """
    parts = [part for part in re.split(r"([0-9]+)", name) if part]
    return [(False, int(p), p) if p.isdecimal() else (True, 0, p.lower()) for p in parts]


def _find(pattern: str) -> list[Path]:
    path = Path(pattern)
    if path.is_dir():
        raise _folder_error(path)
    if os.path.lexists(path):
        return [path]
    if not glob.has_magic(pattern):
        raise InputError(f"there is no file {path}; {_describe_neighbours(path)}")
    matches = sorted(glob.iglob(pattern, recursive=True), key=natural_key)  # noqa: PTH207
    files = [Path(match) for match in matches if not Path(match).is_dir()]
    if not files:
        raise InputError(f"no file matches {pattern!r}; {_describe_neighbours(path)}")
    return files


def _folder_error(path: Path) -> InputError:
    names = _files_in(path)
    if not names:
        return InputError(f"{path} is a folder without files; name a data file")
    data = next((name for name in names if suffix_of(name) in FORMATS), None)
    if data is None:
        return InputError(
            f"{path} is a folder without data files (it contains {listing(names)}); name a data "
            "file"
        )
    example = path / f"*{Path(data).suffix}"
    return InputError(
        f"{path} is a folder; name files in it, such as '{example}' (it contains {listing(names)})"
    )


def _describe_neighbours(path: Path) -> str:
    """Say which files there are in the folder of a path."""
    folder = path.parent
    if glob.has_magic(str(folder)):
        return "check the folders that it names"
    if not folder.is_dir():
        return f"there is no folder {folder} either"
    names = _files_in(folder)
    return f"in {folder}: {suggest(path.name, names)}" if names else f"{folder} contains no file"


def _files_in(folder: Path) -> list[str]:
    try:
        names = [path.name for path in folder.iterdir() if path.is_file()]
    except OSError as error:
        raise InputError(f"the folder {folder} cannot be read: {error.strerror}") from error
    return sorted((name for name in names if not name.startswith(".")), key=natural_key)
