r"""What the user names becomes files, and a file or a pipe bytes, unpacked and decoded.

`find_files` takes paths and globs, quoted or not. The rows of the last file are the newest, so the
order matters. The files of a glob are taken in natural order (day9 before day10). Several paths
keep their order, unless that is alphabetical, which is how a shell expands a glob: then it is the
natural order too.

>>> folder = Path(tempfile.mkdtemp())
>>> for name in ("day10.csv", "day9.csv"):
...     _ = (folder / name).write_text("x\n1\n")
>>> [path.name for path in find_files([f"{folder}/*.csv"])]
['day9.csv', 'day10.csv']

A `ByteSource` can be read from the start as often as needed, and knows how far reading has come.
Readings of one source do not disturb each other, even if a library still reads ahead on a thread
of its own for one that has ended. A pipe is first copied to a temporary file without a name: the
system deletes it with the last handle on it, so that nothing is left behind, however the process
ends.

>>> source = spool("standard input", io.BytesIO(gzip.compress(b"a,b\n1,2\n")))
>>> source.packed, source.head()
(True, b'a,b\n1,2\n')
"""

from __future__ import annotations

import codecs
import contextlib
import errno
import glob
import gzip
import io
import os
import re
import shutil
import tempfile
import threading
import weakref
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

import pyarrow as pa

from driftquilt.errors import InputError
from driftquilt.text import listing, one_line, suggest

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

BLOCK = 8 << 20  # bytes read at a time
_DECODED = 1 << 20  # bytes decoded at a time
_GZIP = b"\x1f\x8b"
_TAB = ("tab", "\\t")  # as it is typed where a tab cannot be
_UTF8 = ("utf-8", "utf-8-sig")


@dataclass(frozen=True)
class TextFormat:
    """How text files are written; other files say so themselves.

    A `delimiter` of None is detected from the header. JSON lines only have an encoding, which is
    stored by Python's name for it.

    >>> TextFormat(delimiter=";", decimal=",", encoding="latin-1")
    TextFormat(delimiter=';', decimal=',', encoding='iso8859-1')
    """

    delimiter: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        if self.delimiter in _TAB:
            object.__setattr__(self, "delimiter", "\t")
        if self.delimiter is not None and not _is_delimiter(self.delimiter):
            raise InputError(
                f"got --delimiter {self.delimiter!r}; give the one character that separates "
                "fields, such as ',' ';' '|' or tab"
            )
        if self.decimal not in (".", ","):
            raise InputError(f"got --decimal {self.decimal!r}; give ',' or '.'")
        object.__setattr__(self, "encoding", _find_encoding(self.encoding))


@dataclass(eq=False)
class ByteSource:
    """An input that `opener` opens again each time; `done` counts the bytes read of `size`.

    `name` is for messages; `encoding` is that of its text, where it is text.
    """

    name: str
    opener: Callable[[], IO[bytes]]
    size: int
    encoding: str = field(default="utf-8", init=False)
    done: int = field(default=0, init=False)
    packed: bool = field(init=False)
    lock: threading.RLock = field(default_factory=threading.RLock, init=False, repr=False)

    def __post_init__(self) -> None:
        with self.raw() as file:
            self.packed = file.read(len(_GZIP)) == _GZIP

    @contextlib.contextmanager
    def raw(self) -> Iterator[io.BufferedIOBase]:
        """Open the bytes as they are stored, seekable."""
        self.done = 0
        with reading(self.name), _Reading(self.opener(), self) as file:
            yield file

    @contextlib.contextmanager
    def unpacked(self) -> Iterator[io.BufferedIOBase]:
        """Open the bytes without the gzip layer, if there is one."""
        with self.raw() as file:
            if not self.packed:
                yield file
                return
            with gzip.GzipFile(fileobj=file) as unpacked:
                yield unpacked

    @contextlib.contextmanager
    def text(self) -> Iterator[io.BufferedIOBase]:
        """Open the unpacked bytes as UTF-8, whatever their encoding."""
        with self.unpacked() as file:
            plain = self.encoding == "utf-8"
            yield file if plain else _Utf8Reader(file, self.encoding, self.name)

    def head(self, n_bytes: int = 1 << 20) -> bytes:
        """Return the first unpacked bytes, or all if there are fewer."""
        with self.unpacked() as file:
            return _read_first(file, n_bytes)

    def text_head(self, n_bytes: int = 1 << 20) -> bytes:
        """Return the first bytes of `text`."""
        with self.text() as file:
            return _read_first(file, n_bytes)


class _Reading(io.BufferedIOBase):
    """Reads at a position of its own, and counts the bytes for the source.

    Handles of a copied pipe share one position in the system, and the number of a closed file is
    soon that of another; so the lock is held from finding the position until the bytes are read.
    """

    def __init__(self, file: IO[bytes], source: ByteSource) -> None:
        self._file = file
        self._source = source
        self._position = 0

    def read(self, size: int | None = -1, /) -> bytes:
        with self._source.lock:
            self._file.seek(self._position)
            data = self._file.read(-1 if size is None else size)
            self._position += len(data)
            self._source.done = min(self._source.done + len(data), self._source.size)
        return data

    def read1(self, size: int = -1, /) -> bytes:
        return self.read(size)

    def seek(self, offset: int, whence: int = 0, /) -> int:
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._source.size}
        self._position = start[whence] + offset
        return self._position

    def tell(self) -> int:
        return self._position

    def fileno(self) -> int:
        return self._file.fileno()

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        with self._source.lock:
            self._file.close()
        super().close()


