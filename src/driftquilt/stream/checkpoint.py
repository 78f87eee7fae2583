"""What a stream writes down so that a restart finds it as it was, and what it reads back.

A checkpoint is everything that followed from the rows so far: weights, scales, the detector's
state, counts. Rows after it are in the store, and learning them again leads to the same state.
Checkpoints and models are kept in the store side by side, told apart by their record.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as read_tensors
from safetensors.numpy import save as to_bytes

from driftquilt.errors import StoreError
from driftquilt.learners.base import Learner
from driftquilt.quilt.classifier import QuiltClassifier
from driftquilt.quilt.model_file import unpack
from driftquilt.store.base import State, Store

__all__ = [
    "drop_models",
    "put_checkpoint",
    "put_model",
    "read_checkpoint",
    "read_model",
    "versions",
]

Tensors = dict[str, NDArray[Any]]


def put_checkpoint(
    store: Store, tensors: Tensors, record: dict[str, Any], state: State | None = None
) -> None:
    """Keep a checkpoint in place of the one before, and state in the same step."""
    number = store.put_model(_to_bytes(tensors), {"kind": "checkpoint", **record}, state)
    for model in store.models:
        if model.record.get("kind") == "checkpoint" and model.number != number:
            store.drop_model(model.number)


def read_checkpoint(store: Store) -> tuple[Tensors, dict[str, Any]] | None:
    """The last checkpoint, if there is one."""
    numbers = [model.number for model in store.models if model.record.get("kind") == "checkpoint"]
    return _read(store, numbers[-1]) if numbers else None


def put_model(store: Store, version: int, tensors: Tensors, record: dict[str, Any]) -> None:
    """Keep a trained classifier under its version."""
    store.put_model(_to_bytes(tensors), {"kind": "model", "version": version, "clf": record})


def versions(store: Store) -> dict[int, int]:
    """Where in the store each version stands."""
    return {
        model.record["version"]: model.number
        for model in store.models
        if model.record.get("kind") == "model"
    }


def read_model(store: Store, version: int, learner: Learner | None) -> QuiltClassifier:
    """The classifier of a version."""
    tensors, record = _read(store, versions(store)[version])
    where = f"version {version} in the store"
    return unpack(QuiltClassifier, tensors, record["clf"], learner, where)


def drop_models(store: Store, *, last: int, limit: int) -> None:
    """Forget the oldest models beyond the limit, and versions after the last, left by a crash."""
    for version, number in versions(store).items():
        if not last - limit < version <= last:
            store.drop_model(number)


def _to_bytes(tensors: Tensors) -> bytes:
    content: bytes = to_bytes({n: np.ascontiguousarray(t) for n, t in tensors.items()})
    return content


def _read(store: Store, number: int) -> tuple[Tensors, dict[str, Any]]:
    content, record = store.model(number)
    try:
        return read_tensors(content), record
    except (SafetensorError, ValueError, json.JSONDecodeError) as error:
        raise StoreError(f"model {number} of the store is not one of a stream: {error}") from error
