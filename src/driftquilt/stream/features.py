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
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftquilt.data.features import CATEGORIES_MAX
from driftquilt.data.frame import Frame
from driftquilt.data.row import Row

__all__ = ["FAR", "Features", "Scales"]

FAR = 10.0  # deviations


@dataclass(frozen=True, eq=False)
class Scales:
    """Places and scales as they were at one moment; numbers have their own place each."""

    width: int
    names: tuple[str, ...]  # of numbers
    places: NDArray[np.intp]
    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]  # infinite where numbers have not varied yet
    texts: dict[str, dict[str, int]]

    def __call__(self, frame: Frame) -> NDArray[np.float32]:
        """Rows as a matrix (n, width), each exactly as the vector that it would be alone."""
        scaled = (frame.select(self.names) - self.mean) / self.deviation
        np.maximum(np.minimum(scaled, FAR, out=scaled), -FAR, out=scaled)
        missing = np.isnan(scaled)
        if missing.any():
            scaled[missing] = 0
        if len(self.names) == self.width:  # each number has its place, in order
            return scaled.astype(np.float32, order="C")  # as the kernels take it
        out = np.zeros((len(frame), self.width), dtype=np.float32)
        out[:, self.places] = scaled
        for name, places in self.texts.items():
            for at, value in enumerate(frame.texts.get(name, ())):
                if value in places:
                    out[at, places[str(value)]] = 1
        return out


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

    def frozen(self) -> Scales:
        """What is known now, for many rows at once."""
        numbers = [(name, at) for name, at in self._places.items() if isinstance(at, int)]
        texts = {name: dict(at) for name, at in self._places.items() if isinstance(at, dict)}
        places = [at for _, at in numbers]
        spread = [self._m2[at] / self._n[at] if self._m2[at] > 0 else math.inf for at in places]
        return Scales(
            len(self.names),
            tuple(name for name, _ in numbers),
            np.array(places, dtype=np.intp),
            np.array([self._mean[at] for at in places]),
            np.sqrt(spread),
            texts,
        )

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
