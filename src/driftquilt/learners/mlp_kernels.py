"""The compiled kernels of the two-layer net, and numba's only door.

All weights stand in one flat float32 vector `theta`, so that a copy is one copy:

    first    (d, H)  input weights        bias   (H,)
    head     (C, H)  last layer's weights offset (C,)  its bias

Rows go through in blocks that stay in the cache. A block is multiplied with the input weights;
what follows (bias, ReLU, the thin head, softmax, gradients) is one pass over each row while it
is hot, because BLAS is slow on matrices only C wide. Narrow rows need no block: each goes all
the way at once. Sums over a block are float32, sums over blocks float64.

The large products, X·W of a block and Xᵀ·G of a batch, are computed in three ways:

    narrow  few columns: plain loops, because BLAS costs more to set up than it saves
    wide    BLAS
    sparse  wide rows that mostly hold each column's usual value, such as scaled counts of words

For sparse rows X = usual + rest, where `usual` (d,) is the same for all rows and the rest has
few entries. Then X·W = usual·W + rest·W and Xᵀ·G = usual ⊗ sum(G) + restᵀ·G. Some rows of each
call show what a column's usual value is; a wrong guess costs time and changes no result.

Softmax does not see what all logits have in common. So the head counts from class 0: it is kept
as the other classes' differences to class 0, `lines` (C-1, H) and `shift` (C-1,). Class 0 itself
always has the logit 0, and its gradient is minus the sum of the others'. Two classes take half
the work that way.

A net for numbers has a linear head of Q outputs and a loss of `core.loss`. Its outputs stand in
the places of the classes 1 to Q, with `lines` and `shift` as they are in the head; place 0 stays
empty. So it passes the same loops: only `residuals`, which turns a row's answers into its gradient,
knows which loss it is.

    y       (n,)  class codes or numbers, float64
    loss    CROSS_ENTROPY, SQUARED, HUBER or QUANTILE
    levels  (Q,)  of the quantiles; of HUBER the width; else of no meaning, and empty of classes

Entry points (`head_gradient`, `train_epoch`, `embed`, `add_answers`, `learn_one`) are compiled for
fixed types when this module is first imported on a machine, and then read from numba's cache;
one log line says so. The functions they call become part of them. The cache is valid for this
file as it is: all kernels have to be in it, so that a change of any of them compiles all again.
All release the GIL.
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

__all__ = [
    "BLOCK",
    "CROSS_ENTROPY",
    "HUBER",
    "QUANTILE",
    "SQUARED",
    "add_answers",
    "embed",
    "head_gradient",
    "learn_one",
    "train_epoch",
]

BLOCK = 128  # rows
ZERO, ONE = np.float32(0.0), np.float32(1.0)

CROSS_ENTROPY, SQUARED, HUBER, QUANTILE = range(4)

# Columns up to which plain loops beat BLAS, measured at 128 rows and 256 units.
NARROW_FORWARD, NARROW_BACK = 8, 24

# Sparse rows: at least so many columns and rows, at most this share of unusual values.
# BLAS draws level between 0.25 and 0.3 with 499 columns, between 0.3 and 0.4 with 99.
SPARSE_COLUMNS, SPARSE_ROWS, SPARSE_SHARE = 48, 32, 0.25
N_PROBES = 15
# A usual value far from zero would drown the unusual ones in its rounding.
USUAL_MAX = np.float32(8.0)

BETA1, BETA2, EPSILON = np.float32(0.9), np.float32(0.999), np.float32(1e-8)
# A first moment whose gradient stays zero decays into denormal numbers, which are slow.
TINY = np.float32(1e-30)

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]
Codes = NDArray[np.int64]
Targets = NDArray[np.float64]

MATRIX = types.Array(types.float32, 2, "C", readonly=True)
VECTOR = types.Array(types.float32, 1, "C", readonly=True)
TARGETS = types.Array(types.float64, 1, "C", readonly=True)
CODES = types.Array(types.int64, 1, "C", readonly=True)
OUT_MATRIX, OUT_VECTOR = types.float32[:, ::1], types.float32[::1]
OUT_SUMS = types.float64[:, ::1]
INT, FLOAT, SUM, VOID = types.int64, types.float32, types.float64, types.void

# Reordering sums and fused multiply-add, but never the promise that NaN cannot happen.
_FASTMATH = {"contract", "reassoc", "nsz", "arcp", "afn"}


class _Announcement(event.Listener):
    """One line before the first kernel is compiled; nothing when all come from the cache."""

    logged = False

    def on_start(self, event: Any) -> None:
        ours = event.data["dispatcher"].py_func.__module__ == __name__
        if ours and not self.logged:
            type(self).logged = True
            logging.getLogger("driftquilt").warning(
                "driftquilt: compiling numeric kernels; this happens once and takes some seconds"
            )

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compile", _Announcement())  # type: ignore[no-untyped-call]


F = TypeVar("F", bound=Callable[..., Any])


def kernel(signature: Any = None) -> Callable[[F], F]:
    """Compile a function: at once for an entry point's signature, else when it is called."""
    compiled: Callable[[F], F] = njit(
        signature, cache=True, nogil=True, fastmath=_FASTMATH, error_model="numpy"
    )
    return compiled


