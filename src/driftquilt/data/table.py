"""A table of any library becomes named columns, each of them numbers or text.

Taken are 2-D arrays, lists of rows, dicts of columns, and pandas, polars or Arrow tables.
The columns of arrays and lists have no names of their own and are called x0, x1, ….
What a column turns into, and which values are refused, is in `columns`; dates and times turn
into several columns, called "when (time of day, sin)" and so on.

    columns[j]  (n,)  float64 with NaN where missing, or str objects with None where missing

A column may share its memory with the caller's; nothing here writes to it.

>>> table = read_table({"age": [31, None], "city": ["Oslo", "Rome"]})
>>> table.names, table.columns[0], table.n_rows
(('age', 'city'), array([31., nan]), 2)
>>> stack(table, read_table({"city": ["Bonn"], "age": [5.0]})).columns[1]
array(['Oslo', 'Rome', 'Bonn'], dtype=object)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray

from driftquilt.data.columns import as_array, is_text, read_columns, refuse_extremes
from driftquilt.data.header import check_columns, find_columns, flatten, line_up
from driftquilt.errors import InputError

__all__ = ["Table", "as_frame", "fit_kind", "holds", "read_table", "stack"]

_N_DIMENSIONS = 2  # of a table


@dataclass(frozen=True, eq=False)
class Table:
    """Named columns of equal length; `named` is False if the caller gave no names."""

    names: tuple[str, ...]
    columns: tuple[NDArray[Any], ...]
    named: bool

    @property
    def n_rows(self) -> int:
        """Rows, at least one."""
        return len(self.columns[0])

    def copy(self) -> Table:
        """Copy the columns, so that the caller may change what they were read from."""
        return Table(self.names, tuple(column.copy() for column in self.columns), self.named)

    def take(self, rows: NDArray[np.bool_] | NDArray[np.intp]) -> Table:
        """Some of the rows."""
        return Table(self.names, tuple(column[rows] for column in self.columns), self.named)

    def find(self, names: Sequence[str], *, named: bool) -> list[NDArray[Any]]:
        """The columns of these names; by position where they or this table's are made up."""
        return [self.columns[place] for place in find_columns(self, names, named=named)]

    def kind(self, place: int) -> str:
        """What the column there holds: "numbers", "text" or "nothing"."""
        return holds(self.columns[place])


def read_table(X: Any) -> Table:
    """Rows from the caller as a `Table`; raises `InputError` if they cannot be used."""
    if hasattr(X, "toarray") and hasattr(X, "nnz"):
        raise InputError(f"X is a sparse {type(X).__name__}; pass the dense X.toarray()")
    frame = as_frame(X)
    if isinstance(frame, nw.LazyFrame):
        raise InputError("X is a lazy frame, whose rows do not exist yet; pass X.collect()")
    if isinstance(frame, nw.DataFrame):
        return _from_columns(frame.columns, frame.iter_columns(), frame.shape)
    if hasattr(X, "to_pydict"):  # an Arrow record batch
        X = X.to_pydict()
    if isinstance(X, Mapping):
        return _from_dict(X)
    if isinstance(X, list | tuple) and any(isinstance(row, Mapping) for row in X):
        raise InputError(
            f"X is a {type(X).__name__} of dicts, one per row; make a table of them, such as with "
            "pandas.DataFrame(rows) or pyarrow.Table.from_pylist(rows)"
        )
    return _from_array(_read_rows(X))


def as_frame(X: Any) -> Any:
    """X as narwhals sees it, if it is a table of a library; else X itself."""
    try:
        return nw.from_native(X, pass_through=True)
    except DuplicateError as error:
        found = " ".join(str(error).split())
        raise InputError(f"X has columns of the same name; rename or drop them: {found}") from error


def stack(first: Table, second: Table) -> Table:
    """Append the rows of `second`, whose columns may stand in another order."""
    below = [second.columns[place] for place in line_up(first, second)]
    columns = tuple(map(_join, first.names, first.columns, below))
    return Table(first.names, columns, first.named)


