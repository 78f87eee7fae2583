"""`Encoder`: a frame becomes a float32 matrix whose scale a net can learn from.

Numbers are moved and scaled by a mean and a deviation; a missing number becomes the mean, and a 0/1
column says so if any was missing at fit. Text becomes one 0/1 column per category, missing being a
category of its own; a category that was not seen at fit is all zeros, and so are those beyond the
256 most frequent (ties by name). So a column of ids, or of free text, in which nearly every row
differs, costs 256 columns and says next to nothing: drop it. Dates and times are numbers already
when they get here: `calendar`.

    encode(frame)     (n, width)  float32, C-contiguous, always finite
    transform(table)  the same of a whole table, whose columns have to be those seen at fit

`encode` is the only place where rows are encoded: tables, rows of a stream, requests to the
service. Each row of the matrix depends on the same row of the frame alone, bit for bit. What the
frame lacks is missing, and what the encoder does not know is left out; `match` refuses both. The
running scale of a stream (`stream.learning`) gives such an encoder too.

>>> from driftquilt.data.frame import Frame, read_frame
>>> encoder = Encoder.fit(read_frame({"age": [20, None, 40], "city": ["Rome", "Oslo", None]}))
>>> encoder.feature_names_out
('age', 'age=missing', 'city=Oslo', 'city=Rome', 'city=missing')
>>> encoder.transform(read_frame({"city": ["Oslo", "Bonn"], "age": [50.0, None]}))
array([[2., 0., 1., 0., 0.],
       [0., 1., 0., 0., 0.]], dtype=float32)
>>> encoder.encode(Frame.of_row({"city": "Rome"}))
array([[0., 1., 0., 1., 0.]], dtype=float32)
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from driftquilt.data.arrow import ArrowFrame
from driftquilt.data.calendar import PARTS, find_columns, group, part_name, source, sources
from driftquilt.data.columns import FLOAT32_MAX
from driftquilt.data.frame import BLOCK, Frame
from driftquilt.errors import InputError, ModelFileError

__all__ = ["CATEGORIES_MAX", "Encoder"]

CATEGORIES_MAX = 256  # of a column of text, missing included

# Parts of dates lie within [-1, 1] and are rounded at 1e-16, otherwise in every library. Where they
# vary by less than this (the sine of noon is not quite that of midnight), they are constant.
_LEAST_OF_PARTS = 1e-9


@cache
def _kernels() -> ModuleType:
    # Imported at first use, so that `import driftquilt` does not wait for numba.
    from driftquilt.data import kernels  # noqa: PLC0415

    return kernels


class Numbers(NamedTuple):
    """A column of numbers as fitted; `missing` says whether any was missing."""

    name: str
    mean: float
    deviation: float
    missing: bool

    @classmethod
    def fit(cls, name: str, present: NDArray[np.float64], n_rows: int) -> Numbers:
        """Mean and population deviation of the values present, which are overwritten.

        A constant column has deviation 1, and so has a part of dates that is one but for rounding.
        """
        if len(present) == 0:
            raise _no_value(name, n_rows)
        first = float(present[0])
        present -= first  # a constant column is then exactly zero
        shift = float(present.mean())
        present -= shift
        spread = float(max(present.max(), -present.min()))
        if spread > 0:  # squares of offset / spread neither overflow nor vanish
            present /= spread
            spread *= math.sqrt(float(np.square(present, out=present).mean()))
        least = 0.0 if source(name) == name else _LEAST_OF_PARTS
        deviation = spread if least < spread < math.inf else 1.0
        return cls(name, first + shift, deviation, len(present) < n_rows)


class Text(NamedTuple):
    """A column of text as fitted: its categories in sorted order, None (missing) last."""

    name: str
    categories: tuple[str | None, ...]

    @classmethod
    def fit(cls, name: str, counts: Mapping[str | None, int], n_rows: int) -> Text:
        """Keep the most frequent categories; `counts` has the rows of each."""
        present = [category for category in counts if category is not None]
        if not present:
            raise _no_value(name, n_rows)
        missing = None in counts
        ranked = sorted(present, key=lambda category: (-counts[category], category))
        frequent = sorted(ranked[: CATEGORIES_MAX - missing])
        return cls(name, (*frequent, None) if missing else tuple(frequent))


@dataclass(frozen=True, eq=False)
class Encoder:
    """Columns, their scales and categories, and the place of each in the matrix."""

    columns: tuple[str, ...]  # all, in the order of the table
    names: tuple[str, ...]  # of numbers; the next four have a value for each
    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]
    places: NDArray[np.intp]
    flags: NDArray[np.intp]  # the place of the 0/1 column for missing ones, or -1
    texts: Mapping[str, Mapping[str | None, int]]  # the place of each category
    width: int
    named: bool = True
    limit: float = FLOAT32_MAX  # no number gets further from 0

    @classmethod
    def fit(cls, table: Frame | ArrowFrame, rows: NDArray[np.intp] | None = None) -> Encoder:
        """Learn means, deviations and categories from all rows of `table`, or from some.

        A column that has no value in those rows is learned from all of them.
        """
        seen = table if rows is None else table.take(rows)
        columns: list[Numbers | Text] = []
        for name in table.columns:
            some = table if rows is not None and seen.kind(name) == "nothing" else seen
            if some.is_text(name):
                columns.append(Text.fit(name, some.counts(name), len(some)))
            else:
                columns.append(Numbers.fit(name, some.present(name), len(some)))
        return cls.of(columns, named=table.named)

    @classmethod
    def of(cls, columns: Sequence[Numbers | Text], *, named: bool = True) -> Encoder:
        """Lay fitted columns out side by side."""
        width = 0
        numbers: list[Numbers] = []
        places: list[int] = []
        texts: dict[str, dict[str | None, int]] = {}
        for column in columns:
            if isinstance(column, Numbers):
                numbers.append(column)
                places.append(width)
                width += 1 + column.missing
            else:
                texts[column.name] = {c: width + at for at, c in enumerate(column.categories)}
                width += len(column.categories)
        flags = [at + 1 if n.missing else -1 for at, n in zip(places, numbers, strict=True)]
        return cls(
            tuple(column.name for column in columns),
            tuple(column.name for column in numbers),
            np.array([column.mean for column in numbers], dtype=np.float64),
            np.array([column.deviation for column in numbers], dtype=np.float64),
            np.array(places, dtype=np.intp),
            np.array(flags, dtype=np.intp),
            texts,
            width,
            named,
        )

    @property
    def names_in(self) -> tuple[str, ...]:
        """The columns as the caller knows them: a date is one."""
        return sources(self.columns)

    @property
    def feature_names_out(self) -> tuple[str, ...]:
        """One name per column of the matrix: "age", "age=missing", "city=Oslo"."""
        out = [""] * self.width
        pairs = zip(self.names, self.places.tolist(), self.flags.tolist(), strict=True)
        for name, place, flag in pairs:
            out[place] = name
            if flag >= 0:
                out[flag] = f"{name}=missing"
        for name, categories in self.texts.items():
            for category, place in categories.items():
                out[place] = f"{name}={'missing' if category is None else category}"
        return tuple(out)

    def encode(self, frame: Frame) -> NDArray[np.float32]:
        """Rows as a matrix; columns that the frame lacks are missing."""
        if len(frame) > BLOCK:
            out = np.empty((len(frame), self.width), dtype=np.float32)
            for first in range(0, len(frame), BLOCK):
                rows = slice(first, first + BLOCK)
                out[rows] = self.encode(frame.take(rows))
            return out
        self._refuse_other_kinds(frame)
        out = np.zeros((len(frame), self.width), dtype=np.float32)
        _kernels().scale(
            frame.numbers, frame.find(self.names), self.mean, self.deviation, self.limit,
            self.places, self.flags, out,
        )  # fmt: skip
        if self.texts:
            out.put(self._find_categories(frame), 1)
        return out

    def transform(
        self, table: Frame | ArrowFrame, rows: NDArray[np.intp] | None = None
    ) -> NDArray[np.float32]:
        """All rows of a table, or some, as a matrix; its columns have to match those at fit."""
        if isinstance(table, Frame):
            return self.encode(self.match(table if rows is None else table.take(rows)))
        n_rows = len(table) if rows is None else len(rows)
        out = np.empty((n_rows, self.width), dtype=np.float32)
        for first in range(0, n_rows, BLOCK):
            part = slice(first, min(first + BLOCK, n_rows))
            out[part] = self.transform(table.take(part if rows is None else rows[part]))
        return out

    def learn_scale(self, frame: Frame, n: NDArray[np.int64], m2: NDArray[np.float64]) -> None:
        """Let the means and deviations of a running encoder follow some rows, in their order.

        `n` are the values so far of each number, `m2` their sums of squares around the mean.
        """
        places = frame.find(self.names)
        _kernels().learn_scale(frame.numbers, places, n, self.mean, m2, self.deviation)

    def match(self, frame: Frame) -> Frame:
        """The frame with this encoder's columns; `InputError` if one is lacking or another kind.

        Columns are found by name if both have names, else by position.
        """
        if frame.columns == self.columns and frame.names == self.names:
            return frame
        places = find_columns(frame, self.columns, named=self.named)
        numbers: dict[str, str] = {}  # the name here, and the one in the frame
        texts: dict[str, Any] = {}
        for name, place in zip(self.columns, places, strict=True):
            there = frame.columns[place]
            if frame.is_text(there) != (name in self.texts):
                if frame.kind(there) != "nothing":
                    raise _other_kind(name, frame.column(there))
            elif name in self.texts:
                texts[name] = frame.texts[there]
            else:
                numbers[name] = there
        return Frame(tuple(numbers), frame.select(tuple(numbers.values())), texts)

    def copy(self) -> Encoder:
        """An encoder that does not change with this one, whose scale may be a running one."""
        return Encoder(
            self.columns, self.names, self.mean.copy(), self.deviation.copy(), self.places,
            self.flags, self.texts, self.width, self.named, self.limit,
        )  # fmt: skip

    def to_json(self) -> dict[str, Any]:
        """Plain values for `json.dumps`, which writes a float so that it reads back the same."""
        values = zip(self.mean.tolist(), self.deviation.tolist(), self.flags.tolist(), strict=True)
        columns: dict[str, dict[str, Any]] = {
            name: {"name": name, "mean": mean, "std": deviation, "missing": flag >= 0}
            for name, (mean, deviation, flag) in zip(self.names, values, strict=True)
        }
        for name, categories in self.texts.items():
            columns[name] = {"name": name, "categories": list(categories)}
        return {"named": self.named, "columns": [columns[name] for name in self.columns]}

    @classmethod
    def from_json(cls, data: Any) -> Encoder:
        """Read what `to_json` gave; raises `ModelFileError` if it is anything else."""
        try:
            named, columns = data["named"], [_read_column(column) for column in data["columns"]]
        except (KeyError, OverflowError, TypeError, ValueError) as error:
            raise ModelFileError(
                f"the encoder in the model file is damaged ({error!r}); save the model again"
            ) from error
        if type(named) is not bool or len({c.name for c in columns}) != len(columns) or not columns:
            raise ModelFileError(
                "the encoder in the model file is damaged (its columns need distinct names, and "
                "'named' is true or false); save the model again"
            )
        return cls.of(columns, named=named)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Encoder) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(self.columns)

    def _find_categories(self, frame: Frame) -> list[int]:
        """Where in the flat matrix the known categories of the rows stand."""
        width, places_set = self.width, list[int]()
        for name, places in self.texts.items():
            column = frame.texts.get(name)
            values = [None] * len(frame) if column is None else column
            places_set += [
                at * width + place
                for at, value in enumerate(values)
                if (place := places.get(value)) is not None
            ]
        return places_set

    @cached_property
    def _dates(self) -> dict[str, str]:
        """Columns that a frame has where one is a date and was not at fit, or was; and why not."""
        reasons = {}
        for name, places in group(self.columns).items():
            if len(places) > 1:
                reasons[name] = f"column {name!r} has held dates or times so far; give it as these"
            else:
                reason = (
                    f"column {name!r} holds a date or a time, but has held none so far; drop it"
                )
                reasons[part_name(name, PARTS[0])] = reason
        return {name: why for name, why in reasons.items() if name not in self.columns}

    @cached_property
    def _not_numbers(self) -> frozenset[str]:
        return frozenset((*self.texts, *self._dates))

    @cached_property
    def _not_text(self) -> frozenset[str]:
        return frozenset((*self.names, *self._dates))

    def _refuse_other_kinds(self, frame: Frame) -> None:
        if self._not_numbers.isdisjoint(frame.names) and self._not_text.isdisjoint(frame.texts):
            return
        for name in frame.columns:
            if name not in (self._not_text if frame.is_text(name) else self._not_numbers):
                continue
            if frame.kind(name) == "nothing":
                continue
            if name in self._dates:
                raise InputError(self._dates[name])
            value = _first_present(frame.column(name))[1]
            now, before = ("text", "numbers") if frame.is_text(name) else ("number", "text")
            raise InputError(
                f"column {name!r} holds the {now} {value!r}, but it has held {before} so far"
            )


def _first_present(values: NDArray[Any]) -> tuple[int, Any]:
    """The first row that is not missing, and its value."""
    return next(
        (row, value)
        for row, value in enumerate(values.tolist())
        if value is not None and value == value  # noqa: PLR0124  NaN is missing
    )


def _other_kind(name: str, values: NDArray[Any]) -> InputError:
    before, now = ("numbers", "text") if values.dtype == object else ("text", "numbers")
    row, value = _first_present(values)
    return InputError(
        f"column {name!r} was {before} at fit and is {now} now (row {row} holds {value!r}); give "
        f"it as {before}"
    )


def _no_value(name: str, n_rows: int) -> InputError:
    return InputError(f"column {source(name)!r} has no value in any of the {n_rows} rows; drop it")


def _read_column(data: dict[str, Any]) -> Numbers | Text:
    """One column of `to_json`; a KeyError, TypeError, ValueError or OverflowError if it is not."""
    _require(isinstance(data["name"], str), "a column's name is not text")
    if "categories" in data:
        categories = data["categories"]
        _require(isinstance(categories, list) and len(categories) > 0, "no list of categories")
        _require(all(isinstance(c, str) for c in categories[:-1]), "a category is not text")
        _require(isinstance(categories[-1], str | None), "a category is not text")
        _require(len(set(categories)) == len(categories), "a category is there twice")
        return Text(data["name"], tuple(categories))
    for key in ("mean", "std"):
        _require(type(data[key]) in (int, float), f"{key} is not a number")
        _require(math.isfinite(data[key]), f"{key} is not finite")
    _require(data["std"] > 0, "std is not positive")
    _require(type(data["missing"]) is bool, "'missing' is not true or false")
    return Numbers(data["name"], float(data["mean"]), float(data["std"]), data["missing"])


def _require(condition: bool, otherwise: str) -> None:
    if not condition:
        raise ValueError(otherwise)
