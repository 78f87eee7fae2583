"""`Frame`: rows in memory, as a matrix of numbers and columns of text. A row is a frame of one.

    numbers  (n, k)  float64, NaN where missing, one column per name in `names`
    texts    name -> n values, str or None where missing

`read_frame` takes 2-D arrays, lists of rows, dicts of columns, and pandas, polars or Arrow tables;
the columns of arrays and lists have no names of their own and are called x0, x1, …. What a column
turns into, and which values are refused, is in `columns`; dates and times turn into several columns
of numbers, called "when (time of day, sin)" and so on (`calendar`). `read_row` takes one row as a
dictionary and gives plain values, which `Frame.of_row` and `Frame.of_rows` put side by side; there
a column without any value is left out, and what a row lacks is missing. `read_label` takes the
label of a row.

>>> frame = read_frame({"city": ["Oslo", "Rome"], "age": [31, None]})
>>> frame.names, frame.numbers.tolist(), frame.texts["city"].tolist(), frame.columns
(('age',), [[31.0], [nan]], ['Oslo', 'Rome'], ('city', 'age'))
>>> frame.row(1)
{'city': 'Rome', 'age': None}
>>> Frame.of_rows([read_row({"age": 31}), read_row({"age": "old"})])
Traceback (most recent call last):
driftquilt.errors.InputError: column 'age' holds numbers and text; make all of it one of them
>>> read_label(3.0), read_label_list(["yes", "no"])
(3, ['yes', 'no'])
"""

from __future__ import annotations

import math
import reprlib
import struct
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import chain, islice
from typing import Any, TypeAlias, TypeVar

import narwhals.stable.v2 as nw
import numpy as np
from narwhals.exceptions import DuplicateError
from numpy.typing import NDArray

from driftquilt.data.calendar import check_columns, flatten, from_objects
from driftquilt.data.columns import (
    FLOAT32_MAX,
    as_array,
    is_missing,
    is_text,
    kind_of,
    read_columns,
    read_number,
    read_span,
    refuse_extremes,
)
from driftquilt.errors import InputError
from driftquilt.text import one_line

BLOCK = 65_536  # rows at a time where there are many, so that they stay in the processor's cache
_N_DIMENSIONS = 2  # of a table
_INT64 = 2**63
#: Labels that are numbers lie no further from zero: sums and squares of them are finite.
TARGET_MAX = 1e100

T = TypeVar("T")

Value: TypeAlias = float | str | None
Row: TypeAlias = dict[str, Value]
Label: TypeAlias = int | bool | str
Rows: TypeAlias = slice | NDArray[np.bool_] | NDArray[np.integer[Any]]


