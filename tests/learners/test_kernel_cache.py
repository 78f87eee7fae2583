"""Kernels are compiled once per machine, with a log line, and again when any of them changes."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from driftquilt.learners import mlp_kernels

FIRST_USE = """
import numpy as np
from driftquilt.learners.mlp import MLP
X = np.ones((3, 2), np.float32)
assert MLP().start(X, n_classes=2, seed=0).predict_proba(X).shape == (3, 2)
"""
PREDICT = """
import numpy as np, kernels
X, theta = np.ones((1, 1), np.float32), np.zeros(6, np.float32)
hidden, probabilities = np.empty((1, 1), np.float32), np.empty((1, 2), np.float32)
kernels.embed(X, theta, hidden, probabilities, kernels.CROSS_ENTROPY)
print(probabilities[0, 1])
"""
SOURCE = Path(mlp_kernels.__file__).read_text(encoding="utf-8")


def run(code: str, cache: Path, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], cwd=folder,
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip


@pytest.mark.costly
def test_compiling_is_announced_once_and_never_again(tmp_path: Path) -> None:
    first, second = run(FIRST_USE, tmp_path), run(FIRST_USE, tmp_path)
    assert first.stderr.count("\n") == 1
    assert "compiling numeric kernels; this happens once" in first.stderr
    assert (first.stdout, second.stdout, second.stderr) == ("", "", "")


@pytest.mark.costly
def test_a_changed_kernel_is_compiled_again_wherever_it_is_called(tmp_path: Path) -> None:
    # Only `embed` is compiled at import, so that this takes seconds.
    lazy = re.sub(
        r"@kernel\((?!VOID\(MATRIX, OUT_VECTOR)(?:[^()]|\([^()]*\))*\)", "@kernel()", SOURCE
    )
    (tmp_path / "kernels.py").write_text(lazy, encoding="utf-8")
    assert run(PREDICT, tmp_path / "cache", tmp_path).stdout == "0.5\n"
    changed = lazy.replace("total = ONE + small", "total = ONE + small + small")  # in `softmax`
    assert changed != lazy
    (tmp_path / "kernels.py").write_text(changed, encoding="utf-8")
    assert run(PREDICT, tmp_path / "cache", tmp_path).stdout == "0.33333334\n"


def test_every_kernel_is_in_the_one_file_that_the_cache_watches() -> None:
    imported = [node for node in ast.walk(ast.parse(SOURCE)) if isinstance(node, ast.ImportFrom)]
    assert not [node.module for node in imported if str(node.module).startswith("driftquilt")]
    others = [
        path.name
        for path in Path(mlp_kernels.__file__).parent.glob("*.py")
        if "numba" in path.read_text(encoding="utf-8") and path.name != "mlp_kernels.py"
        if re.search(r"^\s*(import|from) numba", path.read_text(encoding="utf-8"), re.M)
    ]
    assert others == []
