"""The model in use: a fitted classifier whose nets go on learning, row by row.

The classifier stays as it was trained; the nets are copies. Classes are counted by the stream,
in order of appearance; those that the classifier never saw have probability 0 here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftquilt.errors import InputError
from driftquilt.estimator import QuiltClassifier
from driftquilt.inputs.encoder import Encoder
from driftquilt.inputs.features import Numbers
from driftquilt.inputs.row import Row, RowEncoder
from driftquilt.inputs.table import Table
from driftquilt.stream.features import FAR
from driftquilt.stream.rows import Label

__all__ = ["Champion"]

_FAR = np.float32(FAR)


class Champion:
    """A classifier under the number that the store knows it by."""

    def __init__(self, clf: QuiltClassifier, number: int, classes: Sequence[Label]) -> None:
        if clf.encoder_ is None:
            raise InputError("a stream's rows are encoded; its classifier cannot have encode=False")
        self.clf, self.number = clf, number
        self._nets = [model.copy() for model in clf.model_.models]
        self._encoder, self._encode = clf.encoder_, RowEncoder(clf.encoder_)
        self._codes = np.array([classes.index(label) for label in clf.classes_.tolist()])
        self._own = {code: own for own, code in enumerate(self._codes.tolist())}

    def predict(self, row: Row, n_classes: int) -> NDArray[np.float32]:
        """Probabilities of the stream's classes."""
        x = self._read(row)[None, :]
        return self._spread([net.predict_proba(x)[0] for net in self._nets], n_classes)

    def predict_many(self, rows: Sequence[Row], n_classes: int) -> NDArray[np.float32]:
        """Probabilities (n, C) of many rows; as `predict` gives them, but for rounding."""
        X = self._clip(self._encoder.transform(_to_table(rows, self._encoder)))
        return self._spread([net.predict_proba(X) for net in self._nets], n_classes)

    def learn(self, row: Row, code: int, n_classes: int) -> NDArray[np.float32]:
        """One step of every net, unless the class is new to them; probabilities before it."""
        own = self._own.get(code)
        if own is None:
            return self.predict(row, n_classes)
        x = self._read(row)
        return self._spread([net.learn_one(x, own) for net in self._nets], n_classes)

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Weights of the nets as they are now."""
        return {
            f"{fold}.{name}": tensor
            for fold, net in enumerate(self._nets)
            for name, tensor in net.tensors().items()
        }

    def restore(self, tensors: dict[str, NDArray[Any]]) -> None:
        """Go on from the weights that `tensors` gave."""
        for fold in range(len(self._nets)):
            own = {
                name.partition(".")[2]: tensor
                for name, tensor in tensors.items()
                if name.partition(".")[0] == str(fold)
            }
            self._nets[fold] = self.clf.learner_.restore(own, len(self._codes))

    def _read(self, row: Row) -> NDArray[np.float32]:
        return self._clip(self._encode(row))

    @staticmethod
    def _clip(x: NDArray[np.float32]) -> NDArray[np.float32]:
        np.minimum(x, _FAR, out=x)  # as in `features`
        return np.maximum(x, -_FAR, out=x)

    def _spread(
        self, answers: Sequence[NDArray[np.float32]], n_classes: int
    ) -> NDArray[np.float32]:
        """The mean of the nets' answers, (C',) or (n, C'), over the classes of the stream."""
        spread = np.zeros((*answers[0].shape[:-1], n_classes), dtype=np.float32)
        spread[..., self._codes] = sum(answers[1:], answers[0]) / np.float32(len(answers))
        return spread


def _to_table(rows: Sequence[Row], encoder: Encoder) -> Table:
    """The columns that an encoder knows; what a row lacks is missing."""
    columns = tuple(
        np.array(
            [row.get(column.name) for row in rows],
            dtype=np.float64 if isinstance(column, Numbers) else object,
        )
        for column in encoder.columns
    )
    return Table(tuple(column.name for column in encoder.columns), columns, named=encoder.named)
