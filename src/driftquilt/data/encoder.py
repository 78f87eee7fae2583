"""`Encoder`: a frame becomes a float32 matrix whose scale a net can learn from.

Numbers are moved and scaled by a mean and a deviation. Where the tails of a column are heavy
(money, outliers, sentinels such as 999, a spike at zero), these say little, and the column is
encoded by rank instead: piecewise linear between up to 257 knots, which are quantiles, each with
the normal score of its rank; beyond the outermost knots it is constant. A number that is scaled by
mean and deviation ends 3 deviations beyond those seen at fit, so that a sentinel that first appears
later cannot outweigh all other columns. A missing number becomes 0, and a 0/1 column says so if any
was missing at fit.

Text becomes one 0/1 column per category, missing being a category of its own; a category that was
not seen at fit is all zeros, and so are those beyond the 40 most frequent (ties by name). Where
there are more than 40, a category that was seen once is left out too. So a column of ids costs next
to nothing, and says nothing. Hashing the others, their frequency or target statistics did not help
(`benchmarks/README.md`). Dates and times are numbers already when they get here: `calendar`.

With `robust=False` no column is encoded by rank or has an end, and 256 categories have a column:
the paper's protocol, and models of earlier versions.

    encode(frame)     (n, width)  float32, C-contiguous, always finite
    transform(table)  the same of a whole table, whose columns have to be those seen at fit

`encode` is the only place where rows are encoded: tables, rows of a stream, requests to the
service. Each row of the matrix depends on the same row of the frame alone, bit for bit. What the
frame lacks is missing, and what the encoder does not know is left out; `match` refuses both. The
running scale of a stream (`stream.features`) gives such an encoder too. `describe` says of each
column how it is encoded.

>>> from driftquilt.data.frame import Frame, read_frame
>>> encoder = Encoder.fit(read_frame({"age": [20, None, 40], "city": ["Rome", "Oslo", None]}))
>>> encoder.feature_names_out
('age', 'age=missing', 'city=Oslo', 'city=Rome', 'city=missing')
>>> encoder.transform(read_frame({"city": ["Oslo", "Bonn", None], "age": [50.0, None, 999]}))
array([[2., 0., 1., 0., 0.],
       [0., 1., 0., 0., 0.],
       [4., 0., 0., 0., 1.]], dtype=float32)
>>> encoder.encode(Frame.of_row({"city": "Rome"}))
array([[0., 1., 0., 1., 0.]], dtype=float32)
>>> encoder.describe()["age"]
'numbers: by mean and deviation, from -10 to 70'
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from itertools import pairwise
from statistics import NormalDist
from types import ModuleType
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from driftquilt.data.arrow import ArrowFrame
from driftquilt.data.calendar import PARTS, find_columns, group, part_name, source, sources
from driftquilt.data.columns import FLOAT32_MAX
from driftquilt.data.frame import BLOCK, Frame
from driftquilt.errors import InputError, ModelFileError
from driftquilt.text import plural

__all__ = ["CATEGORIES_MAX", "FREQUENT_MAX", "Encoder", "Fit", "Knots", "fit_knots"]

CATEGORIES_MAX = 256  # of a column of text, missing included
FREQUENT_MAX = 40  # the same in a robust encoding
_KNOTS_MAX = 257
_HEAVY = 4  # interquartile ranges between the median and the end of a tail
_BEYOND = 3.0  # deviations beyond the numbers seen at fit
_LOWEST_RANK = 0.001  # as a share of the rows; the highest is 1 less this

#: Knots of a column of numbers and their scores; none if it is linear.
Fit: TypeAlias = tuple[NDArray[np.float64], NDArray[np.float64]]

# Parts of dates lie within [-1, 1] and are rounded at 1e-16, otherwise in every library. Where they
# vary by less than this (the sine of noon is not quite that of midnight), they are constant.
_LEAST_OF_PARTS = 1e-9


@cache
def _kernels() -> ModuleType:
    # Imported at first use, so that `import driftquilt` does not wait for numba.
    from driftquilt.data import kernels  # noqa: PLC0415

    return kernels


class Numbers(NamedTuple):
    """A column of numbers as fitted; `missing` says whether any was missing.

    `knots` and their `scores` are empty unless the column is encoded by rank. `lowest` and
    `highest` are where the scaled numbers end.
    """

    name: str
    mean: float
    deviation: float
    missing: bool
    knots: tuple[float, ...] = ()
    scores: tuple[float, ...] = ()
    lowest: float = -math.inf
    highest: float = math.inf

    @classmethod
    def fit(
        cls, name: str, present: NDArray[np.float64], n_rows: int, *, robust: bool = True
    ) -> Numbers:
        """By rank if the tails are heavy, else by mean and deviation; `present` is overwritten.

        `present` has the values that are not missing.
        """
        if len(present) == 0:
            raise _no_value(name, n_rows)
        if robust:
            knots, scores = fit_knots(name, present)
            if len(knots):
                by_rank = tuple(knots.tolist()), tuple(scores.tolist())
                return cls(name, 0.0, 1.0, len(present) < n_rows, *by_rank)
        low, high = float(present.min()), float(present.max())
        mean, deviation = _fit_scale(present, _LEAST_OF_PARTS if _is_part(name) else 0.0)
        fitted = cls(name, mean, deviation, len(present) < n_rows)
        if not robust:
            return fitted
        lowest, highest = (low - mean) / deviation - _BEYOND, (high - mean) / deviation + _BEYOND
        return fitted._replace(lowest=lowest, highest=highest)


def fit_knots(
    name: str, present: NDArray[np.float64], ends: tuple[float, float] | None = None
) -> Fit:
    """Knots and scores for the values of a column; none unless its tails are heavy.

    `ends` are the lowest and the highest value if those in `present` are a sample.
    """
    ordered = np.sort(present)
    low, high = (ordered[0], ordered[-1]) if ends is None else ends
    if _is_part(name) or not _has_heavy_tails(ordered, low, high):
        return LINEAR.values, LINEAR.scores
    return _lay_knots(ordered if ends is None else np.array([low, *ordered, high]))


def _is_part(name: str) -> bool:
    """Whether the column is a part of a date: sines and cosines have no tails."""
    return source(name) != name


def _fit_scale(present: NDArray[np.float64], least: float) -> tuple[float, float]:
    """Mean and population deviation of values, which are overwritten.

    The deviation is 1 for a constant column, and for one that hardly varies: by `least` or less.
    """
    first = float(present[0])
    present -= first  # a constant column is then exactly zero
    shift = float(present.mean())
    present -= shift
    spread = float(max(present.max(), -present.min()))
    if spread > 0:  # squares of offset / spread neither overflow nor vanish
        present /= spread
        spread *= math.sqrt(float(np.square(present, out=present).mean()))
    return first + shift, spread if least < spread < math.inf else 1.0


def _has_heavy_tails(ordered: NDArray[np.float64], low: float, high: float) -> bool:
    """Whether sorted values reach far beyond their middle half; two distinct values never do."""
    if not ((ordered > low) & (ordered < high)).any():
        return False
    bottom, lower, median, upper, top = np.quantile(ordered, [0.001, 0.25, 0.5, 0.75, 0.999])
    reach = max(top - median, median - bottom, (high - median) / 4, (median - low) / 4)
    return bool(reach > _HEAVY * (upper - lower))


def _lay_knots(ordered: NDArray[np.float64]) -> Fit:
    """Knots at even ranks of sorted values; their scores give the rows mean 0 and deviation 1."""
    n_rows = len(ordered)
    ranks = np.linspace(0, n_rows - 1, min(n_rows, _KNOTS_MAX)).round().astype(np.intp)
    knots = np.unique(ordered[ranks])
    below, up_to = (np.searchsorted(ordered, knots, side) for side in ("left", "right"))
    shares = np.clip((below + up_to) / (2 * n_rows), _LOWEST_RANK, 1 - _LOWEST_RANK)
    scores = np.array([NormalDist().inv_cdf(share) for share in shares.tolist()])
    encoded = np.interp(ordered, knots, scores)
    return knots, (scores - encoded.mean()) / encoded.std()


class Text(NamedTuple):
    """A column of text as fitted: its categories in sorted order, None (missing) last.

    `n_values` is how many there were to choose from, missing included.
    """

    name: str
    categories: tuple[str | None, ...]
    n_values: int

    @classmethod
    def fit(
        cls, name: str, counts: Mapping[str | None, int], n_rows: int, *, robust: bool = True
    ) -> Text:
        """Keep the most frequent categories; `counts` has the rows of each."""
        present = [category for category in counts if category is not None]
        if not present:
            raise _no_value(name, n_rows)
        missing = None in counts
        ranked = sorted(present, key=lambda category: (-counts[category], category))
        frequent = ranked[: (FREQUENT_MAX if robust else CATEGORIES_MAX) - missing]
        if robust and len(frequent) < len(ranked):
            # Each of the values of an id says nothing; but a column needs a place.
            frequent = [c for c in frequent if counts[c] > 1] or ranked[: 1 - missing]
        categories = (*sorted(frequent), None) if missing else tuple(sorted(frequent))
        return cls(name, categories, len(counts))


class Knots(NamedTuple):
    """Knots and scores of all columns of numbers, end to end; none for those that are linear."""

    values: NDArray[np.float64]
    scores: NDArray[np.float64]
    starts: NDArray[np.intp]  # of each column, and the end of the last; empty if all are linear

    @classmethod
    def of(cls, fits: Sequence[Fit]) -> Knots:
        """Lay the knots and scores of columns out end to end."""
        sizes = [len(knots) for knots, _ in fits]
        if not any(sizes):
            return LINEAR
        knots, scores = (np.concatenate(part) for part in zip(*fits, strict=True))
        return cls(knots, scores, np.cumsum([0, *sizes], dtype=np.intp))

    def column(self, place: int) -> Fit:
        """Knots and scores of one column of numbers; none if it is linear."""
        if not len(self.starts):
            return self.values, self.scores
        one = slice(self.starts[place], self.starts[place + 1])
        return self.values[one], self.scores[one]


class Ends(NamedTuple):
    """The lowest and the highest scaled number of each column; empty if no column has an end."""

    lowest: NDArray[np.float64]
    highest: NDArray[np.float64]

    @classmethod
    def of(cls, numbers: Sequence[Numbers]) -> Ends:
        """Gather the ends of columns."""
        if all(math.isinf(column.lowest) for column in numbers):
            return ENDLESS
        return cls(
            np.array([column.lowest for column in numbers], dtype=np.float64),
            np.array([column.highest for column in numbers], dtype=np.float64),
        )

    def column(self, place: int) -> tuple[float, float]:
        """Return both ends of one column of numbers, infinite if it has none."""
        if not len(self.lowest):
            return -math.inf, math.inf
        return float(self.lowest[place]), float(self.highest[place])


ENDLESS = Ends(np.empty(0), np.empty(0))
LINEAR = Knots(np.empty(0), np.empty(0), np.empty(0, dtype=np.intp))


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
    knots: Knots = LINEAR
    ends: Ends = ENDLESS
    n_values: Mapping[str, int] = field(default_factory=dict)  # of text at fit, also those left out

    @classmethod
    def fit(
        cls,
        table: Frame | ArrowFrame,
        rows: NDArray[np.intp] | None = None,
        *,
        robust: bool = True,
    ) -> Encoder:
        """Learn scales, knots and categories from all rows of `table`, or from some.

        A column that has no value in those rows is learned from all of them. `robust` lets columns
        with heavy tails be encoded by rank, and gives fewer categories a column.
        """
        seen = table if rows is None else table.take(rows)
        columns: list[Numbers | Text] = []
        for name in table.columns:
            some = table if rows is not None and seen.kind(name) == "nothing" else seen
            if some.is_text(name):
                columns.append(Text.fit(name, some.counts(name), len(some), robust=robust))
            else:
                present = some.present(name)
                columns.append(Numbers.fit(name, present, len(some), robust=robust))
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
            knots=Knots.of([(np.array(n.knots), np.array(n.scores)) for n in numbers]),
            ends=Ends.of(numbers),
            n_values={c.name: c.n_values for c in columns if isinstance(c, Text)},
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

    def describe(self) -> dict[str, str]:
        """One line per column of the caller's: how it is encoded."""
        return {
            name: "dates and times: sines and cosines of the calendar"
            if len(places) > 1
            else self._describe_column(name)
            for name, places in group(self.columns).items()
        }

    def _describe_column(self, name: str) -> str:
        if name not in self.texts:
            return self._describe_numbers(self.names.index(name))
        n_own = sum(category is not None for category in self.texts[name])
        n_all = self.n_values.get(name, 0) - (None in self.texts[name])
        if n_own >= n_all:
            return f"text: a column for each of {plural(n_own, 'value')}"
        have = "has a column of its own" if n_own == 1 else "have a column of their own"
        return f"text: {n_own} of {n_all:,} values {have}"

    def _describe_numbers(self, place: int) -> str:
        if len(self.knots.column(place)[0]):
            return "numbers, heavy tails: by rank"
        ends = self.ends.column(place)
        if math.isinf(ends[0]):
            return "numbers: by mean and deviation"
        low, high = (self.mean[place] + end * self.deviation[place] for end in ends)
        return f"numbers: by mean and deviation, from {low:.4g} to {high:.4g}"

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
            frame.numbers, frame.find(self.names), self.mean, self.deviation, *self.knots,
            *self.ends, self.limit, self.places, self.flags, out,
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

    def learn_scale(
        self,
        frame: Frame,
        counts: NDArray[np.int64],
        moments: NDArray[np.float64],
        sample: NDArray[np.float64],
    ) -> bool:
        """Let the means and deviations of a running encoder follow some rows, in their order.

        What else is known of each number follows too; `kernels.learn_scale` describes it. Return
        whether the knots of a column are due.
        """
        places, scale = frame.find(self.names), (self.mean, self.deviation)
        due: bool = _kernels().learn_scale(
            frame.numbers, places, *scale, counts, moments, sample, self.limit
        )
        return due

    def match(self, frame: Frame) -> Frame:
        """Return the frame with these columns; `InputError` if one is lacking or another kind.

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
        """Return an encoder that does not change with this one, whose scale may be running."""
        return replace(self, mean=self.mean.copy(), deviation=self.deviation.copy())

    def to_json(self) -> dict[str, Any]:
        """Plain values for `json.dumps`, which writes a float so that it reads back the same."""
        columns: dict[str, dict[str, Any]] = {}
        scales = zip(self.mean.tolist(), self.deviation.tolist(), strict=True)
        for place, (name, (mean, deviation)) in enumerate(zip(self.names, scales, strict=True)):
            knots, scores = (part.tolist() for part in self.knots.column(place))
            how = {"knots": knots, "scores": scores} if knots else {"mean": mean, "std": deviation}
            lowest, highest = self.ends.column(place)
            if math.isfinite(lowest):
                how |= {"lowest": lowest, "highest": highest}
            columns[name] = {"name": name, **how, "missing": bool(self.flags[place] >= 0)}
        for name, categories in self.texts.items():
            n_values = max(self.n_values.get(name, 0), len(categories))
            columns[name] = {"name": name, "categories": list(categories), "n_values": n_values}
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
    """Return the first row that is not missing, and its value."""
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
        n_values = data.get("n_values", len(categories))  # not in files of earlier versions
        _require(type(n_values) is int and n_values >= len(categories), "n_values is too low")
        return Text(data["name"], tuple(categories), n_values)
    _require(type(data["missing"]) is bool, "'missing' is not true or false")
    if "knots" in data:
        knots, scores = data["knots"], data["scores"]
        _require(all(map(_is_finite, (*knots, *scores))), "a knot is not a finite number")
        _require(len(knots) == len(scores) > 1, "there are fewer than two knots, or other scores")
        _require(all(a < b for a, b in pairwise(knots)), "knots do not increase")
        both = tuple(map(float, knots)), tuple(map(float, scores))
        return Numbers(data["name"], 0.0, 1.0, data["missing"], *both)
    for key in ("mean", "std"):
        _require(_is_finite(data[key]), f"{key} is not a finite number")
    _require(data["std"] > 0, "std is not positive")
    fitted = Numbers(data["name"], float(data["mean"]), float(data["std"]), data["missing"])
    if "lowest" not in data:  # as in files of earlier versions
        return fitted
    lowest, highest = data["lowest"], data["highest"]
    _require(_is_finite(lowest) and _is_finite(highest), "an end is not a finite number")
    _require(lowest < highest, "the highest number is not above the lowest")
    return fitted._replace(lowest=float(lowest), highest=float(highest))


def _is_finite(value: Any) -> bool:
    return type(value) in (int, float) and math.isfinite(value)


def _require(condition: bool, otherwise: str) -> None:
    if not condition:
        raise ValueError(otherwise)
