"""Rows per second of a model that predicts each row and then learns it.

The net gets rows as arrays and river's trees get them as dicts, each as its own users hold
them; making either is not timed. All have learnt the same first rows before.

>>> measure_online("HAT", "sine", n_rows=50, repeats=1).n_features
4
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from benchmarks.cost.clock import measure
from driftquilt.core.segment import Segment
from driftquilt.learners.mlp import MLP
from driftquilt.paper.baselines.trees import ARF, HAT
from driftquilt.quilt.executor import one_blas_thread

__all__ = ["ONLINE_MODELS", "WIDTHS", "OnlineCost", "measure_online"]

#: Features of the rows: as many as sine has, and as many as electricity.
WIDTHS = {"sine": 4, "electricity": 6}

_N_WARM = 200

#: Made from the rows learnt before; turns rows into the work of predicting and learning each.
Prepare: TypeAlias = Callable[[Segment], Callable[[], None]]


@dataclass(frozen=True)
class OnlineCost:
    """`rows_per_second` is in CPU time."""

    model: str
    rows: str
    n_features: int
    n_rows: int
    rows_per_second: float


def measure_online(model: str, rows: str, n_rows: int, repeats: int) -> OnlineCost:
    """One of `ONLINE_MODELS` on rows as wide as those of a stream in `WIDTHS`."""
    n_features = WIDTHS[rows]
    segment = _segment(n_features, _N_WARM + n_rows)
    with one_blas_thread():
        prepare = ONLINE_MODELS[model](segment.take(slice(_N_WARM)))
        _, time = measure(prepare(segment.take(slice(_N_WARM, None))), repeats)
    return OnlineCost(model, rows, n_features, n_rows, n_rows / time.cpu)


def _segment(n_features: int, n_rows: int) -> Segment:
    X = np.random.default_rng(0).normal(size=(n_rows, n_features)).astype(np.float32)
    y = (X[:, 0] > np.sin(X[:, 1])).astype(np.int64)
    return Segment("online", X, y, np.ones(n_rows, np.float32))


def _net(warm: Segment) -> Prepare:
    model = MLP().start(warm.X, n_classes=2, seed=0)

    def prepare(rows: Segment) -> Callable[[], None]:
        pairs = list(zip(rows.X, rows.y.tolist(), strict=True))

        def work() -> None:
            for x, y in pairs:
                model.learn_one(x, y)  # answers with what the model said before

        return work

    prepare(warm)()
    return prepare


def _tree(method: HAT | ARF, warm: Segment) -> Prepare:
    model = method.adapt([], warm).trained

    def prepare(rows: Segment) -> Callable[[], None]:
        labels = rows.y.tolist()
        pairs = [(dict(enumerate(x)), y) for x, y in zip(rows.X.tolist(), labels, strict=True)]

        def work() -> None:
            for x, y in pairs:
                model.predict_proba_one(x)
                model.learn_one(x, y)

        return work

    return prepare


ONLINE_MODELS: dict[str, Callable[[Segment], Prepare]] = {
    "MLP": _net,
    "HAT": lambda warm: _tree(HAT(), warm),
    "ARF": lambda warm: _tree(ARF(), warm),
}
