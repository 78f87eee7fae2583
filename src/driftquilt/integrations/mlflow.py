"""Models and the trainings of a stream in MLflow (extra `mlflow`).

log_model, save_model  a classifier or a regressor as an MLflow model
DriftRuns              each training of a stream as a run

**A classifier as an MLflow model**, which `mlflow.pyfunc.load_model` reads anywhere.

The model's folder holds the file that `save` writes, and the name of this module,
which reads it again: nothing is pickled, and nothing unpickled. It answers a pandas table with one
that has the most probable label under "prediction" and the probability of each as "p(label)".

    log_model(clf)             in the active run, as "model"
    save_model(clf, "folder")  without any server

Further settings go to MLflow as they are: `signature`, `input_example`, `registered_model_name`.
A model of a learner of your own is refused: it needs that code to be loaded. What MLflow refuses is
an `InputError`, a server or a database that is away a `ServiceError`.

**Each training of a stream as a run** in an experiment: its settings, figures and reasons.

    runs = DriftRuns("loans", tracking_uri="sqlite:///mlflow.db")
    for x, y in rows:
        runs.log(stream, stream.learn_one(x, y))

A run has

    params     the settings of the estimator and of the stream
    metrics    validation_loss, previous_loss, accuracy (of the stream so far; of numbers
               mean_absolute_error), seconds,
               disparity_max, n_current, n_segments, n_segments_used, and
               weight_all, weight_selected, weight_current (what the model is made of); their
               step is the row
    tags       driftquilt.outcome, driftquilt.row, driftquilt.event, and driftquilt.model
    artifacts  explanation.txt, weights.json (by past segment), and of a model that took
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

A training ends in one of three events, and the model is described right before two of them:

    ModelTrained, ModelPromoted  promoted
    ModelTrained, ModelKept      kept
    TrainingFailed               failed
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from sklearn.utils.validation import check_is_fitted

from driftquilt import __version__
from driftquilt.errors import InputError, LearnerError, MissingExtraError, ServiceError
from driftquilt.learners.mlp import MLP
from driftquilt.quilt import QuiltClassifier, QuiltRegressor, QuiltSelector, load_model
from driftquilt.quilt.model_file import settings_to_json
from driftquilt.stream import QuiltStream
from driftquilt.stream.events import (
    Event,
    ModelKept,
    ModelPromoted,
    ModelTrained,
    TrainingFailed,
)

__all__ = ["DriftRuns", "log_model", "save_model"]

_FILE = "model.safetensors"
_OF_THE_CALLER = {"INVALID_PARAMETER_VALUE", "RESOURCE_ALREADY_EXISTS", "RESOURCE_DOES_NOT_EXIST"}
_ROW, _EVENT = "driftquilt.row", "driftquilt.event"
_OUTCOME, _MODEL = "driftquilt.outcome", "driftquilt.model"
_OUTCOMES = {"ModelPromoted": "promoted", "ModelKept": "kept", "TrainingFailed": "failed"}
Net: TypeAlias = QuiltClassifier | QuiltRegressor
_End: TypeAlias = ModelPromoted | ModelKept | TrainingFailed


def log_model(clf: Net, name: str = "model", **settings: Any) -> Any:
    """Log a fitted net under a name; returns MLflow's description of it, with its URI."""
    with _saved(clf) as file, _translated("logging the model"):
        return _import_mlflow().pyfunc.log_model(name=name, **_flavour(file), **settings)


def save_model(clf: Net, path: str | os.PathLike[str], **settings: Any) -> None:
    """Write a fitted classifier or regressor to a new folder, as MLflow lays it out."""
    with _saved(clf) as file, _translated("saving the model"):
        _import_mlflow().pyfunc.save_model(path=os.fspath(path), **_flavour(file), **settings)


class _Predictor:
    """What MLflow asks; the table may have further columns."""

    def __init__(self, clf: Net) -> None:
        self.clf = clf

    def predict(self, model_input: Any, params: Any = None) -> Any:  # noqa: ARG002  # MLflow's names
        """Return a pandas table of answers, with the rows' index where they have one."""
        import pandas as pd  # type: ignore[import-untyped]  # noqa: PLC0415

        index = model_input.index if isinstance(model_input, pd.DataFrame) else None
        return pd.DataFrame(self._answers(model_input), index=index)

    def _answers(self, rows: Any) -> dict[str, Any]:
        """Return answers and probabilities; of numbers the ends of intervals that hold 80 %."""
        if isinstance(self.clf, QuiltRegressor):
            low, high = self.clf.predict_interval(rows).T
            return {"prediction": self.clf.predict(rows), "low": low, "high": high}
        chances = self.clf.predict_proba(rows)
        of_classes = {f"p({label})": chances[:, c] for c, label in enumerate(self.clf.classes_)}
        return {"prediction": self.clf.answers(chances), **of_classes}


