"""Four streams of other kinds than the paper's nine, to tune on. Each is made from its seed.

blobs   four classes in twelve clusters, three concepts that come back, 5 % wrong labels
words   60 sparse 0/1 columns, a reader whose interests change, 5 % wrong labels
rare    about 15 % positives inside a disc that moves, 2 % wrong labels
slope   a noisy half-space of 20 columns that turns a little with every segment
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

N_SEGMENTS, N_ROWS = 8, 1500

Rows: TypeAlias = tuple[NDArray[np.float64], NDArray[np.int64]]
Maker: TypeAlias = Callable[[int], Rows]


def blobs(rng: np.random.Generator) -> Maker:
    concepts = [(2 * rng.normal(size=(12, 6)), rng.integers(0, 4, 12)) for _ in range(3)]

    def make(segment: int) -> Rows:
        centers, labels = concepts[(0, 1, 0, 2, 1, 0, 2, 1)[segment]]
        cluster = rng.integers(0, 12, N_ROWS)
        X = centers[cluster] + rng.normal(size=(N_ROWS, 6))
        return X, np.where(rng.random(N_ROWS) < 0.05, rng.integers(0, 4, N_ROWS), labels[cluster])

    return make


def words(rng: np.random.Generator) -> Maker:
    topics = rng.dirichlet(np.full(60, 0.1), 5)
    likes = [(0, 1), (2, 3), (0, 1), (3, 4), (2, 3), (0, 1), (2, 3), (0, 4)]

    def make(segment: int) -> Rows:
        topic = rng.integers(0, 5, N_ROWS)
        X = rng.random((N_ROWS, 60)) < 1 - np.exp(-8 * topics[topic])
        wrong = rng.random(N_ROWS) < 0.05
        return X.astype(np.float64), (np.isin(topic, likes[segment]) ^ wrong).astype(np.int64)

    return make


def rare(rng: np.random.Generator) -> Maker:
    def make(segment: int) -> Rows:
        X = rng.uniform(-1, 1, (N_ROWS, 5))
        angle = (0, 0.9, 1.8, 2.7, 1.8, 0.9, 0, 0.9)[segment]
        center = 0.5 * np.array([np.cos(angle), np.sin(angle)])
        inside = np.linalg.norm(X[:, :2] - center, axis=1) < 0.4 + 0.2 * (X[:, 2] > 0)
        return X, (inside ^ (rng.random(N_ROWS) < 0.02)).astype(np.int64)

    return make


def slope(rng: np.random.Generator) -> Maker:
    start, end = (rng.normal(size=20) * (np.arange(20) < 6) for _ in range(2))

    def make(segment: int) -> Rows:
        X = rng.normal(size=(N_ROWS, 20))
        z = X @ (np.cos(0.25 * segment) * start + np.sin(0.25 * segment) * end)
        return X, (rng.random(N_ROWS) < 1 / (1 + np.exp(-1.5 * z))).astype(np.int64)

    return make


def write_streams(folder: Path) -> list[str]:
    """One Parquet file per stream; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for seed, kind in enumerate((blobs, words, rare, slope)):
        make = kind(np.random.default_rng(seed))
        parts = [make(segment) for segment in range(N_SEGMENTS)]
        X = np.concatenate([rows for rows, _ in parts])
        columns = {f"x{j}": X[:, j] for j in range(X.shape[1])}
        columns["label"] = np.concatenate([labels for _, labels in parts])
        columns["segment"] = np.repeat(np.arange(N_SEGMENTS), N_ROWS)
        path = folder / f"{kind.__name__}.parquet"
        pq.write_table(pa.table(columns), path)
        paths.append(str(path))
    return paths
