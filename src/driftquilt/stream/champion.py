"""The model in use: a fitted classifier whose nets go on learning, row by row.

The classifier stays as it was trained; the nets are copies. Classes are counted by the stream,
in order of appearance; those that the classifier never saw have probability 0 here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftquilt.data.frame import Frame
from driftquilt.data.row import Row, RowEncoder
from driftquilt.errors import InputError
from driftquilt.learners.base import Model
from driftquilt.learners.mlp import MLPModel
from driftquilt.learners.mlp_answers import ScaledNets
from driftquilt.quilt.classifier import QuiltClassifier
from driftquilt.stream.features import FAR
from driftquilt.stream.rows import Label

__all__ = ["Champion", "FrozenChampion"]

_FAR = np.float32(FAR)


@dataclass(frozen=True, eq=False)
class FrozenChampion:
    """A champion at one moment."""

    number: int
    nets: Sequence[Model]
    encode: RowEncoder
    codes: NDArray[np.intp]

    def scaled(self, n_classes: int) -> tuple[tuple[str, ...], ScaledNets] | None:
        """Names of columns and nets that take them, if they are all numbers, and so are rows."""
        scale, nets = self.encode.scale(), [n for n in self.nets if isinstance(n, MLPModel)]
        if scale is None or len(self.codes) < n_classes or len(nets) < len(self.nets):
            return None
        names, mean, deviation = scale
        return names, ScaledNets(nets, mean, deviation, FAR, np.argsort(self.codes))

    def predict(self, frame: Frame, n_classes: int) -> NDArray[np.float32]:
        """Probabilities (n, C) of the stream's classes, as `Champion.predict`, but for rounding."""
        X = _clip(self.encode.many(frame))
        return _spread([net.predict_proba(X) for net in self.nets], self.codes, n_classes)


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
        answers = [net.predict_proba(x)[0] for net in self._nets]
        return _spread(answers, self._codes, n_classes)

    def frozen(self) -> FrozenChampion:
        """The nets as they are now, which do not learn."""
        return FrozenChampion(
            self.number, [n.copy() for n in self._nets], self._encode, self._codes
        )

    def learn(self, row: Row, code: int, n_classes: int) -> NDArray[np.float32]:
        """One step of every net, unless the class is new to them; probabilities before it."""
        own = self._own.get(code)
        if own is None:
            return self.predict(row, n_classes)
        x = self._read(row)
        answers = [net.learn_one(x, own) for net in self._nets]
        return _spread(answers, self._codes, n_classes)

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
        return _clip(self._encode(row))


def _clip(x: NDArray[np.float32]) -> NDArray[np.float32]:
    np.minimum(x, _FAR, out=x)  # as in `features`
    return np.maximum(x, -_FAR, out=x)


def _spread(
    answers: Sequence[NDArray[np.float32]], codes: NDArray[np.intp], n_classes: int
) -> NDArray[np.float32]:
    """The mean of the nets' answers, (C',) or (n, C'), over the classes of the stream."""
    mean = sum(answers[1:], answers[0]) / np.float32(len(answers))
    if len(codes) == n_classes and (codes[:-1] < codes[1:]).all():  # the same, in the same order
        return mean
    spread = np.zeros((*mean.shape[:-1], n_classes), dtype=np.float32)
    spread[..., codes] = mean
    return spread