@dataclass(eq=False)  # frozen would cost a stream a microsecond per row
class Frame:
    """Columns of equal length; `named` is False if the caller gave no names.

    A frame never changes. Its numbers may share their memory with the caller's array.
    """

    names: tuple[str, ...]
    numbers: NDArray[np.float64]
    texts: Mapping[str, Any] = field(default_factory=dict)
    order: tuple[str, ...] | None = None  # of all columns, if not numbers first
    named: bool = True

    def __len__(self) -> int:
        return len(self.numbers)

    @classmethod
    def of_row(cls, row: Row) -> Frame:
        """One row as `read_row` gives it."""
        names, numbers, texts = [], [], {}
        for name, value in row.items():
            if isinstance(value, str):
                texts[name] = [value]
            elif value is not None:
                names.append(name)
                numbers.append(value)
        return cls(tuple(names), np.array([numbers], dtype=np.float64), texts)

    @classmethod
    def of_rows(cls, rows: Sequence[Row]) -> Frame:
        """Rows as `read_row` gives them."""
        names = list(dict.fromkeys(name for row in rows for name in row))
        columns = [[row.get(name) for row in rows] for name in names]
        return cls.of_columns(names, columns, len(rows))

    def with_constants(self, row: Row) -> Frame:
        """Return the frame with more columns, each the same value in every row."""
        names = [name for name, value in row.items() if not isinstance(value, str)]
        constants = np.array([row[name] for name in names], dtype=np.float64)
        numbers = np.hstack([self.numbers, np.tile(constants, (len(self), 1))])
        texts = {name: [row[name]] * len(self) for name in row if name not in names}
        return replace(
            self, names=(*self.names, *names), numbers=numbers, texts={**self.texts, **texts}
        )

    @classmethod
    def of_matrix(cls, names: Sequence[str], rows: Sequence[Sequence[Any]]) -> Frame:
        """Rows as lists of plain values, one for each name."""
        try:
            # Takes numbers alone, and all of them faster than numpy.
            numbers = struct.pack(f"{len(rows) * len(names)}d", *chain.from_iterable(rows))
        except struct.error:
            columns = [[row[at] for row in rows] for at in range(len(names))]
            return cls.of_columns(names, columns, len(rows))
        return cls(tuple(names), np.frombuffer(numbers).reshape(len(rows), len(names)))

    @classmethod
    def of_columns(
        cls, names: Sequence[str], columns: Sequence[Sequence[Any]], n_rows: int
    ) -> Frame:
        """Columns of plain values: numbers, text and None."""
        number_names: list[str] = []
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
                number_names.append(name)
                numbers.append(column)
        matrix = np.array(numbers, dtype=np.float64).T if numbers else np.empty((n_rows, 0))
        return cls(tuple(number_names), matrix, texts)

    @classmethod
    def of_arrays(cls, columns: Mapping[str, NDArray[Any]], *, named: bool = True) -> Frame:
        """Columns as `read_columns` gives them, at least one; numbers are copied."""
        texts = {name: column for name, column in columns.items() if is_text(column)}
        names = tuple(name for name in columns if name not in texts)
        n_rows = len(next(iter(columns.values())))
        numbers = np.empty((n_rows, len(names)), order="F")  # so that columns are contiguous
        for place, name in enumerate(names):
            numbers[:, place] = columns[name]
        return cls(names, numbers, texts, tuple(columns), named)

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """The names of all columns, in the caller's order."""
        return (*self.names, *self.texts) if self.order is None else self.order

    @cached_property
    def _places(self) -> dict[str, int]:
        return {name: place for place, name in enumerate(self.names)}

    def column(self, name: str) -> NDArray[Any]:
        """Values of one column: float64, or objects."""
        if name in self.texts:
            return np.asarray(self.texts[name], dtype=object)
        column: NDArray[Any] = self.numbers[:, self._places[name]]
        return column

    def is_text(self, name: str) -> bool:
        """Whether the column is text; if not, it is numbers."""
        return name in self.texts

    def kind(self, name: str) -> str:
        """Return what the column holds: "numbers", "text", or "nothing" if all of it is missing."""
        if name in self.texts:
            return "nothing" if all(value is None for value in self.texts[name]) else "text"
        return "nothing" if np.isnan(self.column(name)).all() else "numbers"

    def present(self, name: str) -> NDArray[np.float64]:
        """Return the numbers of a column but the missing ones, copied."""
        column = self.column(name)
        present: NDArray[np.float64] = column[~np.isnan(column)]
        return present

    def counts(self, name: str) -> Counter[str | None]:
        """How many rows have each text."""
        return Counter(self.column(name).tolist())

    def row(self, at: int) -> Row:
        """One row again, as plain values."""
        numbers = dict(zip(self.names, self.numbers[at].tolist(), strict=True))
        return {
            name: self.texts[name][at]
            if name in self.texts
            else (None if math.isnan(numbers[name]) else numbers[name])
            for name in self.columns
        }

    def take(self, rows: Rows) -> Frame:
        """Return some of the rows."""
        texts = {name: self.column(name)[rows] for name in self.texts}
        return replace(self, numbers=self.numbers[rows], texts=texts)

    def copy(self) -> Frame:
        """Copy the numbers, so that the caller may change what they were read from."""
        return replace(self, numbers=self.numbers.copy(order="K"))

    def find(self, names: tuple[str, ...]) -> NDArray[np.intp]:
        """Where among the numbers the columns of these names stand; -1 for what is not there."""
        return _find(self.names, names)

    def select(self, names: tuple[str, ...]) -> NDArray[np.float64]:
        """Return the numbers of these columns, all of which are there, (n, len(names))."""
        return self.numbers if names == self.names else self.numbers[:, self.find(names)]


@lru_cache(maxsize=64)
def _find(names: tuple[str, ...], wanted: tuple[str, ...]) -> NDArray[np.intp]:
    places = {name: place for place, name in enumerate(names)}
    return np.array([places.get(name, -1) for name in wanted], dtype=np.intp)


def read_frame(X: Any) -> Frame:
    """Rows from the caller; raises `InputError` if they cannot be used."""
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
        raise InputError(
            f"X has columns of the same name; rename or drop them: {one_line(error)}"
        ) from error


def _from_columns(names: Iterable[Any], columns: Iterable[Any], shape: tuple[int, int]) -> Frame:
    return Frame.of_arrays(flatten(map(read_columns, check_columns(names, shape), columns)))


def _from_dict(X: Mapping[Any, Any]) -> Frame:
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


def _from_array(array: NDArray[Any]) -> Frame:
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
        return Frame.of_arrays(flatten(map(read_columns, names, array.T)), named=False)
    with np.errstate(over="ignore"):  # a long double may not fit; it is refused as infinite
        matrix = np.asarray(array, dtype=np.float64, order="F")  # so that columns are contiguous
    refuse_extremes(names, matrix)
    return Frame(names, matrix, named=False)


