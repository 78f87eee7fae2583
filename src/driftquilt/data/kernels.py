"""The compiled loops of the encoder: scale numbers, and follow their running scale.

One row or many: what numpy would do in a dozen calls costs a stream more than its nets do. Nothing
is reordered or fused, so that results are those of numpy, bit for bit. numba is imported with this
module, when the first row is encoded.

`places` has the column of `numbers` for each number of the encoder, or -1 if it is not there.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types
from numpy.typing import NDArray

__all__ = ["learn_scale", "scale"]

_CHUNK = 64  # rows of which all columns are written while they are in the cache

_NUMBERS = types.Array(types.float64, 2, "A", readonly=True)
_PLACES = types.Array(types.int64, 1, "C", readonly=True)
_SCALE = types.Array(types.float64, 1, "C", readonly=True)
_COUNTS, _SUMS, _MATRIX = types.int64[::1], types.float64[::1], types.float32[:, ::1]


@njit(
    types.float64(types.float64, _SCALE, _SCALE, types.int64, types.int64),
    cache=True, nogil=True, error_model="numpy",
)  # fmt: skip
def _interpolate(
    value: float, knots: NDArray[np.float64], scores: NDArray[np.float64], start: int, end: int
) -> float:
    """Return the score of a value between knots, NaN for NaN; constant beyond the outermost."""
    if np.isnan(value):
        return np.nan
    low, high = start, end - 1
    if value <= knots[low]:
        return float(scores[low])
    if value >= knots[high]:
        return float(scores[high])
    while high - low > 1:  # knots[low] <= value < knots[high]
        middle = (low + high) // 2
        if knots[middle] <= value:
            low = middle
        else:
            high = middle
    share = (value - knots[low]) / (knots[high] - knots[low])
    return float(scores[low] + share * (scores[high] - scores[low]))


@njit(
    types.void(
        _NUMBERS, _PLACES, _SCALE, _SCALE, _SCALE, _SCALE, _PLACES, _SCALE, _SCALE, types.float64,
        _PLACES, _PLACES, _MATRIX,
    ),
    cache=True, nogil=True, error_model="numpy",
)  # fmt: skip
def scale(
    numbers: NDArray[np.float64],
    places: NDArray[np.intp],
    mean: NDArray[np.float64],
    deviation: NDArray[np.float64],
    knots: NDArray[np.float64],
    scores: NDArray[np.float64],
    starts: NDArray[np.intp],
    lowest: NDArray[np.float64],
    highest: NDArray[np.float64],
    limit: float,
    to: NDArray[np.intp],
    flags: NDArray[np.intp],
    out: NDArray[np.float32],
) -> None:
    """Write scaled numbers into columns `to` of `out`, which is zero; a missing one stays 0.

    A column is scaled by mean and deviation, or goes through its knots, from `starts[j]` up to
    `starts[j + 1]`, if it has any; `starts` is empty if none has. No scaled number is below
    `lowest[j]` or above `highest[j]`, which are empty if there are no such bounds, nor further from
    0 than `limit`. Where a column has a flag (>= 0), that is 1 for missing.
    """
    for first in range(0, len(numbers), _CHUNK):
        last = min(first + _CHUNK, len(numbers))
        for j in range(len(places)):
            start, end = (starts[j], starts[j + 1]) if len(starts) else (0, 0)
            low, high = -limit, limit
            if len(lowest):
                low, high = max(low, lowest[j]), min(high, highest[j])
            for i in range(first, last):
                value = numbers[i, places[j]] if places[j] >= 0 else np.nan
                if start < end:
                    scaled = _interpolate(value, knots, scores, start, end)
                else:
                    scaled = (value - mean[j]) / deviation[j]
                if scaled == scaled:  # noqa: PLR0124
                    out[i, to[j]] = max(low, min(high, scaled))
                elif flags[j] >= 0:
                    out[i, flags[j]] = 1


@njit(
    types.void(_NUMBERS, _PLACES, _COUNTS, _SUMS, _SUMS, _SUMS),
    cache=True, nogil=True, error_model="numpy",
)  # fmt: skip
def learn_scale(
    numbers: NDArray[np.float64],
    places: NDArray[np.intp],
    n: NDArray[np.int64],
    mean: NDArray[np.float64],
    m2: NDArray[np.float64],
    deviation: NDArray[np.float64],
) -> None:
    """Take rows into the running moments, one after the other (Welford).

    `m2` is the sum of squares around the mean; the deviation is infinite until a number varies.
    """
    for i in range(len(numbers)):
        for j in range(len(places)):
            if places[j] < 0 or np.isnan(numbers[i, places[j]]):
                continue
            value = numbers[i, places[j]]
            n[j] += 1
            off = value - mean[j]
            mean[j] += off / n[j]
            m2[j] += off * (value - mean[j])
            deviation[j] = np.sqrt(m2[j] / n[j]) if m2[j] > 0 else np.inf
