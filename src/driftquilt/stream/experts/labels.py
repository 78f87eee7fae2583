"""What the last labels say of the next one, and columns that show them to other experts.

Labels of many streams depend on those before them, whatever the row says. `LabelHistory` counts,
faded by `FADE` per row, which class followed which: its answer. And it gives columns to a row: the
last label, the one before it, and the share of each class among the labels of late over two
horizons. Only labels that have arrived are in it, so a row whose label comes late sees those that
were there.

The columns are called `LABEL_COLUMNS`, a prefix that columns of the caller should not have. In a
table of past rows `with_label_columns` computes the same columns from the labels in order.

>>> history = LabelHistory()
>>> for code in [0, 1, 0, 1, 0]:
...     history.learn(code)
>>> int(history.answer(2).argmax())                     # after 0 came 1
1
>>> history.columns()["last labels: latest"]
'0'
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from driftquilt.data.frame import Label, Row

__all__ = ["LABEL_COLUMNS", "LabelHistory", "with_label_columns"]

#: What the names of the columns begin with.
LABEL_COLUMNS = "last labels: "

_LAGS = (f"{LABEL_COLUMNS}latest", f"{LABEL_COLUMNS}before it")
FADE = 0.995
_HORIZONS = (0.8, 0.97)  # fading per row, 5 and 33 rows
_CLASSES_MAX = 8  # that have a share of their own in the columns


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
