"""The compiled kernels of the two-layer net.

All weights stand in one flat float32 vector `theta`, so that a copy is one copy:

    first    (d, H)  input weights        bias   (H,)
    head     (C, H)  last layer's weights offset (C,)  its bias

Rows go through in blocks that stay in the cache. `mlp_products` multiplies a block with the
input weights; what follows (bias, ReLU, the thin head, softmax, gradients) is one pass over
each row while it is hot, because BLAS is slow on matrices only C wide. Narrow rows need no
block: each goes all the way at once. Sums over a block are float32, sums over blocks float64.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from driftquilt.learners.mlp_compile import (
    CODES,
    FLOAT,
    INT,
    MATRIX,
    NUMBERS,
    OUT_MATRIX,
    OUT_SUMS,
    OUT_VECTOR,
    SCALE,
    SUM,
    VECTOR,
    VOID,
    Codes,
    Floats,
    Ints,
    Numbers,
    kernel,
)  # fmt: skip
from driftquilt.learners.mlp_products import (
    NARROW_BACK,
    NARROW_FORWARD,
    add_lines,
    add_rows,
    by_column,
    fill_rest,
    find_usual,
    multiply_block,
    multiply_narrow,
    multiply_sparse,
    rest_lists,
)  # fmt: skip
from driftquilt.learners.mlp_rows import (
    adam,
    backward,
    clear,
    close_head,
    copy_line,
    from_class_0,
    head_lines,
    logits,
    pace,
    softmax,
    unpack,
)  # fmt: skip

__all__ = ["BLOCK", "add_answers", "embed", "head_gradient", "learn_one", "train_epoch"]

BLOCK = 128
_ZERO, _ONE = np.float32(0.0), np.float32(1.0)


@kernel(SUM(MATRIX, CODES, VECTOR, OUT_VECTOR, INT, OUT_SUMS))
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
    n_classes, size = len(gradient), min(BLOCK, n_rows)
    narrow = n_features <= NARROW_FORWARD
    first, bias, head, offset = unpack(theta, n_features, n_hidden, n_classes)
    lines, shift = head_lines(head, offset)
    usual = find_usual(X)
    rest = rest_lists(size, usual)
    hidden = np.empty((size, n_hidden), np.float32)
    partial = np.zeros((n_classes, n_hidden), np.float32)
    z = np.empty(n_classes, np.float32)
    loss = 0.0
    for start in range(0, n_rows, BLOCK):
        n = min(BLOCK, n_rows - start)
        if not narrow:
            multiply_block(X, start, usual, rest, first, hidden[:n])
        for i in range(n):
            row, label, w = hidden[0 if narrow else i], y[start + i], weight[start + i]
            if narrow:
                multiply_narrow(X[start + i], first, row)
            logits(row, bias, lines, shift, z)
            logit = z[label]
            loss += w * (softmax(z) - logit)
            z[label] -= _ONE
            for c in range(n_classes):
                gradient[c, 0] += z[c] * w
            for c in range(1, n_classes):
                r, line = z[c] * w, partial[c]
                for j in range(n_hidden):
                    line[j] += r * row[j]
        for c in range(1, n_classes):
            for j in range(n_hidden):
                gradient[c, j + 1] += partial[c, j]
                gradient[0, j + 1] -= partial[c, j]
                partial[c, j] = _ZERO
    return loss


@kernel()
def _batch_slopes(
    X: Floats, y: Codes, weight: Floats, rows: Codes, batch: Floats, hidden: Floats,
    weights: tuple[Floats, Floats, Floats, Floats], slopes: tuple[Floats, Floats, Floats, Floats],
    lines: Floats, shift: Floats, z: Floats, back: Floats,
) -> None:  # fmt: skip
    """Gradients of a batch; `hidden` turns from products into the rows' own gradients.

    Narrow rows multiply here, into the four rows of `batch` and `hidden` there are. Those of
    wider ones are there; theirs to the input weights is left to the caller.
    """
    first, bias, head, offset = weights
    slope_first, slope_bias, slope_head, slope_offset = slopes
    n, n_features = len(rows), X.shape[1]
    from_class_0(head, offset, lines, shift)
    for i in range(n):
        at, here = rows[i], i % len(hidden)
        row = hidden[here]
        if n_features <= NARROW_FORWARD:
            multiply_narrow(X[at], first, row)
        logits(row, bias, lines, shift, z)
        softmax(z)
        z[y[at]] -= _ONE
        w = weight[at] / np.float32(n)
        for c in range(len(z)):
            z[c] *= w
        backward(row, z, lines, slope_bias, slope_head, slope_offset, back)
        if n_features <= NARROW_BACK:
            four = here - here % 4
            if n_features <= NARROW_FORWARD:
                copy_line(X[at], batch[here])
            if i == n - 1:
                for other in range(here + 1, four + 4):
                    clear(hidden[other])
            if (here + 1) % 4 == 0 or i == n - 1:
                add_rows(batch[four : four + 4], hidden[four : four + 4], slope_first)
    close_head(slope_head, slope_offset)


@kernel()
def _step_sparse(
    theta: Floats, moment: Floats, square: Floats, slope_bias: Floats, size: np.float32,
    root: np.float32, usual: Floats, turned: tuple[Codes, Ints, Floats], hidden: Floats,
) -> None:  # fmt: skip
    """Adam on the input weights, line by line, so that their gradient never leaves the cache."""
    stops, at, what = turned
    n_hidden, n_rows = len(slope_bias), len(hidden)
    line = np.empty(n_hidden, np.float32)
    for k in range(len(usual)):
        for j in range(n_hidden):
            line[j] = usual[k] * slope_bias[j]
        add_lines(what, at, k * n_rows, stops[k], hidden, line)
        a, b = k * n_hidden, (k + 1) * n_hidden
        adam(theta[a:b], line, moment[a:b], square[a:b], size, root)


@kernel(
    INT(
        MATRIX, CODES, VECTOR, CODES, OUT_VECTOR, OUT_VECTOR, OUT_VECTOR,
        INT, FLOAT, INT, INT, INT,
    )
)  # fmt: skip
def train_epoch(
    X: Floats, y: Codes, weight: Floats, order: Codes, theta: Floats, moment: Floats,
    square: Floats, step: int, learning_rate: float, n_hidden: int, n_classes: int,
    batch_size: int,
) -> int:  # fmt: skip
    """One pass of Adam over the rows in the given order; return the number of steps so far."""
    n_rows, n_features = X.shape
    n_most, n_first = min(batch_size, n_rows), n_features * n_hidden
    n_kept = 4 if n_features <= NARROW_FORWARD else n_most + -n_most % 4
    weights = unpack(theta, n_features, n_hidden, n_classes)
    slope = np.zeros_like(theta)
    slopes = unpack(slope, n_features, n_hidden, n_classes)
    lines, shift = head_lines(weights[2], weights[3])
    usual = find_usual(X)
    columns, values, ends = rest_lists(n_most, usual)
    n_turned = len(usual) * n_most
    turned = (
        np.empty(len(usual), np.int64), np.empty(n_turned, np.int32), np.empty(n_turned, np.float32)
    )  # fmt: skip
    batch = np.zeros((n_kept, n_features), np.float32)
    hidden = np.zeros((n_kept, n_hidden), np.float32)
    z, back = np.empty(n_classes, np.float32), np.zeros(n_hidden, np.float32)
    for start in range(0, n_rows, batch_size):
        n = min(batch_size, n_rows - start)
        rows = order[start : start + n]
        sparse = len(usual) > 0 and fill_rest(X, rows, usual, columns, values, ends)
        if sparse:
            by_column(columns, values, ends, n, *turned)
            multiply_sparse(usual, columns, values, ends, weights[0], hidden[:n])
        elif n_features > NARROW_FORWARD:
            for i in range(n):
                copy_line(X[rows[i]], batch[i])
            np.dot(batch[:n], weights[0], hidden[:n])
        clear(slope[0 if n_features <= NARROW_BACK else n_first :])
        _batch_slopes(X, y, weight, rows, batch, hidden, weights, slopes, lines, shift, z, back)
        step += 1
        size, root = pace(step, learning_rate)
        done = n_first if sparse else 0
        if sparse:
            _step_sparse(theta, moment, square, slopes[1], size, root, usual, turned, hidden[:n])
        elif n_features > NARROW_BACK:
            np.dot(batch[:n].T, hidden[:n], slopes[0])
        adam(theta[done:], slope[done:], moment[done:], square[done:], size, root)
    return step


@kernel(VOID(MATRIX, OUT_VECTOR, OUT_MATRIX, OUT_MATRIX))
def embed(X: Floats, theta: Floats, embedding: Floats, probabilities: Floats) -> None:
    """Fill in the embedding (n, H) and the class probabilities (n, C) of each row.

    Who wants no embedding gives one of min(BLOCK, n) rows, which blocks then share.
    """
    n_rows, n_features = X.shape
    narrow = n_features <= NARROW_FORWARD
    first, bias, head, offset = unpack(
        theta, n_features, embedding.shape[1], probabilities.shape[1]
    )
    lines, shift = head_lines(head, offset)
    usual = find_usual(X)
    rest = rest_lists(min(BLOCK, n_rows), usual)
    for start in range(0, n_rows, BLOCK):
        n, at = min(BLOCK, n_rows - start), start if len(embedding) == n_rows else 0
        hidden = embedding[at : at + n]
        if not narrow:
            multiply_block(X, start, usual, rest, first, hidden)
        for i in range(n):
            if narrow:
                multiply_narrow(X[start + i], first, hidden[i])
            logits(hidden[i], bias, lines, shift, probabilities[start + i])
            softmax(probabilities[start + i])


@kernel(VOID(NUMBERS, SCALE, SCALE, SUM, MATRIX, INT, FLOAT, OUT_MATRIX))
def add_answers(
    X: Numbers,
    mean: Numbers,
    deviation: Numbers,
    far: float,
    thetas: Floats,
    n_hidden: int,
    share: float,
    probabilities: Floats,
) -> None:
    """Add what the nets say of rows as they come, to class probabilities (n, C), by their share.

    A row is scaled as it is read: no further than `far` from the mean, missing (NaN) is the mean.
    """
    n_rows, n_features = X.shape
    n_classes = probabilities.shape[1]
    x, hidden = np.empty(n_features, np.float32), np.empty(n_hidden, np.float32)
    z = np.empty(n_classes, np.float32)
    for net in range(len(thetas)):
        first, bias, head, offset = unpack(thetas[net], n_features, n_hidden, n_classes)
        lines, shift = head_lines(head, offset)
        for i in range(n_rows):
            for k in range(n_features):
                scaled = (X[i, k] - mean[k]) / deviation[k]
                x[k] = max(-far, min(far, scaled)) if scaled == scaled else _ZERO  # noqa: PLR0124
            multiply_narrow(x, first, hidden)
            logits(hidden, bias, lines, shift, z)
            softmax(z)
            for c in range(n_classes):
                probabilities[i, c] += share * z[c]


@kernel(VOID(VECTOR, INT, OUT_VECTOR, FLOAT, INT, OUT_VECTOR))
def learn_one(
    x: Floats, y: int, theta: Floats, learning_rate: float, n_hidden: int, probabilities: Floats
) -> None:
    """One plain gradient step on one row; fill in the class probabilities (C,) before it."""
    n_features, n_classes = len(x), len(probabilities)
    first, bias, head, offset = unpack(theta, n_features, n_hidden, n_classes)
    row, z = np.empty(n_hidden, np.float32), np.empty(n_classes, np.float32)
    lines, shift = head_lines(head, offset)
    multiply_narrow(x, first, row)
    logits(row, bias, lines, shift, z)
    softmax(z)
    copy_line(z, probabilities)
    z[y] -= _ONE
    back = np.zeros(n_hidden, np.float32)
    for c in range(1, n_classes):
        for j in range(n_hidden):
            back[j] += z[c] * lines[c - 1, j]
    for c in range(n_classes):
        r = learning_rate * z[c]
        offset[c] -= r
        for j in range(n_hidden):
            head[c, j] -= r * row[j]
    for j in range(n_hidden):
        row[j] = learning_rate * back[j] if row[j] > _ZERO else _ZERO
        bias[j] -= row[j]
    for k in range(n_features):
        for j in range(n_hidden):
            first[k, j] -= x[k] * row[j]