def _import_mlflow() -> Any:
    """MLflow, which takes seconds to import."""
    try:
        import mlflow.pyfunc  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError("mlflow", extra="mlflow") from error
    return mlflow


@contextmanager
def _translated(doing: str) -> Iterator[None]:
    """Raise refusals of MLflow or its database as errors of ours."""
    mlflow = _import_mlflow()
    from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415  # MLflow passes some of these on

    try:
        yield
    except mlflow.MlflowException as error:
        message, _, _ = error.message.strip().partition("\n")
        if error.error_code in _OF_THE_CALLER:
            raise InputError(
                f"{doing} was refused by MLflow: {message}; correct what it names"
            ) from error
        raise _trouble(doing, message, error.error_code) from error
    except SQLAlchemyError as error:
        raise _trouble(doing, str(error).partition("\n")[0], "DATABASE_ERROR") from error


def _trouble(doing: str, message: str, code: str) -> ServiceError:
    advice = "see whether its server or database is there, then try again"
    return ServiceError(
        f"{doing} failed in MLflow: {message}; {advice}", kind=code.lower().replace("_", "-")
    )


def _load_pyfunc(path: str) -> _Predictor:
    """Load a model; MLflow calls it by this very name."""
    clf = load_model(path)
    assert not isinstance(clf, QuiltSelector)  # noqa: S101  # `save_model` takes nets only
    return _Predictor(clf)


@contextmanager
def _saved(clf: Net) -> Iterator[str]:
    check_is_fitted(clf)
    if not isinstance(clf.learner_, MLP):
        raise LearnerError(
            f"the model was trained by a {type(clf.learner_).__name__} of your own, without which "
            "it cannot be loaded, and MLflow would not have it; log the file that clf.save(path) "
            "writes as an artifact"
        )
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / _FILE
        clf.save(file)
        yield str(file)


def _flavour(file: str) -> dict[str, Any]:
    return {
        "loader_module": __name__,
        "data_path": file,
        "pip_requirements": [f"driftquilt[mlflow]=={__version__}"],
    }


class DriftRuns:
    """The runs of one stream, in the experiment of this name, which is made if need be."""

    def __init__(self, experiment: str, tracking_uri: str | None = None) -> None:
        self._mlflow = _import_mlflow()
        with _translated("opening the experiment"):
            self._client = self._mlflow.MlflowClient(tracking_uri)
            known = self._client.get_experiment_by_name(experiment)
            self.experiment_id: str = (
                self._client.create_experiment(experiment) if known is None else known.experiment_id
            )
        if known is not None and known.lifecycle_stage == "deleted":
            raise InputError(
                f"the experiment {experiment!r} was deleted in MLflow; give another name, or run: "
                f"mlflow experiments restore --experiment-id {self.experiment_id}"
            )

    def log(self, stream: QuiltStream, events: Iterable[Event]) -> list[str]:
        """Log each training among the events of `learn_one` or `learn_many`; return new run ids."""
        with _translated("logging a run"):
            return [
                self._log(_FinishedTraining.read(stream, trained, end))
                for trained, end in _pair(events)
                if not self._has(end)
            ]

    def _has(self, end: _End) -> bool:
        same = f"tags.`{_EVENT}` = '{end.number}' and tags.`{_ROW}` = '{end.row}'"
        wanted = f"{same} and attributes.status = 'FINISHED'"
        return bool(self._client.search_runs([self.experiment_id], wanted, max_results=1))

    def _log(self, training: _FinishedTraining) -> str:
        run = self._client.create_run(
            self.experiment_id, tags=training.tags, run_name=training.name
        )
        run_id: str = run.info.run_id
        status = "FAILED"
        try:
            self._log_values(run_id, training)
            self._log_files(run_id, training)
            status = "FINISHED"
        finally:
            self._client.set_terminated(run_id, status)
        return run_id

    def _log_values(self, run_id: str, training: _FinishedTraining) -> None:
        entities, now = self._mlflow.entities, int(time.time() * 1000)
        metrics = [
            entities.Metric(name, value, now, training.end.row)
            for name, value in training.metrics.items()
        ]
        name, value = training.standing
        standing = entities.Metric(name, value, now, training.stream.n_rows)
        params = [entities.Param(name, _words(value)) for name, value in training.settings.items()]
        self._client.log_batch(run_id, [*metrics, standing], params)

    def _log_files(self, run_id: str, training: _FinishedTraining) -> None:
        with tempfile.TemporaryDirectory() as folder:
            training.write(Path(folder))
            self._client.log_artifacts(run_id, folder)


