"""Each training of a stream as a run in an MLflow experiment: its settings, figures and reasons.

    runs = DriftRuns("loans", tracking_uri="sqlite:///mlflow.db")
    for x, y in rows:
        runs.log(stream, stream.learn_one(x, y))

A run has

    params     the settings of the classifier and of the stream
    metrics    validation_loss, previous_loss, accuracy (of the stream so far), seconds,
               disparity_max, n_current, n_segments, n_segments_kept; their step is the row
    tags       driftquilt.outcome, driftquilt.row, driftquilt.event, and driftquilt.model
    artifacts  explanation.txt, shares.json (of epochs, by past segment), and of a model that took
               over selection.json, quilt.svg and model/ for `mlflow.pyfunc.load_model`

The outcome is `promoted`: the new model took over; `kept`: the guard preferred the present one;
or `failed`: there is no new model, and explanation.txt says why.

A process may die between `learn_one` and `log`, and MLflow may be away when it is called. What was
not logged is logged by the stream's own list of events, after `QuiltStream.open` or later on:

    runs.log(stream, stream.events)

Give each stream an experiment of its own: a training that has a finished run there is not logged
again. MLflow's active run, if there is one, is left alone. A model that the stream has dropped
meanwhile (`max_models`) has a run as if it were kept, and one of a learner of your own a run
without `model/`. MLflow 3 keeps runs in a database, such as `sqlite:///mlflow.db`, or on a server;
not in a plain folder any more.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from driftquilt.errors import InputError
from driftquilt.integrations.mlflow.model import import_mlflow, translated
from driftquilt.integrations.mlflow.trainings import EVENT, ROW, End, Ended, pair
from driftquilt.stream import QuiltStream
from driftquilt.stream.events import Event

__all__ = ["DriftRuns"]


class DriftRuns:
    """The runs of one stream, in the experiment of this name, which is made if need be."""

    def __init__(self, experiment: str, tracking_uri: str | None = None) -> None:
        self._mlflow = import_mlflow()
        with translated("opening the experiment"):
            self._client = self._mlflow.MlflowClient(tracking_uri)
            found = self._client.get_experiment_by_name(experiment)
            self.experiment_id: str = (
                self._client.create_experiment(experiment) if found is None else found.experiment_id
            )
        if found is not None and found.lifecycle_stage == "deleted":
            raise InputError(
                f"the experiment {experiment!r} was deleted in MLflow; give another name, or run: "
                f"mlflow experiments restore --experiment-id {self.experiment_id}"
            )

    def log(self, stream: QuiltStream, events: Iterable[Event]) -> list[str]:
        """Log each training in what `learn_one` or `learn_many` told; ids of the new runs."""
        with translated("logging a run"):
            return [
                self._log(Ended.read(stream, trained, end))
                for trained, end in pair(events)
                if not self._has(end)
            ]

    def _has(self, end: End) -> bool:
        same = f"tags.`{EVENT}` = '{end.number}' and tags.`{ROW}` = '{end.row}'"
        wanted = f"{same} and attributes.status = 'FINISHED'"
        return bool(self._client.search_runs([self.experiment_id], wanted, max_results=1))

    def _log(self, ended: Ended) -> str:
        run = self._client.create_run(self.experiment_id, tags=ended.tags, run_name=ended.name)
        run_id: str = run.info.run_id
        status = "FAILED"
        try:
            self._log_values(run_id, ended)
            self._log_files(run_id, ended)
            status = "FINISHED"
        finally:
            self._client.set_terminated(run_id, status)
        return run_id

    def _log_values(self, run_id: str, ended: Ended) -> None:
        entities, now = self._mlflow.entities, int(time.time() * 1000)
        metrics = [
            entities.Metric(name, value, now, ended.end.row)
            for name, value in ended.metrics.items()
        ]
        # As it is now, which may be many rows later.
        accuracy = entities.Metric("accuracy", ended.stream.accuracy, now, ended.stream.n_rows)
        params = [entities.Param(name, _words(value)) for name, value in ended.settings.items()]
        self._client.log_batch(run_id, [*metrics, accuracy], params)

    def _log_files(self, run_id: str, ended: Ended) -> None:
        with tempfile.TemporaryDirectory() as folder:
            ended.write(Path(folder))
            self._client.log_artifacts(run_id, folder)


def _words(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)