@kernel()
def unpack(
    theta: Floats, n_features: int, n_hidden: int, n_classes: int
) -> tuple[Floats, Floats, Floats, Floats]:
    """Return views of theta: first (d, H), bias (H,), head (C, H), offset (C,)."""
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
def head_lines(head: Floats, offset: Floats, loss: int) -> tuple[Floats, Floats]:
    """`lines` and `shift` of a head; a single class has one line of zeros."""
    n_lines = len(offset) if loss else max(len(offset) - 1, 1)
    lines = np.zeros((n_lines, head.shape[1]), np.float32)
    shift = np.zeros(n_lines, np.float32)
    set_lines(head, offset, loss, lines, shift)
    return lines, shift


@kernel()
def set_lines(head: Floats, offset: Floats, loss: int, lines: Floats, shift: Floats) -> None:
    """Fill in `lines` and `shift`."""
    if loss == CROSS_ENTROPY:
        from_class_0(head, offset, lines, shift)
        return
    copy_line(offset, shift)
    for q in range(len(offset)):
        copy_line(head[q], lines[q])


@kernel()
def from_class_0(head: Floats, offset: Floats, lines: Floats, shift: Floats) -> None:
    """Fill in `lines` and `shift` of classes."""
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
def residuals(z: Floats, y: float, loss: int, levels: Floats) -> float:
    """Turn a row's logits or outputs into the gradient of its loss by them; return the loss."""
    if loss == CROSS_ENTROPY:
        label = int(y)
        logit = z[label]
        of_row = float(softmax(z) - logit)
        z[label] -= ONE
        return of_row
    of_row = 0.0
    for q in range(1, len(z)):
        off, level = z[q] - np.float32(y), levels[q - 1]
        if loss == QUANTILE:
            slope = (ONE - level if off > ZERO else -level) / np.float32(len(levels))
            of_row += off * slope
        elif loss == HUBER:
            slope = min(max(off, -level), level)
            of_row += slope * (off - np.float32(0.5) * slope)
        else:
            slope = off
            of_row += np.float32(0.5) * off * off
        z[q] = slope
    return float(of_row)


@kernel()
def backward(
    row: Floats,
    residual: Floats,
    lines: Floats,
    slope_bias: Floats,
    slope_lines: Floats,
    slope_shift: Floats,
    back: Floats,
) -> None:
    """Add one row's gradients but class 0's; `row` turns from embedding into its own gradient.

    `back` (H,) is zero before and after.
    """
    for c in range(2, len(residual)):
        r, line, slope = residual[c], lines[c - 1], slope_lines[c - 1]
        slope_shift[c - 1] += r
        for j in range(len(row)):
            slope[j] += r * row[j]
            back[j] += r * line[j]
    last = min(1, len(residual) - 1)
    r, line, slope = residual[last], lines[0], slope_lines[0]
    slope_shift[0] += r
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
def adam_rates(step: int, learning_rate: float) -> tuple[np.float32, np.float32]:
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


