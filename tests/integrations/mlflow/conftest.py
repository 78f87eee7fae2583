"""MLflow with a database of its own.

It cannot be installed beside all that the tests pin, so these tests run where it is:
`make test-mlflow`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ["MLFLOW_DISABLE_TELEMETRY"] = "true"


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Made once, because that takes MLflow seconds."""
    return f"sqlite:///{tmp_path_factory.mktemp('mlflow')}/mlflow.db"


@pytest.fixture
def tracking_uri(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Where runs go; files go to the folder of the test."""
    mlflow = pytest.importorskip("mlflow")
    monkeypatch.chdir(tmp_path)
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(database)
    yield database
    mlflow.set_tracking_uri(before)


@pytest.fixture
def experiment(request: pytest.FixtureRequest) -> str:
    """A name of the test's own."""
    return str(request.node.name)
