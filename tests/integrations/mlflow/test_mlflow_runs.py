"""Every training of a stream is one run, with its figures, its reasons and the model."""

from __future__ import annotations

import json
import random
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd  # type: ignore[import-untyped]
import pytest

from driftquilt import QuiltClassifier, QuiltStream
from driftquilt.errors import InputError, ServiceError
from driftquilt.integrations.mlflow import DriftRuns
from driftquilt.learners.mlp import MLP
from driftquilt.quilt.explanation import Selection
from driftquilt.stream.events import Event, ModelKept, ModelPromoted, ModelTrained, TrainingFailed
from driftquilt.stream.settings import Guard

mlflow = pytest.importorskip("mlflow", reason="needs MLflow: make test-mlflow")
pytestmark = pytest.mark.filterwarnings("default")  # MLflow's own, of its own calls


def rows(n_rows: int = 400) -> list[tuple[dict[str, float], bool]]:
    """The concept turns round in the middle."""
    draw = random.Random(0).random  # noqa: S311
    drawn = [{"a": draw(), "b": draw()} for _ in range(n_rows)]
    return [(x, (x["a"] > x["b"]) == (turn < n_rows / 2)) for turn, x in enumerate(drawn)]


def new_stream(learner: MLP | None = None, **settings: Any) -> QuiltStream:
    estimator = QuiltClassifier(hidden_units=8, max_epochs=10, random_state=0, learner=learner)
    return QuiltStream(estimator, n_wait=50, wait=True, **settings)


def learn(stream: QuiltStream, n_rows: int = 400) -> list[Event]:
    return stream.learn_many(*map(list, zip(*rows(n_rows), strict=True)))


class Broken(MLP):
    """A learner whose trainings fail."""

    def start(self, *_: Any, **__: Any) -> Any:
        raise RuntimeError("no such device")


def runs_of(tracking_uri: str, runs: DriftRuns) -> list[Any]:
    """Oldest first."""
    found = mlflow.MlflowClient(tracking_uri).search_runs([runs.experiment_id])
    return sorted(found, key=lambda run: int(run.data.tags["driftquilt.event"]))


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
    assert {run.data.tags["driftquilt.outcome"] for run in found} == {"promoted"}
    by_row = {event.row: event for event in trained}
    for run, event in zip(found, promoted, strict=True):
        expected = by_row[event.row]
        assert run.data.metrics["validation_loss"] == pytest.approx(expected.validation_loss)
        assert run.data.metrics["n_segments"] == len(expected.weights)
        assert run.data.metrics["n_segments_used"] == len(expected.used)
        parts = {part: run.data.metrics[f"weight_{part}"] for part in expected.blend}
        assert parts == pytest.approx(expected.blend)
        assert run.data.metrics["n_current"] == expected.n_current
        assert run.data.metrics["seconds"] == pytest.approx(expected.seconds)
        assert run.data.params["hidden_units"] == "8"
        assert run.data.params["search"] == "shared"
        assert run.data.params["n_wait"] == "50"


