"""Disparity and gain: how a past segment's mean gradient compares with the present's.

Disparity is the distance between the two vectors; it stays high for another concept however
long one trains. Gain is their inner product: while it is positive, a step on the segment
lowers the loss of the present.

    segments  (S, P)  mean head gradient of each past segment
    present   (P,)    mean head gradient of the validation part

Paper: Definitions 1 and 2.

>>> import numpy as np
>>> segments = np.array([[3.0, 4.0], [-1.0, 0.0]])
>>> disparity(segments, np.array([0.0, 0.0])).tolist()
[5.0, 1.0]
>>> gain(segments, np.array([2.0, 1.0])).tolist()
[10.0, -2.0]
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["disparity", "gain"]


def disparity(segments: NDArray[np.float64], present: NDArray[np.float64]) -> NDArray[np.float64]:
    """Euclidean distance of each segment's gradient to the present's, shape (S,)."""
    norms: NDArray[np.float64] = np.linalg.norm(segments - present, axis=1)
    return norms


def gain(segments: NDArray[np.float64], present: NDArray[np.float64]) -> NDArray[np.float64]:
    """Inner product of each segment's gradient with the present's, shape (S,)."""
    products: NDArray[np.float64] = segments @ present
    return products