@kernel()
def multiply_narrow(x: Floats, first: Floats, row: Floats) -> None:
    """One row's product with the input weights, four columns at a time."""
    last = len(x) - 1
    for k in range(0, len(x), 4):
        k1, k2, k3 = min(k + 1, last), min(k + 2, last), min(k + 3, last)
        a = x[k]
        b = x[k1] if k + 1 <= last else ZERO
        c = x[k2] if k + 2 <= last else ZERO
        d = x[k3] if k + 3 <= last else ZERO
        f, f1, f2, f3 = first[k], first[k1], first[k2], first[k3]
        if k == 0:
            for j in range(len(row)):
                row[j] = a * f[j] + b * f1[j] + c * f2[j] + d * f3[j]
        else:
            for j in range(len(row)):
                row[j] += a * f[j] + b * f1[j] + c * f2[j] + d * f3[j]


@kernel()
def add_rows(x: Floats, g: Floats, slope: Floats) -> None:
    """Add xᵀ·g of four rows, x (4, d) and g (4, H), to slope (d, H)."""
    g0, g1, g2, g3 = g[0], g[1], g[2], g[3]
    for k in range(x.shape[1]):
        line = slope[k]
        a, b, c, d = x[0, k], x[1, k], x[2, k], x[3, k]
        for j in range(len(line)):
            line[j] += a * g0[j] + b * g1[j] + c * g2[j] + d * g3[j]


