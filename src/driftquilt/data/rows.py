"""Labelled rows as the caller gave them, kept so that later batches can join them.

`Rows.read` checks one batch; `first.append(second)` is what reading both batches at once
would have given: classes are their union, a segment id that both have is one segment, new
ids follow in order of appearance.

>>> may = Rows.read([[1.0], [2.0]], ["a", "b"], segments=["may", "may"])
>>> june = Rows.read([[3.0], [4.0]], ["b", "c"], segments=["may", "june"])
>>> both = may.append(june)
>>> both.classes.tolist(), both.y.tolist(), both.segments, both.codes.tolist()
(['a', 'b', 'c'], [0, 1, 1, 2], ['may', 'june'], [0, 0, 0, 1])
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeAlias

import narwhals.stable.v2 as nw
import numpy as np
from numpy.typing import NDArray

from driftquilt.data.arrow import ArrowFrame, read_in_place, stack_in_place
from driftquilt.data.calendar import line_up
from driftquilt.data.frame import Frame, read_frame
from driftquilt.data.labels import (
    Codes,
    read_labels,
    read_numbers,
    read_segments,
    read_weights,
)
from driftquilt.errors import InputError

Features: TypeAlias = Frame | ArrowFrame | NDArray[Any]

_NO_CLASSES = np.zeros(0)
_NORMAL = 1.4826  # standard deviations of a normal distribution in half of its quartile range


@dataclass(frozen=True)
class Target:
    """The scale on which a net learns a target that is a number.

    The middle is the median. The spread is the interquartile range as that of a normal
    distribution, so that a few enormous values do not squeeze all others together; where more than
    half of the values are the same, it is the mean distance to the median.

    >>> target = Target.fit(np.array([1.0, 2, 3, 4, 1e6]), np.ones(5))
    >>> target
    Target(middle=3.0, spread=1.4826)
    >>> target.restore(target.scale(np.array([1.0, 1e6]))).round(3).tolist()
    [1.0, 1000000.0]
    """

    middle: float
    spread: float

    @classmethod
    def fit(cls, y: NDArray[np.float64], weight: NDArray[np.float64]) -> Self:
        """Look at the rows of a training."""
        low, middle, high = weighted_quantiles(y, weight, (0.25, 0.5, 0.75))
        spread = (high - low) / 2 * _NORMAL
        if not spread:
            spread = float(np.average(np.abs(y - middle), weights=weight))
        return cls(float(middle), float(spread) or 1.0)

    def scale(self, y: NDArray[Any]) -> NDArray[np.float64]:
        """Return targets as the net learns them."""
        scaled: NDArray[np.float64] = (np.asarray(y, dtype=np.float64) - self.middle) / self.spread
        return scaled

    def restore(self, z: NDArray[Any]) -> NDArray[np.float64]:
        """Return what `scale` was given."""
        y: NDArray[np.float64] = np.asarray(z, dtype=np.float64) * self.spread + self.middle
        return y


@dataclass(frozen=True, eq=False)
class Rows:
    """Features (a frame, or an array that is not to be encoded), labels, segments, weights.

    `y` are codes of classes; of a regression, numbers, and there are no classes.
    """

    features: Features
    classes: NDArray[Any]
    y: NDArray[Any]
    segments: list[Hashable]
    codes: Codes
    weight: NDArray[np.float64]

    @classmethod
    def read(
        cls,
        X: Any,
        y: Any,
        segments: Any = None,
        sample_weight: Any = None,
        *,
        encode: bool = True,
        numbers: bool = False,
    ) -> Rows:
        features = _read_features(X) if encode else read_array(X).copy()
        n_rows = len(features)
        target: NDArray[Any]
        if numbers:
            classes, target = _NO_CLASSES, read_numbers(y, n_rows)
        else:
            classes, target = read_labels(y, n_rows)
        names, segment_codes = read_segments(segments, n_rows)
        weight = read_weights(sample_weight, n_rows)
        if sample_weight is not None:
            weight = weight.copy()
        return cls(features, classes, target, names, segment_codes, weight)

    def append(self, later: Rows) -> Rows:
        """Return these rows and, after them, the later ones."""
        classes, y = self.classes, np.concatenate([self.y, later.y])
        if len(self.classes):
            classes, here, there = _merge(self.classes, later.classes)
            y = np.concatenate([here[self.y], there[later.y]])
        names = list(dict.fromkeys([*self.segments, *later.segments]))
        at = {name: code for code, name in enumerate(names)}
        place = np.array([at[name] for name in later.segments], dtype=np.int32)
        return Rows(
            _append_features(self.features, later.features),
            classes,
            y,
            names,
            np.concatenate([self.codes, place[later.codes]]),
            np.concatenate([self.weight, later.weight]),
        )

    def weighing(self, weight: NDArray[np.float64]) -> Rows:
        """Return the rows of positive weight, as if the others had never been; classes all stay."""
        used = weight > 0
        if used.all():
            return replace(self, weight=weight)
        codes = self.codes[used]
        left = codes[np.sort(np.unique(codes, return_index=True)[1])]  # by first appearance
        place = np.empty(len(self.segments), dtype=np.int32)
        place[left] = np.arange(len(left))
        return Rows(
            _pick(self.features, used),
            self.classes,
            self.y[used],
            [self.segments[code] for code in left],
            place[codes],
            weight[used],
        )

    def scaled(self, target: Target) -> Rows:
        """Return the same rows with numbers on the scale of a net."""
        return replace(self, y=target.scale(self.y))

    def columns_with_values(self) -> list[str]:
        """Return the columns in which not everything is missing."""
        assert not isinstance(self.features, np.ndarray)  # noqa: S101
        kinds = {name: self.features.kind(name) for name in self.features.columns}
        return [name for name, kind in kinds.items() if kind != "nothing"]

    def select(self, names: Sequence[str]) -> Rows:
        """Return the same rows with some columns; rows of an array have none to select."""
        features = self.features
        if isinstance(features, ArrowFrame):
            features = replace(features, parts={name: features.parts[name] for name in names})
        elif isinstance(features, Frame):
            columns = {name: features.column(name) for name in names}
            features = Frame.of_arrays(columns, named=features.named)
        return replace(self, features=features)

    def declare(self, classes: Any) -> Rows:
        """Return the same rows, with classes that none of them need have."""
        declared, _ = read_labels(classes, len(classes))
        merged, here, _ = _merge(self.classes, declared)
        return replace(self, classes=merged, y=here[self.y])


def read_array(X: Any) -> NDArray[Any]:
    """Rows for a learner that takes them as they are: images, token ids, scaled tables."""
    if hasattr(X, "toarray") and hasattr(X, "nnz"):
        raise InputError(f"X is a sparse {type(X).__name__}; pass the dense X.toarray()")
    try:
        array = np.ascontiguousarray(X)
    except ValueError as error:
        raise InputError(f"the rows of X differ in shape; make them one array ({error})") from error
    if array.ndim < 2 or not array.size:  # noqa: PLR2004
        raise InputError(
            f"X has shape {array.shape}; with encode=False it is an array with a row axis and at "
            "least one more, and at least one value"
        )
    if array.dtype.kind not in "biuf":
        raise InputError(f"X holds {array.dtype}; with encode=False only numbers can be used")
    if array.dtype.kind in "bf":
        with np.errstate(over="ignore"):  # what float32 cannot hold is refused as infinite
            array = array.astype(np.float32)
        if not np.isfinite(array).all():
            row = int(np.argwhere(~np.isfinite(array))[0][0])
            raise InputError(
                f"X, row {row} holds a value that is missing or infinite as float32; with "
                "encode=False nothing is filled in"
            )
    return array


def _merge(
    first: NDArray[Any], second: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[np.int32], NDArray[np.int32]]:
    """Return the union of two lists of classes, and where in it those of each stand."""
    if (first.dtype.kind in "biuf") != (second.dtype.kind in "biuf"):  # numpy would make it text
        raise InputError(
            f"the classes {first.tolist()} and {second.tolist()} are numbers and text; make all "
            "labels numbers or all of them strings"
        )
    classes, codes = read_labels(np.concatenate([first, second]), len(first) + len(second))
    return classes, codes[: len(first)], codes[len(first) :]


def _read_features(X: Any) -> Frame | ArrowFrame:
    """Rows that the caller cannot change: an Arrow table as it is, others copied."""
    if nw.dependencies.is_pyarrow_table(X):
        return read_in_place(X)
    frame = read_frame(X)
    own = frame.numbers is not X and frame.numbers.flags.owndata
    return frame if own else frame.copy()


def stack(first: Frame, second: Frame) -> Frame:
    """Append the rows of `second`, whose columns may stand in another order."""
    below = [second.columns[place] for place in line_up(first, second)]
    columns = {
        name: _join(first, name, second, other)
        for name, other in zip(first.columns, below, strict=True)
    }
    return Frame.of_arrays(columns, named=first.named)


def _join(first: Frame, name: str, second: Frame, other: str) -> NDArray[Any]:
    above, below = first.column(name), second.column(other)
    if first.is_text(name) == second.is_text(other):
        return np.concatenate([above, below])
    if second.kind(other) == "nothing":
        return np.concatenate([above, _missing(len(below), text=first.is_text(name))])
    if first.kind(name) == "nothing":
        return np.concatenate([_missing(len(above), text=second.is_text(other)), below])
    before, now = ("text", "numbers") if first.is_text(name) else ("numbers", "text")
    raise InputError(
        f"column {name!r} is {before} in the rows before and {now} in the new rows; "
        "make it the same in both"
    )


def _missing(n_rows: int, *, text: bool) -> NDArray[Any]:
    return np.full(n_rows, None if text else np.nan, dtype=object if text else np.float64)


def _pick(features: Features, rows: NDArray[np.bool_]) -> Features:
    if isinstance(features, ArrowFrame):
        return features.pick(rows)
    return features.take(rows) if isinstance(features, Frame) else features[rows]


def _append_features(first: Features, second: Features) -> Features:
    if isinstance(first, np.ndarray) != isinstance(second, np.ndarray):
        raise InputError("the rows so far and the new ones were read with different `encode`")
    if isinstance(first, np.ndarray) or isinstance(second, np.ndarray):
        return _append_arrays(np.asarray(first), np.asarray(second))
    if isinstance(first, ArrowFrame) and isinstance(second, ArrowFrame):
        stacked = stack_in_place(first, second)
        if stacked is not None:
            return stacked
    return stack(_loaded(first), _loaded(second))


def _loaded(table: Frame | ArrowFrame) -> Frame:
    return table.load() if isinstance(table, ArrowFrame) else table


def _append_arrays(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    if first.shape[1:] != second.shape[1:]:
        raise InputError(f"rows so far have shape {first.shape[1:]}, new ones {second.shape[1:]}")
    return np.concatenate([first, second])


def weighted_quantiles(
    values: NDArray[np.float64], weight: NDArray[np.float64], levels: Any
) -> NDArray[np.float64]:
    """Return the least value up to which at least the share `level` of the weights lies.

    >>> weighted_quantiles(np.array([3.0, 1.0, 2.0]), np.array([1.0, 1.0, 2.0]), [0.25, 0.5, 0.9])
    array([1., 2., 3.])
    """
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weight[order])
    places = np.searchsorted(total, np.asarray(levels) * total[-1] * (1 - 1e-12))
    found: NDArray[np.float64] = values[order[np.minimum(places, len(values) - 1)]]
    return found
