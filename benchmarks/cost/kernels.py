"""The two-layer net's kernels beside the same matrix products in plain BLAS.

Training a batch takes its forward products, those of the head gradient and those back to the
first layer; scoring takes the former two. What a kernel costs above them is bias, ReLU,
softmax, Adam and the order of rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.cost.clock import measure
from driftquilt.core.segment import Segment
from driftquilt.learners.mlp import MLP
from driftquilt.quilt.executor import one_blas_thread

__all__ = ["SHAPES", "KernelCost", "measure_kernels"]

#: Features and classes of the nets.
SHAPES = ((4, 2), (10, 2), (10, 5), (99, 2), (499, 2))

_BATCH, _HIDDEN = 128, 256
_BATCHES, _LOOPS = 50, 100


@dataclass(frozen=True)
class KernelCost:
    """CPU seconds per batch of 128 rows."""

    n_features: int
    n_classes: int
    training: float
    training_products: float
    scoring: float
    scoring_products: float


def measure_kernels(n_features: int, n_classes: int, repeats: int) -> KernelCost:
    """Both kernels and both sets of products for a net of this shape."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(_BATCHES * _BATCH, n_features)).astype(np.float32)
    y = rng.integers(0, n_classes, len(X))
    rows = Segment("rows", X, y, np.ones(len(X), np.float32))
    model = MLP(_HIDDEN, batch_size=_BATCH).start(X, n_classes, seed=0)
    forward, backward = _products(X[:_BATCH], n_classes, rng)
    with one_blas_thread():
        products = _cpu(forward, repeats) / _LOOPS
        return KernelCost(
            n_features,
            n_classes,
            training=_cpu(lambda: model.train_epoch([rows], rng, 1.0), repeats) / _BATCHES,
            training_products=products + _cpu(backward, repeats) / _LOOPS,
            scoring=_cpu(lambda: model.head_gradients([rows]), repeats) / _BATCHES,
            scoring_products=products,
        )


def _products(
    X: NDArray[np.float32], n_classes: int, rng: np.random.Generator
) -> tuple[Callable[[], None], Callable[[], None]]:
    """The products of one batch, many times over: forward with head gradient, and the rest."""
    first = rng.normal(size=(X.shape[1], _HIDDEN)).astype(np.float32)
    head = rng.normal(size=(_HIDDEN, n_classes)).astype(np.float32)
    hidden = X @ first
    residual = hidden @ head

    def forward() -> None:
        for _ in range(_LOOPS):
            np.matmul(X, first, out=hidden)
            np.matmul(hidden, head, out=residual)
            residual.T @ hidden

    def backward() -> None:
        for _ in range(_LOOPS):
            back = residual @ head.T
            X.T @ back

    return forward, backward


def _cpu(work: Callable[[], object], repeats: int) -> float:
    """Median CPU seconds; a first call warms up and does not count."""
    work()
    return measure(work, repeats)[1].cpu