def _words(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _pair(events: Iterable[Event]) -> Iterator[tuple[ModelTrained | None, _End]]:
    """How each training ended, and what was trained, if an event says so."""
    trained = None
    for event in events:
        if isinstance(event, _End):
            yield trained, event
            trained = None
        elif isinstance(event, ModelTrained):
            trained = event


@dataclass(frozen=True, eq=False)
class _FinishedTraining:
    """A training that has ended, with its model if the stream has it."""

    stream: QuiltStream
    trained: ModelTrained | None
    end: _End
    clf: Net | None

    @classmethod
    def read(
        cls, stream: QuiltStream, trained: ModelTrained | None, end: _End
    ) -> _FinishedTraining:
        if not isinstance(end, ModelPromoted) or end.model not in stream.models:
            return cls(stream, trained, end, None)
        return cls(stream, trained, end, stream.fitted(end.model))

    @property
    def name(self) -> str:
        if isinstance(self.end, ModelPromoted):
            return f"model {self.end.model}"
        return f"row {self.end.row}, {self.tags[_OUTCOME]}"

    @property
    def tags(self) -> dict[str, str]:
        end = self.end
        tags = {_OUTCOME: _OUTCOMES[type(end).__name__], _ROW: end.row, _EVENT: end.number}
        tags |= {_MODEL: end.model} if isinstance(end, ModelPromoted) else {}
        return {name: str(value) for name, value in tags.items()}

    @property
    def settings(self) -> dict[str, Any]:
        """Where the new model is not there, those of the model in use, but for its seed."""
        clf, stream = self.clf, self.stream
        alike = stream.fitted() if clf is None and stream.model is not None else clf
        settings = {} if alike is None else settings_to_json(alike.get_params(deep=False))
        if clf is None:
            settings.pop("random_state", None)
        return settings | stream.settings.to_json()

    @property
    def metrics(self) -> dict[str, float]:
        metrics: dict[str, float | None] = {}
        if not isinstance(self.end, TrainingFailed):
            metrics = {"validation_loss": self.end.loss, "previous_loss": self.end.previous_loss}
        if self.trained is not None:
            metrics["seconds"] = self.trained.seconds
            metrics["n_current"] = self.trained.n_current
            metrics["n_segments"] = len(self.trained.weights)
            metrics["n_segments_used"] = len(self.trained.used)
            metrics |= {f"weight_{part}": weight for part, weight in self.trained.blend.items()}
        if self.clf is not None:
            metrics["disparity_max"] = self.clf.disparity_max_
        return {name: float(value) for name, value in metrics.items() if value is not None}

    @property
    def standing(self) -> tuple[str, float]:
        """Accuracy or mean absolute error of the stream as it is now, perhaps many rows later."""
        error = self.stream.mean_absolute_error
        if error is not None:
            return "mean_absolute_error", error
        return "accuracy", self.stream.accuracy

    def write(self, folder: Path) -> None:
        """Write the artifacts."""
        (folder / "explanation.txt").write_text(self._explain() + "\n", encoding="utf-8")
        if self.trained is not None:
            weights = json.dumps(self.trained.weights)
            (folder / "weights.json").write_text(weights, encoding="utf-8")
        if self.clf is not None:
            _write_model(self.clf, folder)

    def _explain(self) -> str:
        if self.clf is not None:
            return self.clf.selection_.explain()
        explanation = "" if self.trained is None else self.trained.explanation
        return "\n".join(filter(None, [explanation, str(self.end)]))


def _write_model(clf: Net, folder: Path) -> None:
    selection = clf.selection_
    (folder / "selection.json").write_text(json.dumps(selection.to_json()), encoding="utf-8")
    selection.plot().save(folder / "quilt.svg")
    if isinstance(clf.learner_, MLP):
        save_model(clf, folder / "model")
