"""The contract every trained thing obeys.

A `Learner` is a recipe: it holds settings and starts models. A `Model` is one set of weights
with what it takes to go on training them. Promises of both:

- `start` with the same arguments gives the same weights, bit for bit.
- A model never changes the rows it is given and keeps no reference to them.
- `copy` is deep: training one of the two leaves the other as it was.
- `restore(model.tensors(), ...)` predicts exactly as `model` does. The optimiser's state is
  not part of it: a restored model starts its training afresh.
- `train_epoch` draws everything random from the generator it is given.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from driftquilt.core.training import Trainable

__all__ = ["Learner", "Model"]


class Model(Trainable, Protocol):
    """Weights that can be trained, asked and saved."""

    @property
    def n_classes(self) -> int: ...

    def predict_proba(self, X: NDArray[Any]) -> NDArray[np.float32]:
        """Class probabilities of each row, shape (n, C)."""

    def embed(self, X: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return what each row sends into the head, (n, H), and its class probabilities, (n, C)."""

    def learn_one(self, x: NDArray[Any], y: int) -> NDArray[np.float32]:
        """One plain gradient step on one row (Algorithm 2), `x` without the row axis.

        Returns the class probabilities (C,) before the step: those of predict-then-learn.
        """

    def add_to_logits(self, offsets: NDArray[np.float64]) -> None:
        """Add to the logit of each class (C,) from now on."""

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Return the weights by name; copies, which later training leaves as they are."""


class Learner(Protocol):
    """A recipe for models."""

    def start(self, X: NDArray[Any], n_classes: int, seed: int) -> Model:
        """Return a new model for rows like those of X, which has at least one."""

    def restore(self, tensors: Mapping[str, NDArray[Any]], n_classes: int) -> Model:
        """Return a model with weights from `Model.tensors`; ModelFileError if they do not fit."""

    def settings(self) -> dict[str, Any]:
        """Return the settings that distinguish this recipe from others of its kind, as JSON."""
