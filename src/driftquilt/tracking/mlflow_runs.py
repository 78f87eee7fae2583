"""Each new model of a stream as a run in an MLflow experiment: its settings, figures and reasons.

    runs = DriftRuns("loans", tracking_uri="sqlite:///mlflow.db")
    for x, y in rows:
        runs.log(stream, stream.learn_one(x, y))

A run has

    params     the settings of the classifier and of the stream
    metrics    validation_loss, previous_loss, accuracy (of the stream so far), seconds,
               disparity_max, n_current, n_segments, n_segments_kept; their step is the row
    tags       driftquilt.model, driftquilt.row
    artifacts  model/ for `mlflow.pyfunc.load_model`, selection.json, explanation.txt, quilt.svg

Give each stream an experiment of its own: a model that has a finished run there is not logged
again, so what a stream tells twice after a crash makes one run. MLflow's active run, if there is
one, is left alone. A model that the stream has dropped meanwhile (`max_models`) has a run without
artifacts, and one of a learner of your own a run without `model/`. MLflow 3 keeps runs in a
database, such as `sqlite:///mlflow.db`, or on a server; not in a plain folder any more.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from driftquilt.estimator import QuiltClassifier
from driftquilt.estimator_file import settings_to_json
from driftquilt.learners.mlp import MLP
from driftquilt.stream.events import Event, ModelPromoted, ModelTrained
from driftquilt.stream.runner import QuiltStream
from driftquilt.tracking.mlflow_model import import_mlflow, save_model

__all__ = ["DriftRuns"]

_MODEL, _ROW = "driftquilt.model", "driftquilt.row"


class DriftRuns:
    """The runs of one stream, in the experiment of this name, which is made if need be."""

    def __init__(self, experiment: str, tracking_uri: str | None = None) -> None:
        self._mlflow = import_mlflow()
        self._client = self._mlflow.MlflowClient(tracking_uri)
        found = self._client.get_experiment_by_name(experiment)
        self.experiment_id: str = (
            self._client.create_experiment(experiment) if found is None else found.experiment_id
        )

    def log(self, stream: QuiltStream, events: Iterable[Event]) -> list[str]:
        """Log each model that took over in what `learn_one` or `learn_many` told; ids of the runs.

        A model that a guard refused took over from none, so it has no run.
        """
        return [
            self._log(stream, trained, promoted)
            for trained, promoted in _new_models(events)
            if not self._has(promoted)
        ]

    def _has(self, promoted: ModelPromoted) -> bool:
        same = f"tags.`{_MODEL}` = '{promoted.model}' and tags.`{_ROW}` = '{promoted.row}'"
        wanted = f"{same} and attributes.status = 'FINISHED'"
        return bool(self._client.search_runs([self.experiment_id], wanted, max_results=1))

    def _log(self, stream: QuiltStream, trained: ModelTrained, promoted: ModelPromoted) -> str:
        clf = stream.classifier(promoted.model) if promoted.model in stream.models else None
        tags = {_MODEL: str(promoted.model), _ROW: str(promoted.row)}
        run = self._client.create_run(
            self.experiment_id, tags=tags, run_name=f"model {promoted.model}"
        )
        run_id: str = run.info.run_id
        outcome = "FAILED"
        try:
            self._log_values(run_id, stream, clf, trained, promoted)
            if clf is not None:
                self._log_files(run_id, clf)
            outcome = "FINISHED"
        finally:
            self._client.set_terminated(run_id, outcome)
        return run_id

    def _log_values(
        self,
        run_id: str,
        stream: QuiltStream,
        clf: QuiltClassifier | None,
        trained: ModelTrained,
        promoted: ModelPromoted,
    ) -> None:
        entities, now = self._mlflow.entities, int(time.time() * 1000)
        settings = {} if clf is None else settings_to_json(clf.get_params(deep=False))
        settings |= stream.settings.to_json()
        metrics = _metrics(stream, clf, trained, promoted)
        self._client.log_batch(
            run_id,
            [entities.Metric(name, value, now, promoted.row) for name, value in metrics.items()],
            [entities.Param(name, _words(value)) for name, value in settings.items()],
        )

    def _log_files(self, run_id: str, clf: QuiltClassifier) -> None:
        with tempfile.TemporaryDirectory() as folder:
            _write_files(clf, Path(folder))
            self._client.log_artifacts(run_id, folder)


def _new_models(events: Iterable[Event]) -> Iterator[tuple[ModelTrained, ModelPromoted]]:
    """Each training whose model took over; the one is told right before the other."""
    trained = None
    for event in events:
        if isinstance(event, ModelTrained):
            trained = event
        elif isinstance(event, ModelPromoted) and trained is not None:
            yield trained, event


def _metrics(
    stream: QuiltStream,
    clf: QuiltClassifier | None,
    trained: ModelTrained,
    promoted: ModelPromoted,
) -> dict[str, float]:
    shares = trained.shares.values()
    metrics = {
        "validation_loss": trained.validation_loss,
        "previous_loss": promoted.previous_loss,
        "accuracy": stream.accuracy,
        "seconds": trained.seconds,
        "n_current": trained.n_current,
        "n_segments": len(shares),
        "n_segments_kept": sum(share > 0 for share in shares),
        "disparity_max": None if clf is None else clf.disparity_max_,
    }
    return {name: float(value) for name, value in metrics.items() if value is not None}


def _words(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _write_files(clf: QuiltClassifier, folder: Path) -> None:
    selection = clf.selection_
    (folder / "selection.json").write_text(json.dumps(selection.to_json()), encoding="utf-8")
    (folder / "explanation.txt").write_text(selection.explain() + "\n", encoding="utf-8")
    selection.plot().save(folder / "quilt.svg")
    if isinstance(clf.learner_, MLP):
        save_model(clf, folder / "model")
