"""A row as a vector, when nothing is known of the rows to come.

Numbers are scaled by the mean and deviation of the rows so far, text becomes a 0/1 column for
each of its categories. Columns and categories take the next free place when they first appear,
so that a vector only ever grows at its end; what a row lacks is zero.

>>> features = Features()
>>> for row in [{"age": 20.0}, {"age": 40.0, "city": "Rome"}, {"city": "Oslo"}]:
...     features.learn(row)
>>> features.names
['age', 'city=Rome', 'city=Oslo']
>>> features({"age": 50.0, "city": "Rome"})
array([2., 1., 0.], dtype=float32)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftquilt.inputs.columns import FLOAT32_MAX
from driftquilt.inputs.features import CATEGORIES_MAX
from driftquilt.inputs.row import Row

__all__ = ["Features"]


class Features:
    """Places of columns and categories, and the running mean and deviation of each number."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._places: dict[str, int | dict[str, int]] = {}  # of a number, or of each category
        self._n = np.zeros(0)  # rows that had a value, by place
        self._mean = np.zeros(0)
        self._m2 = np.zeros(0)

    def __len__(self) -> int:
        return len(self.names)

    def __call__(self, row: Row) -> NDArray[np.float32]:
        """The row as a vector, scaled by the rows learned so far."""
        values, numbers, ones = self._read(row)
        out = np.zeros(len(self.names), dtype=np.float32)
        if numbers:
            n, m2 = self._n[numbers], self._m2[numbers]
            std = np.sqrt(m2 / np.maximum(n, 1))
            std[std == 0] = 1
            with np.errstate(over="ignore"):
                scaled = (np.array(values) - self._mean[numbers]) / std
            scaled[n == 0] = 0
            out[numbers] = np.clip(scaled, -FLOAT32_MAX, FLOAT32_MAX)
        out[ones] = 1
        return out

    def learn(self, row: Row) -> None:
        """Take in a row: new places, and what its numbers tell of their scale."""
        for name in sorted(row):  # places must not depend on how a row is written down
            value = row[name]
            if value is not None:
                self._find_place(name, value)
        values, numbers, _ = self._read(row)
        if numbers:
            self._n[numbers] += 1
            off = np.array(values) - self._mean[numbers]
            self._mean[numbers] += off / self._n[numbers]
            self._m2[numbers] += off * (np.array(values) - self._mean[numbers])

    def to_json(self) -> dict[str, Any]:
        """Plain values, from which `from_json` makes the same again."""
        return {
            "places": [[name, place] for name, place in self._places.items()],
            "names": self.names,
            "scale": [self._n.tolist(), self._mean.tolist(), self._m2.tolist()],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Features:
        features = cls()
        features.names = list(data["names"])
        features._places = dict(data["places"])
        features._n, features._mean, features._m2 = (np.array(part) for part in data["scale"])
        return features

    def _read(self, row: Row) -> tuple[list[float], list[int], list[int]]:
        """Numbers with their places, and the places of categories, as far as they have one."""
        values: list[float] = []
        numbers: list[int] = []
        ones: list[int] = []
        for name, value in row.items():
            place = self._places.get(name)
            if isinstance(place, int) and isinstance(value, float):
                values.append(value)
                numbers.append(place)
            elif isinstance(place, dict) and value in place:
                ones.append(place[str(value)])
        return values, numbers, ones

    def _find_place(self, name: str, value: float | str) -> None:
        if isinstance(value, str):
            places = self._places.setdefault(name, {})
            if isinstance(places, dict) and value not in places and len(places) < CATEGORIES_MAX:
                places[value] = self._add(f"{name}={value}")
        elif name not in self._places:
            self._places[name] = self._add(name)

    def _add(self, name: str) -> int:
        self.names.append(name)
        self._n, self._mean, self._m2 = (
            np.append(part, 0.0) for part in (self._n, self._mean, self._m2)
        )
        return len(self.names) - 1
