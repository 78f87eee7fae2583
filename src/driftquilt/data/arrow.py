"""An Arrow table stays where it lies, perhaps in a mapped file; rows are read when asked for.

Numbers and categories are seen through views of Arrow's own memory; dates, times and time spans are
computed from it for the rows that are asked for. Kinds without such a view (decimals) are read at
once as `columns` reads them. All is checked once, and refused as `columns` refuses it. Arrow's
memory does not change, so nothing protects it from the caller.

Pages of a mapped file count as the process's memory once they are read, so a pass over a large file
would seem to take as much memory as the file is long. Whoever reads rows of a table that may be
mapped calls `note_read` with the number of bytes. Whenever `LIMIT` bytes were read, the pages of
all mapped files are released; a page that is read again comes from the system's cache or the disk.
A file must not change while it is mapped.

A `Column` is made of pieces, one after the other. What it gives for some rows is what `columns`
would have read there:

    read(rows)  (k,)  float64 with NaN where missing, or str objects with None where missing

`rows` is a slice without a step, or row numbers from 0 on. `ArrowFrame.take` gives a `Frame`.

>>> import pyarrow as pa
>>> table = read_in_place(pa.table({"age": [31, None, 7], "city": ["Oslo", "Rome", None]}))
>>> frame = table.take(slice(1, 3))
>>> frame.numbers.tolist(), frame.texts
([[nan], [7.0]], {'city': array(['Rome', None], dtype=object)})
"""

from __future__ import annotations

import contextlib
import mmap
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import DTypeLike, NDArray

from driftquilt.data.calendar import (
    CLOCK_PARTS,
    PARTS,
    check_columns,
    flatten,
    from_arrow,
    line_up,
    part_name,
    seconds,
)
from driftquilt.data.columns import FLOAT32_MAX, is_missing, is_text, read_column, refuse_extremes
from driftquilt.data.frame import BLOCK, Frame, as_frame

SMALLEST_PIECE = 4096  # rows; smaller ones cost more to visit than to copy
LONGEST_PIECE = 2**20  # rows; what is read of a longer one at a time would take much memory

LIMIT = 128 << 20  # bytes
_BYTES_AROUND_ROW = 2 * 65_536  # of text: the pages of its offset and of its characters

_lock = threading.Lock()
_limited: list[MappedFile] = []
_n_read = 0

Picks: TypeAlias = slice | NDArray[np.integer[Any]]


@dataclass(frozen=True, eq=False)
class Loaded:
    """Rows that are in memory as they are read."""

    values: NDArray[Any]
    n_bytes = 0

    def __len__(self) -> int:
        return len(self.values)

    def read(self, rows: Picks) -> NDArray[Any]:
        return self.values[rows]


@dataclass(frozen=True, eq=False)
class Fixed:
    """Numbers as Arrow holds them, or places in a list of texts whose last stands for missing.

    `valid` has a bit per row, that of the first row at `first_bit`; None if no row is missing.
    """

    values: NDArray[Any]
    valid: NDArray[np.uint8] | None = None
    first_bit: int = 0
    texts: NDArray[Any] | None = None

    @property
    def n_bytes(self) -> int:
        return self.values.nbytes

    def __len__(self) -> int:
        return len(self.values)

    def read(self, rows: Picks) -> NDArray[Any]:
        if self.texts is None:
            return self._fill(rows, np.float64, np.nan)
        texts: NDArray[Any] = self.texts[self._fill(rows, np.intp, -1)]
        return texts

    def _fill(self, rows: Picks, dtype: DTypeLike, missing: float) -> NDArray[Any]:
        values = self.values[rows].astype(dtype)
        if self.valid is not None:
            bits = self.first_bit + (
                np.arange(*rows.indices(len(self))) if isinstance(rows, slice) else rows
            )
            values[(self.valid[bits >> 3] >> (bits & 7).astype(np.uint8)) & 1 == 0] = missing
        return values


