"""Rows like those of sine, made in code at any length, and a rehearsal on a few of them.

>>> sine_segment(5, 100).X.shape
(100, 4)
"""

from __future__ import annotations

import numpy as np

from driftquilt.core.segment import Segment
from driftquilt.quilt.method import Method

__all__ = ["rehearse", "sine_segment"]

_FEW = 40


def sine_segment(number: int, n_rows: int) -> Segment:
    """Scaled rows of the concept whose turn it is: one of two curves, or one with labels flipped.

    The last two features mean nothing.
    """
    unit = np.random.default_rng(number).random((n_rows, 4), dtype=np.float32)
    a, b, concept = unit[:, 0], unit[:, 1], number % 4
    curve = np.sin(b) if concept < 2 else 0.5 + 0.3 * np.sin(3 * np.pi * b)  # noqa: PLR2004
    y = (a < curve) ^ (concept % 2 == 1)
    X = (unit - np.float32(0.5)) * np.float32(np.sqrt(12))
    return Segment(number, X, y.astype(np.int64), np.ones(n_rows, np.float32))


def rehearse(method: Method) -> None:
    """Let a method load and compile what it needs when first used."""
    method.adapt([sine_segment(0, _FEW)], sine_segment(1, _FEW))
