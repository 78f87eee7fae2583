"""What the two-layer net does with one row, once its product with the input weights is there.

Softmax does not see what all logits have in common. So the head counts from class 0: what is
kept of it are the other classes' differences to class 0, `lines` (C-1, H) and `shift` (C-1,),
class 0 itself always has the logit 0, and its gradient is minus the sum of the others'. Two
classes take half the work that way.
"""

from __future__ import annotations

import math

import numpy as np

from driftquilt.learners.mlp_compile import Floats, kernel

__all__ = [
    "adam",
    "backward",
    "clear",
    "close_head",
    "copy_line",
    "from_class_0",
    "head_lines",
    "logits",
    "pace",
    "softmax",
    "unpack",
]

BETA1, BETA2, EPSILON = np.float32(0.9), np.float32(0.999), np.float32(1e-8)
# A first moment whose gradient stays zero decays into denormal numbers, which are slow.
TINY = np.float32(1e-30)
ZERO, ONE = np.float32(0.0), np.float32(1.0)


@kernel()
def unpack(
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


@kernel()
def copy_line(source: Floats, target: Floats) -> None:
    """Copy; what numba makes of `target[:] = source` takes seconds to compile."""
    for j in range(len(target)):
        target[j] = source[j]


@kernel()
def clear(line: Floats) -> None:
    """Set to zero."""
    for j in range(len(line)):
        line[j] = ZERO


@kernel()
def head_lines(head: Floats, offset: Floats) -> tuple[Floats, Floats]:
    """`lines` and `shift` of a head; a single class has one line of zeros."""
    n_lines = max(len(offset) - 1, 1)
    lines = np.zeros((n_lines, head.shape[1]), np.float32)
    shift = np.zeros(n_lines, np.float32)
    from_class_0(head, offset, lines, shift)
    return lines, shift


@kernel()
def from_class_0(head: Floats, offset: Floats, lines: Floats, shift: Floats) -> None:
    """Fill in `lines` and `shift`."""
    for c in range(1, len(offset)):
        shift[c - 1] = offset[c] - offset[0]
        for j in range(head.shape[1]):
            lines[c - 1, j] = head[c, j] - head[0, j]


@kernel()
def logits(row: Floats, bias: Floats, lines: Floats, shift: Floats, z: Floats) -> None:
    """Finish one row: bias and ReLU in place, then the head."""
    line, total = lines[0], ZERO
    for j in range(len(row)):
        h = max(row[j] + bias[j], ZERO)
        row[j] = h
        total += h * line[j]
    z[0] = ZERO
    if len(z) > 1:
        z[1] = total + shift[0]
    for c in range(2, len(z)):
        line, total = lines[c - 1], ZERO
        for j in range(len(row)):
            total += row[j] * line[j]
        z[c] = total + shift[c - 1]


@kernel()
def softmax(z: Floats) -> float:
    """In place, and the log of the sum that turns a logit into a log-probability; z[0] is 0."""
    top = z[0]
    if len(z) == 2:  # noqa: PLR2004 - one exponential less
        top = max(z[1], ZERO)
        small = math.exp(-abs(z[1]))
        total = ONE + small
        z[0] = (small if z[1] > ZERO else ONE) / total
        z[1] = (ONE if z[1] > ZERO else small) / total
        return float(top + math.log(total))
    for c in range(1, len(z)):
        top = max(top, z[c])
    total = ZERO
    for c in range(len(z)):
        z[c] = math.exp(z[c] - top)
        total += z[c]
    for c in range(len(z)):
        z[c] /= total
    return float(top + math.log(total))


@kernel()
def backward(
    row: Floats,
    residual: Floats,
    lines: Floats,
    slope_bias: Floats,
    slope_head: Floats,
    slope_offset: Floats,
    back: Floats,
) -> None:
    """Add one row's gradients but class 0's; `row` turns from embedding into its own gradient.

    `back` (H,) is zero before and after.
    """
    for c in range(2, len(residual)):
        r, line, slope = residual[c], lines[c - 1], slope_head[c]
        slope_offset[c] += r
        for j in range(len(row)):
            slope[j] += r * row[j]
            back[j] += r * line[j]
    last = min(1, len(residual) - 1)
    r, line, slope = residual[last], lines[0], slope_head[last]
    slope_offset[last] += r
    for j in range(len(row)):
        h = row[j]
        slope[j] += r * h
        g = back[j] + r * line[j] if h > ZERO else ZERO
        row[j] = g
        slope_bias[j] += g
    if len(residual) > 2:  # noqa: PLR2004
        for j in range(len(back)):
            back[j] = ZERO


@kernel()
def close_head(slope_head: Floats, slope_offset: Floats) -> None:
    """Class 0's gradient from those of the others."""
    slope_offset[0] = ZERO
    for j in range(slope_head.shape[1]):
        slope_head[0, j] = ZERO
    for c in range(1, len(slope_offset)):
        slope_offset[0] -= slope_offset[c]
        for j in range(slope_head.shape[1]):
            slope_head[0, j] -= slope_head[c, j]


@kernel()
def pace(step: int, learning_rate: float) -> tuple[np.float32, np.float32]:
    """Adam's two corrections for having begun at zero, as the numbers that `adam` takes."""
    size = np.float32(learning_rate / (1.0 - 0.9**step))
    root = np.float32(1.0 / math.sqrt(1.0 - 0.999**step))
    return size, root


@kernel()
def adam(
    theta: Floats, slope: Floats, moment: Floats, square: Floats, size: np.float32, root: np.float32
) -> None:
    """One step of Adam on a stretch of the weights."""
    for k in range(len(theta)):
        m = BETA1 * moment[k] + (ONE - BETA1) * slope[k]
        m = m if abs(m) > TINY else ZERO
        v = BETA2 * square[k] + (ONE - BETA2) * slope[k] * slope[k]
        moment[k] = m
        square[k] = v
        theta[k] -= size * m / (math.sqrt(v) * root + EPSILON)