class _Utf8Reader(io.BufferedIOBase):
    r"""The bytes of `file` as UTF-8; `InputError` with the line where they are not `encoding`.

    >>> _Utf8Reader(io.BytesIO(b"caf\xe9"), "latin-1", "a.csv").read().decode()
    'café'
    """

    def __init__(self, file: io.BufferedIOBase, encoding: str, name: str) -> None:
        self._file = file
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._encoding, self._name = encoding, name
        self._line = 1
        self._rest = b""
        self._ended = False

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        limit = -1 if size is None or size < 0 else size
        parts, n_bytes = [self._rest], len(self._rest)
        while not self._ended and (limit < 0 or n_bytes < limit):
            parts.append(self._decode_block())
            n_bytes += len(parts[-1])
        data = b"".join(parts)
        end = n_bytes if limit < 0 else limit
        self._rest = data[end:]
        return data[:end]

    def read1(self, size: int = -1, /) -> bytes:
        return self.read(size)

    def _decode_block(self) -> bytes:
        block = self._file.read(_DECODED)
        self._ended = not block
        try:
            text = self._decoder.decode(block, final=self._ended)
        except UnicodeError as error:
            problem = f"{self._name} is not {self._encoding}: {error}"  # no UTF-16 mark, say
            if isinstance(error, UnicodeDecodeError):
                before = error.object[: error.start].decode(self._encoding, errors="replace")
                line, byte = self._line + before.count("\n"), error.object[error.start]
                problem = f"{self._name}, line {line}: byte 0x{byte:02x} is not {self._encoding}"
            raise InputError(f"{problem}; give the right encoding with --encoding") from error
        self._line += text.count("\n")
        return text.encode("utf-8", errors="surrogatepass")


def open_file(path: Path) -> ByteSource:
    """Return a file as a source; a named pipe, which can be read only once, is copied first."""
    with reading(str(path)):
        if not path.is_file():
            with path.open("rb") as file:
                return spool(str(path), file)
        return ByteSource(str(path), lambda: path.open("rb", buffering=0), path.stat().st_size)


def spool(
    name: str,
    stream: IO[bytes] | io.BufferedIOBase,
    watch: Callable[[int, int], None] | None = None,
) -> ByteSource:
    """Copy a stream to a temporary file; `watch` gets the bytes so far, and 0 as their total."""
    size = 0
    with storing(), tempfile.TemporaryFile() as file:
        while block := _read_block(name, stream):
            file.write(block)
            size += len(block)
            if watch is not None:
                watch(size, 0)
        file.flush()
        handle = os.dup(file.fileno())
    source = ByteSource(name, lambda: _open_again(handle), size)
    weakref.finalize(source, os.close, handle)
    return source


@contextlib.contextmanager
def reading(name: str) -> Iterator[None]:
    """Turn whatever is wrong with an input into an `InputError` that names it."""
    try:
        yield
    except PermissionError as error:
        raise InputError(
            f"{name} cannot be read: permission denied; change its permissions"
        ) from error
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(
            f"{name} is damaged or cut short: {one_line(error)}; fetch it again"
        ) from error
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{name} cannot be read: {one_line(error)}; if it is damaged, fetch it again"
        ) from error


@contextlib.contextmanager
def storing() -> Iterator[None]:
    """Turn errors of the temporary folder into an `InputError`."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        problem = "is full" if full else f"cannot be used ({one_line(error)})"
        raise InputError(
            f"the folder for temporary files {problem}; set TMPDIR to a folder with more space"
        ) from error


def check_room(written: int, share: float, free: int | None = None) -> None:
    """Refuse to go on if, with `share` of the input read, the rest will not fit on the disk.

    >>> check_room(written=1 << 30, share=0.5, free=2 << 30)
    """
    with storing():
        folder = tempfile.gettempdir()
        free = shutil.disk_usage(folder).free if free is None else free
    rest = written / max(share, 1e-9) - written
    if rest > free:
        raise InputError(
            f"{(written + rest) / 1e9:.1f} GB are needed for temporary files, but {folder} has "
            f"only {(written + free) / 1e9:.1f} GB; set TMPDIR to a folder with more space"
        )


def _read_first(file: io.BufferedIOBase, n_bytes: int) -> bytes:
    parts = bytearray()
    while len(parts) < n_bytes and (part := file.read(n_bytes - len(parts))):
        parts += part
    return bytes(parts)


def _read_block(name: str, stream: IO[bytes] | io.BufferedIOBase) -> bytes:
    with reading(name):
        return stream.read(BLOCK)


def _open_again(handle: int) -> IO[bytes]:
    os.lseek(handle, 0, os.SEEK_SET)
    return os.fdopen(os.dup(handle), "rb", buffering=0)


def _is_delimiter(text: str) -> bool:
    return len(text) == 1 and text.isascii() and not text.isalnum() and text not in '"\r\n\0'


def _find_encoding(name: str) -> str:
    try:
        io.TextIOWrapper(io.BytesIO(), name)  # refuses codecs that are not for text, such as hex
        encoding = codecs.lookup(name).name
    except (LookupError, ValueError) as error:
        raise InputError(
            f"unknown --encoding {name!r}; give one such as utf-8, latin-1, cp1252 or utf-16"
        ) from error
    return "utf-8" if encoding in _UTF8 else encoding


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
