"""DAWIDD: rows that depend on when they came are rows that drift.

A window holds the newest rows. Every `check_every` rows the question is put whether the rows are
independent of their times; if the p-value is at most `p_max`, there was a drift,
and the part of the window before it goes. Unlike a look at feature by feature, this sees changes
of correlation. Labels play no part: a change of labels alone is invisible.

What the default finds in its 300 rows: one feature of ten that moves by its deviation, within a
hundred rows; one of two that moves by half of it, in some two streams of three; a correlation
that jumps from 0 to 0.9 between the only two features, but not between two of ten.

The paper leaves the test of independence open, and what goes after a drift, and this is chosen:

- The drift is put where the parts before and after differ most, by the maximum mean discrepancy
  under the same kernel times the parts' harmonic mean; `min_part` rows stay on either side.
- Shuffles are drawn from the seed and the number of rows seen, so nothing random is carried along.

The test of independence is a permutation test of the HSIC, the sum of K∘L:

    K  (n, n)  exp(-|x - x'|² / m) of the rows, m the median of all |x - x'|², centred
    L  (n, n)  the same of the times 0, 1/n, ...

The p-value is how often the sum is as large when the times are shuffled. As soon as so many
shuffles were as large that the p-value must end above `p_max`, the test ends; the answer is that
of all `n_permutations`, at the price of some ten of them while nothing changes. L has a rank of
about ten but for the last digits, so it is its leading vectors that are shuffled, down to 1e-6 of
the largest.

Rows that depend on each other, such as slow waves, look like drift to any such test.

Hinder, Artelt and Hammer, "Towards non-parametric drift detection via Dynamic Adapting Window
Independence Drift Detection (DAWIDD)", ICML 2020.
Gretton et al., "A kernel statistical test of independence", NeurIPS 2007.

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(1000, 2))
>>> X[600:, 1] = X[600:, 0]                        # each feature stays as it was
>>> detector = DAWIDD(seed=0)
>>> for row in range(len(X)):
...     detector.update(X[row])
...     if detector.drift_detected:
...         break
>>> 600 < row < 750, len(detector)                 # the window begins with row 600 now
(True, 100)
"""

from __future__ import annotations

import math
from collections import deque
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from driftquilt.detectors.base import Watched, check_row, check_settings, count, number
from driftquilt.errors import InputError

__all__ = ["DAWIDD", "centred_kernel", "depends_on_time", "place_of_change"]

Floats = NDArray[np.float64]
_BLOCK = 16  # shuffles at a time

_SETTINGS = {
    "max_rows": count(20, 2000),
    "min_rows": count(20, 2000),
    "check_every": count(1, 100_000),
    "p_max": number(0, 0.5, "a number between 0 and 0.5", inner=True),
    "n_permutations": count(9, 1_000_000),
    "min_part": count(1, 1000),
    "seed": count(0, 2**32 - 1),
}


class DAWIDD:
    """The detector; its length is the number of rows in the window."""

    watches: Watched = "row"
    replay_limit = 10_000  # a test of the window takes milliseconds

    def __init__(
        self,
        max_rows: int = 300,
        min_rows: int = 100,
        check_every: int = 50,
        p_max: float = 0.001,
        n_permutations: int = 1000,
        min_part: int = 10,
        seed: int = 0,
    ) -> None:
        given = {
            "max_rows": max_rows,
            "min_rows": min_rows,
            "check_every": check_every,
            "p_max": p_max,
            "n_permutations": n_permutations,
            "min_part": min_part,
            "seed": seed,
        }
        self._settings = check_settings("dawidd", given, _SETTINGS)
        _check_together(self._settings)
        self.drift_detected = False
        self._window: deque[NDArray[np.float32]] = deque(maxlen=self._settings["max_rows"])
        self._n_rows = 0

    def __len__(self) -> int:
        return len(self._window)

    def update(self, value: Any) -> None:
        row = check_row(value, len(self._window[0]) if self._window else None)
        self._window.append(row)
        self._n_rows += 1
        self.drift_detected = self._is_due() and self._check()

    def _is_due(self) -> bool:
        due = self._n_rows % self._settings["check_every"] == 0
        return bool(due and len(self._window) >= self._settings["min_rows"])

    def _check(self) -> bool:
        """Whether rows depend on time; if so, only those after the drift stay."""
        s = self._settings
        kernel = centred_kernel(np.stack(self._window))
        seed = (s["seed"], self._n_rows)
        if not depends_on_time(kernel, s["p_max"], s["n_permutations"], seed):
            return False
        for _ in range(place_of_change(kernel, s["min_part"])):
            self._window.popleft()
        return True

    def settings(self) -> dict[str, Any]:
        return {"kind": "dawidd", **self._settings}

    def fresh(self) -> Self:
        return type(self)(**self._settings)


def _check_together(settings: dict[str, Any]) -> None:
    if not 2 * settings["min_part"] <= settings["min_rows"] <= settings["max_rows"]:
        raise InputError(
            "of the detector 'dawidd', min_rows must lie between twice min_part and max_rows, but "
            f"got min_part {settings['min_part']}, min_rows {settings['min_rows']} and max_rows "
            f"{settings['max_rows']}"
        )
    if settings["p_max"] * (settings["n_permutations"] + 1) < 1:
        raise InputError(
            f"{settings['n_permutations']} permutations cannot show a p-value of "
            f"{settings['p_max']}; set n_permutations to {math.ceil(1 / settings['p_max'])} or more"
        )


def centred_kernel(X: NDArray[Any]) -> Floats:
    """Return the Gaussian kernel of the rows (n, d), scaled and centred, (n, n)."""
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
    """Return the leading vectors of the centred kernel of n times, (n, r)."""
    values, vectors = np.linalg.eigh(centred_kernel(np.arange(n)[:, None] / n))
    matter = values > values[-1] * 1e-6
    leading: Floats = vectors[:, matter] * np.sqrt(values[matter])
    return leading


def depends_on_time(kernel: Floats, p_max: float, n_permutations: int, seed: Any) -> bool:
    """Return whether the p-value of the permutation test is at most `p_max`.

    >>> X = np.random.default_rng(0).normal(size=(120, 2))
    >>> X[70:] += 5
    >>> depends_on_time(centred_kernel(X), p_max=0.01, n_permutations=199, seed=0)
    True
    >>> place_of_change(centred_kernel(X), min_part=10)
    70
    """
    times = _time_vectors(len(kernel))
    observed = float(((kernel @ times) * times).sum())
    rng = np.random.default_rng(seed)
    allowed = math.floor(p_max * (n_permutations + 1)) - 1  # shuffles as large as observed
    for first in range(0, n_permutations, _BLOCK):
        n_shuffles = min(_BLOCK, n_permutations - first)
        shuffled = np.stack([times[rng.permutation(len(times))] for _ in range(n_shuffles)], axis=1)
        flat = shuffled.reshape(len(times), -1)  # (n, shuffles · r)
        sums = ((kernel @ flat) * flat).reshape(shuffled.shape).sum(axis=(0, 2))
        allowed -= int((sums >= observed).sum())
        if allowed < 0:
            return False
    return True


def place_of_change(kernel: Floats, min_part: int) -> int:
    """Return the row with which the newer part begins, where the two parts differ most."""
    n = len(kernel)
    sums = kernel[::-1, ::-1].cumsum(axis=0).cumsum(axis=1)
    within = np.diagonal(sums)[::-1]  # from a row to the end
    start = np.arange(min_part, n - min_part + 1)
    score = within[start] * n / (start * (n - start))
    return int(start[score.argmax()])
