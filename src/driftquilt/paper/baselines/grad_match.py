"""GRAD-MATCH: train on weighted mini-batches whose mean gradient matches the present's.

Every `every` epochs the rows of the whole history and the training part of the current segment
are dealt at random into mini-batches. Orthogonal matching pursuit then picks the batches, as
many as a budget allows, and gives them weights w ≥ 0 with which the sum of their mean head
gradients comes nearest to the validation part's: each step takes the batch that points most
along what is still missing, and fits all weights again by

    ‖Σ_b w_b · atom_b - target‖² + regulariser · ‖w‖²  ->  min

It ends with the budget, once what is missing is below `tolerance` of the target's length, or
when no batch left would help. A batch's weight multiplies the losses of its rows. Each budget
is a training of its own, and the lowest validation loss decides between them.

    atoms   (B, C·(H+1))  mean head gradient of each mini-batch
    target  (C·(H+1),)    mean head gradient of the validation part

What the papers leave open, and the choice here:

- The rows of the current segment compete for the budget like all others.
- Batches are of equal size, to a row, so that no small one stands out by its noise.
- A batch in use is not picked again, though the regulariser keeps its weight short.
- The factors on the weights of matched rows are 1 in the mean.
- What the pursuit leaves of the budget is filled with random rows, as in the authors' library.
  Without (`fill=False`), it measures better on sine, and worse on random_rbf and electricity.
  Where no batch helps at all, the random rows are all there is.
- A training may stop between two choices, as in GLISTER.

Reference: Killamsetty, Sivasubramanian, Ramakrishnan, De, Iyer, "GRAD-MATCH: Gradient Matching
based Data Subset Selection for Efficient Deep Model Training", ICML 2021 (GRAD-MATCH-PB).
Paper: "Baselines", data subset selection methods.

>>> atoms = np.array([[2.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
>>> match(atoms, np.array([1.0, -3.0]), n_max=3, regulariser=1e-9, tolerance=0.0).round(3).tolist()
[0.5, 0.0, 3.0]
>>> match(atoms, np.array([1.0, -3.0]), n_max=1, regulariser=1.0, tolerance=0.0).tolist()
[0.0, 0.0, 1.5]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from driftquilt.core.segment import Segment
from driftquilt.errors import InputError
from driftquilt.learners.base import Model
from driftquilt.paper.baselines.subset import SubsetTraining

__all__ = ["GradMatch"]

# Slopes this small, against the largest at the start, are rounding.
_ROUNDING = 1e-10
_TINY = np.finfo(np.float64).tiny


@dataclass(frozen=True)
class GradMatch(SubsetTraining):
    """The method; the paper sets `tolerance` to 0.5 on sine.

    With `fill`, random rows of their own weight take what the pursuit leaves of the budget.
    """

    regulariser: float = 0.5
    tolerance: float = 0.01
    batch_size: int = 128
    fill: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.regulariser <= 0:
            raise InputError(f"regulariser is {self.regulariser}; it must be above 0")
        if self.tolerance < 0:
            raise InputError(f"tolerance is {self.tolerance}; it is a share, so at least 0")
        if self.batch_size < 1:
            raise InputError(f"batch_size is {self.batch_size}; it counts rows, so at least 1")

    def choose(
        self,
        model: Model,
        rows: Segment,
        validation: Segment,
        n_rows: int,
        rng: np.random.Generator,
    ) -> Segment:
        order = rng.permutation(len(rows))
        batches = np.array_split(order, math.ceil(len(rows) / self.batch_size))
        atoms, _ = model.head_gradients([rows.take(batch) for batch in batches])
        target, _ = model.head_gradients([validation])
        n_max = math.ceil(n_rows / self.batch_size)
        weights = match(atoms, target[0], n_max, self.regulariser, self.tolerance)
        factor = _factors(rows, batches, weights)
        if self.fill or not weights.any():
            unused = order[factor[order] == 0]
            factor[unused[: max(0, n_rows - np.count_nonzero(factor))]] = 1
        chosen = rows.take(factor > 0)
        weight = chosen.weight * factor[factor > 0]
        return replace(chosen, weight=weight.astype(np.float32))


def _factors(
    rows: Segment, batches: Sequence[NDArray[np.intp]], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return factors of the weights of rows, shape (n,): 1 in the mean over batches in use."""
    factor = np.zeros(len(rows))
    for batch, weight in zip(batches, weights, strict=True):
        factor[batch] = weight / rows.weight[batch].sum(dtype=np.float64)
    used = factor > 0
    factor[used] /= factor[used].mean() if used.any() else 1
    return factor


def match(
    atoms: NDArray[np.float64],
    target: NDArray[np.float64],
    n_max: int,
    regulariser: float,
    tolerance: float,
) -> NDArray[np.float64]:
    """Weight of each atom, shape (B,), at most `n_max` of them above 0."""
    normal = atoms @ atoms.T + regulariser * np.eye(len(atoms))
    aim = atoms @ target
    enough = tolerance * np.linalg.norm(target)
    weights, missing = np.zeros(len(atoms)), target
    while np.count_nonzero(weights) < n_max and np.linalg.norm(missing) > enough:
        # How far each atom points along what is missing; those in use have their due already.
        slope = np.where(weights > 0, 0.0, aim - normal @ weights)
        best = int(slope.argmax())
        if not slope[best] > _ROUNDING * np.abs(aim).max():
            break
        weights = _fit(normal, aim, weights, best)
        if weights[best] == 0:  # only rounding can throw it out again
            break
        missing = target - weights @ atoms
    return weights


def _fit(
    normal: NDArray[np.float64], aim: NDArray[np.float64], weights: NDArray[np.float64], added: int
) -> NDArray[np.float64]:
    """Fit weights ≥ 0 of the atoms in use and one more (Lawson and Hanson's inner loop)."""
    used = np.append(np.flatnonzero(weights), added)
    now = weights[used]
    while True:
        best = np.linalg.solve(normal[np.ix_(used, used)], aim[used])
        if best.min() > 0:
            break
        # Towards the best, until the first weight reaches 0; that atom goes.
        falls = best <= 0
        steps = np.full(len(used), np.inf)
        steps[falls] = now[falls] / np.maximum(now[falls] - best[falls], _TINY)
        first = int(steps.argmin())
        now = np.delete(now + steps[first] * (best - now), first)
        used = np.delete(used, first)
    fitted = np.zeros_like(weights)
    fitted[used] = best
    return fitted
