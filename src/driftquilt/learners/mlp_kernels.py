"""The compiled inner loops of the two-layer net; nothing else lives here.

All weights stand in one flat float32 vector `theta`, so that a copy is one copy:

    first    (d, H)  input weights        bias   (H,)
    head     (C, H)  last layer's weights offset (C,)  its bias

Rows go through in blocks that stay in the cache. The first product of a block is BLAS; what
follows (bias, ReLU, the thin head, softmax, gradients) is one pass over each row while it is
hot, because BLAS is slow on matrices only C wide. Sums over a block are float32, sums over
blocks float64.

Kernels are compiled for fixed types when this module is first imported on a machine and then
read from numba's cache; `_say_once` tells the user who waits for it. All release the GIL.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np
from numba import njit, types
from numba.core import event
from numpy.typing import NDArray

__all__ = ["embed", "head_gradient", "learn_one", "predict", "train_epoch"]

BLOCK = 128

_BETA1, _BETA2, _EPSILON = np.float32(0.9), np.float32(0.999), np.float32(1e-8)
# A first moment whose gradient stays zero decays into denormal numbers, which are slow.
_TINY = np.float32(1e-30)
_ZERO = np.float32(0.0)

Floats = NDArray[np.float32]
Codes = NDArray[np.int64]

_MATRIX = types.Array(types.float32, 2, "C", readonly=True)
_VECTOR = types.Array(types.float32, 1, "C", readonly=True)
_CODES = types.Array(types.int64, 1, "C", readonly=True)
_OUT_MATRIX, _OUT_VECTOR = types.float32[:, ::1], types.float32[::1]
_INT, _FLOAT = types.int64, types.float32

# Reordering sums and fused multiply-add, but never the promise that NaN cannot happen.
_FASTMATH = {"contract", "reassoc", "nsz", "arcp", "afn"}


class _SayOnce(event.Listener):
    """One line before the first kernel is compiled; nothing when all come from the cache."""

    said = False

    def on_start(self, event: Any) -> None:
        if not self.said and event.data["dispatcher"].py_func.__module__ == __name__:
            type(self).said = True
            logging.getLogger("driftquilt").warning(
                "driftquilt: compiling numeric kernels; this happens once and takes some seconds"
            )

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compile", _SayOnce())  # type: ignore[no-untyped-call]


F = TypeVar("F", bound=Callable[..., Any])


def _kernel(signature: Any = None) -> Callable[[F], F]:
    compiled: Callable[[F], F] = njit(
        signature, cache=True, nogil=True, fastmath=_FASTMATH, error_model="numpy"
    )
    return compiled


@_kernel()
def _unpack(
    theta: Floats, n_features: int, n_hidden: int, n_classes: int
) -> tuple[Floats, Floats, Floats, Floats]:
    """Views of theta: first (d, H), bias (H,), head (C, H), offset (C,)."""
    a = n_features * n_hidden
    b = a + n_hidden
    c = b + n_classes * n_hidden
    return (
        theta[:a].reshape((n_features, n_hidden)),
        theta[a:b],
        theta[b:c].reshape((n_classes, n_hidden)),
        theta[c:],
    )


@_kernel()
def _logits(hidden: Floats, bias: Floats, head: Floats, offset: Floats, z: Floats) -> None:
    """Finish one row: bias and ReLU in place, then the head."""
    for j in range(len(bias)):
        hidden[j] = max(hidden[j] + bias[j], _ZERO)
    for c in range(len(offset)):
        total = _ZERO
        for j in range(len(bias)):
            total += hidden[j] * head[c, j]
        z[c] = total + offset[c]


@_kernel()
def _softmax(z: Floats) -> float:
    """In place, and the log of the sum that turns a logit into a log-probability."""
    top = z[0]
    for c in range(1, len(z)):
        top = max(top, z[c])
    total = _ZERO
    for c in range(len(z)):
        z[c] = math.exp(z[c] - top)
        total += z[c]
    for c in range(len(z)):
        z[c] /= total
    log_sum: float = top + math.log(total)
    return log_sum


@_kernel(types.float64(_MATRIX, _CODES, _VECTOR, _VECTOR, _INT, types.float64[:, ::1]))
def head_gradient(
    X: Floats,
    y: Codes,
    weight: Floats,
    theta: Floats,
    n_hidden: int,
    gradient: NDArray[np.float64],
) -> float:
    """Add each row's weighted head gradient to `gradient` (C, 1+H); return the summed loss."""
    n_rows, n_features = X.shape
    n_classes = len(gradient)
    first, bias, head, offset = _unpack(theta, n_features, n_hidden, n_classes)
    hidden = np.empty((BLOCK, n_hidden), np.float32)
    partial = np.empty((n_classes, n_hidden + 1), np.float32)
    z = np.empty(n_classes, np.float32)
    loss = 0.0
    for start in range(0, n_rows, BLOCK):
        n = min(BLOCK, n_rows - start)
        np.dot(X[start : start + n], first, hidden[:n])
        partial[:] = _ZERO
        for i in range(n):
            row, label, w = hidden[i], y[start + i], weight[start + i]
            _logits(row, bias, head, offset, z)
            logit = z[label]
            loss += w * (_softmax(z) - logit)
            z[label] -= np.float32(1.0)
            for c in range(n_classes):
                r = z[c] * w
                partial[c, 0] += r
                for j in range(n_hidden):
                    partial[c, j + 1] += r * row[j]
        for c in range(n_classes):
            for j in range(n_hidden + 1):
                gradient[c, j] += partial[c, j]
    return loss


