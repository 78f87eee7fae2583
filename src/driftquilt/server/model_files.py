"""A model of a stream as a file to take away."""

from __future__ import annotations

import tempfile
from pathlib import Path

from driftquilt.errors import DriftquiltError, InputError, MissingExtraError
from driftquilt.server.problems import Problem
from driftquilt.server.served import Served

__all__ = ["model_bytes"]


def model_bytes(served: Served, version: int, kind: str) -> bytes:
    """The model as `QuiltClassifier.load` or any ONNX runtime reads it."""
    try:
        clf = served.stream.classifier(version)
    except InputError as error:
        raise Problem("model-unknown", "no model of this version is kept") from error
    if kind == "onnx":
        try:
            return clf.to_onnx()
        except MissingExtraError as error:
            raise Problem("answer-unavailable", str(error)) from error
        except DriftquiltError as error:
            raise Problem("answer-unavailable", "this model cannot be written as ONNX") from error
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        clf.save(path)
        return path.read_bytes()
