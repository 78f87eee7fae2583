"""`Features`: the running encoder of a stream, which follows every row that is learned.

It encodes as a robust `Encoder` that was fitted to the rows so far would, nearly, in bounded
memory and with no second look at a row:

- Numbers are scaled by their running mean and deviation. Of each column 512 values are kept, every
  value so far with the same chance. Whenever the values have doubled, from 32 on, or one is a
  record and more than `FAR` deviations away, the sample and both ends say whether the tails are
  heavy, by the rule of `data.encoder`; then the column goes by rank, through knots.
- A value of text takes a place when it comes again while it is among the last 64 that have none, up
  to 40 places; the first value of a column takes one at once. So a column of ids has one place, and
  values that are frequent from some day on find one then.

What is drawn follows from the number of the value, so the same rows lead to the same state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftquilt.data.encoder import FREQUENT_MAX, LINEAR, Encoder, Fit, Knots, fit_knots
from driftquilt.data.frame import Frame

__all__ = ["FAR", "Features"]

FAR = 10.0  # deviations
_SAMPLE = 512  # values of each column of numbers
_LEAST = 32  # values that say something of tails
_ONCE_MAX = 64  # values of each column of text that came once


class Features:
    """The running scale of a stream: an encoder that grows with every row that is learned.

    Columns and categories take the next free place, so that a vector only ever grows at its end;
    what a row lacks is zero. A number that has not varied yet is zero too, and none is further from
    zero than `FAR`: one slip of a sensor must not throw a net off for good.

    `encoder` is what rows are encoded with now. Its means and deviations change with every row;
    `encoder.copy()` does not.

    >>> features = Features()
    >>> for row in [{"age": 20.0}, {"age": 40.0, "city": "Rome"}, {"city": "Oslo"}]:
    ...     features.learn(Frame.of_row(row))
    >>> features.encoder.feature_names_out
    ('age', 'city=Rome')
    >>> features.learn(Frame.of_row({"city": "Oslo"}))
    >>> features.encoder.encode(Frame.of_row({"age": 50.0, "city": "Oslo"}))
    array([[2., 0., 1.]], dtype=float32)
    """

    def __init__(self) -> None:
        self.encoder = _make_encoder((), {}, (np.empty(0), np.empty(0)), {}, 0, LINEAR)
        self._known = frozenset[str]()  # names of numbers
        # A line for each number, as `kernels.learn_scale` has them.
        self._counts, self._moments, self._sample = _nothing_known(0)
        self._once: dict[str, dict[str, None]] = {}  # text without a place, the latest last

    def __len__(self) -> int:
        return self.encoder.width

    def learn(self, frame: Frame) -> None:
        """Take in a row: new places, and what its numbers say of their scale."""
        if self._has_news(frame):
            self._add_places(frame)
        if frame.texts:
            self._note_texts(frame)
        if self.encoder.learn_scale(frame, self._counts, self._moments, self._sample):
            self._fit_due_columns()

    def pack(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Arrays and plain values, from which `unpack` makes the same again."""
        encoder, knots = self.encoder, self.encoder.knots
        places = dict(zip(encoder.names, encoder.places.tolist(), strict=True))
        scale = np.zeros((3, encoder.width))
        scale[:, encoder.places] = self._counts[:, 0], encoder.mean, self._moments[:, 0]
        n_rows, mean, m2 = scale.tolist()
        tensors = {
            "n_drawn": self._counts[:, 1].copy(),
            "ends": self._moments[:, 1:].copy(),
            "sample": self._sample.copy(),
            "knots": knots.values,
            "scores": knots.scores,
            "starts": knots.starts,
        }
        return tensors, {
            "places": [
                [name, dict(encoder.texts[name]) if name in encoder.texts else places[name]]
                for name in encoder.columns
            ],
            "names": list(encoder.feature_names_out),
            "scale": [[int(n) for n in n_rows], mean, m2],
            "once": {name: list(self._once[name]) for name in sorted(self._once)},
        }

    @classmethod
    def unpack(cls, tensors: Mapping[str, NDArray[Any]], record: Mapping[str, Any]) -> Features:
        """Go on from what `pack` gave; in earlier versions there were no arrays and no "once"."""
        features = cls()
        columns = tuple(name for name, _ in record["places"])
        numbers = {name: place for name, place in record["places"] if isinstance(place, int)}
        texts = {name: dict(place) for name, place in record["places"] if isinstance(place, dict)}
        n_rows, mean, m2 = ([part[place] for place in numbers.values()] for part in record["scale"])
        counts, moments, sample = _nothing_known(len(numbers))
        counts[:, 0], moments[:, 0], knots = n_rows, m2, LINEAR
        if tensors:
            counts[:, 1], moments[:, 1:] = tensors["n_drawn"], tensors["ends"]
            sample[:] = tensors["sample"]
            knots = Knots(*(tensors[part].copy() for part in ("knots", "scores", "starts")))
        features._counts, features._moments, features._sample = counts, moments, sample
        features._known = frozenset(numbers)
        once = record.get("once", {})
        features._once = {name: dict.fromkeys(values) for name, values in once.items()}
        with np.errstate(divide="ignore", invalid="ignore"):
            deviation = np.where(moments[:, 0] > 0, np.sqrt(moments[:, 0] / counts[:, 0]), np.inf)
        scale = np.array(mean, dtype=np.float64), deviation
        width = len(record["names"])
        features.encoder = _make_encoder(columns, numbers, scale, texts, width, knots)
        return features

    def _has_news(self, frame: Frame) -> bool:
        if not self._known.issuperset(frame.names):
            return True
        return bool(frame.texts) and any(
            self._is_new(name, column[0]) for name, column in frame.texts.items()
        )

    def _is_new(self, name: str, category: str) -> bool:
        """Whether a value of text takes a place now."""
        places = self.encoder.texts.get(name)
        if places is None:
            return name not in self._known
        return category not in places and category in self._once.get(name, ())

    def _note_texts(self, frame: Frame) -> None:
        """Remember values that came for the first time, while there are places for them."""
        for name, column in frame.texts.items():
            places = self.encoder.texts[name]
            if column[0] in places or len(places) >= FREQUENT_MAX:
                continue
            once = self._once.setdefault(name, {})
            once[column[0]] = None
            if len(once) > _ONCE_MAX:
                del once[next(iter(once))]

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
                self._forget_text(name, frame.texts[name][0], len(texts[name]))
            elif name not in frame.texts and name not in numbers and name not in texts:
                numbers[name] = width
            else:
                continue
            width += 1
        n_added = len(numbers) - len(encoder.names)
        added = _nothing_known(n_added)
        self._counts = np.append(self._counts, added[0], axis=0)
        self._moments = np.append(self._moments, added[1], axis=0)
        self._sample = np.append(self._sample, added[2], axis=0)
        self._known = frozenset(numbers)
        mean = np.append(encoder.mean, np.zeros(n_added))
        scale = mean, np.append(encoder.deviation, np.full(n_added, np.inf))
        knots = encoder.knots
        if len(knots.starts):
            starts = np.append(knots.starts, np.full(n_added, knots.starts[-1]))
            knots = knots._replace(starts=starts)
        self.encoder = _make_encoder(tuple(columns), numbers, scale, texts, width, knots)

    def _forget_text(self, name: str, category: str, n_places: int) -> None:
        """Let go of a value that has a place now, and of all if it was the last place."""
        once = self._once.get(name, {})
        once.pop(category, None)
        if not once or n_places >= FREQUENT_MAX:
            self._once.pop(name, None)

    def _fit_due_columns(self) -> None:
        """Find out which of the columns that are due have heavy tails now, and their knots."""
        due = set(np.flatnonzero(self._counts[:, 2] & (self._counts[:, 1] >= _LEAST)).tolist())
        self._counts[:, 2] = 0
        if not due:
            return
        names, knots = self.encoder.names, self.encoder.knots
        fits = [
            self._fit_column(name, at) if at in due else knots.column(at)
            for at, name in enumerate(names)
        ]
        self.encoder = replace(self.encoder, knots=Knots.of(fits))

    def _fit_column(self, name: str, at: int) -> Fit:
        """Knots of a column of numbers, from its sample and both of its ends."""
        sample = self._sample[at, : self._counts[at, 1]]
        return fit_knots(name, sample, (self._moments[at, 1], self._moments[at, 2]))


def _nothing_known(
    n_columns: int,
) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]:
    """Return counts, moments and samples of columns before their first value."""
    counts = np.zeros((n_columns, 3), dtype=np.int64)
    moments = np.tile([0.0, np.inf, -np.inf], (n_columns, 1))
    return counts, moments, np.zeros((n_columns, _SAMPLE))


def _make_encoder(
    columns: tuple[str, ...],
    numbers: dict[str, int],
    scale: tuple[NDArray[np.float64], NDArray[np.float64]],
    texts: Any,
    width: int,
    knots: Knots,
) -> Encoder:
    """Return an encoder of numbers and categories at these places."""
    places = np.array(list(numbers.values()), dtype=np.intp)
    flags = np.full(len(numbers), -1, dtype=np.intp)
    return Encoder(
        columns, tuple(numbers), *scale, places, flags, texts, width, limit=FAR, knots=knots
    )