@_kernel()
def _backward(
    row: Floats,
    residual: Floats,
    head: Floats,
    slope_head: Floats,
    slope_offset: Floats,
    back: Floats,
) -> None:
    """Gradients of the head from one row; `row` turns from embedding into its own gradient."""
    for j in range(len(row)):
        back[j] = _ZERO
    for c in range(len(residual)):
        r = residual[c]
        slope_offset[c] += r
        for j in range(len(row)):
            slope_head[c, j] += r * row[j]
            back[j] += r * head[c, j]
    for j in range(len(row)):
        row[j] = back[j] if row[j] > _ZERO else _ZERO


@_kernel()
def _adam(
    theta: Floats,
    slope: Floats,
    moment: Floats,
    square: Floats,
    step: int,
    learning_rate: float,
) -> None:
    size = np.float32(learning_rate / (1.0 - 0.9**step))
    root = np.float32(1.0 / math.sqrt(1.0 - 0.999**step))
    one = np.float32(1.0)
    for k in range(len(theta)):
        m = _BETA1 * moment[k] + (one - _BETA1) * slope[k]
        m = m if abs(m) > _TINY else _ZERO
        v = _BETA2 * square[k] + (one - _BETA2) * slope[k] * slope[k]
        moment[k] = m
        square[k] = v
        theta[k] -= size * m / (math.sqrt(v) * root + _EPSILON)


