"""Hoeffding trees that meet every row once, in order, and adapt by themselves: HAT and ARF.

Neither chooses data: a tree (HAT) or a forest of ten (ARF) learns the rows of the whole
history and then all rows of the current segment, one by one; detectors inside it notice that
its errors grow, and replace the branch or tree at fault. A leaf is examined for a split every
`len(current)` rows, the grace period of the published runs.

The trees are river's, at the settings of scikit-multiflow, with which the published numbers
were made. Almost all are river's own defaults: naive Bayes or majority in the leaves,
whichever was right more often; information gain; ties broken at 0.05; a split confidence of
1e-7 (HAT) or 0.01 (ARF); rows resampled by a Poisson of mean 1 or 6; ADWIN at 0.002, or at
0.01 to warn and 0.001 to replace. Two differ and are set here:

- A feature with one value only in a class: river leaves it out of that class's naive Bayes
  product, so a class is favoured for what it never showed. scikit-multiflow takes the value as
  certain and any other as impossible; so do we, with the smallest positive float for
  "impossible", so that two impossible classes can still be told apart. On the sparse 0/1
  columns of usenet1 and usenet2 this moves HAT from .48 and .64 to .63 and .75.
- ARF's trees vote with equal weights; river's default weighs them by their accuracy.

A tree need not learn the past again: `HAT(previous=model)` goes on from a model that has learnt
the first rows of the same history, and ends where a new tree would. `previous` itself is trained
on and must not be used for anything else afterwards.

What remains different: in river the alternate branch that grows after a drift votes at once, in
scikit-multiflow only when it has taken the old one's place. So HAT follows sudden drift much
sooner than published: .76 on sine, where .29 is published and leaving those votes out gives
.39 to .46. Row weights are not used; features must be numeric columns.

Paper: "Baselines", model-centric methods. Bifet and Gavaldà, "Adaptive learning from evolving
data streams", IDA 2009; Gomes et al., "Adaptive random forests for evolving data stream
classification", Machine Learning 106, 2017.

>>> import numpy as np
>>> from driftquilt.core.segment import cut
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(400, 2)).astype(np.float32)
>>> y = (X[:, 0] > 0).astype(np.int64)
>>> history, current = cut(X, y, np.repeat([0, 1], 200), ["May", "June"])
>>> HAT().adapt(history, current).predict_proba(np.array([[-2.0, 0], [2, 0]])).argmax(axis=1)
array([0, 1])
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from river.forest import ARFClassifier
from river.tree import HoeffdingAdaptiveTreeClassifier
from river.tree.splitter import GaussianSplitter

from driftquilt.core.segment import History, Segment, count_classes, join

__all__ = ["ARF", "HAT", "OnlineModel"]

_IMPOSSIBLE = math.log(sys.float_info.min)


class _Online(Protocol):
    def learn_one(self, x: dict[int, float], y: int) -> None: ...

    def predict_proba_one(self, x: dict[int, float]) -> dict[int, float]: ...


@dataclass(frozen=True, eq=False)
class OnlineModel:
    """A river model that has learnt `n_rows` rows, asked row by row."""

    trained: _Online = field(repr=False)
    n_classes: int
    n_rows: int

    def predict_proba(self, X: NDArray[Any]) -> NDArray[np.float32]:
        share = np.zeros((len(X), self.n_classes))
        for answer, row in zip(share, _rows(X), strict=True):
            for code, probability in self.trained.predict_proba_one(row).items():
                answer[code] = probability
        total = share.sum(axis=1, keepdims=True)
        silent = ~(np.isfinite(total) & (total > 0))
        even = np.full_like(share, 1 / self.n_classes)
        return np.asarray(np.divide(share, total, out=even, where=~silent), dtype=np.float32)


class PointSplitter(GaussianSplitter):
    """River's Gaussian observer, with a point mass where a class has shown one value only."""

    def cond_log_proba(self, att_val: float, target_val: int) -> float:
        """Return the log-density of a value, given the class."""
        seen = self._att_dist_per_class.get(target_val)
        if seen is None:
            return -math.inf
        density: float = seen.log_pdf(att_val)
        if density > -math.inf:
            return density
        return 0.0 if att_val == seen.mu else _IMPOSSIBLE


@dataclass(frozen=True)
class HAT:
    """Hoeffding adaptive tree; goes on with `previous`, which has learnt the first rows."""

    seed: int = 0
    previous: OnlineModel | None = None

    def adapt(self, history: History, current: Segment) -> OnlineModel:
        tree: Any = HoeffdingAdaptiveTreeClassifier(
            grace_period=len(current), splitter=PointSplitter(), seed=self.seed
        )
        return _learn(tree, self.previous, history, current)


@dataclass(frozen=True)
class ARF:
    """Adaptive random forest of `n_trees`; goes on with `previous` as HAT does."""

    n_trees: int = 10
    seed: int = 0
    previous: OnlineModel | None = None

    def adapt(self, history: History, current: Segment) -> OnlineModel:
        forest: Any = ARFClassifier(
            n_models=self.n_trees,
            grace_period=len(current),
            splitter=PointSplitter(),
            disable_weighted_vote=True,
            seed=self.seed,
        )
        return _learn(forest, self.previous, history, current)


def _learn(
    new: _Online, previous: OnlineModel | None, history: History, current: Segment
) -> OnlineModel:
    online = previous.trained if previous else new
    seen = join([*history, current])
    rest = seen.take(slice(previous.n_rows if previous else 0, None))
    for row, code in zip(_rows(rest.X), rest.y.tolist(), strict=True):
        online.learn_one(row, code)
    return OnlineModel(online, count_classes(history, current), len(seen))


def _rows(X: NDArray[Any]) -> Iterator[dict[int, float]]:
    columns = range(X.shape[1])
    return (dict(zip(columns, row, strict=True)) for row in X.astype(np.float64).tolist())