@dataclass(frozen=True, eq=False)
class Made:
    """An Arrow array of which `make` makes numbers or texts, of each row by itself."""

    array: Any
    make: Callable[[Any], NDArray[Any]]

    @property
    def n_bytes(self) -> int:
        return int(self.array.nbytes)

    def __len__(self) -> int:
        return len(self.array)

    def read(self, rows: Picks) -> NDArray[Any]:
        return self.make(self.array[rows] if isinstance(rows, slice) else self.array.take(rows))


#: Some rows of a column that follow each other; `n_bytes` may lie in a mapped file.
Piece: TypeAlias = Loaded | Fixed | Made


@dataclass(frozen=True, eq=False)
class Column:
    """Pieces one after the other; of their rows, those that are `picked` count, or all."""

    pieces: tuple[Piece, ...]
    is_text: bool
    picked: NDArray[np.intp] | None = None

    def __len__(self) -> int:
        return int(self._bounds[-1]) if self.picked is None else len(self.picked)

    @cached_property
    def _bounds(self) -> NDArray[np.intp]:
        """Where each piece begins, and where the last one ends."""
        return np.cumsum([0, *map(len, self.pieces)])

    def read(self, rows: Picks) -> NDArray[Any]:
        """Return some of the rows."""
        if self.picked is not None:
            rows = self.picked[rows]
        if len(self.pieces) == 1:
            return _read_piece(self.pieces[0], rows)
        if isinstance(rows, slice):
            return self._read_run(*rows.indices(len(self))[:2])
        if np.all(rows[1:] >= rows[:-1]):
            return self._read_rising(rows)
        order = np.argsort(rows, kind="stable")
        rising = self._read_rising(rows[order])
        read = np.empty_like(rising)
        read[order] = rising
        return read

    def blocks(self) -> Iterator[NDArray[Any]]:
        """All rows, some at a time."""
        for first in range(0, len(self), BLOCK):
            yield self.read(slice(first, first + BLOCK))

    def pick(self, rows: NDArray[np.intp]) -> Column:
        """Return the column as if it had these rows alone; they are not read yet."""
        return replace(self, picked=rows if self.picked is None else self.picked[rows])

    def append(self, later: Column) -> Column:
        """Return the column with the later one below it; small pieces become one."""
        pieces = list(self.pieces)
        for piece in later.pieces:
            if max(len(pieces[-1]), len(piece)) < SMALLEST_PIECE:
                both = [part.read(slice(0, len(part))) for part in (pieces[-1], piece)]
                pieces[-1] = Loaded(np.concatenate(both))
            else:
                pieces.append(piece)
        return Column(tuple(pieces), self.is_text)

    def _read_run(self, start: int, stop: int) -> NDArray[Any]:
        spans = zip(self.pieces, self._bounds[:-1].tolist(), strict=True)
        return self._concatenate(
            _read_piece(piece, slice(max(start - first, 0), stop - first))
            for piece, first in spans
            if first < stop and start < first + len(piece)
        )

    def _read_rising(self, rows: NDArray[np.integer[Any]]) -> NDArray[Any]:
        ends = np.searchsorted(rows, self._bounds).tolist()
        spans = zip(self.pieces, self._bounds.tolist(), ends, ends[1:], strict=False)
        return self._concatenate(
            _read_piece(piece, rows[a:b] - first) for piece, first, a, b in spans if a < b
        )

    def _concatenate(self, parts: Iterator[NDArray[Any]]) -> NDArray[Any]:
        nothing = np.empty(0, dtype=object if self.is_text else np.float64)
        read = list(parts)
        return read[0] if len(read) == 1 else np.concatenate([nothing, *read])


def _read_piece(piece: Piece, rows: Picks) -> NDArray[Any]:
    read = piece.read(rows)
    note_read(piece.n_bytes, len(read))
    return read


