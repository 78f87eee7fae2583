"""The two-layer net's large products, X·W of a block and Xᵀ·G of a batch, in three ways.

    narrow  few columns: plain loops, because BLAS costs more to set up than it saves
    wide    BLAS
    sparse  wide rows that mostly hold each column's usual value, such as scaled counts of words

For sparse rows X = usual + rest, where `usual` (d,) is the same for all rows and the rest has
few entries. Then X·W = usual·W + rest·W and Xᵀ·G = usual ⊗ sum(G) + restᵀ·G. What a column's
usual value is, some rows of each call tell; a wrong guess costs time and changes no result.
"""

from __future__ import annotations

import numpy as np

from driftquilt.learners.mlp_compile import Codes, Floats, Ints, kernel

__all__ = [
    "NARROW_BACK", "NARROW_FORWARD", "add_lines", "add_rows", "by_column", "fill_rest",
    "find_usual", "multiply_block", "multiply_narrow", "multiply_sparse", "rest_lists",
]  # fmt: skip

# Columns up to which plain loops beat BLAS, measured at 128 rows and 256 units.
NARROW_FORWARD, NARROW_BACK = 8, 24

# Sparse rows: at least so many columns and rows, at most this share of unusual values.
# BLAS draws level between 0.25 and 0.3 with 499 columns, between 0.3 and 0.4 with 99.
SPARSE_COLUMNS, SPARSE_ROWS, SPARSE_SHARE = 48, 32, 0.25
N_PROBES = 15
# A usual value far from zero would drown the unusual ones in its rounding.
USUAL_MAX = np.float32(8.0)
ZERO = np.float32(0.0)


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
    at, most = np.uint64(0), np.uint64(room(len(order), len(usual)))
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
        if at > most:
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
    """The same list by column: of column k, rows `at` and values `what` from k·n to `stops[k]`."""
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
