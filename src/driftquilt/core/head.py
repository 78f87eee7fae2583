"""The gradient a row sends through the last layer, in closed form.

For a softmax over `z = W a + b` and cross-entropy, the gradient of a row with embedding `a`,
prediction `p` and label `y` is `(p - y, (p - y) ⊗ a)`: no backward pass is needed. Quilt
compares segments by the mean of it, one vector of C·(H+1) numbers per segment, laid out
class by class: the bias first, then the H weights.

    probabilities  (n, C)
    y              (n,)      class codes
    embedding      (n, H)    whatever goes into the last layer
    weight         (n,)
    gradient       (C·(H+1),) float64

Paper: "Gradient Computation".

>>> import numpy as np
>>> p, a = np.array([[0.75, 0.25]]), np.array([[2.0, 4.0]])
>>> head_gradient(p, np.array([0]), a, np.ones(1)).tolist()
[-0.25, -0.5, -1.0, 0.25, 0.5, 1.0]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["cross_entropy", "head_gradient"]


def head_gradient(
    probabilities: NDArray[np.floating[Any]],
    y: NDArray[np.int64],
    embedding: NDArray[np.floating[Any]],
    weight: NDArray[np.floating[Any]],
) -> NDArray[np.float64]:
    """Sum over the rows of weight times head gradient; divide by the weights' sum for the mean."""
    residual = probabilities.astype(np.float64)
    residual[np.arange(len(y)), y] -= 1.0
    residual *= weight[:, None]
    gradient = np.empty((residual.shape[1], embedding.shape[1] + 1))
    gradient[:, 0] = residual.sum(axis=0)
    gradient[:, 1:] = residual.T @ embedding
    return gradient.ravel()


def cross_entropy(
    probabilities: NDArray[np.floating[Any]],
    y: NDArray[np.int64],
    weight: NDArray[np.floating[Any]],
) -> float:
    """Sum over the rows of weight times cross-entropy."""
    likelihood = np.maximum(probabilities[np.arange(len(y)), y], np.finfo(np.float32).tiny)
    return float(-(weight * np.log(likelihood)).sum(dtype=np.float64))
