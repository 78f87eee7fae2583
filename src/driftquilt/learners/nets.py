"""Models that answer together: the mean of their class probabilities, weighed by their shares.

    probabilities[:, codes] += share · Σ shares[m] · predict_proba(X) of model m

Two-layer nets of one shape have their weights in one array and are asked by one compiled call,
which takes each row by itself: an answer is the same, bit for bit, whatever rows come with it.
Models of other learners are asked one by one.

>>> from driftquilt.learners.mlp import MLP
>>> X = np.zeros((2, 3), dtype=np.float32)
>>> nets = Nets.of([MLP(hidden_units=8).start(X, 2, seed) for seed in (0, 1)])
>>> probabilities = np.zeros((2, 2), dtype=np.float32)
>>> nets.add(X, 1.0, np.array([0, 1]), probabilities)
>>> probabilities.sum(axis=1).round(3)
array([1., 1.], dtype=float32)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from driftquilt.learners.base import Model
from driftquilt.learners.mlp import MLPModel, _kernels

__all__ = ["Nets"]


@dataclass(frozen=True, eq=False)
class Nets:
    """Some models; `thetas` (m, P) are the weights that two-layer nets among them go on using."""

    models: tuple[Model, ...]
    shares: NDArray[np.float64]  # (m,)
    thetas: NDArray[np.float32] | None = None
    n_hidden: int = 0

    @classmethod
    def of(cls, models: Sequence[Model], shares: Sequence[float] = ()) -> Nets:
        """Take models over; what they learn later, these nets know. All count alike by default."""
        counted = np.array(shares) if shares else np.full(len(models), 1 / max(len(models), 1))
        nets = [model for model in models if isinstance(model, MLPModel)]
        if len(nets) < len(models) or not nets:
            return cls(tuple(models), counted)
        thetas = np.stack([net.tensors()["theta"] for net in nets])
        for net, theta in zip(nets, thetas, strict=True):
            net.use_weights(theta)
        return cls(tuple(nets), counted, thetas, nets[0].n_hidden)

    def copy(self) -> Nets:
        """Nets that answer as these do now, and do not learn."""
        if self.thetas is None:
            return replace(self, models=tuple(model.copy() for model in self.models))
        return replace(self, models=(), thetas=self.thetas.copy())

    def add(
        self,
        X: NDArray[np.float32],
        share: float,
        codes: NDArray[np.int64],
        probabilities: NDArray[np.float32],
    ) -> None:
        """Add the answers for rows (n, d) to (n, C); class c of a model is `codes[c]` there."""
        shares = (share * self.shares).astype(np.float32)
        if self.thetas is not None:
            _kernels().add_answers(X, self.thetas, self.n_hidden, shares, codes, probabilities)
            return
        for model, each in zip(self.models, shares, strict=True):
            probabilities[:, codes] += each * model.predict_proba(X)