@dataclass(frozen=True, eq=False)
class ArrowFrame:
    """Columns of equal length by name, read when asked; `named` as in `Frame`."""

    parts: dict[str, Column]
    named: bool = True

    def __len__(self) -> int:
        return len(next(iter(self.parts.values())))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns, in the caller's order."""
        return tuple(self.parts)

    def take(self, rows: Picks) -> Frame:
        """Return some of the rows, read."""
        read = {name: column.read(rows) for name, column in self.parts.items()}
        return Frame.of_arrays(read, named=self.named)

    def load(self) -> Frame:
        """All of them."""
        return self.take(slice(0, len(self)))

    def is_text(self, name: str) -> bool:
        """Whether the column is text; if not, it is numbers."""
        return self.parts[name].is_text

    def kind(self, name: str) -> str:
        """Return what the column holds: "numbers", "text", or "nothing" if all of it is missing."""
        blocks = self.parts[name].blocks()
        if self.is_text(name):
            empty = all(value is None for block in blocks for value in block)
            return "nothing" if empty else "text"
        return "nothing" if all(np.isnan(block).all() for block in blocks) else "numbers"

    def present(self, name: str) -> NDArray[np.float64]:
        """Return the numbers of a column but the missing ones, copied."""
        numbers, end = np.empty(len(self)), 0
        for block in self.parts[name].blocks():
            seen = block[~np.isnan(block)]
            numbers[end : end + len(seen)] = seen
            end += len(seen)
        return numbers[:end]

    def counts(self, name: str) -> Counter[str | None]:
        """How many rows have each text."""
        counts: Counter[str | None] = Counter()
        for block in self.parts[name].blocks():
            counts.update(block.tolist())
        return counts

    def pick(self, rows: NDArray[np.bool_]) -> ArrowFrame:
        """Return the table as if it had these rows alone."""
        places = np.flatnonzero(rows)
        parts = {name: column.pick(places) for name, column in self.parts.items()}
        return replace(self, parts=parts)


def stack_in_place(first: ArrowFrame, second: ArrowFrame) -> ArrowFrame | None:
    """Append the rows of `second` unread; None where a column is text in one of them alone."""
    below = [second.parts[second.columns[place]] for place in line_up(first, second)]
    pairs = dict(zip(first.columns, below, strict=True))
    if any(first.is_text(name) != later.is_text for name, later in pairs.items()):
        return None
    parts = {name: first.parts[name].append(later) for name, later in pairs.items()}
    return ArrowFrame(parts, first.named)


def read_in_place(X: Any) -> ArrowFrame:
    """Return a `pyarrow.Table` as it lies in memory; raises `InputError` if it cannot be used."""
    names = check_columns(as_frame(X).columns, X.shape)
    return ArrowFrame(flatten(map(_read_columns, names, X.columns)))


def _read_columns(name: str, values: Any) -> dict[str, Column]:
    """Return what one column of the caller's becomes, by name."""
    kind = values.type
    if pa.types.is_duration(kind):
        return {name: _made(values, _to_seconds, is_text=False)}
    if pa.types.is_time(kind) or pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        parts = CLOCK_PARTS if pa.types.is_time(kind) else PARTS
        return {
            part_name(name, part): _made(values, partial(_to_part, part), is_text=False)
            for part in parts
        }
    return {name: _read(name, values)}


def _made(values: Any, make: Callable[[Any], NDArray[Any]], *, is_text: bool) -> Column:
    return Column(tuple(Made(chunk, make) for chunk in _few_chunks(values)), is_text)


def _to_texts(chunk: Any) -> NDArray[Any]:
    coded = chunk.dictionary_encode()  # one Python string per category, not per row
    texts = np.array([*coded.dictionary.to_pylist(), None], dtype=object)
    read: NDArray[Any] = texts[coded.indices.fill_null(len(texts) - 1).to_numpy()]
    return read


def _to_part(part: str, chunk: Any) -> NDArray[np.float64]:
    return from_arrow(chunk).part(part)


def _to_seconds(chunk: Any) -> NDArray[np.float64]:
    return seconds(chunk.to_numpy(zero_copy_only=False))


