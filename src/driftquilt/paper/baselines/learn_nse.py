"""Learn++.NSE: one tree per window of the stream, and votes that follow recent errors.

The history and the current segment are read as a row of windows, each as long as the current
segment, which is the last of them. Every window t gets a tree h_t of its own; no tree is ever
thrown away. Then all trees so far are tried on it:

    E        share of its rows that the ensemble so far gets wrong
    D        (m,) row weights, E where the ensemble was right and 1 where wrong, summing to 1:
             what is already known counts less
    ε_k      Σ D over the rows that tree k gets wrong, at most 1/2;  β_k = ε_k / (1 - ε_k)
    mean β_k over all windows since k's own, weighted by a sigmoid of its age then,
             1 / (1 + exp(-slope · (age - crossing)))
    W_k      log(1 / mean β_k), the weight of k's vote

A tree that fails now loses its vote, and wins it back when its concept returns. Votes are
weights summed by class, scaled to sum to one.

The paper leaves open, and this is chosen:

- A tree without any error has infinite weight. A fully grown tree is flawless on its own
  window, unless equal rows disagree, so the newest one decides alone; that is what the formula
  says, and what the published numbers show. `error_min` above 0 lifts every ε to it and gives
  the older trees a voice: at 1/400 sea, hyperplane and weather gain .03 to .05, and sine, whose
  concepts contradict each other, loses .13.
- A newest tree with ε above 1/2 should be grown again; a tree grown from the same rows is the
  same tree, so it is kept, with ε = 1/2.
- Windows are laid from the end, so the newest is the current segment exactly; the oldest may
  be short.

scikit-multiflow, which made the published numbers, does not normalise the sigmoid over a tree's
whole life: the error on its own window keeps a weight of one for ever, and old trees never
lose their vote. It matters only where the newest tree is not flawless: on usenet1 and usenet2
that sum gives .457 and .628 (published .433, .637), the paper's .762 and .726.

Paper: "Baselines", model-centric methods. Elwell and Polikar, "Incremental learning of concept
drift in nonstationary environments", IEEE Transactions on Neural Networks 22(10), 2011.

>>> import numpy as np
>>> from driftquilt.core.segment import cut
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(300, 2)).astype(np.float32)
>>> month = np.repeat([0, 1, 2], 100)
>>> y = ((X[:, 0] > 0) ^ (month == 1)).astype(np.int64)        # May was the other way round
>>> history, current = cut(X, y, month, ["April", "May", "June"])
>>> april, may, june = LearnNSE().adapt(history, current).weights
>>> bool(june > april > may)
True
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier

from driftquilt.core.segment import History, Segment, count_classes, join

__all__ = ["LearnNSE", "WeightedTrees", "windows"]

Floats = NDArray[np.float64]

_TINY = float(np.finfo(np.float64).tiny)


class _Tree:
    """A CART that answers with class codes, without scikit-learn's checks at every call."""

    def __init__(self, rows: Segment, seed: int) -> None:
        tree = DecisionTreeClassifier(random_state=seed)
        tree.fit(_float32(rows.X), rows.y, sample_weight=rows.weight)
        self._nodes = tree.tree_
        self._codes = tree.classes_[tree.tree_.value[:, 0].argmax(axis=1)]  # (nodes,)

    def predict(self, X: NDArray[np.float32]) -> NDArray[np.int64]:
        codes: NDArray[np.int64] = self._codes[self._nodes.apply(X)]
        return codes


@dataclass(frozen=True, eq=False)
class WeightedTrees:
    """Trees with the weights of their votes, oldest first."""

    trees: Sequence[_Tree] = field(repr=False)
    weights: Floats  # (T,)
    n_classes: int

    def predict_proba(self, X: NDArray[Any]) -> NDArray[np.float32]:
        codes = _ask(self.trees, X)
        votes = _count(codes, self.weights, self.n_classes)
        return np.asarray(votes / votes.sum(axis=1, keepdims=True), dtype=np.float32)


@dataclass(frozen=True)
class LearnNSE:
    """The method; `slope` and `crossing` (in windows) shape the sigmoid over a tree's age."""

    slope: float = 0.5
    crossing: float = 10.0
    error_min: float = 0.0
    seed: int = 0

    def adapt(self, history: History, current: Segment) -> WeightedTrees:
        n_classes = count_classes(history, current)
        rows = windows(history, current)
        age = np.subtract.outer(np.arange(len(rows)), np.arange(len(rows))).T  # (trees, windows)
        recency = np.where(age < 0, 0, 1 / (1 + np.exp(-self.slope * (age - self.crossing))))
        ratios = np.zeros((len(rows), len(rows)))  # β, (trees, windows)
        trees: list[_Tree] = []
        weights = np.zeros(0)
        for t, window in enumerate(rows):
            trees.append(_Tree(window, self.seed))
            errors = self._errors(_ask(trees, window.X), weights, window, n_classes)
            ratios[: t + 1, t] = errors / (1 - errors)
            lived = recency[: t + 1, : t + 1]
            weights = _weights((lived * ratios[: t + 1, : t + 1]).sum(axis=1) / lived.sum(axis=1))
        return WeightedTrees(trees, weights, n_classes)

    def _errors(
        self, codes: NDArray[np.int64], weights: Floats, window: Segment, n_classes: int
    ) -> Floats:
        """ε of every tree, from its answers (trees, m); the newest has no weight yet."""
        share = window.weight / window.weight.sum(dtype=np.float64)
        if len(weights):
            right = _count(codes[:-1], weights, n_classes).argmax(axis=1) == window.y
            share = np.where(right, max(share[~right].sum(), _TINY), 1.0) * share
            share /= share.sum()
        errors: Floats = np.where(codes != window.y, share, 0).sum(axis=1)
        return errors.clip(self.error_min, 0.5)


def _weights(ratios: Floats) -> Floats:
    weights: Floats = -np.log(np.maximum(ratios, _TINY))
    weights[-1] = max(weights[-1], _TINY)  # somebody has to vote
    return weights


def _ask(trees: Sequence[_Tree], X: NDArray[Any]) -> NDArray[np.int64]:
    """Answers of all trees, shape (trees, n)."""
    rows = _float32(X)
    return np.stack([tree.predict(rows) for tree in trees])


def _count(codes: NDArray[np.int64], weights: Floats, n_classes: int) -> Floats:
    """Weights summed by class, shape (n, C)."""
    column = weights[:, None]  # summed without BLAS, whose rounding depends on its threads
    votes = [np.where(codes == c, column, 0).sum(axis=0) for c in range(n_classes)]
    return np.stack(votes, axis=1)


def _float32(X: NDArray[Any]) -> NDArray[np.float32]:
    return np.ascontiguousarray(X, dtype=np.float32)


def windows(history: History, current: Segment) -> list[Segment]:
    """Return the stream in windows as long as the current segment, which is the last one.

    A window has the name of its last row's segment.
    """
    segments = [*history, current]
    stream, size = join(segments), len(current)
    bounds = np.cumsum([len(segment) for segment in segments])
    return [
        replace(stream.take(slice(max(end - size, 0), end)), name=segments[number].name)
        for end in reversed(range(len(stream), 0, -size))
        for number in [int(np.searchsorted(bounds, end))]
    ]
