"""Every recipe of the docs runs as it stands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import PATIENCE

WITH_MLFLOW = "drifts_in_mlflow"  # tests/integrations/mlflow runs it, where MLflow is
FOLDER = Path(__file__).parents[1] / "docs" / "recipes"
RECIPES = sorted(recipe for recipe in FOLDER.glob("*.py") if recipe.stem != WITH_MLFLOW)


def cook(recipe: Path, folder: Path) -> None:
    outcome = subprocess.run(
        [sys.executable, "-W", "error", str(recipe)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert outcome.returncode == 0, outcome.stderr


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.stem)
def test_a_recipe_runs_as_it_stands(recipe: Path, tmp_path: Path) -> None:
    cook(recipe, tmp_path)
    if recipe.stem == "own_method":
        text = (tmp_path / "own-method-out" / "accuracy.md").read_text()
        tables = text.split("### ")[1:]
        assert len(tables) == 4
        for table in tables:
            assert [line.split(" | ")[0] for line in table.splitlines() if "_" in line] == [
                "| full_data",
                "| last_two",
            ]
            assert "| quilt |" in table
        assert "last_two" in (tmp_path / "own-method-out" / "report.html").read_text()
