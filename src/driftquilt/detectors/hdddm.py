"""HDDDM: batches of rows whose histograms move away from those of the rows before.

Rows are gathered into batches of `batch_rows`. Each full batch is set beside the baseline, all
batches since the last change:

    p, q   (d, b)  histograms of the batch and the baseline, b = floor(sqrt(batch_rows)) equal
                   bins per feature over the range of both, as shares
    δ(t)   mean over features of sqrt(Σ (√p - √q)²), the Hellinger distance
    ε(t)   δ(t) - δ(t-1)
    β      mean + gamma · deviation of |ε| over the batches before, since the last change

A drift is ε(t) > β; then the batch becomes the baseline and all else is forgotten, otherwise it
joins the baseline. A drift can be found only with the last row of a batch. Labels play no part: a
change of labels alone is invisible. So is one that leaves every single feature's distribution as
it was, such as a change of correlation; `dawidd` sees that.

The paper leaves open, and this is chosen:

- The first ε after a change needs two distances, and a deviation needs some ε: nothing is
  reported until `min_differences` of them were seen. With 5, the first seven batches are quiet.
- A gamma of 1.5 raises an alarm in one of 25 to 40 batches of a stream that does not change, the
  default of 3 in one of 125 to 250. At 3 a batch of 200 shows that one feature of two moved by its
  deviation; of ten, where nine dilute it, by two.
- Only rises count, not |ε(t)|: a batch that is closer to the baseline than the one before is not
  a drift.
- The baseline holds at most the newest `max_batches`, so memory has a bound.
- Distances shrink while the baseline grows; that makes the first |ε| larger, which errs on the
  quiet side.

Ditzler and Polikar, "Hellinger distance based drift detection for nonstationary environments",
IEEE CIDUE 2011.

>>> import numpy as np
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(2400, 3))
>>> X[2000:, 1] += 2
>>> detector = HDDDM(batch_rows=100)
>>> for row in range(len(X)):
...     detector.update(X[row])
...     if detector.drift_detected:
...         break
>>> row
2099
"""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from driftquilt.detectors.base import Watched, check_row, check_settings, count, number

__all__ = ["HDDDM", "hellinger"]

Rows = NDArray[np.float32]

_SETTINGS = {
    "batch_rows": count(4, 100_000),
    "gamma": number(0, 1e6, "a number of at least 0"),
    "min_differences": count(2, 1000),
    "max_batches": count(1, 1000),
}


def hellinger(batch: Rows, baseline: Rows, n_bins: int) -> float:
    """Mean over features of the Hellinger distance of two samples, from 0 to √2."""
    low = np.minimum(batch.min(axis=0), baseline.min(axis=0)).astype(np.float64)
    span = np.maximum(batch.max(axis=0), baseline.max(axis=0)) - low
    span[span == 0] = 1
    p, q = (_shares(sample, low, span, n_bins) for sample in (batch, baseline))
    return float(np.sqrt(((np.sqrt(p) - np.sqrt(q)) ** 2).sum(axis=1)).mean())


def _shares(
    sample: Rows, low: NDArray[np.float64], span: NDArray[np.float64], n_bins: int
) -> NDArray[np.float64]:
    """Share of the sample in each bin of each feature, (d, bins); the last bin has its end."""
    n, d = sample.shape
    place = np.minimum(((sample - low) / span * n_bins).astype(np.int64), n_bins - 1)
    counts = np.bincount((place + np.arange(d) * n_bins).ravel(), minlength=d * n_bins)
    shares: NDArray[np.float64] = counts.reshape(d, n_bins) / n
    return shares


class HDDDM:
    """The detector; see the module for its settings."""

    watches: Watched = "row"

    def __init__(
        self,
        batch_rows: int = 200,
        gamma: float = 3.0,
        min_differences: int = 5,
        max_batches: int = 10,
    ) -> None:
        given = {
            "batch_rows": batch_rows,
            "gamma": gamma,
            "min_differences": min_differences,
            "max_batches": max_batches,
        }
        self._settings = check_settings("hdddm", given, _SETTINGS)
        self.batch_rows: int = self._settings["batch_rows"]
        self.drift_detected = False
        self._pending: list[Rows] = []
        self._baseline: Rows = np.zeros((0, 0), dtype=np.float32)
        self._distance: float | None = None
        self._sums = (0, 0.0, 0.0)  # number of |ε|, their sum, the sum of their squares

    def update(self, value: Any) -> None:
        self._pending.append(check_row(value, self._width))
        self.drift_detected = False
        if len(self._pending) == self.batch_rows:
            batch = np.stack(self._pending)
            self._pending = []
            self.drift_detected = len(self._baseline) > 0 and self._has_moved(batch)
            self._keep(batch)

    @property
    def _width(self) -> int | None:
        if self._pending:
            return len(self._pending[0])
        return self._baseline.shape[1] or None

    def _has_moved(self, batch: Rows) -> bool:
        before = self._distance
        self._distance = hellinger(batch, self._baseline, math.isqrt(self.batch_rows))
        if before is None:
            return False
        n, total, squares = self._sums
        rise = self._distance - before
        self._sums = (n + 1, total + abs(rise), squares + rise**2)
        if n < self._settings["min_differences"]:
            return False
        deviation = math.sqrt(max(squares - total**2 / n, 0) / (n - 1))
        return rise > total / n + float(self._settings["gamma"]) * deviation

    def _keep(self, batch: Rows) -> None:
        """Let the batch join the baseline, or replace it after a drift."""
        if self.drift_detected or not len(self._baseline):
            self._baseline, self._distance, self._sums = batch, None, (0, 0.0, 0.0)
            return
        newest = self.batch_rows * self._settings["max_batches"]
        self._baseline = np.concatenate([self._baseline, batch])[-newest:]

    def settings(self) -> dict[str, Any]:
        return {"kind": "hdddm", **self._settings}

    def fresh(self) -> Self:
        return type(self)(**self._settings)
