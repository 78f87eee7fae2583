r"""What the user typed becomes a list of files: paths, globs, quoted or not.

The rows of the last file are the newest, so the order matters. The files of a glob are taken in
natural order (day9 before day10). Several paths keep the order in which they are given, unless
that is the plain alphabet, which is how a shell lists a glob: then it is the natural order too.

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
from collections.abc import Sequence
from pathlib import Path

from driftquilt.data.formats import is_known
from driftquilt.data.names import natural
from driftquilt.errors import InputError
from driftquilt.text import listing, suggest

__all__ = ["find_files"]


def find_files(patterns: Sequence[str | os.PathLike[str]]) -> list[Path]:
    """The files, each once; `InputError` for a pattern that names none."""
    if not patterns:
        raise InputError("no data file is named; give a path, a glob such as 'data/*.csv', or -")
    given = [str(Path(pattern).expanduser()) for pattern in patterns]
    if given == sorted(given):
        given.sort(key=natural)
    once: dict[Path, Path] = {}
    for path in (path for pattern in given for path in _find(pattern)):
        once.setdefault(path.resolve(), path)
    return list(once.values())


def _find(pattern: str) -> list[Path]:
    path = Path(pattern)
    if path.is_dir():
        raise _folder(path)
    if os.path.lexists(path):
        return [path]
    if not glob.has_magic(pattern):
        raise _no_such_file(path)
    matches = sorted(glob.iglob(pattern, recursive=True), key=natural)  # noqa: PTH207  absolute too
    files = [Path(match) for match in matches if not Path(match).is_dir()]
    if not files:
        raise InputError(f"no file matches {pattern!r}; {_neighbours(path)}")
    return files


def _folder(path: Path) -> InputError:
    names = _files_in(path)
    if not names:
        return InputError(f"{path} is a folder, and there is no file in it; name a data file")
    data = next(filter(is_known, names), None)
    if data is None:
        return InputError(
            f"{path} is a folder, and no data file is in it (it holds {listing(names)}); name a "
            "data file"
        )
    example = path / f"*{Path(data).suffix}"
    return InputError(
        f"{path} is a folder; name files in it, such as '{example}' (it holds {listing(names)})"
    )


def _no_such_file(path: Path) -> InputError:
    return InputError(f"there is no file {path}; {_neighbours(path)}")


def _neighbours(path: Path) -> str:
    """What there is where the path points to."""
    folder = path.parent
    if glob.has_magic(str(folder)):
        return "check the folders that it names"
    if not folder.is_dir():
        return f"there is no folder {folder} either"
    names = _files_in(folder)
    return f"in {folder}: {suggest(path.name, names)}" if names else f"{folder} holds no file"


def _files_in(folder: Path) -> list[str]:
    try:
        names = [path.name for path in folder.iterdir() if path.is_file()]
    except OSError as error:
        raise InputError(f"the folder {folder} cannot be read: {error.strerror}") from error
    return sorted((name for name in names if not name.startswith(".")), key=natural)
