"""A row as a vector, when nothing is known of the rows to come.

Numbers are scaled by the mean and deviation of the rows so far, text becomes a 0/1 column for
each of its categories. Columns and categories take the next free place when they first appear,
so that a vector only ever grows at its end; what a row lacks is zero. A number that has not
varied yet is zero too, and none is further from zero than `FAR`: one slip of a sensor must not
throw a net off for good.

>>> features = Features()
>>> for row in [{"age": 20.0}, {"age": 40.0, "city": "Rome"}, {"city": "Oslo"}]:
...     features.learn(row)
>>> features.names
['age', 'city=Rome', 'city=Oslo']
>>> features({"age": 50.0, "city": "Rome"})
array([2., 1., 0.], dtype=float32)
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftquilt.inputs.features import CATEGORIES_MAX
from driftquilt.inputs.row import Row, Value

__all__ = ["FAR", "Features"]

FAR = 10.0  # deviations


class Features:
    """Places of columns and categories, and the running mean and deviation of each number."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._places: dict[str, int | dict[str, int]] = {}  # of a number, or of each category
        # By place; plain lists, because rows are short and numpy's calls are not.
        self._n: list[int] = []  # rows that had a value
        self._mean: list[float] = []
        self._m2: list[float] = []  # sum of squares around the mean

    def __len__(self) -> int:
        return len(self.names)

    def __call__(self, row: Row) -> NDArray[np.float32]:
        """The row as a vector, scaled by the rows learned so far."""
        out = [0.0] * len(self.names)
        for name, value in row.items():
            place = self._places.get(name)
            if isinstance(place, dict):
                if value in place:
                    out[place[str(value)]] = 1.0
            elif place is not None and isinstance(value, float):
                out[place] = self._scale(place, value)
        return np.array(out, dtype=np.float32)

    def many(self, rows: Sequence[Row]) -> NDArray[np.float32]:
        """Rows as a matrix, each exactly as the vector that it would be alone."""
        out = np.zeros((len(rows), len(self.names)))
        for name, place in self._places.items():
            values = [row.get(name) for row in rows]
            if isinstance(place, int):
                self._scale_all(place, values, out[:, place])
                continue
            for at, value in enumerate(values):
                if value in place:
                    out[at, place[str(value)]] = 1.0
        return out.astype(np.float32)

    def learn(self, row: Row) -> None:
        """Take in a row: new places, and what its numbers tell of their scale."""
        for name in sorted(row):  # places must not depend on how a row is written down
            value = row[name]
            if value is None:
                continue
            place = self._find_place(name, value)
            if place is not None and isinstance(value, float):
                self._n[place] += 1
                off = value - self._mean[place]
                self._mean[place] += off / self._n[place]
                self._m2[place] += off * (value - self._mean[place])

    def to_json(self) -> dict[str, Any]:
        """Plain values, from which `from_json` makes the same again."""
        return {
            "places": [[name, place] for name, place in self._places.items()],
            "names": self.names,
            "scale": [self._n, self._mean, self._m2],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Features:
        features = cls()
        features.names = list(data["names"])
        for name, place in data["places"]:
            features._places[name] = dict(place) if isinstance(place, dict) else place
        features._n, features._mean, features._m2 = (list(part) for part in data["scale"])
        return features

    def _scale(self, place: int, value: float) -> float:
        spread = self._m2[place]
        if not spread > 0:
            return 0.0
        scaled = (value - self._mean[place]) / math.sqrt(spread / self._n[place])
        return max(-FAR, min(FAR, scaled))

    def _scale_all(self, place: int, values: Sequence[Value], out: NDArray[np.float64]) -> None:
        spread = self._m2[place]
        if not spread > 0:
            return
        numbers = np.array([v if isinstance(v, float) else self._mean[place] for v in values])
        scaled = (numbers - self._mean[place]) / math.sqrt(spread / self._n[place])
        np.clip(scaled, -FAR, FAR, out=out)

    def _find_place(self, name: str, value: float | str) -> int | None:
        """Of a number or a category, a new one if need be; None if there are too many."""
        places = self._places.get(name)
        if isinstance(value, str):
            if places is None:
                places = self._places[name] = {}
            if not isinstance(places, dict):
                return None
            if value not in places and len(places) < CATEGORIES_MAX:
                places[value] = self._add(f"{name}={value}")
            return places.get(value)
        if places is None:
            places = self._places[name] = self._add(name)
        return places if isinstance(places, int) else None

    def _add(self, name: str) -> int:
        self.names.append(name)
        self._n.append(0)
        self._mean.append(0.0)
        self._m2.append(0.0)
        return len(self.names) - 1