@kernel()
def find_usual(X: Floats) -> Floats:
    """Each column's most frequent value (d,) among some rows; empty when rows are not sparse."""
    n_rows, n_features = X.shape
    none = np.empty(0, np.float32)
    if n_features < SPARSE_COLUMNS or n_rows < SPARSE_ROWS:
        return none
    usual, lead = X[0].copy(), np.zeros(n_features, np.int32)
    for p in range(N_PROBES):
        x = X[p * (n_rows - 1) // (N_PROBES - 1)]
        for k in range(n_features):  # a majority's vote: agreement adds to the lead
            usual[k] = x[k] if lead[k] == 0 else usual[k]
            lead[k] += 1 if x[k] == usual[k] else -1
    n_unusual = 0
    for k in range(n_features):
        if not abs(usual[k]) <= USUAL_MAX:
            usual[k] = ZERO
    for p in range(N_PROBES):
        x = X[p * (n_rows - 1) // (N_PROBES - 1)]
        for k in range(n_features):
            n_unusual += 1 if x[k] != usual[k] else 0
    return usual if n_unusual <= SPARSE_SHARE * N_PROBES * n_features else none


@kernel()
def room(n_rows: int, n_features: int) -> int:
    """Entries that the rest of sparse rows may have."""
    return int(SPARSE_SHARE * n_rows * n_features)


@kernel()
def rest_lists(n_rows: int, usual: Floats) -> tuple[Ints, Floats, Codes]:
    """Columns, values and ends for `fill_rest`: beyond what may stay, one row and its padding."""
    size = room(n_rows, len(usual)) + len(usual) + 8
    return np.empty(size, np.int32), np.empty(size, np.float32), np.empty(n_rows + 1, np.int64)


@kernel()
def fill_rest(
    X: Floats, order: Codes, usual: Floats, columns: Ints, values: Floats, ends: Codes
) -> bool:
    """List the entries of the given rows that are not usual; False when there are too many.

    Row i's stand from `ends[i]` to before `ends[i + 1]`. Indices are unsigned, which spares
    numba's look for negative ones.
    """
    at, limit = np.uint64(0), np.uint64(room(len(order), len(usual)))
    flags = np.zeros(len(usual) + -len(usual) % 8, np.uint8)
    eights = flags.view(np.uint64)
    ends[0] = 0
    for i in range(len(order)):
        x = X[order[i]]
        for k in range(len(usual)):
            flags[k] = x[k] != usual[k]
        for e in range(len(eights)):
            if eights[e]:
                for k in range(8 * e, 8 * e + 8):  # written each time, kept if it counts
                    columns[at] = k
                    at += np.uint64(flags[k])
        if at > limit:
            return False
        for e in range(ends[i], at):
            column = np.uint64(columns[e])
            values[e] = x[column] - usual[column]
        ends[i + 1] = at
    return True


@kernel()
def by_column(
    columns: Ints, values: Floats, ends: Codes, n_rows: int, stops: Codes, at: Ints, what: Floats
) -> None:
    """Order the same list by column: that of column k is in `at` and `what`, k·n to `stops[k]`."""
    for k in range(len(stops)):
        stops[k] = k * n_rows
    for i in range(n_rows):
        for e in range(ends[i], ends[i + 1]):
            column = np.uint64(columns[e])
            here = np.uint64(stops[column])
            at[here] = i
            what[here] = values[e]
            stops[column] += 1


@kernel()
def add_lines(
    weights: Floats, which: Ints, begin: int, end: int, lines: Floats, total: Floats
) -> None:
    """Add those lines of a matrix that stand in a part of a list, with their weights."""
    for e in range(begin, end - 3, 4):
        a, b, c, d = weights[e], weights[e + 1], weights[e + 2], weights[e + 3]
        f, f1 = lines[np.uint64(which[e])], lines[np.uint64(which[e + 1])]
        f2, f3 = lines[np.uint64(which[e + 2])], lines[np.uint64(which[e + 3])]
        for j in range(len(total)):
            total[j] += a * f[j] + b * f1[j] + c * f2[j] + d * f3[j]
    for e in range(end - (end - begin) % 4, end):
        a, f = weights[e], lines[np.uint64(which[e])]
        for j in range(len(total)):
            total[j] += a * f[j]


@kernel()
def multiply_sparse(
    usual: Floats, columns: Ints, values: Floats, ends: Codes, first: Floats, hidden: Floats
) -> None:
    """Products of rows, whose rest is listed, with the input weights."""
    shared = np.dot(usual, first)
    for i in range(len(hidden)):
        row = hidden[i]
        for j in range(len(row)):
            row[j] = shared[j]
        add_lines(values, columns, ends[i], ends[i + 1], first, row)


@kernel()
def multiply_block(
    X: Floats, start: int, usual: Floats, rest: tuple[Ints, Floats, Codes], first: Floats,
    hidden: Floats,
) -> None:  # fmt: skip
    """Products (n, H) of rows that stand together and are not narrow."""
    columns, values, ends = rest
    stop = start + len(hidden)
    if len(usual) and fill_rest(X, np.arange(start, stop), usual, columns, values, ends):
        multiply_sparse(usual, columns, values, ends, first, hidden)
    else:
        np.dot(X[start:stop], first, hidden)


@kernel(SUM(MATRIX, TARGETS, VECTOR, OUT_VECTOR, INT, OUT_SUMS, INT, VECTOR))
def head_gradient(
    X: Floats,
    y: Targets,
    weight: Floats,
    theta: Floats,
    n_hidden: int,
    gradient: NDArray[np.float64],
    loss: int,
    levels: Floats,
) -> float:
    """Add each row's weighted head gradient to `gradient` (C, 1+H); return the summed loss."""
    n_rows, n_features = X.shape
    n_classes, size = len(gradient), min(BLOCK, n_rows)
    narrow = n_features <= NARROW_FORWARD
    first, bias, head, offset = unpack(theta, n_features, n_hidden, n_classes)
    lines, shift = head_lines(head, offset, loss)
    empty = 1 if loss else 0  # places before the first output's
    usual = find_usual(X)
    rest = rest_lists(size, usual)
    hidden = np.empty((size, n_hidden), np.float32)
    z = np.empty(n_classes + empty, np.float32)
    partial = np.zeros((len(z), n_hidden), np.float32)
    total = 0.0
    for start in range(0, n_rows, BLOCK):
        n = min(BLOCK, n_rows - start)
        if not narrow:
            multiply_block(X, start, usual, rest, first, hidden[:n])
        for i in range(n):
            row, w = hidden[0 if narrow else i], weight[start + i]
            if narrow:
                multiply_narrow(X[start + i], first, row)
            logits(row, bias, lines, shift, z)
            total += w * residuals(z, y[start + i], loss, levels)
            for c in range(empty, len(z)):
                gradient[c - empty, 0] += z[c] * w
            for c in range(1, len(z)):
                r, line = z[c] * w, partial[c]
                for j in range(n_hidden):
                    line[j] += r * row[j]
        for c in range(1, len(z)):
            for j in range(n_hidden):
                gradient[c - empty, j + 1] += partial[c, j]
                if not empty:
                    gradient[0, j + 1] -= partial[c, j]
                partial[c, j] = ZERO
    return total


@kernel()
def _batch_slopes(
    X: Floats, y: Targets, weight: Floats, rows: Codes, batch: Floats, hidden: Floats,
    weights: tuple[Floats, Floats, Floats, Floats], slopes: tuple[Floats, Floats, Floats, Floats],
    lines: Floats, shift: Floats, z: Floats, back: Floats, loss: int, levels: Floats,
) -> None:  # fmt: skip
    """Gradients of a batch; `hidden` turns from products into the rows' own gradients.

    Narrow rows multiply here, into the four rows of `batch` and `hidden` there are. Those of
    wider ones are there; theirs to the input weights is left to the caller.
    """
    first, bias, head, offset = weights
    slope_first, slope_bias, slope_head, slope_offset = slopes
    n, n_features = len(rows), X.shape[1]
    above = len(slope_offset) - len(shift)  # class 0 has no line
    set_lines(head, offset, loss, lines, shift)
    for i in range(n):
        at, here = rows[i], i % len(hidden)
        row = hidden[here]
        if n_features <= NARROW_FORWARD:
            multiply_narrow(X[at], first, row)
        logits(row, bias, lines, shift, z)
        residuals(z, y[at], loss, levels)
        w = weight[at] / np.float32(n)
        for c in range(len(z)):
            z[c] *= w
        backward(row, z, lines, slope_bias, slope_head[above:], slope_offset[above:], back)
        if n_features <= NARROW_BACK:
            four = here - here % 4
            if n_features <= NARROW_FORWARD:
                copy_line(X[at], batch[here])
            if i == n - 1:
                for other in range(here + 1, four + 4):
                    clear(hidden[other])
            if (here + 1) % 4 == 0 or i == n - 1:
                add_rows(batch[four : four + 4], hidden[four : four + 4], slope_first)
    if loss == CROSS_ENTROPY:
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
        MATRIX, TARGETS, VECTOR, CODES, OUT_VECTOR, OUT_VECTOR, OUT_VECTOR,
        INT, FLOAT, INT, INT, INT, INT, VECTOR,
    )
)  # fmt: skip
def train_epoch(
    X: Floats, y: Targets, weight: Floats, order: Codes, theta: Floats, moment: Floats,
    square: Floats, step: int, learning_rate: float, n_hidden: int, n_classes: int,
    batch_size: int, loss: int, levels: Floats,
) -> int:  # fmt: skip
    """One pass of Adam over the rows in the given order; return the number of steps so far."""
    n_rows, n_features = X.shape
    n_most, n_first = min(batch_size, n_rows), n_features * n_hidden
    n_kept = 4 if n_features <= NARROW_FORWARD else n_most + -n_most % 4
    weights = unpack(theta, n_features, n_hidden, n_classes)
    slope = np.zeros_like(theta)
    slopes = unpack(slope, n_features, n_hidden, n_classes)
    lines, shift = head_lines(weights[2], weights[3], loss)
    usual = find_usual(X)
    columns, values, ends = rest_lists(n_most, usual)
    n_turned = len(usual) * n_most
    turned = (
        np.empty(len(usual), np.int64), np.empty(n_turned, np.int32), np.empty(n_turned, np.float32)
    )  # fmt: skip
    batch = np.zeros((n_kept, n_features), np.float32)
    hidden = np.zeros((n_kept, n_hidden), np.float32)
    z = np.empty(n_classes + (1 if loss else 0), np.float32)
    back = np.zeros(n_hidden, np.float32)
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
        _batch_slopes(
            X, y, weight, rows, batch, hidden, weights, slopes, lines, shift, z, back, loss, levels
        )
        step += 1
        size, root = adam_rates(step, learning_rate)
        done = n_first if sparse else 0
        if sparse:
            _step_sparse(theta, moment, square, slopes[1], size, root, usual, turned, hidden[:n])
        elif n_features > NARROW_BACK:
            np.dot(batch[:n].T, hidden[:n], slopes[0])
        adam(theta[done:], slope[done:], moment[done:], square[done:], size, root)
    return step