def read_row(row: Any) -> Row:
    """Plain values of a row; `InputError` for what a table could not hold."""
    if not isinstance(row, Mapping):
        raise InputError(
            f"a row is a dictionary of column and value, but got a {type(row).__name__}"
        )
    read = {
        name if type(name) is str else str(name): _read_value(name, value)
        for name, value in row.items()
    }
    if len(read) < len(row):
        raise InputError(f"two columns of a row have the same name: {sorted(map(str, row))}")
    pairs = zip(read.items(), row.values(), strict=True)
    moments = {n: value for (n, plain), value in pairs if plain is None and _is_moment(value)}
    if not moments:
        return read
    plain = {name: value for name, value in read.items() if name not in moments}
    return flatten([plain, *(_read_moment(name, value) for name, value in moments.items())])


def iter_rows(X: Any) -> Iterable[Any]:
    """Rows of a data frame, or of a list of dictionaries."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return frame.iter_rows(named=True)
    if not isinstance(X, Iterable) or isinstance(X, str | bytes | Mapping):
        raise InputError(
            f"rows are a data frame or a list of dictionaries, but got a {type(X).__name__}"
        )
    return X


def read_pair(pair: Any) -> tuple[Any, Any]:
    """Return a row and its label, neither of them read yet."""
    if isinstance(pair, Iterable) and not isinstance(pair, str | bytes | Mapping):
        parts = tuple(islice(pair, 3))
        if len(parts) == 2:  # noqa: PLR2004
            return parts
    raise InputError(
        f"expected a pair of row and label, but got {reprlib.repr(pair)}; give, for example, "
        "({'age': 31.0}, 'yes')"
    )


def _is_moment(value: Any) -> bool:
    return kind_of(type(value)) in ("dates", "times of day") and not is_missing(value)


def _read_moment(name: str, value: Any) -> Row:
    parts = from_objects([value]).columns(name)
    return {part: float(values[0]) for part, values in parts.items()}


def _read_value(name: Any, value: Any) -> Value:
    """Return the plain value; None for what is missing, and for dates and times."""
    if type(value) is str:
        return value
    if type(value) is not float:
        kind = kind_of(type(value))
        if kind == "text":
            return str.__str__(value)
        if kind in ("nothing", "dates", "times of day"):
            return None
        if kind not in ("numbers", "time spans"):
            raise InputError(
                f"column {name!r} holds a {type(value).__name__}, but a value is a number, a "
                "string, a date or a time; turn it into one of these, or drop the column"
            )
        value = read_span(value) if kind == "time spans" else read_number(value)
    number: float = value
    if number != number:  # noqa: PLR0124
        return None
    if not abs(number) <= FLOAT32_MAX:
        raise InputError(
            f"column {name!r} holds {number}, beyond float32 (at most 3.4e38); put None (missing) "
            "or a bound in its place"
        )
    return number


def read_label(y: Any) -> Label:
    """Return a label as a plain int, bool or string; whole floats become ints."""
    if isinstance(y, np.generic):
        y = y.item()
    if isinstance(y, bool):
        return y
    if isinstance(y, str):
        return _read_text_label(str.__str__(y))
    if isinstance(y, float) and math.isfinite(y) and y == int(y):
        y = int(y)
    if isinstance(y, int) and -_INT64 <= y < _INT64:
        return int(y)
    if is_missing(y):
        raise InputError("the label is missing (NaN or None); leave the row out until it is known")
    raise InputError(
        f"the label {y!r} is a {type(y).__name__}; a label is a whole number, a boolean or a string"
    )


def read_target(y: Any) -> float:
    """Return the label of a row where labels are numbers; text and booleans are classes.

    >>> read_target(3), read_target(np.float32(1.5))
    (3.0, 1.5)
    """
    if isinstance(y, np.generic):
        y = y.item()
    if is_missing(y):
        raise InputError("the label is missing (NaN or None); leave the row out until it is known")
    if isinstance(y, bool | str) or kind_of(type(y)) != "numbers":
        raise InputError(
            f"the label {reprlib.repr(y)} is a {type(y).__name__}, but the labels of this stream "
            "are numbers; give a number, or use a classifier for classes"
        )
    number = read_number(y)
    if not abs(number) <= TARGET_MAX:
        raise InputError(
            f"the label {number} is beyond ±{TARGET_MAX:.0e}; give a finite number in larger units"
        )
    return number


def read_label_list(y: Any, read: Callable[[Any], Any] = read_label) -> list[Any]:
    """Return the labels of a list, an array or a series, each as `read` makes it."""
    if not isinstance(y, Iterable) or isinstance(y, str | bytes | Mapping):
        raise InputError(f"labels are a list, an array or a series, but got a {type(y).__name__}")
    return [read_at(number, read, label) for number, label in enumerate(y)]


def read_at(number: int, read: Callable[[Any], T], value: Any) -> T:
    """Return what `read` makes of a value, with its place in the message if it cannot."""
    try:
        return read(value)
    except InputError as error:
        raise InputError(f"row {number}: {error}") from error


def _read_text_label(label: str) -> str:
    """Return a label of text, unless it would be another one in an array."""
    if label.endswith("\0"):
        raise InputError(
            f"the label {reprlib.repr(label)} ends in a zero character, which numpy drops; leave "
            "it out"
        )
    return label
