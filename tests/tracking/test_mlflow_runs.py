"""Every new model of a stream is one run, with its figures, its reasons and the model."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import pytest

from driftquilt import QuiltClassifier, QuiltStream
from driftquilt.methods.explanation import Selection
from driftquilt.stream.events import ModelPromoted, ModelTrained
from driftquilt.tracking.mlflow_runs import DriftRuns

mlflow = pytest.importorskip("mlflow", reason="needs MLflow: make test-mlflow")
pytestmark = pytest.mark.filterwarnings("default")  # MLflow's own, of its own calls


def rows(n_rows: int = 400) -> list[tuple[dict[str, float], bool]]:
    """The concept turns round in the middle."""
    draw = random.Random(0).random  # noqa: S311
    drawn = [{"a": draw(), "b": draw()} for _ in range(n_rows)]
    return [(x, (x["a"] > x["b"]) == (turn < n_rows / 2)) for turn, x in enumerate(drawn)]


def new_stream(**settings: Any) -> QuiltStream:
    estimator = QuiltClassifier(hidden_units=8, max_epochs=10, random_state=0)
    return QuiltStream(estimator, n_wait=50, wait=True, **settings)


def runs_of(tracking_uri: str, runs: DriftRuns) -> list[Any]:
    """Oldest first."""
    client = mlflow.MlflowClient(tracking_uri)
    found = client.search_runs([runs.experiment_id], order_by=["metrics.n_current"])
    return sorted(found, key=lambda run: int(run.data.tags["driftquilt.model"]))


def files_of(run: Any, folder: Path) -> Path:
    folder.mkdir()
    return Path(mlflow.MlflowClient().download_artifacts(run.info.run_id, "", str(folder)))


def test_each_model_that_took_over_is_a_run_with_its_figures(
    tracking_uri: str, experiment: str
) -> None:
    runs, stream = DriftRuns(experiment, tracking_uri), new_stream()
    ids = [run_id for x, y in rows() for run_id in runs.log(stream, stream.learn_one(x, y))]
    promoted = [event for event in stream.events if isinstance(event, ModelPromoted)]
    trained = [event for event in stream.events if isinstance(event, ModelTrained)]
    found = runs_of(tracking_uri, runs)
    assert [run.info.run_id for run in found] == ids
    assert [int(run.data.tags["driftquilt.model"]) for run in found] == [p.model for p in promoted]
    assert len(found) >= 3
    assert {run.info.status for run in found} == {"FINISHED"}
    by_row = {event.row: event for event in trained}
    for run, event in zip(found, promoted, strict=True):
        expected = by_row[event.row]
        assert run.data.metrics["validation_loss"] == pytest.approx(expected.validation_loss)
        assert run.data.metrics["n_segments"] == len(expected.shares)
        assert run.data.metrics["n_current"] == expected.n_current
        assert run.data.metrics["seconds"] == pytest.approx(expected.seconds)
        assert run.data.params["hidden_units"] == "8"
        assert run.data.params["search"] == "shared"
        assert run.data.params["n_wait"] == "50"


def test_a_run_has_the_reasons_and_a_model_that_loads(
    tracking_uri: str, experiment: str, tmp_path: Path
) -> None:
    runs, stream = DriftRuns(experiment, tracking_uri), new_stream()
    runs.log(stream, stream.learn_many(*map(list, zip(*rows(), strict=True))))
    run = runs_of(tracking_uri, runs)[-1]
    version = int(run.data.tags["driftquilt.model"])
    clf = stream.classifier(version)
    folder = files_of(run, tmp_path / "found")
    assert {path.name for path in folder.iterdir()} == {
        "model", "selection.json", "explanation.txt", "quilt.svg",
    }  # fmt: skip
    assert not [path for path in folder.rglob("*") if path.suffix in (".pkl", ".pickle")]
    assert (folder / "explanation.txt").read_text() == clf.selection_.explain() + "\n"
    selection = Selection.from_json(json.loads((folder / "selection.json").read_text()))
    assert repr(selection) == repr(clf.selection_)
    assert (folder / "quilt.svg").read_text().startswith("<svg ")
    model = mlflow.pyfunc.load_model(f"runs:/{run.info.run_id}/model")
    table = {"a": [0.9, 0.1], "b": [0.1, 0.9]}
    answers = model.predict(pd.DataFrame(table))
    assert answers["prediction"].tolist() == clf.predict(table).tolist()


def test_what_is_told_twice_makes_one_run(tracking_uri: str, experiment: str) -> None:
    stream = new_stream()
    events = stream.learn_many(*map(list, zip(*rows(), strict=True)))
    first = DriftRuns(experiment, tracking_uri)
    assert first.log(stream, events)
    again = DriftRuns(experiment, tracking_uri)
    assert again.experiment_id == first.experiment_id
    assert again.log(stream, events) == []


def test_a_model_that_the_stream_dropped_has_a_run_without_files(
    tracking_uri: str, experiment: str
) -> None:
    runs, stream = DriftRuns(experiment, tracking_uri), new_stream(max_models=1)
    runs.log(stream, stream.learn_many(*map(list, zip(*rows(), strict=True))))
    first, *_, last = runs_of(tracking_uri, runs)
    assert "validation_loss" in first.data.metrics
    client = mlflow.MlflowClient(tracking_uri)
    assert client.list_artifacts(first.info.run_id) == []
    assert client.list_artifacts(last.info.run_id) != []


def test_the_active_run_is_left_alone(tracking_uri: str, experiment: str) -> None:
    runs, stream = DriftRuns(experiment, tracking_uri), new_stream()
    with mlflow.start_run() as mine:
        runs.log(stream, stream.learn_many(*map(list, zip(*rows(), strict=True))))
        assert mlflow.active_run().info.run_id == mine.info.run_id
    assert mlflow.get_run(mine.info.run_id).data.metrics == {}


def test_a_run_that_could_not_be_finished_says_so_and_is_logged_again(
    tracking_uri: str, experiment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = new_stream()
    events = stream.learn_many(*map(list, zip(*rows(), strict=True)))
    runs = DriftRuns(experiment, tracking_uri)

    def full(*_: Any) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(runs, "_log_files", full)
        with pytest.raises(OSError, match="no space left"):
            runs.log(stream, events)
    (failed,) = runs_of(tracking_uri, runs)
    assert failed.info.status == "FAILED"
    assert len(runs.log(stream, events)) >= 3
