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
from driftquilt.inputs.row import Row, RowEncoder
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
        self._encode = RowEncoder(clf.encoder_)
        self._codes = np.array([classes.index(label) for label in clf.classes_.tolist()])
        self._own = {code: own for own, code in enumerate(self._codes.tolist())}

    def predict(self, row: Row, n_classes: int) -> NDArray[np.float32]:
        """Probabilities of the stream's classes."""
        x = self._read(row)[None, :]
        return self._spread([net.predict_proba(x)[0] for net in self._nets], n_classes)

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
        x = self._encode(row)
        np.minimum(x, _FAR, out=x)  # as in `features`
        return np.maximum(x, -_FAR, out=x)

    def _spread(
        self, answers: Sequence[NDArray[np.float32]], n_classes: int
    ) -> NDArray[np.float32]:
        spread = np.zeros(n_classes, dtype=np.float32)
        spread[self._codes] = sum(answers[1:], answers[0]) / np.float32(len(answers))
        return spread
