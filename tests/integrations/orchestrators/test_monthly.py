"""The recipes for Airflow, Prefect and Dagster run as they stand, with the real packages.

They cannot be installed beside all that the tests pin: `make test-orchestrators`. Two months run
in one process, because a scheduler takes longer to begin than to run.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.test_recipes import BETTER, FEW, FOLDER, call, write_history

TWO_MONTHS = """
import pathlib, runpy, shutil, sys
for month in ("few", "better"):
    shutil.copy(month + ".csv", "history.csv")
    runpy.run_path(sys.argv[1], run_name="__main__")
    assert pathlib.Path("live").exists() == (month == "better"), month
"""


def run_two_months(recipe: Path, folder: Path, **variables: str) -> str:
    """Run the recipe with too few rows and with a better model; return its log."""
    write_history(folder / "few.csv", FEW)
    write_history(folder / "better.csv", BETTER)
    done = call([sys.executable, "-c", TWO_MONTHS, str(recipe)], folder, **variables)
    log = done.stdout + done.stderr
    assert done.returncode == 0, log
    live, decisions = folder / "live", sorted((folder / "decisions").iterdir())
    assert [path.name for path in live.iterdir()] == ["model.safetensors"]
    promoted = (live / "model.safetensors").read_bytes()
    assert promoted == (decisions[-1] / "model.safetensors").read_bytes()
    assert len(decisions) == 2
    return log


def test_airflow(tmp_path: Path) -> None:
    pytest.importorskip("airflow", reason="needs Airflow: make test-orchestrators")
    dags = tmp_path / "dags"
    dags.mkdir()
    recipe = shutil.copy(FOLDER / "monthly_airflow.py", dags)
    variables = {
        "AIRFLOW_HOME": str(tmp_path / "airflow"),
        "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "false",
        "CHURN_HOME": str(tmp_path),
    }
    made = call(["airflow", "db", "migrate"], tmp_path, **variables)
    assert made.returncode == 0, made.stderr
    log = run_two_months(Path(recipe), tmp_path, **variables)
    assert "collect-more: " in log
    assert log.count(", state=success,") == 2


def test_prefect(tmp_path: Path) -> None:
    pytest.importorskip("prefect", reason="needs Prefect: make test-orchestrators")
    log = run_two_months(
        FOLDER / "monthly_prefect.py",
        tmp_path,
        PREFECT_HOME=str(tmp_path / "prefect"),
        PREFECT_SERVER_ANALYTICS_ENABLED="false",
        PREFECT_SERVER_EPHEMERAL_STARTUP_TIMEOUT_SECONDS="120",
        DO_NOT_TRACK="1",
    )
    assert "collect-more: " in log
    assert "promote: " in log


def test_dagster(tmp_path: Path) -> None:
    pytest.importorskip("dagster", reason="needs Dagster: make test-orchestrators")
    home = tmp_path / "dagster"
    home.mkdir()
    (home / "dagster.yaml").write_text("telemetry:\n  enabled: false\n")
    recipe = FOLDER / "monthly_dagster.py"
    log = run_two_months(recipe, tmp_path, DAGSTER_HOME=str(home))
    assert "not promoted: collect-more" in log
    assert log.count("RUN_SUCCESS") == 2
