"""What one column becomes: a scaled number, or one 0/1 column per category.

    Numbers  name, name=missing             (x - mean) / std, and 1 where missing
    Text     name=Oslo, name=Rome, …        1 in the column of the row's category

The standard deviation is the population's; a constant column has 1 in its place. Of many
categories the most frequent are kept (ties by name), at most 256 with the missing one; the
others are all zeros, as those are that come later. So a column of ids, or of free text, in which
nearly every row differs, costs 256 columns and tells next to nothing: drop it.

>>> import numpy as np
>>> Numbers.fit("age", np.array([20.0, 40.0, np.nan]))
Numbers(name='age', mean=30.0, std=10.0, missing=True)
>>> Text.fit("city", np.array(["Rome", None, "Oslo"], dtype=object)).features
('city=Oslo', 'city=Rome', 'city=missing')
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftquilt.data.columns import FLOAT32_MAX
from driftquilt.data.moments import source
from driftquilt.errors import InputError

__all__ = ["CATEGORIES_MAX", "Numbers", "Text", "read_feature", "scale"]

CATEGORIES_MAX = 256


@dataclass(frozen=True)
class Numbers:
    """A column of numbers; `missing` says whether any was missing at fit."""

    name: str
    mean: float
    std: float
    missing: bool

    @classmethod
    def fit(cls, name: str, column: NDArray[np.float64]) -> Numbers:
        """Mean and deviation of the values present."""
        return cls.of(name, column[~np.isnan(column)], len(column))

    @classmethod
    def of(cls, name: str, present: NDArray[np.float64], n_rows: int) -> Numbers:
        """The same from the values present alone, which are overwritten; others are missing."""
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
        std = spread if 0 < spread < math.inf else 1.0
        return cls(name, first + shift, std, len(present) < n_rows)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the columns it becomes."""
        return (self.name, f"{self.name}=missing") if self.missing else (self.name,)

    def to_json(self) -> dict[str, Any]:
        """Plain values; `read_feature` is the way back."""
        return {"name": self.name, "mean": self.mean, "std": self.std, "missing": self.missing}


@dataclass(frozen=True)
class Text:
    """A column of text: its categories in sorted order, None (missing) last."""

    name: str
    categories: tuple[str | None, ...]

    @classmethod
    def fit(cls, name: str, column: NDArray[Any]) -> Text:
        """Keep the most frequent categories of the values present."""
        return cls.of(name, Counter(column.tolist()), len(column))

    @classmethod
    def of(cls, name: str, counts: Mapping[str | None, int], n_rows: int) -> Text:
        """The same from how many rows have each category."""
        found = [category for category in counts if category is not None]
        if not found:
            raise _no_value(name, n_rows)
        missing = None in counts
        ranked = sorted(found, key=lambda category: (-counts[category], category))
        kept = sorted(ranked[: CATEGORIES_MAX - missing])
        return cls(name, (*kept, None) if missing else tuple(kept))

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the columns it becomes."""
        return tuple(f"{self.name}={'missing' if c is None else c}" for c in self.categories)

    def codes(self, column: NDArray[Any]) -> NDArray[np.intp]:
        """Position of each row's category, -1 for one that is not known."""
        position = {category: code for code, category in enumerate(self.categories)}
        codes = (position.get(category, -1) for category in column.tolist())
        return np.fromiter(codes, dtype=np.intp, count=len(column))

    def to_json(self) -> dict[str, Any]:
        """Plain values; `read_feature` is the way back."""
        return {"name": self.name, "categories": list(self.categories)}


def scale(block: NDArray[np.float64], numbers: Sequence[Numbers]) -> NDArray[np.float64]:
    """(n, k) values of k columns, scaled; missing is 0, the mean; within float32's range."""
    mean = np.array([column.mean for column in numbers])
    std = np.array([column.std for column in numbers])
    with np.errstate(over="ignore"):  # far from all that was seen at fit; clipped below
        scaled: NDArray[np.float64] = (block - mean) / std
    np.clip(scaled, -FLOAT32_MAX, FLOAT32_MAX, out=scaled)
    scaled[np.isnan(scaled)] = 0
    return scaled


def read_feature(data: dict[str, Any]) -> Numbers | Text:
    """Read what `to_json` gave; a KeyError, TypeError, ValueError or OverflowError if not."""
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


def _no_value(name: str, n_rows: int) -> InputError:
    return InputError(f"column {source(name)!r} has no value in any of the {n_rows} rows; drop it")
