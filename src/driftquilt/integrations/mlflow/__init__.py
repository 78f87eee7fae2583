"""Models and the trainings of a stream in MLflow (extra `mlflow`).

log_model, save_model  a classifier as an MLflow model
DriftRuns              each training of a stream as a run
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from driftquilt.integrations.mlflow.model import log_model, save_model
    from driftquilt.integrations.mlflow.runs import DriftRuns

__all__ = ["DriftRuns", "log_model", "save_model"]

_HOME = {"DriftRuns": "runs", "log_model": "model", "save_model": "model"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
