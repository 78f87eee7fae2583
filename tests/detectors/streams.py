"""Streams with known changes, and what a detector finds in them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftquilt.detectors import Detector, RecordedDetector


def errors(*parts: tuple[int, float], seed: int = 0) -> list[float]:
    """Errors 0.0 and 1.0: so many rows of such a rate, and so on."""
    rng = np.random.default_rng(seed)
    return [float(wrong) for n, rate in parts for wrong in rng.random(n) < rate]


def normal_rows(n_rows: int, n_features: int, seed: int = 0) -> NDArray[np.float64]:
    return np.random.default_rng(seed).normal(size=(n_rows, n_features))


def shifted(n_before: int, n_after: int, n_features: int, by: float, seed: int) -> NDArray[Any]:
    """Rows whose first feature moves."""
    X = normal_rows(n_before + n_after, n_features, seed)
    X[n_before:, 0] += by
    return X


def drifts(detector: Detector, values: Iterable[Any]) -> list[int]:
    """The rows at which it fires, begun afresh after each drift as a stream does."""
    found = []
    for row, value in enumerate(values):
        detector.update(value)
        if detector.drift_detected:
            found.append(row)
            detector = detector.fresh()
    return found


def answers(detector: Detector | RecordedDetector, values: Iterable[Any]) -> list[bool]:
    """What it says after each row, used on after drifts."""
    said = []
    for value in values:
        detector.update(value)
        said.append(detector.drift_detected)
    return said