def holds(column: NDArray[Any]) -> str:
    """What a column holds: "numbers", "text", or "nothing" if all of it is missing."""
    if not is_text(column):
        return "nothing" if np.isnan(column).all() else "numbers"
    return "nothing" if all(value is None for value in column) else "text"


def fit_kind(column: NDArray[Any], *, text: bool) -> NDArray[Any] | None:
    """Give the column as text or numbers: as it is, all missing if it holds nothing, or None."""
    if is_text(column) == text:
        return column
    if holds(column) != "nothing":
        return None
    return np.full(len(column), None if text else np.nan, dtype=object if text else np.float64)


def _join(name: str, above: NDArray[Any], below: NDArray[Any]) -> NDArray[Any]:
    fitted = fit_kind(below, text=is_text(above))
    if fitted is not None:
        return np.concatenate([above, fitted])
    fitted = fit_kind(above, text=is_text(below))
    if fitted is not None:
        return np.concatenate([fitted, below])
    before, now = ("text", "numbers") if is_text(above) else ("numbers", "text")
    raise InputError(
        f"column {name!r} is {before} in the rows before and {now} in the new rows; "
        "make it the same in both"
    )


def _from_columns(names: Iterable[Any], columns: Iterable[Any], shape: tuple[int, int]) -> Table:
    return _gather(check_columns(names, shape), columns, named=True)


def _gather(names: Iterable[str], columns: Iterable[Any], *, named: bool) -> Table:
    read = flatten(map(read_columns, names, columns))
    return Table(tuple(read), tuple(read.values()), named)


def _from_dict(X: Mapping[Any, Any]) -> Table:
    shapes = {name: _shape(column) for name, column in X.items()}
    lengths = {name: shape[0] for name, shape in shapes.items() if shape}
    if len(lengths) < len(shapes):
        scalar = next(name for name in shapes if name not in lengths)
        raise InputError(f"column {scalar!r} is a single value; give a list with one value per row")
    if len(set(lengths.values())) > 1:
        raise InputError(f"the columns of X have different lengths: {lengths}; make them equal")
    return _from_columns(X, X.values(), (max(lengths.values(), default=0), len(lengths)))


def _shape(column: Any) -> tuple[int, ...]:
    series = nw.from_native(column, series_only=True, pass_through=True)
    return series.shape if isinstance(series, nw.Series) else as_array(column).shape


def _read_rows(X: Any) -> NDArray[Any]:
    if isinstance(X, np.ma.MaskedArray):
        values = X.data.copy() if X.dtype.kind in "mM" else X.data.astype(object)
        values[np.ma.getmaskarray(X)] = None
        return values
    try:
        array = np.asarray(X)
        if array.dtype.kind not in "US" or not isinstance(X, list | tuple):
            return array
        return np.array(X, dtype=object)  # numpy turns the numbers among strings into strings
    except ValueError as error:
        raise InputError(
            "the rows of X differ in length, or hold lists; give every row the same number of "
            f"single values ({error})"
        ) from error


def _from_array(array: NDArray[Any]) -> Table:
    if array.ndim < _N_DIMENSIONS:
        raise InputError(
            f"Expected 2D array, got an array of shape {array.shape} instead. Reshape your data "
            "with X.reshape(-1, 1) if it is one column, X.reshape(1, -1) if it is one row"
        )
    if array.ndim > _N_DIMENSIONS:
        raise InputError(
            f"Found array with dim {array.ndim} (shape={array.shape}), but a table has 2; "
            "flatten each row with X.reshape(len(X), -1)"
        )
    names = check_columns((f"x{j}" for j in range(array.shape[1])), array.shape)
    if array.dtype.kind not in "biuf":
        return _gather(names, array.T, named=False)
    with np.errstate(over="ignore"):  # a long double may not fit; it is refused as infinite
        matrix = np.asarray(array, dtype=np.float64, order="F")  # so that columns are contiguous
    refuse_extremes(names, matrix)
    return Table(names, tuple(matrix.T), named=False)
