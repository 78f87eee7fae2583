"""Whether rows depend on when they came, and if so, since when.

    K     (n, n)  exp(-|x - x'|² / m) of the rows, m the median of all |x - x'|², centred
    L     (n, n)  the same of the times 0, 1/n, ...
    HSIC  Σ K∘L, near 0 if rows and times are independent

The p-value is that of a permutation test: how often HSIC is as large when the times are shuffled.
As soon as so many shuffles were as large that the p-value must end above `p_max`, the test ends;
the answer is that of all `n_permutations`, at the price of some ten of them while nothing changes.

L has a rank of about ten but for the last digits, so it is its leading vectors that are shuffled,
kept down to 1e-6 of the largest.

Gretton et al., "A kernel statistical test of independence", NeurIPS 2007.

>>> X = np.random.default_rng(0).normal(size=(120, 2))
>>> X[70:] += 5
>>> kernel = centred_kernel(X)
>>> depends_on_time(kernel, p_max=0.01, n_permutations=199, seed=0)
True
>>> place_of_change(kernel, min_part=10)
70
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["centred_kernel", "depends_on_time", "place_of_change"]

Floats = NDArray[np.float64]

_BLOCK = 16  # shuffles at a time


def centred_kernel(X: NDArray[Any]) -> Floats:
    """Gaussian kernel of the rows (n, d), scaled by their median distance, centred: (n, n)."""
    rows = X.astype(np.float64)
    rows -= rows.mean(axis=0)
    norms = (rows**2).sum(axis=1)
    squares = np.maximum(norms[:, None] + norms - 2 * (rows @ rows.T), 0)
    width = float(np.median(squares)) or float(squares.mean()) or 1.0
    kernel: Floats = np.exp(squares / -width)
    means = kernel.mean(axis=0)
    kernel += means.mean() - means - means[:, None]
    return kernel


@lru_cache(maxsize=8)
def _time_vectors(n: int) -> Floats:
    """Leading vectors of the centred kernel of n times, (n, r), as long as they matter."""
    values, vectors = np.linalg.eigh(centred_kernel(np.arange(n)[:, None] / n))
    kept = values > values[-1] * 1e-6
    leading: Floats = vectors[:, kept] * np.sqrt(values[kept])
    return leading


def depends_on_time(kernel: Floats, p_max: float, n_permutations: int, seed: Any) -> bool:
    """Whether the p-value of the permutation test is at most `p_max`."""
    times = _time_vectors(len(kernel))
    observed = float(((kernel @ times) * times).sum())
    rng = np.random.default_rng(seed)
    allowed = math.floor(p_max * (n_permutations + 1)) - 1  # shuffles as large as observed
    for first in range(0, n_permutations, _BLOCK):
        n_shuffles = min(_BLOCK, n_permutations - first)
        shuffled = np.stack([times[rng.permutation(len(times))] for _ in range(n_shuffles)], axis=1)
        flat = shuffled.reshape(len(times), -1)  # (n, shuffles · r)
        found = ((kernel @ flat) * flat).reshape(shuffled.shape).sum(axis=(0, 2))
        allowed -= int((found >= observed).sum())
        if allowed < 0:
            return False
    return True


def place_of_change(kernel: Floats, min_part: int) -> int:
    """The row with which the newer part begins, where the two parts differ most."""
    n = len(kernel)
    within = np.diagonal(kernel[::-1, ::-1].cumsum(axis=0).cumsum(axis=1))[
        ::-1
    ]  # from s to the end
    start = np.arange(min_part, n - min_part + 1)
    score = within[start] * n / (start * (n - start))
    return int(start[score.argmax()])
