"""The running scale of a stream: an encoder that grows with every row that is learned.

Numbers are scaled by the mean and deviation of the rows so far, text becomes a 0/1 column for
each of its categories. Columns and categories take the next free place when they first appear,
so that a vector only ever grows at its end; what a row lacks is zero. A number that has not
varied yet is zero too, and none is further from zero than `FAR`: one slip of a sensor must not
throw a net off for good.

>>> features = Features()
>>> for row in [{"age": 20.0}, {"age": 40.0, "city": "Rome"}, {"city": "Oslo"}]:
...     features.learn(Frame.of_row(row))
>>> features.encoder.feature_names_out
('age', 'city=Rome', 'city=Oslo')
>>> features.encoder.encode(Frame.of_row({"age": 50.0, "city": "Rome"}))
array([[2., 1., 0.]], dtype=float32)
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftquilt.data.encoder import CATEGORIES_MAX, Encoder
from driftquilt.data.frame import Frame

__all__ = ["FAR", "Features"]

FAR = 10.0  # deviations


class Features:
    """Running moments of each number and places of all; `encoder` is what they give now.

    The encoder's means and deviations change with every row; `encoder.copy()` does not.
    """

    def __init__(self) -> None:
        self.encoder = _make_encoder((), {}, (np.empty(0), np.empty(0)), {}, 0)
        self._n = np.empty(0, dtype=np.int64)  # rows that had a value, by number
        self._m2 = np.empty(0)  # sum of squares around the mean
        self._known = frozenset[str]()  # names of numbers

    def __len__(self) -> int:
        return self.encoder.width

    def learn(self, frame: Frame) -> None:
        """Take in a row: new places, and what its numbers say of their scale."""
        if self._has_news(frame):
            self._add_places(frame)
        self.encoder.learn_scale(frame, self._n, self._m2)

    def to_json(self) -> dict[str, Any]:
        """Plain values, from which `from_json` makes the same again."""
        encoder = self.encoder
        places = dict(zip(encoder.names, encoder.places.tolist(), strict=True))
        scale = np.zeros((3, encoder.width))
        scale[:, encoder.places] = self._n, encoder.mean, self._m2
        n_rows, mean, m2 = scale.tolist()
        return {
            "places": [
                [name, dict(encoder.texts[name]) if name in encoder.texts else places[name]]
                for name in encoder.columns
            ],
            "names": list(encoder.feature_names_out),
            "scale": [[int(n) for n in n_rows], mean, m2],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Features:
        features = cls()
        columns = tuple(name for name, _ in data["places"])
        numbers = {name: place for name, place in data["places"] if isinstance(place, int)}
        texts = {name: dict(place) for name, place in data["places"] if isinstance(place, dict)}
        n_rows, mean, m2 = ([part[place] for place in numbers.values()] for part in data["scale"])
        features._n = np.array(n_rows, dtype=np.int64)
        features._m2 = np.array(m2, dtype=np.float64)
        features._known = frozenset(numbers)
        with np.errstate(divide="ignore", invalid="ignore"):
            deviation = np.where(features._m2 > 0, np.sqrt(features._m2 / features._n), np.inf)
        scale = np.array(mean, dtype=np.float64), deviation
        features.encoder = _make_encoder(columns, numbers, scale, texts, len(data["names"]))
        return features

    def _has_news(self, frame: Frame) -> bool:
        if not self._known.issuperset(frame.names):
            return True
        return bool(frame.texts) and any(
            self._is_new(name, column[0]) for name, column in frame.texts.items()
        )

    def _is_new(self, name: str, category: str) -> bool:
        places = self.encoder.texts.get(name)
        if places is None:
            return name not in self._known
        return category not in places and len(places) < CATEGORIES_MAX

    def _add_places(self, frame: Frame) -> None:
        encoder = self.encoder
        columns, width = list(encoder.columns), encoder.width
        numbers = dict(zip(encoder.names, encoder.places.tolist(), strict=True))
        texts = dict(encoder.texts)
        # In the order of names, so that places do not depend on how a row is written down.
        for name in sorted((*frame.names, *frame.texts)):
            if name not in numbers and name not in texts:
                columns.append(name)
            if name in frame.texts and self._is_new(name, frame.texts[name][0]):
                texts[name] = {**texts.get(name, {}), frame.texts[name][0]: width}
            elif name not in frame.texts and name not in numbers and name not in texts:
                numbers[name] = width
            else:
                continue
            width += 1
        added = np.zeros(len(numbers) - len(encoder.names))
        self._n = np.append(self._n, added.astype(np.int64))
        self._m2 = np.append(self._m2, added)
        self._known = frozenset(numbers)
        scale = np.append(encoder.mean, added), np.append(encoder.deviation, added + np.inf)
        self.encoder = _make_encoder(tuple(columns), numbers, scale, texts, width)


def _make_encoder(
    columns: tuple[str, ...],
    numbers: dict[str, int],
    scale: tuple[NDArray[np.float64], NDArray[np.float64]],
    texts: Any,
    width: int,
) -> Encoder:
    """An encoder of numbers and categories at these places."""
    places = np.array(list(numbers.values()), dtype=np.intp)
    flags = np.full(len(numbers), -1, dtype=np.intp)
    return Encoder(columns, tuple(numbers), *scale, places, flags, texts, width, limit=FAR)
