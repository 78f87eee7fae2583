"""A classifier as an MLflow model, which `mlflow.pyfunc.load_model` reads anywhere.

The model's folder holds the file that `QuiltClassifier.save` writes, and the name of this module,
which reads it again: nothing is pickled, and nothing unpickled. It answers a pandas table with one
that has the most probable label under "prediction" and the probability of each as "p(label)".

    log_model(clf)             in the active run, as "model"
    save_model(clf, "folder")  without any server

Further settings go to MLflow as they are: `signature`, `input_example`, `registered_model_name`.
It takes the extra `mlflow`. A model of a learner of your own is refused: it needs that code to be
loaded. What MLflow refuses is an `InputError`, a server or a database that is away a
`ServiceError`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sklearn.utils.validation import check_is_fitted

from driftquilt import __version__
from driftquilt.errors import InputError, LearnerError, MissingExtraError, ServiceError
from driftquilt.learners.mlp import MLP
from driftquilt.quilt.classifier import QuiltClassifier

__all__ = ["Predictor", "import_mlflow", "log_model", "save_model", "translated"]

_FILE = "model.safetensors"
_OF_THE_CALLER = {"INVALID_PARAMETER_VALUE", "RESOURCE_ALREADY_EXISTS", "RESOURCE_DOES_NOT_EXIST"}


def log_model(clf: QuiltClassifier, name: str = "model", **settings: Any) -> Any:
    """Log a fitted classifier under a name; returns MLflow's description of it, with its URI."""
    with _saved(clf) as file, translated("logging the model"):
        return import_mlflow().pyfunc.log_model(name=name, **_flavour(file), **settings)


def save_model(clf: QuiltClassifier, path: str | os.PathLike[str], **settings: Any) -> None:
    """Write a fitted classifier to a new folder, as MLflow lays it out."""
    with _saved(clf) as file, translated("saving the model"):
        import_mlflow().pyfunc.save_model(path=os.fspath(path), **_flavour(file), **settings)


class Predictor:
    """What MLflow asks; the table may have further columns."""

    def __init__(self, clf: QuiltClassifier) -> None:
        self.clf = clf

    def predict(self, model_input: Any, params: Any = None) -> Any:  # noqa: ARG002  # MLflow's names
        """A pandas table of answers, with the rows' index where they have one."""
        import pandas as pd  # type: ignore[import-untyped]  # noqa: PLC0415

        chances = self.clf.predict_proba(model_input)
        labels = self.clf.classes_[chances.argmax(axis=1)]
        columns = {f"p({label})": chances[:, c] for c, label in enumerate(self.clf.classes_)}
        index = model_input.index if isinstance(model_input, pd.DataFrame) else None
        return pd.DataFrame({"prediction": labels, **columns}, index=index)


def import_mlflow() -> Any:
    """MLflow, which takes seconds to import."""
    try:
        import mlflow.pyfunc  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError("mlflow", extra="mlflow") from error
    return mlflow


@contextmanager
def translated(doing: str) -> Iterator[None]:
    """What MLflow or its database says no to becomes an error of ours."""
    mlflow = import_mlflow()
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


def _load_pyfunc(path: str) -> Predictor:
    """What MLflow calls to load a model, by this very name."""
    return Predictor(QuiltClassifier.load(path))


@contextmanager
def _saved(clf: QuiltClassifier) -> Iterator[str]:
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
