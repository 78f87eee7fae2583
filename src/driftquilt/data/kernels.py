"""The compiled loops of the encoder: scale numbers, and follow what is known of them.

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
_SUMS, _MOMENTS = types.float64[::1], types.float64[:, ::1]
_COUNTS, _MATRIX = types.int64[:, ::1], types.float32[:, ::1]


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


@njit(types.int64(types.int64), cache=True, nogil=True)
def _draw(n: int) -> int:
    """Return a number from 0 to `n` - 1 that looks random and follows from `n` (splitmix64)."""
    z = np.uint64(n) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    drawn: int = int((z ^ (z >> np.uint64(31))) % np.uint64(n))
    return drawn


@njit(
    types.boolean(_NUMBERS, _PLACES, _SUMS, _SUMS, _COUNTS, _MOMENTS, _MOMENTS, types.float64),
    cache=True, nogil=True, error_model="numpy",
)  # fmt: skip
def learn_scale(
    numbers: NDArray[np.float64],
    places: NDArray[np.intp],
    mean: NDArray[np.float64],
    deviation: NDArray[np.float64],
    counts: NDArray[np.int64],
    moments: NDArray[np.float64],
    sample: NDArray[np.float64],
    far: float,
) -> bool:
    """Take rows into the running moments (Welford) and samples, one after the other.

    For each number, `moments` has the sum of squares around the mean, the lowest and the highest
    value; `counts` the values so far, those that the sample was drawn from, and 1 if the column is
    due: the sample's are as many as a power of two, or one is lower or higher than all before and
    more than `far` deviations from the mean. The deviation is infinite until a number varies. A
    sample has each value with the same chance. Return whether a column is due.
    """
    due = False
    for i in range(len(numbers)):
        for j in range(len(places)):
            if places[j] < 0 or np.isnan(numbers[i, places[j]]):
                continue
            value = numbers[i, places[j]]
            counts[j, 0] += 1
            counts[j, 1] += 1
            n, n_drawn = counts[j, 0], counts[j, 1]
            off = value - mean[j]
            is_due = n_drawn & (n_drawn - 1) == 0
            if value < moments[j, 1] or value > moments[j, 2]:
                is_due |= abs(off) > far * deviation[j]
                moments[j, 1] = min(value, moments[j, 1])
                moments[j, 2] = max(value, moments[j, 2])
            mean[j] += off / n
            moments[j, 0] += off * (value - mean[j])
            deviation[j] = np.sqrt(moments[j, 0] / n) if moments[j, 0] > 0 else np.inf
            slot = n_drawn - 1 if n_drawn <= sample.shape[1] else _draw(n_drawn)
            if slot < sample.shape[1]:
                sample[j, slot] = value
            if is_due:
                counts[j, 2] = 1
                due = True
    return due