@_kernel(
    _INT(
        _MATRIX, _CODES, _VECTOR, _CODES, _OUT_VECTOR, _OUT_VECTOR, _OUT_VECTOR,
        _INT, _FLOAT, _INT, _INT, _INT,
    )
)  # fmt: skip
def train_epoch(
    X: Floats,
    y: Codes,
    weight: Floats,
    order: Codes,
    theta: Floats,
    moment: Floats,
    square: Floats,
    step: int,
    learning_rate: float,
    n_hidden: int,
    n_classes: int,
    batch_size: int,
) -> int:
    """One pass of Adam over the rows in the given order; return the number of steps so far."""
    n_rows, n_features = X.shape
    first, bias, head, offset = _unpack(theta, n_features, n_hidden, n_classes)
    slope = np.empty_like(theta)
    slope_first, slope_bias, slope_head, slope_offset = _unpack(
        slope, n_features, n_hidden, n_classes
    )
    batch = np.empty((batch_size, n_features), np.float32)
    hidden = np.empty((batch_size, n_hidden), np.float32)
    z = np.empty(n_classes, np.float32)
    back = np.empty(n_hidden, np.float32)
    for start in range(0, n_rows, batch_size):
        n = min(batch_size, n_rows - start)
        for i in range(n):
            batch[i] = X[order[start + i]]
        np.dot(batch[:n], first, hidden[:n])
        slope[n_features * n_hidden :] = _ZERO
        for i in range(n):
            at = order[start + i]
            row = hidden[i]
            _logits(row, bias, head, offset, z)
            _softmax(z)
            z[y[at]] -= np.float32(1.0)
            for c in range(n_classes):
                z[c] *= weight[at] / np.float32(n)
            _backward(row, z, head, slope_head, slope_offset, back)
            for j in range(n_hidden):
                slope_bias[j] += row[j]
        np.dot(batch[:n].T, hidden[:n], slope_first)
        step += 1
        _adam(theta, slope, moment, square, step, learning_rate)
    return step


@_kernel(types.void(_MATRIX, _VECTOR, _INT, _OUT_MATRIX))
def predict(X: Floats, theta: Floats, n_hidden: int, probabilities: Floats) -> None:
    """Fill in the class probabilities of each row, shape (n, C)."""
    n_rows, n_features = X.shape
    n_classes = probabilities.shape[1]
    first, bias, head, offset = _unpack(theta, n_features, n_hidden, n_classes)
    hidden = np.empty((BLOCK, n_hidden), np.float32)
    for start in range(0, n_rows, BLOCK):
        n = min(BLOCK, n_rows - start)
        np.dot(X[start : start + n], first, hidden[:n])
        for i in range(n):
            z = probabilities[start + i]
            _logits(hidden[i], bias, head, offset, z)
            _softmax(z)


@_kernel(types.void(_MATRIX, _VECTOR, _OUT_MATRIX, _OUT_MATRIX))
def embed(X: Floats, theta: Floats, embedding: Floats, probabilities: Floats) -> None:
    """Fill in the embedding (n, H) and the class probabilities (n, C) of each row."""
    n_rows, n_features = X.shape
    first, bias, head, offset = _unpack(
        theta, n_features, embedding.shape[1], probabilities.shape[1]
    )
    for start in range(0, n_rows, BLOCK):
        n = min(BLOCK, n_rows - start)
        np.dot(X[start : start + n], first, embedding[start : start + n])
        for i in range(start, start + n):
            _logits(embedding[i], bias, head, offset, probabilities[i])
            _softmax(probabilities[i])


@_kernel(types.void(_VECTOR, _INT, _OUT_VECTOR, _FLOAT, _INT, _INT))
def learn_one(
    x: Floats, y: int, theta: Floats, learning_rate: float, n_hidden: int, n_classes: int
) -> None:
    """One plain gradient step on one row."""
    n_features = len(x)
    first, bias, head, offset = _unpack(theta, n_features, n_hidden, n_classes)
    row = np.zeros(n_hidden, np.float32)
    for k in range(n_features):
        for j in range(n_hidden):
            row[j] += x[k] * first[k, j]
    z = np.empty(n_classes, np.float32)
    _logits(row, bias, head, offset, z)
    _softmax(z)
    z[y] -= np.float32(1.0)
    slope_head = np.zeros((n_classes, n_hidden), np.float32)
    slope_offset = np.zeros(n_classes, np.float32)
    _backward(row, z, head, slope_head, slope_offset, np.empty_like(row))
    for j in range(n_hidden):
        bias[j] -= learning_rate * row[j]
    for k in range(n_features):
        for j in range(n_hidden):
            first[k, j] -= learning_rate * x[k] * row[j]
    for c in range(n_classes):
        offset[c] -= learning_rate * slope_offset[c]
        for j in range(n_hidden):
            head[c, j] -= learning_rate * slope_head[c, j]
