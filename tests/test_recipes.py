"""Every recipe of the docs runs as it stands."""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import sys
from pathlib import Path
from random import Random

import pytest

from tests.processes import PATIENCE

#: Run in tests/integrations, in an environment of their own.
ELSEWHERE = ("drifts_in_mlflow", "monthly_airflow", "monthly_dagster", "monthly_prefect")
FOLDER = Path(__file__).parents[1] / "docs" / "recipes"
RECIPES = sorted(recipe for recipe in FOLDER.glob("*.py") if recipe.stem not in ELSEWHERE)
BETTER, FEW = 200, 60  # current rows: Quilt's model is clearly better, too few are held out


def cook(recipe: Path, folder: Path) -> str:
    outcome = call([sys.executable, "-W", "error", str(recipe)], folder)
    assert outcome.returncode == 0, outcome.stderr
    return outcome.stdout


def call(command: list[str], folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command that finds `driftquilt`, with these environment variables."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PATH": path, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=2 * PATIENCE,
    )


def write_history(path: Path, n_current: int) -> None:
    """Four months, two of which are another world."""
    draw, lines = Random(0), ["month,price,visits,churned"]  # noqa: S311
    for month, n_rows in enumerate((400, 400, 400, n_current)):
        for _ in range(n_rows):
            price, visits = draw.uniform(1, 100), draw.randint(0, 9)
            churned = (price > 10 * visits) != (month in (1, 2))
            cells = f"2024-0{month + 1}", f"{price:.2f}", str(visits), "yes" if churned else "no"
            lines.append(",".join(cells))
    path.write_text("\n".join(lines) + "\n")


def test_cron_promotes_a_better_model_and_nothing_else(tmp_path: Path) -> None:
    script, live = ["sh", str(FOLDER / "monthly_cron.sh")], tmp_path / "live" / "model.safetensors"
    write_history(tmp_path / "history.csv", FEW)
    assert call(script, tmp_path).returncode == 0
    assert not live.exists()
    write_history(tmp_path / "history.csv", BETTER)
    assert call(script, tmp_path).returncode == 0
    promoted = live.read_bytes()
    (tmp_path / "history.csv").unlink()
    failed = call(script, tmp_path)
    assert (failed.returncode, "history.csv" in failed.stderr) == (1, True)
    log = (tmp_path / "decisions" / "log.txt").read_text().splitlines()
    assert [line.split()[1:3] for line in log] == [["13", "nothing;"], ["0", "promoted:"]]
    assert (tmp_path / log[1].rpartition(" ")[2]).read_bytes() == promoted == live.read_bytes()


def test_cron_does_not_run_twice_at_a_time(tmp_path: Path) -> None:
    (tmp_path / "decisions").mkdir()
    with (tmp_path / "decisions" / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        refused = call(["sh", str(FOLDER / "monthly_cron.sh")], tmp_path)
    assert (refused.returncode, refused.stderr) == (1, "the last run has not ended\n")


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda recipe: recipe.stem)
def test_a_recipe_runs_as_it_stands(recipe: Path, tmp_path: Path) -> None:
    printed = cook(recipe, tmp_path)
    if recipe.stem in ("gradient_boosting", "sklearn_pipeline"):
        found = re.findall(r"trained on 2024-01, 2024-03; accuracy (0\.\d+)", printed)
        assert len(found) == len(printed.splitlines())
        assert min(map(float, found)) > 0.9
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
