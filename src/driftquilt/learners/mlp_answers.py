"""Nets of one shape that answer together, from numbers as they come: one call for all of it.

    probabilities += share · mean over nets of softmax(net((X - mean) / deviation))

A few rows are answered faster than it takes to look at each step from Python.

>>> from driftquilt.learners.mlp import MLP
>>> X = np.array([[20.0, 1.0], [40.0, np.nan]])
>>> nets = [MLP(hidden_units=8).start(X, 2, seed) for seed in (0, 1)]
>>> together = ScaledNets(nets, np.array([30.0, 0.5]), np.array([10.0, 0.5]), far=10.0)
>>> probabilities = np.zeros((2, 2), dtype=np.float32)
>>> together.add(X, 1.0, probabilities)
>>> probabilities.sum(axis=1).round(3)
array([1., 1.], dtype=float32)
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from driftquilt.learners.mlp import MLPModel

__all__ = ["ScaledNets"]


class ScaledNets:
    """Copies of some nets, and the scale that their rows are read by.

    With an `order`, class c of the answers is class `order[c]` of the nets.
    """

    def __init__(
        self,
        nets: Sequence[MLPModel],
        mean: NDArray[np.float64],
        deviation: NDArray[np.float64],
        far: float,
        order: NDArray[np.intp] | None = None,
    ) -> None:
        from driftquilt.learners import mlp_kernels  # noqa: PLC0415  # it compiles at first use

        self._kernel = mlp_kernels.add_answers
        self._thetas = np.stack([net.tensors()["theta"] for net in nets])
        self._n_hidden = nets[0].n_hidden
        if order is not None:
            self._sort_classes(order)
        self._mean, self._deviation, self._far = mean, deviation, far

    def _sort_classes(self, order: NDArray[np.intp]) -> None:
        n_nets, n_classes = len(self._thetas), len(order)
        offset = self._thetas[:, -n_classes:]
        head = self._thetas[:, -n_classes * (self._n_hidden + 1) : -n_classes]
        sorted_head = head.reshape(n_nets, n_classes, self._n_hidden)[:, order]
        head[:], offset[:] = sorted_head.reshape(n_nets, -1), offset[:, order]

    def add(self, X: NDArray[np.float64], share: float, probabilities: NDArray[np.float32]) -> None:
        """Add the answers for rows (n, d) to class probabilities (n, C)."""
        self._kernel(
            np.ascontiguousarray(X), self._mean, self._deviation, self._far, self._thetas,
            self._n_hidden, share / len(self._thetas), probabilities,
        )  # fmt: skip
