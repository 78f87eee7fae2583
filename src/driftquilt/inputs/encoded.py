"""Rows of a table in place as a float32 matrix that is made row by row when asked for.

What indexing gives is what indexing the whole matrix would give, bit for bit, because a row of
`Encoder.transform` depends on nothing but that row.

>>> from driftquilt.inputs.encoder import Encoder
>>> from driftquilt.inputs.in_place import Column, Loaded, TableInPlace
>>> ages = Column((Loaded(np.array([20.0, 30.0, 40.0])),), is_text=False)
>>> rows = EncodedRows.of(Encoder.fit(table := TableInPlace(("age",), (ages,))), table)
>>> rows.shape, rows[[2, 1]].tolist()
((3, 1), [[1.2247449159622192], [0.0]])
>>> rows.part(slice(1, 3)).shape
(2, 1)
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftquilt.inputs.encoder import Encoder
from driftquilt.inputs.in_place import BLOCK, Picks, TableInPlace

__all__ = ["EncodedRows"]

_MOST_LOADED = 2**21  # numbers (8 MB) that are rather kept than read again for every sample


@dataclass(frozen=True, eq=False)
class EncodedRows:
    """The rows of `table` that `rows` counts up, encoded when they are asked for."""

    encoder: Encoder
    table: TableInPlace
    rows: range | NDArray[np.intp]
    width: int

    @classmethod
    def of(cls, encoder: Encoder, table: TableInPlace) -> EncodedRows:
        """All rows of the table."""
        return cls(encoder, table, range(table.n_rows), len(encoder.feature_names_out))

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.rows), self.width

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, rows: Any) -> NDArray[np.float32]:
        if isinstance(rows, slice):
            return self.part(rows)._all()
        picked = np.asarray(rows)
        made = self._make(self._find(_count(np.atleast_1d(picked), len(self))))
        return made if picked.ndim else made[0]

    def __array__(self, dtype: Any = None, *, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("rows that are encoded when asked for cannot be had without a copy")
        return self._all() if dtype is None else self._all().astype(dtype, copy=False)

    def part(self, rows: slice | NDArray[np.intp]) -> EncodedRows:
        """Some of the rows, none of which is encoded yet."""
        picked = self.rows[rows] if isinstance(rows, slice) else self._find(_count(rows, len(self)))
        return replace(self, rows=picked)

    def pays(self, n_sampled: int | None) -> bool:
        """Whether a training that looks at so many rows an epoch, or at all, should not load."""
        large = self.shape[0] * self.shape[1] > _MOST_LOADED
        return large and n_sampled is not None and len(self) > 4 * n_sampled

    def _all(self) -> NDArray[np.float32]:
        out = np.empty(self.shape, dtype=np.float32)
        for first in range(0, len(self), BLOCK):
            rows = self.rows[first : first + BLOCK]
            out[first : first + BLOCK] = self._make(_as_picks(rows))
        return out

    def _find(self, numbers: NDArray[np.intp]) -> NDArray[np.intp]:
        """Where the rows of these numbers stand in the table."""
        if isinstance(self.rows, range):
            return self.rows.start + self.rows.step * numbers
        return self.rows[numbers]

    def _make(self, rows: Picks) -> NDArray[np.float32]:
        return self.encoder.transform(self.table.take(rows))


def _as_picks(rows: range | NDArray[np.intp]) -> Picks:
    if not isinstance(rows, range):
        return rows
    return slice(rows.start, rows.stop) if rows.step == 1 else np.array(rows, dtype=np.intp)


def _count(rows: NDArray[Any], n_rows: int) -> NDArray[np.intp]:
    """Row numbers from 0 on for a mask, or for numbers that may count from the end."""
    if rows.ndim != 1 or (rows.dtype.kind not in "iu" and rows.dtype != bool and len(rows)):
        raise IndexError(f"rows are picked by one mask or one list of numbers, not by {rows!r}")
    if rows.dtype == bool:
        if len(rows) != n_rows:
            raise IndexError(f"a mask of {len(rows)} rows was given for {n_rows} rows")
        return np.flatnonzero(rows)
    numbers = rows.astype(np.intp)
    if len(numbers) and not -n_rows <= numbers.min() <= numbers.max() < n_rows:
        raise IndexError(f"a row was asked for beyond the {n_rows} that there are")
    return np.where(numbers < 0, numbers + n_rows, numbers)
