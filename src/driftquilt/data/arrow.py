"""An Arrow table stays where it lies, perhaps in a mapped file; rows are read when asked for.

Numbers, text, dates, times and time spans are converted from Arrow's own memory, for the rows that
are asked for. Other kinds (decimals) are read at once as `columns` reads them. All is checked once,
and refused as `columns` refuses it. Arrow's memory does not change, so nothing protects it from the
caller.

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
from numpy.typing import NDArray

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
class Piece:
    """Rows that follow each other, as Arrow holds them; `convert` makes float64 or texts of them.

    Each row is converted by itself.
    """

    array: Any
    convert: Callable[[Any], NDArray[Any]]

    def __len__(self) -> int:
        return len(self.array)

    def read(self, rows: Picks) -> NDArray[Any]:
        """Convert some of the rows."""
        some = self.array[rows] if isinstance(rows, slice) else self.array.take(pa.array(rows))
        note_read(self.array.nbytes, len(some))
        return self.convert(some)


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
        """Some of the rows."""
        if self.picked is not None:
            rows = self.picked[rows]
        if len(self.pieces) == 1:
            return self.pieces[0].read(rows)
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
        """The column as if it had these rows alone; they are not read yet."""
        return replace(self, picked=rows if self.picked is None else self.picked[rows])

    def append(self, later: Column) -> Column:
        """The column with the later one below it; small pieces become one."""
        pieces = list(self.pieces)
        for piece in later.pieces:
            if max(len(pieces[-1]), len(piece)) < SMALLEST_PIECE:
                both = [part.read(slice(0, len(part))) for part in (pieces[-1], piece)]
                pieces[-1] = _load(np.concatenate(both))
            else:
                pieces.append(piece)
        return Column(tuple(pieces), self.is_text)

    def _read_run(self, start: int, stop: int) -> NDArray[Any]:
        spans = zip(self.pieces, self._bounds[:-1].tolist(), strict=True)
        return self._concatenate(
            piece.read(slice(max(start - first, 0), stop - first))
            for piece, first in spans
            if first < stop and start < first + len(piece)
        )

    def _read_rising(self, rows: NDArray[np.integer[Any]]) -> NDArray[Any]:
        ends = np.searchsorted(rows, self._bounds).tolist()
        spans = zip(self.pieces, self._bounds.tolist(), ends, ends[1:], strict=False)
        return self._concatenate(
            piece.read(rows[a:b] - first) for piece, first, a, b in spans if a < b
        )

    def _concatenate(self, parts: Iterator[NDArray[Any]]) -> NDArray[Any]:
        nothing = np.empty(0, dtype=object if self.is_text else np.float64)
        read = list(parts)
        return read[0] if len(read) == 1 else np.concatenate([nothing, *read])


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
        """Some of the rows, read."""
        read = {name: column.read(rows) for name, column in self.parts.items()}
        return Frame.of_arrays(read, named=self.named)

    def load(self) -> Frame:
        """All of them."""
        return self.take(slice(0, len(self)))

    def is_text(self, name: str) -> bool:
        """Whether the column is text; if not, it is numbers."""
        return self.parts[name].is_text

    def kind(self, name: str) -> str:
        """What the column holds: "numbers", "text", or "nothing" if all of it is missing."""
        blocks = self.parts[name].blocks()
        if self.is_text(name):
            empty = all(value is None for block in blocks for value in block)
            return "nothing" if empty else "text"
        return "nothing" if all(np.isnan(block).all() for block in blocks) else "numbers"

    def present(self, name: str) -> NDArray[np.float64]:
        """The numbers of a column but the missing ones, copied."""
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
        """The table as if it had these rows alone."""
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
    """A `pyarrow.Table` as it lies in memory; raises `InputError` if it cannot be used."""
    names = check_columns(as_frame(X).columns, X.shape)
    return ArrowFrame(flatten(map(_read_columns, names, X.columns)))


def _read_columns(name: str, values: Any) -> dict[str, Column]:
    """What one column of the caller's becomes, by name."""
    kind = values.type
    if pa.types.is_time(kind) or pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        parts = CLOCK_PARTS if pa.types.is_time(kind) else PARTS
        return {
            part_name(name, part): _column(_few_chunks(values), partial(_to_part, part))
            for part in parts
        }
    return {name: _read(name, values)}


def _read(name: str, values: Any) -> Column:
    kind = values.type
    if pa.types.is_duration(kind):
        return _column(_few_chunks(values), _to_seconds)
    if pa.types.is_dictionary(kind):
        chunks = _few_chunks(values) if has_one_dictionary(values) else _shorten(values.chunks)
        pieces = (Piece(chunk.indices, partial(_to_category, _texts_of(chunk))) for chunk in chunks)
        return Column(tuple(pieces), is_text=True)
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind) or pa.types.is_floating(kind):
        if pa.types.is_float16(kind):  # which Arrow does not compare
            values = values.cast(pa.float32())
        column = _column(chunks := _few_chunks(values), _to_numbers)
        if pa.types.is_floating(kind) and any(map(_is_extreme, chunks)):
            for number, block in enumerate(column.blocks()):
                refuse_extremes((name,), block[:, None], first_row=number * BLOCK)
        return column
    is_string = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    if is_string and values.null_count < len(values):
        return _column(_few_chunks(values), _to_texts, is_text=True)
    read = read_column(name, values)
    return Column((_load(read),), is_text(read))


def _column(
    chunks: list[Any], convert: Callable[[Any], NDArray[Any]], *, is_text: bool = False
) -> Column:
    return Column(tuple(Piece(chunk, convert) for chunk in chunks), is_text)


def _load(values: NDArray[Any]) -> Piece:
    """Rows that have been read already."""
    if is_text(values):
        return Piece(pa.array(values, pa.large_string()), _to_texts)
    return Piece(pa.array(values), _to_numbers)


def _to_numbers(chunk: Any) -> NDArray[np.float64]:
    if pa.types.is_boolean(chunk.type):
        chunk = chunk.cast(pa.uint8())
    numbers = chunk.to_numpy(zero_copy_only=False)  # floats with NaN if some are missing
    read: NDArray[np.float64] = numbers.astype(np.float64, copy=False)
    return read


def _to_texts(chunk: Any) -> NDArray[Any]:
    coded = chunk.dictionary_encode()  # one Python string per category, not per row
    return _to_category(_texts_of(coded), coded.indices)


def _texts_of(chunk: Any) -> NDArray[Any]:
    """The texts that the codes of a chunk stand for, and None for missing at the end."""
    texts = [None if is_missing(text) else str(text) for text in chunk.dictionary.to_pylist()]
    return np.array([*texts, None], dtype=object)


def _to_category(texts: NDArray[Any], codes: Any) -> NDArray[Any]:
    read: NDArray[Any] = texts[codes.cast(pa.int64()).fill_null(-1).to_numpy()]
    return read


def _to_part(part: str, chunk: Any) -> NDArray[np.float64]:
    return from_arrow(chunk).part(part)


def _to_seconds(chunk: Any) -> NDArray[np.float64]:
    return seconds(chunk.to_numpy(zero_copy_only=False))


def _few_chunks(values: Any) -> list[Any]:
    """The rows in pieces, none very long; one if all are so small that visits would cost more."""
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
