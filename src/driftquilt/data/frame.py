"""Many rows side by side, as nets take them: a matrix of numbers, and lists of text.

A column is numbers or text; a number that is missing is NaN, a text that is missing is None. What
a row lacks is missing, and a column without any value is not there. Values are those of `Row`.

    numbers  (n, k)  float64, one column per name in `names`
    texts    name -> n values

>>> frame = Frame.of_rows([{"age": 31.0, "city": "Rome"}, {"age": None, "city": "Oslo"}])
>>> frame.names, frame.numbers.tolist(), frame.texts
(('age',), [[31.0], [nan]], {'city': ['Rome', 'Oslo']})
>>> frame.row(1)
{'age': None, 'city': 'Oslo'}
>>> Frame.of_rows([{"age": 31.0}, {"age": "old"}])
Traceback (most recent call last):
driftquilt.errors.InputError: column 'age' holds numbers and text; make all of it one of them
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftquilt.data.row import Row
from driftquilt.errors import InputError

__all__ = ["Frame"]


@dataclass(frozen=True, eq=False)
class Frame:
    """Rows as columns."""

    names: tuple[str, ...]
    numbers: NDArray[np.float64]
    texts: dict[str, list[str | None]]

    def __len__(self) -> int:
        return len(self.numbers)

    @classmethod
    def of_rows(cls, rows: Sequence[Row]) -> Frame:
        """Rows as `read_row` gives them."""
        names = list(dict.fromkeys(name for row in rows for name in row))
        columns = [[row.get(name) for row in rows] for name in names]
        return cls.of_columns(names, columns, len(rows))

    @classmethod
    def of_matrix(cls, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Frame:
        """Rows as lists of values, one for each name."""
        try:
            # Takes numbers alone, and all of them faster than numpy.
            numbers = struct.pack(f"{len(rows) * len(names)}d", *chain.from_iterable(rows))
        except struct.error:
            columns = [[row[at] for row in rows] for at in range(len(names))]
            return cls.of_columns(names, columns, len(rows))
        matrix = np.frombuffer(numbers).reshape(len(rows), len(names))
        return cls(tuple(names), matrix, {})

    @classmethod
    def of_columns(
        cls, names: Sequence[str], columns: Sequence[Sequence[Any]], n_rows: int
    ) -> Frame:
        """Columns of numbers, text and None."""
        kept: list[str] = []
        numbers: list[Sequence[Any]] = []
        texts: dict[str, list[str | None]] = {}
        for name, column in zip(names, columns, strict=True):
            kinds = set(map(type, column)) - {type(None)}
            if str in kinds:
                if len(kinds) > 1:
                    raise InputError(
                        f"column {name!r} holds numbers and text; make all of it one of them"
                    )
                texts[name] = list(column)
            elif kinds:
                kept.append(name)
                numbers.append(column)
        matrix = np.array(numbers, dtype=np.float64).T if numbers else np.empty((n_rows, 0))
        return cls(tuple(kept), matrix, texts)

    def row(self, at: int) -> Row:
        """One row again."""
        numbers = self.numbers[at].tolist()
        row: Row = {
            name: None if math.isnan(value) else value
            for name, value in zip(self.names, numbers, strict=True)
        }
        row.update((name, column[at]) for name, column in self.texts.items())
        return row

    def select(self, names: tuple[str, ...]) -> NDArray[np.float64]:
        """The numbers of these columns, (n, len(names)); NaN for what is not there."""
        if names == self.names:
            return self.numbers
        places = {name: at for at, name in enumerate(self.names)}
        absent = len(self.names)
        padded = np.column_stack([self.numbers, np.full(len(self), np.nan)])
        return padded[:, [places.get(name, absent) for name in names]]
