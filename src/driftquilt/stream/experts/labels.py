"""What the last labels say of the next one, and columns that show them to other experts.

Labels of many streams depend on those before them, whatever the row says. `LabelHistory` counts,
faded by `FADE` per row, which class followed which: its answer. And it gives columns to a row: the
last label, the one before it, and the share of each class among the labels of late over two
horizons. Only labels that have arrived are in it, so a row whose label comes late sees those that
were there.

The columns are called `LABEL_COLUMNS`, a prefix that columns of the caller should not have. In a
table of past rows `with_label_columns` computes the same columns from the labels in order. Of
numbers, `NumberHistory` and `with_number_columns` do the same, with means in place of shares.

>>> history = LabelHistory()
>>> for code in [0, 1, 0, 1, 0]:
...     history.learn(code)
>>> int(history.answer(2).argmax())                     # after 0 came 1
1
>>> history.columns()["last labels: latest"]
'0'
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from driftquilt.data.frame import Label, Row
from driftquilt.data.rows import Target

__all__ = [
    "LABEL_COLUMNS",
    "LabelHistory",
    "NumberHistory",
    "scale_of",
    "with_label_columns",
    "with_number_columns",
]

#: What the names of the columns begin with.
LABEL_COLUMNS = "last labels: "

_LAGS = (f"{LABEL_COLUMNS}latest", f"{LABEL_COLUMNS}before it")
FADE = 0.995
_HORIZONS = (0.8, 0.97)  # fading per row, 5 and 33 rows
_CLASSES_MAX = 8  # that have a share of their own in the columns

# Of numbers.
_MEANS = tuple(f"{LABEL_COLUMNS}mean over {round(1 / (1 - fade))}" for fade in _HORIZONS)
_SCALED, _SCALE_EVERY = 512, 256  # labels
_RIDGE = 0.01  # of the mean square of the inputs, towards the last label
_FAR_OFF = 3.0  # times the usual distance: from there on a label counts less
_SETTLED = 10  # labels
_TINY = 1e-280


class LabelHistory:
    """The last labels, by class."""

    def __init__(self) -> None:
        self._last, self._before = -1, -1
        self._shares = np.zeros((len(_HORIZONS), _CLASSES_MAX))
        self._counts = np.zeros((0, 0))  # of class after class, faded

    def learn(self, code: int) -> None:
        """Take in the label of a row."""
        size = len(self._counts)
        if code >= size:
            self._counts = np.pad(self._counts, (0, code + 1 - size))
        if self._last >= 0:
            self._counts[self._last] *= FADE
            self._counts[self._last, code] += 1
        self._last, self._before = code, self._last
        _fade_in(self._shares, code)

    def answer(self, n_classes: int) -> NDArray[np.float32]:
        """Probabilities (n_classes,) of the next label."""
        counts = np.ones(n_classes)
        if self._last >= 0:
            counts[: len(self._counts)] += self._counts[self._last]
        probabilities: NDArray[np.float32] = (counts / counts.sum()).astype(np.float32)
        return probabilities

    def columns(self) -> Row:
        """Return what a row that comes now is given."""
        lags = zip(_LAGS, (self._last, self._before), strict=True)
        row: Row = {name: str(code) for name, code in lags if code >= 0}
        n_shown = min(len(self._counts), _CLASSES_MAX)
        return row | dict(zip(_share_names(n_shown), _shown(self._shares, n_shown), strict=True))

    def pack(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "last": self._last,
            "before": self._before,
            "shares": self._shares.tolist(),
            "counts": self._counts.tolist(),
        }

    def unpack(self, record: dict[str, Any]) -> None:
        """Go on from what `pack` gave."""
        self._last, self._before = record["last"], record["before"]
        self._shares = np.array(record["shares"])
        n_classes = len(record["counts"])
        self._counts = np.array(record["counts"]).reshape(n_classes, n_classes)


class NumberHistory:
    """The last labels of a stream of numbers: what they say of the next, and their scale.

    The answer is that of a linear model of the last label, the one before it and a mean of late,
    all as distances to a longer mean. Rows count by `FADE`, one far off counts less, and few rows
    are drawn towards the last label. `target` is the scale of the last `_SCALED` labels.

    >>> history = NumberHistory()
    >>> for turn in range(60):
    ...     history.learn(100.0 + turn % 2)
    >>> history.answer(1).round(1), history.target.middle
    (array([100.]), 100.0)
    """

    def __init__(self) -> None:
        self.target = Target(0.0, 0.0)
        self._n_rows = 0
        self._latest: deque[float] = deque(maxlen=_SCALED)
        self._means = [0.0, 0.0]
        self._off = 0.0  # how far answers are off, faded
        self._products = np.zeros((3, 3))
        self._sums = np.zeros(3)

    def learn(self, y: float) -> None:
        """Take in the label of a row."""
        if self._n_rows:
            self._fit(y)
        self._n_rows += 1
        self._latest.append(y)
        _fade_in_number(self._means, y, self._n_rows)
        n_rows, (middle, spread) = self._n_rows, (self.target.middle, self.target.spread)
        is_due = n_rows % _SCALE_EVERY == 0 or (n_rows & (n_rows - 1) == 0 and n_rows < _SCALED)
        if is_due or (not spread and y != middle):
            found = scale_of(self._latest)
            self.target = replace(found, spread=max(found.spread, spread / 2))

    def answer(self, n_outputs: int) -> NDArray[np.float64]:
        """Return the number that comes next (1,); there is none (0,) before the first label."""
        return np.array([self._answer()])[:n_outputs]

    def columns(self) -> Row:
        """Return what a row that comes now is given."""
        if not self._n_rows:
            return {}
        row: Row = dict(zip(_LAGS, list(self._latest)[: -len(_LAGS) - 1 : -1], strict=False))
        return row | dict(zip(_MEANS, self._means, strict=True))

    def pack(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "n_rows": self._n_rows,
            "latest": list(self._latest),
            "means": self._means,
            "off": self._off,
            "products": self._products.tolist(),
            "sums": self._sums.tolist(),
            "target": [self.target.middle, self.target.spread],
        }

    def unpack(self, record: dict[str, Any]) -> None:
        """Go on from what `pack` gave."""
        self._n_rows, self._off = record["n_rows"], record["off"]
        self._latest = deque(record["latest"], maxlen=_SCALED)
        self._means = list(record["means"])
        self._products, self._sums = np.array(record["products"]), np.array(record["sums"])
        self.target = Target(*record["target"])

    def _inputs(self) -> NDArray[np.float64]:
        latest = self._latest
        before = latest[-2] if len(latest) > 1 else latest[-1]
        return np.array([latest[-1], before, self._means[0]]) - self._means[1]

    def _answer(self) -> float:
        if not self._n_rows:
            return 0.0
        ridge = _RIDGE * np.trace(self._products)
        if not ridge > _TINY:
            return self._latest[-1]
        start = np.array([1.0, 0.0, 0.0])
        pull = ridge * np.eye(3)
        shares = np.linalg.solve(self._products + pull, self._sums + pull @ start)
        return self._means[1] + float(shares @ self._inputs())

    def _fit(self, y: float) -> None:
        off, inputs = abs(y - self._answer()), self._inputs()
        weight = 1.0 if off <= _FAR_OFF * self._off else _FAR_OFF * self._off / off
        self._products = FADE * self._products + weight * np.outer(inputs, inputs)
        self._sums = FADE * self._sums + weight * (y - self._means[1]) * inputs
        rate = max(1 - FADE, 1 / self._n_rows)
        self._off += rate * ((off if self._n_rows < _SETTLED else weight * off) - self._off)


def scale_of(labels: Iterable[float]) -> Target:
    """Return the middle and the spread of some labels; 0 where all of them are the same."""
    y = np.fromiter(labels, dtype=np.float64)
    found = Target.fit(y, np.ones(len(y)))
    return replace(found, spread=found.spread if y.max() > y.min() else 0.0)


def with_number_columns(tables: Sequence[pa.Table], label: str) -> list[pa.Table]:
    """Do what `with_label_columns` does where labels are numbers.

    >>> [more] = with_number_columns([pa.table({"label": [1.0, 3.0, 5.0]})], "label")
    >>> more["last labels: before it"].to_pylist(), more["last labels: mean over 5"].to_pylist()
    ([None, None, 1.0], [None, 1.0, 2.0])
    """
    means, made, n_rows = [0.0] * len(_MEANS), [], 0
    last: float | None = None
    before: float | None = None
    for table in tables:
        values: list[list[float | None]] = []
        for y in table[label].to_pylist():
            values.append([last, before, *(means if n_rows else [None] * len(means))])
            n_rows += 1
            _fade_in_number(means, y, n_rows)
            last, before = y, last
        more = table
        for at, name in enumerate((*_LAGS, *_MEANS)):
            more = more.append_column(name, pa.array([row[at] for row in values], pa.float64()))
        made.append(more)
    return made


def _fade_in_number(means: list[float], y: float, n_rows: int) -> None:
    """Take a label into the faded means, which start as plain ones."""
    for horizon, fade in enumerate(_HORIZONS):
        means[horizon] += max(1 - fade, 1 / n_rows) * (y - means[horizon])


def with_label_columns(
    tables: Sequence[pa.Table], label: str, classes: Sequence[Label]
) -> list[pa.Table]:
    """Tables of rows in order, each row with the columns that it had when it came.

    Where rows between two tables were dropped, the first rows after the gap see older labels.

    >>> table = pa.table({"label": ["a", "b", "a"]})
    >>> [more] = with_label_columns([table], "label", ["a", "b"])
    >>> more["last labels: latest"].to_pylist()
    [None, '0', '1']
    """
    codes = {known: code for code, known in enumerate(classes)}
    n_shown = min(len(classes), _CLASSES_MAX)
    shares = np.zeros((len(_HORIZONS), _CLASSES_MAX))
    last: str | None = None
    before: str | None = None
    names, made = _share_names(n_shown), []
    for table in tables:
        lags: list[tuple[str | None, str | None]] = []
        values = np.empty((len(table), len(names)))
        for row, known in enumerate(table[label].to_pylist()):
            lags.append((last, before))
            values[row] = _shown(shares, n_shown)
            _fade_in(shares, codes[known])
            last, before = str(codes[known]), last
        more = table
        for at, name in enumerate(_LAGS):
            more = more.append_column(name, pa.array([lag[at] for lag in lags], pa.string()))
        for name, column in zip(names, values.T, strict=True):
            more = more.append_column(name, pa.array(column))
        made.append(more)
    return made


def _fade_in(shares: NDArray[np.float64], code: int) -> None:
    for horizon, fade in enumerate(_HORIZONS):
        shares[horizon] *= fade
        if code < _CLASSES_MAX:
            shares[horizon, code] += 1 - fade


def _share_names(n_classes: int) -> list[str]:
    """Columns of shares; those of the first class follow from the others."""
    return [
        f"{LABEL_COLUMNS}share {code} over {round(1 / (1 - fade))}"
        for fade in _HORIZONS
        for code in range(1, n_classes)
    ]


def _shown(shares: NDArray[np.float64], n_classes: int) -> list[float]:
    values: list[float] = shares[:, 1 : max(n_classes, 1)].ravel().tolist()
    return values