def _read(name: str, values: Any) -> Column:
    kind = values.type
    if pa.types.is_boolean(kind) or pa.types.is_float16(kind):
        values = values.cast(pa.uint8() if pa.types.is_boolean(kind) else pa.float32())
    if pa.types.is_integer(values.type) or pa.types.is_floating(values.type):
        chunks = _few_chunks(values)
        column = Column(tuple(map(_view, chunks)), is_text=False)
        if pa.types.is_floating(kind) and any(map(_is_extreme, chunks)):
            for number, block in enumerate(column.blocks()):
                refuse_extremes((name,), block[:, None], first_row=number * BLOCK)
        return column
    if pa.types.is_dictionary(kind):
        chunks = _few_chunks(values) if has_one_dictionary(values) else _shorten(values.chunks)
        return Column(tuple(map(_view_texts, chunks)), is_text=True)
    is_string = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if is_string and values.null_count < len(values):
        return _made(values, _to_texts, is_text=True)
    read = read_column(name, values)
    return Column((Loaded(read),), is_text(read))


def _few_chunks(values: Any) -> list[Any]:
    """Return the rows in pieces, none very long; in one if visiting small ones would cost more."""
    chunks = [chunk for chunk in values.chunks if len(chunk)]
    if len(chunks) > 1 and len(values) < SMALLEST_PIECE * len(chunks):
        whole = values.combine_chunks()  # still in chunks where one would be too long for Arrow
        chunks = whole.chunks if isinstance(whole, pa.ChunkedArray) else [whole]
    return _shorten(chunks)


def _shorten(chunks: Iterable[Any]) -> list[Any]:
    return [
        chunk.slice(first, LONGEST_PIECE)
        for chunk in chunks
        for first in range(0, len(chunk), LONGEST_PIECE)
    ]


def has_one_dictionary(values: Any) -> bool:
    """Whether all chunks of categories stand for the same texts, so that codes can be joined."""
    first, *others = [chunk.dictionary for chunk in values.chunks] or [None]
    return all(each.equals(first) for each in others)


def _view(chunk: Any, texts: NDArray[Any] | None = None) -> Fixed:
    bits, data = chunk.buffers()[:2]
    values = np.frombuffer(data, dtype=chunk.type.to_pandas_dtype())
    valid = np.frombuffer(bits, dtype=np.uint8) if chunk.null_count else None
    return Fixed(values[chunk.offset : chunk.offset + len(chunk)], valid, chunk.offset, texts)


def _view_texts(chunk: Any) -> Fixed:
    texts = [None if is_missing(text) else str(text) for text in chunk.dictionary.to_pylist()]
    return _view(chunk.indices, np.array([*texts, None], dtype=object))


def _is_extreme(chunk: Any) -> bool:
    """Whether some number is too large for a float32."""
    lowest, highest = (bound.as_py() for bound in pc.min_max(chunk).values())
    note_read(chunk.nbytes)
    return lowest is not None and max(highest, -lowest) > FLOAT32_MAX


class MappedFile:
    """All bytes of a file as an Arrow buffer; the file may be closed meanwhile."""

    def __init__(self, file: Any) -> None:
        self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        self.buffer = pa.py_buffer(self._map)

    def holds(self, batch: Any) -> bool:
        """Return whether the values of a record batch are in here, not in memory of their own."""
        buffers = [part for column in batch.columns for part in column.buffers()]
        start, end = self.buffer.address, self.buffer.address + self.buffer.size
        return all(
            start <= part.address < end for part in buffers if part is not None and part.size
        )

    def release_pages(self) -> None:
        """Make all pages non-resident; their contents stay."""
        if hasattr(mmap, "MADV_DONTNEED"):  # which Windows lacks
            self._map.madvise(mmap.MADV_DONTNEED)


@contextlib.contextmanager
def limit_memory(files: Sequence[MappedFile]) -> Iterator[None]:
    """Bound the resident part of the files inside the block."""
    if sum(file.buffer.size for file in files) <= LIMIT:
        yield
        return
    _limited.extend(files)
    try:
        yield
    finally:
        for file in files:
            _limited.remove(file)


def note_read(n_bytes: int, n_rows: int | None = None) -> None:
    """Count bytes that were read, or `n_rows` scattered rows among them; release pages in time."""
    global _n_read  # noqa: PLW0603  # the memory of the process is counted
    if not _limited:
        return
    with _lock:
        _n_read += n_bytes if n_rows is None else min(n_bytes, n_rows * _BYTES_AROUND_ROW)
        if _n_read >= LIMIT:
            _n_read = 0
            for file in _limited:
                file.release_pages()