def test_a_run_has_the_reasons_and_a_model_that_loads(
    tracking_uri: str, experiment: str, tmp_path: Path
) -> None:
    runs, stream = DriftRuns(experiment, tracking_uri), new_stream()
    runs.log(stream, learn(stream))
    run = runs_of(tracking_uri, runs)[-1]
    version = int(run.data.tags["driftquilt.model"])
    clf = stream.classifier(version)
    folder = files_of(run, tmp_path / "found")
    assert {path.name for path in folder.iterdir()} == {
        "model", "selection.json", "weights.json", "explanation.txt", "quilt.svg",
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


def test_a_model_that_the_guard_refused_is_a_run_with_its_reasons(
    tracking_uri: str, experiment: str, tmp_path: Path
) -> None:
    stream = new_stream(guard=Guard(margin=-0.9))
    runs = DriftRuns(experiment, tracking_uri)
    ids = list(chain.from_iterable(runs.log(stream, stream.learn_one(x, y)) for x, y in rows()))
    kept = [event for event in stream.events if isinstance(event, ModelKept)]
    found = runs_of(tracking_uri, runs)
    assert [run.info.run_id for run in found] == ids
    refused = [run for run in found if run.data.tags["driftquilt.outcome"] == "kept"]
    assert len(refused) == len(kept) > 0
    assert refused[0].info.run_name == f"row {kept[0].row}, kept"
    assert "driftquilt.model" not in refused[0].data.tags
    assert refused[0].data.metrics["validation_loss"] == pytest.approx(kept[0].loss)
    assert refused[0].data.metrics["previous_loss"] == pytest.approx(kept[0].previous_loss)
    assert refused[0].data.metrics["n_segments"] >= 0
    assert refused[0].data.params["hidden_units"] == "8"
    assert "random_state" not in refused[0].data.params
    folder = files_of(refused[0], tmp_path / "found")
    assert {path.name for path in folder.iterdir()} == {"explanation.txt", "weights.json"}
    trained = next(e for e in stream.events if isinstance(e, ModelTrained) and e.row == kept[0].row)
    said = (folder / "explanation.txt").read_text()
    assert said == f"{trained.explanation}\n{kept[0]}\n"
    weights = json.loads((folder / "weights.json").read_text())
    assert weights == {str(number): weight for number, weight in trained.weights.items()}


def test_a_training_that_failed_is_a_run_that_says_why(
    tracking_uri: str, experiment: str, tmp_path: Path
) -> None:
    runs, stream = DriftRuns(experiment, tracking_uri), new_stream(Broken())
    runs.log(stream, learn(stream, 60))
    (failure,) = [event for event in stream.events if isinstance(event, TrainingFailed)]
    (run,) = runs_of(tracking_uri, runs)
    assert run.data.tags["driftquilt.outcome"] == "failed"
    assert run.info.status == "FINISHED"
    assert set(run.data.metrics) == {"accuracy"}
    assert run.data.params["n_wait"] == "50"
    folder = files_of(run, tmp_path / "found")
    assert {path.name for path in folder.iterdir()} == {"explanation.txt"}
    assert (folder / "explanation.txt").read_text() == f"{failure}\n"
    assert "no such device" in failure.why


def test_what_a_crash_kept_from_being_logged_is_logged_after_opening(
    tracking_uri: str, experiment: str, tmp_path: Path
) -> None:
    runs, stream = DriftRuns(experiment, tracking_uri), new_stream(store=tmp_path / "state")
    told = (stream.learn_one(x, y) for x, y in rows())
    assert any(isinstance(event, ModelPromoted) for events in told for event in events)
    stream.close(discard=True)  # and nothing of it was logged
    with QuiltStream.open(tmp_path / "state") as again:
        assert len(runs.log(again, again.events)) == 1
        for x, y in rows()[again.n_rows :]:
            runs.log(again, again.learn_one(x, y))
        models = [event.model for event in again.events if isinstance(event, ModelPromoted)]
        assert runs.log(again, again.events) == []
    found = runs_of(tracking_uri, runs)
    assert [int(run.data.tags["driftquilt.model"]) for run in found] == models
    assert {run.info.status for run in found} == {"FINISHED"}
    steps = {metric.step for run in found for metric in history(run, "accuracy")}
    assert min(steps) >= 50


def history(run: Any, metric: str) -> list[Any]:
    return list(mlflow.MlflowClient().get_metric_history(run.info.run_id, metric))


def test_accuracy_stands_at_the_row_that_it_is_of(tracking_uri: str, experiment: str) -> None:
    runs, stream = DriftRuns(experiment, tracking_uri), new_stream()
    runs.log(stream, learn(stream))
    for run in runs_of(tracking_uri, runs):
        (accuracy,) = history(run, "accuracy")
        assert (accuracy.value, accuracy.step) == (pytest.approx(stream.accuracy), 400)
        (loss,) = history(run, "validation_loss")
        assert loss.step == int(run.data.tags["driftquilt.row"])


def test_two_trainings_at_one_row_are_two_runs(tracking_uri: str, experiment: str) -> None:
    runs, stream = DriftRuns(experiment, tracking_uri), new_stream(guard=Guard(margin=-0.9))
    learn(stream, 80)
    stream.adapt()
    stream.adapt()
    assert len(runs.log(stream, stream.events)) == 3
    assert [int(run.data.tags["driftquilt.row"]) for run in runs_of(tracking_uri, runs)] == [
        50, 80, 80,
    ]  # fmt: skip


def test_what_is_told_twice_makes_one_run(tracking_uri: str, experiment: str) -> None:
    stream = new_stream()
    events = learn(stream)
    first = DriftRuns(experiment, tracking_uri)
    assert first.log(stream, events)
    again = DriftRuns(experiment, tracking_uri)
    assert again.experiment_id == first.experiment_id
    assert again.log(stream, events) == []


def test_a_model_that_the_stream_dropped_has_a_run_with_what_was_told_of_it(
    tracking_uri: str, experiment: str
) -> None:
    runs, stream = DriftRuns(experiment, tracking_uri), new_stream(max_models=1)
    runs.log(stream, learn(stream))
    first, *_, last = runs_of(tracking_uri, runs)
    assert "validation_loss" in first.data.metrics
    client = mlflow.MlflowClient(tracking_uri)
    assert [file.path for file in client.list_artifacts(first.info.run_id)] == [
        "explanation.txt", "weights.json",
    ]  # fmt: skip
    assert "model" in [file.path for file in client.list_artifacts(last.info.run_id)]


def test_the_active_run_is_left_alone(tracking_uri: str, experiment: str) -> None:
    runs, stream = DriftRuns(experiment, tracking_uri), new_stream()
    with mlflow.start_run() as mine:
        runs.log(stream, learn(stream))
        assert mlflow.active_run().info.run_id == mine.info.run_id
    assert mlflow.get_run(mine.info.run_id).data.metrics == {}


def test_a_run_that_could_not_be_finished_says_so_and_is_logged_again(
    tracking_uri: str, experiment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = new_stream()
    events = learn(stream)
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


def test_a_deleted_experiment_is_refused_with_what_to_do(
    tracking_uri: str, experiment: str
) -> None:
    stream = new_stream()
    events = learn(stream, 60)
    runs = DriftRuns(experiment, tracking_uri)
    mlflow.MlflowClient(tracking_uri).delete_experiment(runs.experiment_id)
    with pytest.raises(InputError, match=r"logging a run .* is deleted"):
        runs.log(stream, events)
    with pytest.raises(InputError, match=r"was deleted in MLflow; .* restore --experiment-id \d+"):
        DriftRuns(experiment, tracking_uri)


def test_a_server_that_is_away_is_told_and_made_up_for(
    tracking_uri: str, experiment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    with pytest.raises(ServiceError, match="opening the experiment failed"):
        DriftRuns(experiment, "http://127.0.0.1:1")
    stream = new_stream()
    events = learn(stream, 60)
    runs = DriftRuns(experiment, tracking_uri)
    with monkeypatch.context() as patched:
        patched.setattr(runs, "_client", mlflow.MlflowClient("http://127.0.0.1:1"))
        with pytest.raises(ServiceError, match="logging a run failed in MLflow"):
            runs.log(stream, events)
    assert len(runs.log(stream, stream.events)) == 1


def test_a_database_that_is_none_is_told(tmp_path: Path, experiment: str) -> None:
    (tmp_path / "junk.db").write_bytes(b"not a database" * 100)
    with pytest.raises(ServiceError, match=r"file is not a database.*\(database-error\)"):
        DriftRuns(experiment, f"sqlite:///{tmp_path}/junk.db")
