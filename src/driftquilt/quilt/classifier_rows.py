"""From rows as the caller gave them to what a learner takes: matrices, weights of classes.

>>> import numpy as np
>>> rows = Rows.read(np.zeros((4, 2)), ["ham", "ham", "ham", "spam"])
>>> class_weights(rows, {"spam": 3.0})
array([1., 3.])
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_class_weight

from driftquilt.data.encoder import Encoder
from driftquilt.data.in_place import TableInPlace
from driftquilt.data.rows import Features, Rows
from driftquilt.data.table import Table
from driftquilt.errors import InputError
from driftquilt.learners.base import Learner
from driftquilt.learners.mlp import MLP
from driftquilt.quilt.method import Quilt

__all__ = ["AllRows", "class_weights", "to_matrix", "width"]


class AllRows(Protocol):
    """A history of which an estimator gets only the rows to train on (`integrations.ray`)."""

    @property
    def n_rows(self) -> Sequence[int]:
        """Rows that each segment really has, the current one last."""

    def place(
        self,
        quilt: Quilt,
        encoder: Encoder,
        classes: NDArray[Any],
        weights: NDArray[np.float64] | None,
    ) -> Quilt:
        """The method, as it scores all rows where they are."""


def class_weights(
    rows: Rows, class_weight: Mapping[Any, float] | str | None
) -> NDArray[np.float64] | None:
    """One weight per class, or None for all alike; in "balanced", classes without a row weigh 1."""
    if class_weight is None:
        return None
    weights = np.ones(len(rows.classes))
    if isinstance(class_weight, Mapping):
        labels = rows.classes.tolist()
        unknown = set(class_weight) - set(labels)
        if unknown:
            raise InputError(
                f"class_weight names {', '.join(map(repr, unknown))}, but the classes are {labels}"
            )
        weights[:] = [class_weight.get(label, 1.0) for label in labels]
    else:
        y = rows.y[rows.weight > 0]
        seen = np.unique(y)
        weights[seen] = compute_class_weight(class_weight, classes=seen, y=y)
    return weights


def width(features: Features, encoder: Encoder | None) -> int:
    """Numbers in a row."""
    if encoder is not None:
        return len(encoder.feature_names_out)
    assert isinstance(features, np.ndarray)  # noqa: S101
    return math.prod(features.shape[1:])


def to_matrix(
    rows: Features,
    encoder: Encoder | None,
    learner: Learner,
    held: NDArray[np.intp] | None = None,
) -> NDArray[Any]:
    """Rows as the learner takes them, all or those held."""
    if isinstance(rows, TableInPlace):
        assert encoder is not None  # noqa: S101
        return encoder.transform_in_place(rows, held)
    if isinstance(rows, Table):
        assert encoder is not None  # noqa: S101
        return encoder.transform(rows if held is None else rows.take(held))
    if held is not None:
        rows = rows[held]
    if not isinstance(learner, MLP):
        return rows
    if rows.ndim != 2:  # noqa: PLR2004
        raise InputError(
            f"X has shape {rows.shape}, but the default learner takes two-dimensional tables; "
            "give a learner such as TorchLearner(module) for other rows"
        )
    return rows.astype(np.float32, copy=False)
