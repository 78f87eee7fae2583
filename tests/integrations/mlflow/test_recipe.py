"""The recipe for MLflow runs as it stands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mlflow", reason="needs MLflow: make test-mlflow")
RECIPE = Path(__file__).parents[3] / "docs" / "recipes" / "drifts_in_mlflow.py"


def run_recipe(folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, str(RECIPE)],
        cwd=folder,
        env={**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_recipe_catches_up_and_loads_the_last_model_and_runs_twice(tmp_path: Path) -> None:
    first, again = run_recipe(tmp_path), run_recipe(tmp_path)
    n_late = int(first.split()[0])
    assert n_late >= 2
    assert "past segments used" in first
    assert "prediction" in first
    assert "model 1: promoted, loss" in first
    assert again.replace("0 trainings", f"{n_late} trainings") == first  # no run was made twice
