"""SEGA: of the latest windows, let those answer that look most like the newest one.

The history and the current segment are read as windows as long as the current segment, which
is the newest. The last `n_windows` of them are the knowledge base, each with its own
nearest-neighbour classifier (`n_neighbours`, weighted by the inverse of the distance). How far
a stored window is from the newest is counted in neighbours:

    rows       (N, d + C)  features scaled to [0, 1] over the knowledge base, labels as
               indicator columns that set two classes d apart: it is the joint distribution
               that counts, and a neighbour with another label is never near
    per row    |old neighbours| / |old rows| - |new neighbours| / |new rows|, among the
               `len(current) // 2` nearest rows of the whole knowledge base
    window     the mean over its rows; about 0 where the newest window fits in, above 0
               where its rows have only each other

The `n_chosen` windows with the least discrepancy answer with the mean of their probabilities;
the newest has none to itself and is always in.

The discrepancy, the two windows and the weight of the labels follow the code its authors
released, which is for regression; what is chosen here is how to classify. Labels are indicator
columns: as numbers, some of more than two classes would be nearer than others. The released
code renews the discrepancy with every labelled row that arrives; here all are there at once,
and the newest window counts as nearest by definition. A row's weight is not used.

The published numbers fit a choice from the past alone, which this does with `with_newest` off
(within .03 on all nine streams; sine .27 where the newest window brings .59). They also come
from unscaled features. Distances depend on the scale of each feature, and methods are handed
scaled segments: `spread`, the standard deviation of each feature that the scaling divided by,
undoes it for the classifiers (weather .75 to .78, spam .91 to .93; elsewhere .01 or less).

Paper: "Baselines", model-centric methods. Song, Lu, Liu, Lu and Zhang, "A segment-based drift
adaptation method for data streams", IEEE Transactions on Neural Networks and Learning Systems
33(9), 2022.

>>> import numpy as np
>>> from driftquilt.core.segment import cut
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(300, 2)).astype(np.float32)
>>> month = np.repeat([0, 1, 2], 100)
>>> y = ((X[:, 0] > 0) ^ (month == 1)).astype(np.int64)        # May was the other way round
>>> history, current = cut(X, y, month, ["April", "May", "June"])
>>> [window.name for window in SEGA().adapt(history, current).windows]
['April', 'June']
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.neighbors import KNeighborsClassifier, NearestNeighbors

from driftquilt.core.segment import History, Segment, count_classes
from driftquilt.errors import InputError
from driftquilt.paper.baselines.learn_nse import windows

__all__ = ["SEGA", "SegaModel", "discrepancies"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SegaModel:
    """The chosen windows, oldest first, and how far every stored one is from the newest."""

    windows: Sequence[Segment] = field(repr=False)
    learners: Sequence[KNeighborsClassifier] = field(repr=False)
    discrepancies: Floats  # (stored windows,), the newest last
    spread: Floats
    n_classes: int

    def predict_proba(self, X: NDArray[Any]) -> NDArray[np.float32]:
        total = np.zeros((len(X), self.n_classes))
        if not len(X):
            return total.astype(np.float32)
        for learner in self.learners:
            total[:, learner.classes_] += learner.predict_proba(X * self.spread)
        return np.asarray(total / len(self.learners), dtype=np.float32)


@dataclass(frozen=True)
class SEGA:
    """The method; the published runs have 5 windows on spam, usenet1 and usenet2."""

    n_windows: int = 10
    n_chosen: int = 2
    n_neighbours: int = 5
    with_newest: bool = True
    spread: Sequence[float] | None = None

    def adapt(self, history: History, current: Segment) -> SegaModel:
        n_classes = count_classes(history, current)
        stored = windows(history, current)[-self.n_windows :]
        far = discrepancies(stored, max(len(current) // 2, 1), n_classes)
        chosen = [stored[i] for i in self._choose(far)]
        spread = self._spread(current)
        learners = [self._fit(window, spread) for window in chosen]
        return SegaModel(chosen, learners, far, spread, n_classes)

    def _fit(self, window: Segment, spread: Floats) -> KNeighborsClassifier:
        k = min(self.n_neighbours, len(window))
        learner = KNeighborsClassifier(k, weights="distance", algorithm="ball_tree")
        return learner.fit(window.X * spread, window.y)

    def _choose(self, far: Floats) -> list[int]:
        newest = len(far) - 1
        past = np.argsort(far[:newest], kind="stable").tolist()
        if self.with_newest or not past:
            past.insert(0, newest)
        return sorted(past[: self.n_chosen])

    def _spread(self, current: Segment) -> Floats:
        n_features = current.X.shape[1]
        if self.spread is None:
            return np.ones(n_features)
        if len(self.spread) != n_features:
            raise InputError(
                f"spread has {len(self.spread)} number(s), but rows have {n_features} feature(s); "
                "give one factor per feature, or None to leave the features as they are"
            )
        return np.asarray(self.spread, dtype=np.float64)


def discrepancies(stored: Sequence[Segment], n_neighbours: int, n_classes: int) -> Floats:
    """Of each window from the newest, which is the last and 0 from itself."""
    rows = _joint(stored, n_classes)
    n_new = len(stored[-1])
    n_old = len(rows) - n_new
    far = np.zeros(len(stored))
    if n_old == 0:
        return far
    search = NearestNeighbors(n_neighbors=min(n_neighbours, len(rows)), algorithm="ball_tree")
    near = search.fit(rows).kneighbors(rows[:n_old], return_distance=False)  # (old, k)
    new = (near >= n_old).sum(axis=1)
    excess = (near.shape[1] - new) / n_old - new / n_new
    ends = np.cumsum([len(window) for window in stored[:-1]])
    far[:-1] = [part.mean() for part in np.split(excess, ends[:-1])]
    return far


def _joint(stored: Sequence[Segment], n_classes: int) -> Floats:
    X = np.concatenate([window.X for window in stored]).astype(np.float64)
    y = np.concatenate([window.y for window in stored])
    width = np.ptp(X, axis=0)
    X = (X - X.min(axis=0)) / np.where(width > 0, width, 1)
    return np.hstack([X, np.eye(n_classes)[y] * (X.shape[1] / np.sqrt(2))])