@kernel(VOID(MATRIX, OUT_VECTOR, OUT_MATRIX, OUT_MATRIX, INT))
def embed(X: Floats, theta: Floats, embedding: Floats, answers: Floats, loss: int) -> None:
    """Fill in the embedding (n, H) and the class probabilities (n, C) of each row.

    Of a net for numbers, answers are (n, 1+Q): zeros and the outputs. Who wants no embedding gives
    one of min(BLOCK, n) rows, which blocks then share.
    """
    n_rows, n_features = X.shape
    narrow = n_features <= NARROW_FORWARD
    n_outputs = answers.shape[1] - (1 if loss else 0)
    first, bias, head, offset = unpack(theta, n_features, embedding.shape[1], n_outputs)
    lines, shift = head_lines(head, offset, loss)
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
            logits(hidden[i], bias, lines, shift, answers[start + i])
            if loss == CROSS_ENTROPY:
                softmax(answers[start + i])


@kernel(VOID(MATRIX, MATRIX, INT, VECTOR, CODES, OUT_MATRIX, INT))
def add_answers(
    X: Floats, thetas: Floats, n_hidden: int, shares: Floats, codes: Codes, answers: Floats,
    loss: int,
) -> None:  # fmt: skip
    """Add the answers of some nets, each by its share, to class probabilities or outputs (n, C).

    Class c of the nets is `codes[c]`. Each row goes by itself, so that its answer is the same
    whatever rows come with it.
    """
    n_rows, n_features = X.shape
    n_classes, empty = len(codes), 1 if loss else 0
    hidden, z = np.empty(n_hidden, np.float32), np.empty(n_classes + empty, np.float32)
    for net in range(len(thetas)):
        first, bias, head, offset = unpack(thetas[net], n_features, n_hidden, n_classes)
        lines, shift = head_lines(head, offset, loss)
        for i in range(n_rows):
            multiply_narrow(X[i], first, hidden)
            logits(hidden, bias, lines, shift, z)
            if loss == CROSS_ENTROPY:
                softmax(z)
            for c in range(n_classes):
                answers[i, codes[c]] += shares[net] * z[c + empty]


