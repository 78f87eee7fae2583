"""Quilt's models as experts: the newest, which learns on, and those of before, as they were."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftquilt.data.frame import Frame, Label
from driftquilt.errors import InputError
from driftquilt.learners.nets import Nets
from driftquilt.quilt.classifier import QuiltClassifier
from driftquilt.stream.experts.base import by_part
from driftquilt.stream.experts.labels import LABEL_COLUMNS
from driftquilt.stream.features import FAR
from driftquilt.stream.snapshot import Expert

__all__ = ["Champion"]

_SHARE_LEAST = 0.015  # of a net in its model


class Champion:
    """A fitted classifier whose nets go on learning, under the number that the store knows it by.

    The classifier stays as it was trained; the nets are copies. Classes are counted by the stream,
    in order of appearance; those that the classifier never saw have probability 0 here.
    """

    def __init__(self, clf: QuiltClassifier, number: int, classes: Sequence[Label]) -> None:
        if clf.encoder_ is None:
            raise InputError("a stream's rows are encoded; its classifier cannot have encode=False")
        self.clf, self.number = clf, number
        encoder = replace(clf.encoder_, limit=FAR)  # as the online net's
        codes = np.array([classes.index(label) for label in clf.classes_.tolist()], dtype=np.int64)
        every, shares = clf.model_.models, clf.model_.shares
        # A part that counts next to nothing costs as much as the others.
        self._folds = [k for k in range(len(every)) if not shares or shares[k] >= _SHARE_LEAST]
        total = sum(shares[k] for k in self._folds) if shares else 1.0
        self._shares = [shares[k] / total for k in self._folds] if shares else []
        nets = Nets.of([every[k].copy() for k in self._folds], self._shares)
        sees_labels = any(name.startswith(LABEL_COLUMNS) for name in encoder.columns)
        self.expert = Expert(encoder, nets, codes, sees_labels)
        self._own = {code: own for own, code in enumerate(codes.tolist())}

    def learn(self, frame: Frame, code: int, n_classes: int) -> NDArray[np.float32]:
        """One step of every net, unless the class is new to them; probabilities before it."""
        own, models = self._own.get(code), self.expert.nets.models
        x = self.expert.encoder.encode(frame)
        if own is None:
            return self._spread([model.predict_proba(x)[0] for model in models], n_classes)
        return self._spread([model.learn_one(x[0], own) for model in models], n_classes)

    def as_trained(self) -> Expert:
        """Return the model as it was trained; it does not learn."""
        models = [self.clf.model_.models[k].copy() for k in self._folds]
        return replace(self.expert, nets=Nets.of(models, self._shares))

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Weights of the nets as they are now."""
        return {
            f"{fold}.{name}": tensor
            for fold, model in zip(self._folds, self.expert.nets.models, strict=True)
            for name, tensor in model.tensors().items()
        }

    def restore(self, tensors: dict[str, NDArray[Any]]) -> None:
        """Go on from the weights that `tensors` gave."""
        parts, n_classes = by_part(tensors), len(self._own)
        models = [self.clf.learner_.restore(parts.get(str(k), {}), n_classes) for k in self._folds]
        self.expert = replace(self.expert, nets=Nets.of(models, self._shares))

    def _spread(
        self, answers: Sequence[NDArray[np.float32]], n_classes: int
    ) -> NDArray[np.float32]:
        """Return the mean of the nets' answers (C',) over the classes of the stream (C,)."""
        shares, codes = self.expert.nets.shares.astype(np.float32), self.expert.codes
        mean = sum(share * answer for share, answer in zip(shares, answers, strict=True))
        spread = np.zeros(n_classes, dtype=np.float32)
        spread[codes] = mean
        return spread
