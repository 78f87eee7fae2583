"""Kernels are compiled once per machine, and the user who waits for it is told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

FIRST_USE = """
import numpy as np
from driftquilt.learners.mlp import MLP
X = np.ones((3, 2), np.float32)
assert MLP().start(X, n_classes=2, seed=0).predict_proba(X).shape == (3, 2)
"""


def words_of_a_new_process(cache: Path) -> list[str]:
    """What a process that uses the net says on stderr, line by line."""
    done = subprocess.run(
        [sys.executable, "-c", FIRST_USE],
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == ""
    return done.stderr.splitlines()


def test_compiling_is_announced_once_and_never_again(tmp_path: Path) -> None:
    first, second = words_of_a_new_process(tmp_path), words_of_a_new_process(tmp_path)
    assert len(first) == 1
    assert "compiling numeric kernels; this happens once" in first[0]
    assert second == []
