"""A table whose rows are read when they are asked for, and not kept.

A `Column` is made of pieces, one after the other: views of the memory, or of the file mapped
into it, that an Arrow table stands on, or arrays. What it gives for some rows is what `columns`
would have read there:

    read(rows)  (k,)  float64 with NaN where missing, or str objects with None where missing

`rows` is a slice without a step, or row numbers from 0 on; `Table.take` gives the real table.
How Arrow's memory becomes pieces is in `arrow`.

>>> table = TableInPlace(("age",), (Column((Loaded(np.array([31.0, 5.0])),), is_text=False),))
>>> table.n_rows, table.take(np.array([1, 0, 1])).columns[0]
(2, array([ 5., 31.,  5.]))
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from driftquilt.data.header import line_up
from driftquilt.data.mapped_memory import note_read
from driftquilt.data.table import Table, holds

__all__ = [
    "BLOCK",
    "LONGEST_PIECE",
    "SMALLEST_PIECE",
    "Column",
    "Fixed",
    "Loaded",
    "Made",
    "Picks",
    "Piece",
    "Strings",
    "TableInPlace",
    "stack_in_place",
]

BLOCK = 65_536  # rows read at a time where all are read
SMALLEST_PIECE = 4096  # rows; smaller ones cost more to visit than to copy
LONGEST_PIECE = 2**20  # rows; what is read of a longer one at a time would take much memory

Picks: TypeAlias = slice | NDArray[np.integer[Any]]


class Piece(Protocol):
    """Some rows of a column that follow each other."""

    @property
    def n_bytes(self) -> int:
        """Bytes that may lie in a mapped file."""

    def __len__(self) -> int: ...

    def read(self, rows: Picks) -> NDArray[Any]: ...


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
class Strings:
    """An Arrow array of strings."""

    array: Any

    @property
    def n_bytes(self) -> int:
        return int(self.array.nbytes)

    def __len__(self) -> int:
        return len(self.array)

    def read(self, rows: Picks) -> NDArray[Any]:
        array = self.array[rows] if isinstance(rows, slice) else self.array.take(rows)
        coded = array.dictionary_encode()  # one Python string per category, not per row
        texts = np.array([*coded.dictionary.to_pylist(), None], dtype=object)
        read: NDArray[Any] = texts[coded.indices.fill_null(len(texts) - 1).to_numpy()]
        return read


@dataclass(frozen=True, eq=False)
class Made:
    """An Arrow array of which `make` makes numbers, of each row by itself."""

    array: Any
    make: Callable[[Any], NDArray[np.float64]]

    @property
    def n_bytes(self) -> int:
        return int(self.array.nbytes)

    def __len__(self) -> int:
        return len(self.array)

    def read(self, rows: Picks) -> NDArray[Any]:
        return self.make(self.array[rows] if isinstance(rows, slice) else self.array.take(rows))


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

    def present(self) -> NDArray[np.float64]:
        """All numbers but the missing ones, in memory that is the caller's."""
        numbers, end = np.empty(len(self)), 0
        for block in self.blocks():
            seen = block[~np.isnan(block)]
            numbers[end : end + len(seen)] = seen
            end += len(seen)
        return numbers[:end]

    def counts(self) -> Counter[str | None]:
        """How many rows have each text."""
        counts: Counter[str | None] = Counter()
        for block in self.blocks():
            counts.update(block.tolist())
        return counts

    def kind(self) -> str:
        """What the rows hold: "numbers", "text" or "nothing"."""
        return next((kind for kind in map(holds, self.blocks()) if kind != "nothing"), "nothing")

    def pick(self, rows: NDArray[np.intp]) -> Column:
        """The column as if it had these rows alone; they are not read yet."""
        return replace(self, picked=rows if self.picked is None else self.picked[rows])

    def append(self, later: Column) -> Column:
        """The column with the later one below it; small pieces become one."""
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
        found = list(parts)
        return found[0] if len(found) == 1 else np.concatenate([nothing, *found])


def _read_piece(piece: Piece, rows: Picks) -> NDArray[Any]:
    read = piece.read(rows)
    note_read(piece.n_bytes, len(read))
    return read


@dataclass(frozen=True, eq=False)
class TableInPlace:
    """Named columns of equal length, read when asked; `named` as in `Table`."""

    names: tuple[str, ...]
    columns: tuple[Column, ...]
    named: bool = True

    @property
    def n_rows(self) -> int:
        """Rows, at least one."""
        return len(self.columns[0])

    def take(self, rows: Picks) -> Table:
        """Some of the rows, read."""
        return Table(self.names, tuple(column.read(rows) for column in self.columns), self.named)

    def load(self) -> Table:
        """All of them."""
        return self.take(slice(0, self.n_rows))

    def kind(self, place: int) -> str:
        """What the column there holds: "numbers", "text" or "nothing"."""
        return self.columns[place].kind()

    def pick(self, rows: NDArray[np.bool_]) -> TableInPlace:
        """The table as if it had these rows alone."""
        numbers = np.flatnonzero(rows)
        return replace(self, columns=tuple(column.pick(numbers) for column in self.columns))


def stack_in_place(first: TableInPlace, second: TableInPlace) -> TableInPlace | None:
    """Append the rows of `second` unread; None where a column is text in one of them alone."""
    below = [second.columns[place] for place in line_up(first, second)]
    pairs = list(zip(first.columns, below, strict=True))
    if any(above.is_text != later.is_text for above, later in pairs):
        return None
    columns = tuple(above.append(later) for above, later in pairs)
    return TableInPlace(first.names, columns, first.named)
