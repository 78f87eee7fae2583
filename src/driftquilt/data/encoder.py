"""Columns become a float32 matrix whose scale a net can learn from.

Numbers are moved and scaled to mean 0 and standard deviation 1 of the rows seen at fit; a
missing number becomes the mean, and a 0/1 column says so if any was missing at fit. Text
becomes one 0/1 column per category, missing being a category of its own; a category that was
not seen at fit is all zeros, and so are those beyond the 256 most frequent. The details of one
column are in `features`. Dates and times are numbers already when they get here: `moments`.

    transform(table)  (n, n_features_out)  float32, C-contiguous, always finite

Columns are found by name if both tables have names, else by position.

>>> from driftquilt.data.table import read_table
>>> encoder = Encoder.fit(read_table({"age": [20, None, 40], "city": ["Rome", "Oslo", None]}))
>>> encoder.feature_names_out
('age', 'age=missing', 'city=Oslo', 'city=Rome', 'city=missing')
>>> encoder.transform(read_table({"city": ["Oslo", "Bonn"], "age": [50.0, None]}))
array([[2., 0., 1., 0., 0.],
       [0., 1., 0., 0., 0.]], dtype=float32)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftquilt.data.columns import is_text
from driftquilt.data.features import Numbers, Text, read_feature, scale
from driftquilt.data.header import sources
from driftquilt.data.in_place import BLOCK, Column, TableInPlace
from driftquilt.data.table import Table, fit_kind, holds
from driftquilt.errors import InputError, ModelFileError

__all__ = ["Encoder"]


@dataclass(frozen=True)
class Encoder:
    """The columns as they were at fit, and how they turn into a matrix."""

    columns: tuple[Numbers | Text, ...]
    named: bool

    @classmethod
    def fit(cls, table: Table | TableInPlace, rows: NDArray[np.intp] | None = None) -> Encoder:
        """Learn means, deviations and categories from all rows of `table`, or from some.

        A column that has no value in those rows is learned from all of them.
        """
        seen: Sequence[Any] = table.columns if rows is None else table.take(rows).columns
        whole: Sequence[Any] = table.columns
        return cls(tuple(map(_fit, table.names, seen, whole)), table.named)

    @property
    def names_in(self) -> tuple[str, ...]:
        """The columns as the caller knows them: a date is one."""
        return sources([column.name for column in self.columns])

    @property
    def feature_names_out(self) -> tuple[str, ...]:
        """One name per column of the matrix: "age", "age=missing", "city=Oslo"."""
        return tuple(name for column in self.columns for name in column.features)

    def transform(self, table: Table) -> NDArray[np.float32]:
        """Make the matrix; each of its rows depends on the same row of `table` alone."""
        starts = list(accumulate((len(c.features) for c in self.columns), initial=0))
        out = np.zeros((table.n_rows, starts[-1]), dtype=np.float32)
        numbers: list[tuple[Numbers, NDArray[Any], int]] = []
        found = map(
            _check_kind,
            self.columns,
            table.find([column.name for column in self.columns], named=self.named),
        )
        for column, values, start in zip(self.columns, found, starts[:-1], strict=True):
            if isinstance(column, Numbers):
                numbers.append((column, values, start))
            else:
                codes = column.codes(values)
                known = np.flatnonzero(codes >= 0)
                out[known, start + codes[known]] = 1
        if numbers:
            _write_numbers(out, numbers)
        return out

    def transform_in_place(
        self, table: TableInPlace, rows: NDArray[np.intp] | None = None
    ) -> NDArray[np.float32]:
        """The same of a table in place: of all rows or of some, read a block at a time."""
        n_rows = table.n_rows if rows is None else len(rows)
        out = np.empty((n_rows, len(self.feature_names_out)), dtype=np.float32)
        for first in range(0, n_rows, BLOCK):
            part = slice(first, min(first + BLOCK, n_rows))
            out[part] = self.transform(table.take(part if rows is None else rows[part]))
        return out

    def to_json(self) -> dict[str, Any]:
        """Plain values for `json.dumps`, which writes a float so that it reads back the same."""
        return {"named": self.named, "columns": [column.to_json() for column in self.columns]}

    @classmethod
    def from_json(cls, data: Any) -> Encoder:
        """Read what `to_json` gave; raises `ModelFileError` if it is anything else."""
        try:
            named, columns = data["named"], [read_feature(column) for column in data["columns"]]
        except (KeyError, OverflowError, TypeError, ValueError) as error:
            raise ModelFileError(
                f"the encoder in the model file is damaged ({error!r}); save the model again"
            ) from error
        if type(named) is not bool or len({c.name for c in columns}) != len(columns) or not columns:
            raise ModelFileError(
                "the encoder in the model file is damaged (its columns need distinct names, and "
                "'named' is true or false); save the model again"
            )
        return cls(tuple(columns), named)


def _fit(name: str, some: NDArray[Any] | Column, whole: NDArray[Any] | Column) -> Numbers | Text:
    values = whole if isinstance(some, np.ndarray) and holds(some) == "nothing" else some
    if isinstance(values, np.ndarray):
        return Text.fit(name, values) if is_text(values) else Numbers.fit(name, values)
    if values.is_text:
        return Text.of(name, values.counts(), len(values))
    return Numbers.of(name, values.present(), len(values))


def _write_numbers(
    out: NDArray[np.float32], numbers: list[tuple[Numbers, NDArray[Any], int]]
) -> None:
    columns = [column for column, _, _ in numbers]
    places = [start for _, _, start in numbers]
    flagged = [k for k, column in enumerate(columns) if column.missing]
    flags = [places[k] + 1 for k in flagged]
    for first in range(0, len(out), BLOCK):  # so that they stay in the processor's cache
        rows = slice(first, first + BLOCK)
        block = np.stack([values[rows] for _, values, _ in numbers], axis=1)
        if len(places) == out.shape[1]:  # nothing but numbers, side by side
            out[rows] = scale(block, columns)
            continue
        out[rows, places] = scale(block, columns)
        out[rows, flags] = np.isnan(block[:, flagged])


def _check_kind(column: Numbers | Text, values: NDArray[Any]) -> NDArray[Any]:
    text = isinstance(column, Text)
    fitted = fit_kind(values, text=text)
    if fitted is not None:
        return fitted
    before, now = ("text", "numbers") if text else ("numbers", "text")
    row, value = next(
        (row, value)
        for row, value in enumerate(values.tolist())
        if value is not None and value == value  # noqa: PLR0124  NaN is missing
    )
    raise InputError(
        f"column {column.name!r} was {before} at fit and is {now} now (row {row} holds "
        f"{value!r}); give it as {before}"
    )
