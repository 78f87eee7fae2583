"""Tables whose rows are like those before them, so that the first ones stand for few of the rest.

Ten segments of 1,600 rows and eight columns, of three kinds:

    slow      half of the columns wander slowly
    offset    a level that no column shows wanders, and the label follows it, as prices do
    regimes   rows come in runs of six kinds, each with a place and a rule of its own

With drift three concepts come back in turn; without, it is the first one all along.

>>> table, labels, segment = clustered_table(0, "regimes", drift=True)
>>> table.shape, round(float(labels.mean()), 1), int(segment[-1])
((16000, 8), 0.4, 9)
"""

from __future__ import annotations

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from numpy.typing import NDArray

__all__ = ["CLUSTERED", "clustered_table"]

CLUSTERED = ("slow", "offset", "regimes")
_N_SEGMENTS, _N_ROWS, _WIDTH, _KINDS = 10, 1600, 8, 6
_CONCEPTS = (0, 1, 0, 2, 1, 0, 2, 1, 0, 1)
_POSITIVES = 0.4


def clustered_table(
    seed: int, kind: str, *, drift: bool
) -> tuple[pd.DataFrame, NDArray[np.int64], NDArray[np.int64]]:
    """Make a table, the label (0 or 1) and the segment of each row, in order of time."""
    rng = np.random.default_rng((seed, 11, len(kind)))
    segment = np.repeat(np.arange(_N_SEGMENTS), _N_ROWS)
    concept = np.array(_CONCEPTS if drift else [0] * _N_SEGMENTS)[segment]
    weights = rng.normal(size=(3, 2 * _WIDTH))
    n = len(segment)
    if kind == "slow":
        inertia = rng.choice([0.99, 0.997, 0.999])
        X = np.hstack([_wander(rng, n, _WIDTH // 2, inertia), rng.normal(size=(n, _WIDTH // 2))])
        score = (np.hstack([X, np.sin(2 * X)]) * weights[concept]).sum(axis=1)
    elif kind == "offset":
        X = np.hstack([_wander(rng, n, 3, 0.995), rng.normal(size=(n, _WIDTH - 3))])
        level = _wander(rng, n, 1, rng.choice([0.98, 0.995, 0.998]))[:, 0]
        score = (np.hstack([X, np.abs(X)]) * weights[concept]).sum(axis=1) + 2.5 * level
    else:
        centre = 2 * rng.normal(size=(_KINDS, _WIDTH))
        rule, base = rng.normal(size=(3, _KINDS, _WIDTH)), rng.normal(size=(3, _KINDS))
        number = _runs(rng)
        noise = rng.normal(size=(n, _WIDTH))
        X = centre[number] + noise
        score = (noise * rule[concept, number]).sum(axis=1) + base[concept, number]
    score = 3 * (score - np.quantile(score, 1 - _POSITIVES)) / score.std()
    y = (rng.random(n) < 1 / (1 + np.exp(-score))).astype(np.int64)
    return pd.DataFrame(X, columns=[f"x{j}" for j in range(_WIDTH)]), y, segment


def _wander(rng: np.random.Generator, n: int, width: int, inertia: float) -> NDArray[np.float64]:
    """Draw columns that keep so much of their last value in each row."""
    steps = rng.normal(size=(n, width)) * np.sqrt(1 - inertia**2)
    columns = np.empty((n, width))
    columns[0] = rng.normal(size=width)
    for row in range(1, n):
        columns[row] = inertia * columns[row - 1] + steps[row]
    return columns


def _runs(rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw the kind of each row: all kinds in every segment, in runs of one length."""
    length = _N_ROWS // rng.choice([6, 12, 24])
    n_each = -(-_N_ROWS // (_KINDS * length))
    order = [rng.permutation(np.tile(np.arange(_KINDS), n_each)) for _ in range(_N_SEGMENTS)]
    return np.concatenate([np.repeat(kinds, length)[:_N_ROWS] for kinds in order])