@kernel(VOID(VECTOR, SUM, OUT_VECTOR, FLOAT, INT, OUT_VECTOR, INT, VECTOR))
def learn_one(
    x: Floats, y: float, theta: Floats, learning_rate: float, n_hidden: int, answers: Floats,
    loss: int, levels: Floats,
) -> None:  # fmt: skip
    """One plain gradient step on one row; fill in the probabilities or outputs (C,) before it."""
    n_features, n_classes, empty = len(x), len(answers), 1 if loss else 0
    first, bias, head, offset = unpack(theta, n_features, n_hidden, n_classes)
    row, z = np.empty(n_hidden, np.float32), np.empty(n_classes + empty, np.float32)
    lines, shift = head_lines(head, offset, loss)
    multiply_narrow(x, first, row)
    logits(row, bias, lines, shift, z)
    if loss == CROSS_ENTROPY:
        softmax(z)
        copy_line(z, answers)
        z[int(y)] -= ONE
    else:
        copy_line(z[1:], answers)
        residuals(z, y, loss, levels)
    back = np.zeros(n_hidden, np.float32)
    for c in range(1, len(z)):
        for j in range(n_hidden):
            back[j] += z[c] * lines[c - 1, j]
    for c in range(n_classes):
        r = learning_rate * z[c + empty]
        offset[c] -= r
        for j in range(n_hidden):
            head[c, j] -= r * row[j]
    for j in range(n_hidden):
        row[j] = learning_rate * back[j] if row[j] > ZERO else ZERO
        bias[j] -= row[j]
    for k in range(n_features):
        for j in range(n_hidden):
            first[k, j] -= x[k] * row[j]
