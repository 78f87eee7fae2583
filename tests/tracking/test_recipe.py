"""The recipe for MLflow runs as it stands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mlflow", reason="needs MLflow: make test-mlflow")
RECIPE = Path(__file__).parents[2] / "docs" / "recipes" / "drifts_in_mlflow.py"


def test_the_recipe_logs_models_and_loads_the_last(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(RECIPE)],
        cwd=tmp_path,
        env={**os.environ, "MLFLOW_DISABLE_TELEMETRY": "true"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "past segments kept" in done.stdout
    assert "prediction" in done.stdout
