"""Four streams of other kinds than the paper's nine, to tune on. Each is made from its seed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

__all__ = ["write_streams"]

_N_SEGMENTS, _N_ROWS = 8, 1500

Rows: TypeAlias = tuple[NDArray[np.float64], NDArray[np.int64]]
#: Makes the rows of a segment, by its number.
Maker: TypeAlias = Callable[[int], Rows]


def write_streams(folder: Path) -> list[str]:
    """One Parquet file per stream; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for seed, (name, kind) in enumerate(_KINDS.items()):
        make = kind(np.random.default_rng(seed))
        parts = [make(segment) for segment in range(_N_SEGMENTS)]
        X = np.concatenate([rows for rows, _ in parts])
        columns = {f"x{j}": X[:, j] for j in range(X.shape[1])}
        columns["label"] = np.concatenate([labels for _, labels in parts])
        columns["segment"] = np.repeat(np.arange(_N_SEGMENTS), _N_ROWS)
        pq.write_table(pa.table(columns), folder / f"{name}.parquet")
        paths.append(str(folder / f"{name}.parquet"))
    return paths


def _blobs(rng: np.random.Generator) -> Maker:
    """Four classes in twelve clusters, three concepts that come back."""
    concepts = [(2 * rng.normal(size=(12, 6)), rng.integers(0, 4, 12)) for _ in range(3)]

    def make(segment: int) -> Rows:
        centers, labels = concepts[(0, 1, 0, 2, 1, 0, 2, 1)[segment]]
        cluster = rng.integers(0, 12, _N_ROWS)
        X = centers[cluster] + rng.normal(size=(_N_ROWS, 6))
        return X, np.where(_some(rng, 0.05), rng.integers(0, 4, _N_ROWS), labels[cluster])

    return make


def _words(rng: np.random.Generator) -> Maker:
    """60 sparse 0/1 columns and a reader whose interests change."""
    topics = rng.dirichlet(np.full(60, 0.1), 5)
    likes = [(0, 1), (2, 3), (0, 1), (3, 4), (2, 3), (0, 1), (2, 3), (0, 4)]

    def make(segment: int) -> Rows:
        topic = rng.integers(0, 5, _N_ROWS)
        X = rng.random((_N_ROWS, 60)) < 1 - np.exp(-8 * topics[topic])
        wanted = np.isin(topic, likes[segment]) ^ _some(rng, 0.05)
        return X.astype(np.float64), wanted.astype(np.int64)

    return make


def _rare(rng: np.random.Generator) -> Maker:
    """Few positives, all inside a disc that moves."""

    def make(segment: int) -> Rows:
        X = rng.uniform(-1, 1, (_N_ROWS, 5))
        angle = (0, 0.9, 1.8, 2.7, 1.8, 0.9, 0, 0.9)[segment]
        center = 0.5 * np.array([np.cos(angle), np.sin(angle)])
        inside = np.linalg.norm(X[:, :2] - center, axis=1) < 0.4 + 0.2 * (X[:, 2] > 0)
        return X, (inside ^ _some(rng, 0.02)).astype(np.int64)

    return make


def _slope(rng: np.random.Generator) -> Maker:
    """Return a noisy half-space of 20 columns, of which 6 matter, that turns with every segment."""
    start, end = (np.r_[rng.normal(size=6), np.zeros(14)] for _ in range(2))

    def make(segment: int) -> Rows:
        X = rng.normal(size=(_N_ROWS, 20))
        z = X @ (np.cos(0.25 * segment) * start + np.sin(0.25 * segment) * end)
        return X, (rng.random(_N_ROWS) < 1 / (1 + np.exp(-1.5 * z))).astype(np.int64)

    return make


def _some(rng: np.random.Generator, share: float) -> NDArray[np.bool_]:
    """Rows to be labelled wrongly."""
    wrong: NDArray[np.bool_] = rng.random(_N_ROWS) < share
    return wrong


_KINDS = {"blobs": _blobs, "words": _words, "rare": _rare, "slope": _slope}
