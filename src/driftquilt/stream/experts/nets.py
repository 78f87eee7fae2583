"""Nets as experts: one that learns from the first row on, and those of Quilt's newest model.

- `learn` returns what the net would have answered *before* it learned the row, from this row and
  labels that have arrived. Classes that came later than the net have no probability.
- `expert` is what answers now, as a value that `Snapshot` can ask; a copy of it does not change.
- A net that is restored from its tensors goes on bit for bit. Nothing is random, and nothing looks
  at a clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from driftquilt.data.frame import Frame, Label
from driftquilt.data.rows import Target
from driftquilt.errors import InputError
from driftquilt.learners.mlp import MLP, MLPModel, MLPRegression, Nets, RegressionModel
from driftquilt.quilt.classifier import QuiltClassifier
from driftquilt.quilt.regressor import QuiltRegressor
from driftquilt.stream.experts.labels import LABEL_COLUMNS, NumberHistory
from driftquilt.stream.features import FAR, Features
from driftquilt.stream.snapshot import Expert, NumberExpert

__all__ = [
    "Champion",
    "NumberChampion",
    "OnlineNet",
    "OnlineRegression",
    "Tensors",
    "by_part",
    "prefixed",
]

Tensors: TypeAlias = dict[str, NDArray[Any]]

_SHARE_LEAST = 0.015  # of a net in its model


class OnlineNet:
    """A net that learns every row as it comes, from the first on, and never restarts.

    It is what Quilt's model is weighed against: after a drift it is behind, but it needs no history
    and no wait. Columns and classes may come late; the net grows with them.

    >>> net = OnlineNet(MLP(hidden_units=16, learning_rate=0.05), seed=0)
    >>> for turn in range(200):
    ...     _ = net.learn(Frame.of_row({"heads": float(turn % 2)}), turn % 2)
    >>> probabilities = np.zeros((2, 2), dtype=np.float32)
    >>> net.expert.add(Frame.of_rows([{"heads": 1.0}, {"heads": 0.0}]), 1.0, probabilities)
    >>> probabilities.argmax(axis=1)
    array([1, 0])
    """

    def __init__(self, learner: MLP, seed: int, *, sees_labels: bool = False) -> None:
        """With `sees_labels` its rows have the columns of `LabelHistory`."""
        self._learner, self._sees_labels = learner, sees_labels
        self._seed = seed
        self.features = Features()
        self._net: MLPModel | None = None
        self._nets, self._codes = Nets.of(()), np.arange(0)

    @property
    def n_classes(self) -> int:
        """Classes that a row has had so far."""
        return 0 if self._net is None else self._net.n_classes

    @property
    def expert(self) -> Expert:
        """What answers; from the first row on."""
        return Expert(self.features.encoder, self._nets, self._codes, self._sees_labels)

    def encode(self, frame: Frame) -> NDArray[np.float32]:
        """Encode a row as the net sees it (d,), scaled by the rows learned so far."""
        encoder = self.features.encoder
        if not encoder.width:
            return np.zeros(1, dtype=np.float32)
        x: NDArray[np.float32] = encoder.encode(frame)[0]
        return x

    def learn(
        self, frame: Frame, code: int, x: NDArray[np.float32] | None = None
    ) -> NDArray[np.float32]:
        """One step on a row of class `code`; gives the probabilities before it.

        `x` is the row as `encode` gave it, if it did.
        """
        net, x = self._net, self.encode(frame) if x is None else x
        self.features.learn(frame)
        width = max(len(self.features), 1)
        if net is not None and len(x) == width and code < net.n_classes:
            return net.learn_one(x, code)
        before = np.empty(0, dtype=np.float32) if net is None else net.predict_proba(x[None, :])[0]
        x = np.append(x, np.zeros(width - len(x), dtype=np.float32))
        if net is None:
            self._use(self._learner.start(x[None, :], code + 1, self._seed))
        else:
            self._use(net.grow(width, max(code + 1, net.n_classes)))
        if self._net is not None:
            self._net.learn_one(x, code)
        return before

    def pack(self) -> tuple[Tensors, dict[str, Any]]:
        """Weights, and everything else as plain values."""
        tensors, features = self.features.pack()
        tensors = {f"features.{name}": tensor for name, tensor in tensors.items()}
        tensors |= {} if self._net is None else self._net.tensors()
        return tensors, {"features": features, "n_classes": self.n_classes}

    def unpack(self, tensors: Tensors, record: dict[str, Any]) -> None:
        """Go on from what `pack` gave."""
        prefix = "features."
        known = {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
        weights = {n: t for n, t in tensors.items() if not n.startswith(prefix)}
        self.features = Features.unpack(known, record["features"])
        if weights:
            self._use(self._learner.restore(weights, record["n_classes"]))

    def _use(self, net: Any) -> None:
        self._net, self._nets, self._codes = net, Nets.of([net]), np.arange(net.n_classes)


class OnlineRegression(OnlineNet):
    """The same for numbers; it learns them on the scale that `NumberHistory` follows.

    Where the scale changes, the last layer is changed so that what it answers stays the same.

    >>> labels = NumberHistory()
    >>> net = OnlineRegression(MLPRegression(16, 0.05), 0, labels)
    >>> for turn in range(200):
    ...     _ = net.learn(Frame.of_row({"heads": float(turn % 2)}), 5.0 + turn % 2)
    ...     labels.learn(5.0 + turn % 2)
    >>> answer = np.zeros((1, 1))
    >>> net.expert.add(Frame.of_row({"heads": 1.0}), 1.0, answer)
    >>> round(answer.item(), 1)
    6.0
    """

    _learner: MLPRegression

    def __init__(
        self, learner: MLPRegression, seed: int, labels: NumberHistory, *, sees_labels: bool = False
    ) -> None:
        super().__init__(learner, seed, sees_labels=sees_labels)
        self._labels, self._target = labels, labels.target

    @property
    def expert(self) -> NumberExpert:
        """What answers; from the first row on."""
        target = self._target
        if not target.spread:  # as long as all labels are the same
            target = replace(self._labels.target, spread=0.0)
        parts = self.features.encoder, self._nets, self._codes, self._sees_labels
        return NumberExpert(*parts, target, self._learner.loss.middle)

    def learn(self, frame: Frame, y: float, x: NDArray[np.float32] | None = None) -> NDArray[Any]:
        """One step on a row whose label is y; gives the number (1,) before it, if there is one."""
        net: Any = self._net
        x, is_first, before = self.encode(frame) if x is None else x, net is None, self._target
        self.features.learn(frame)
        width = max(len(self.features), 1)
        x = np.append(x, np.zeros(width - len(x), dtype=np.float32))
        if is_first:
            self._use(self._learner.start(x[None, :], self._learner.loss.n_outputs, self._seed))
        elif width > net.n_features:
            self._use(net.grow(width))
        self._follow_scale()
        net, target = self._net, self._target
        if target.spread:
            outputs = net.learn_one(x, (y - target.middle) / target.spread)
        else:  # all labels were the same
            outputs = net.predict(x[None, :])[0]
        if is_first:
            return np.zeros(0)
        return self.expert.restore(outputs[None, :]) if before.spread else np.array([target.middle])

    def pack(self) -> tuple[Tensors, dict[str, Any]]:
        """Weights, and everything else as plain values."""
        tensors, record = super().pack()
        return tensors, {**record, "target": [self._target.middle, self._target.spread]}

    def unpack(self, tensors: Tensors, record: dict[str, Any]) -> None:
        """Go on from what `pack` gave."""
        super().unpack(tensors, record)
        self._target = Target(*record["target"])

    def _follow_scale(self) -> None:
        old, new = self._target, self._labels.target
        if new is not old and old.spread and new.spread:
            factor, shift = old.spread / new.spread, (old.middle - new.middle) / new.spread
            cast("RegressionModel", self._net).scale_outputs(factor, shift)
        self._target = new


class Champion:
    """A fitted classifier whose nets go on learning, under the number that the store knows it by.

    The classifier stays as it was trained; the nets are copies. Classes are counted by the stream,
    in order of appearance; those that the classifier never saw have probability 0 here.
    """

    def __init__(self, clf: QuiltClassifier, number: int, classes: Sequence[Label]) -> None:
        codes = np.array([classes.index(label) for label in clf.classes_.tolist()], dtype=np.int64)
        self._take(clf, number, codes)
        self.answer_weights = clf.answer_weights
        self._own = {code: own for own, code in enumerate(codes.tolist())}

    def _take(
        self, clf: QuiltClassifier | QuiltRegressor, number: int, codes: NDArray[np.int64]
    ) -> None:
        """Make an expert of the nets that count."""
        if clf.encoder_ is None:
            raise InputError("a stream's rows are encoded; its estimator cannot have encode=False")
        self.clf, self.number = clf, number
        encoder = replace(clf.encoder_, limit=FAR)  # as the online net's
        every, shares = clf.model_.models, clf.model_.shares
        # A part that counts next to nothing costs as much as the others.
        self._folds = [k for k in range(len(every)) if not shares or shares[k] >= _SHARE_LEAST]
        total = sum(shares[k] for k in self._folds) if shares else 1.0
        self._shares = [shares[k] / total for k in self._folds] if shares else []
        nets = Nets.of([every[k].copy() for k in self._folds], self._shares)
        sees_labels = any(name.startswith(LABEL_COLUMNS) for name in encoder.columns)
        self.expert = Expert(encoder, nets, codes, sees_labels)

    def learn(self, frame: Frame, code: int, n_classes: int) -> NDArray[Any]:
        """One step of every net, unless the class is new to them; probabilities before it."""
        own, models = self._own.get(code), self.expert.nets.models
        x = self.expert.encoder.encode(frame)
        if own is None:
            return self._spread([model.predict_proba(x)[0] for model in models], n_classes)
        return self._spread([model.learn_one(x[0], own) for model in models], n_classes)

    def as_trained(self) -> Expert:
        """Return the model as it was trained; it does not learn."""
        models = [cast(Any, self.clf.model_.models[k]).copy() for k in self._folds]
        return replace(self.expert, nets=Nets.of(models, self._shares))

    def tensors(self) -> Tensors:
        """Weights of the nets as they are now."""
        return {
            f"{fold}.{name}": tensor
            for fold, model in zip(self._folds, self.expert.nets.models, strict=True)
            for name, tensor in model.tensors().items()
        }

    def restore(self, tensors: Tensors) -> None:
        """Go on from the weights that `tensors` gave."""
        parts, n_classes = by_part(tensors), len(self.expert.codes)
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


class NumberChampion(Champion):
    """A fitted regressor in its place; its nets learn by the loss that they were trained by."""

    expert: NumberExpert
    answer_weights = None

    def __init__(self, regressor: QuiltRegressor, number: int) -> None:
        loss, target = regressor.net_loss, regressor.target_
        self._take(regressor, number, np.arange(loss.n_outputs))
        e = self.expert
        self.expert = NumberExpert(e.encoder, e.nets, e.codes, e.sees_labels, target, loss.middle)

    def learn(self, frame: Frame, y: float, n_outputs: int) -> NDArray[Any]:  # noqa: ARG002
        """One step of every net on a row whose label is y; the number (1,) before it."""
        expert, target = self.expert, self.expert.target
        scaled = (y - target.middle) / target.spread
        x = expert.encoder.encode(frame)[0]
        outputs = np.array([model.learn_one(x, scaled) for model in expert.nets.models])
        return expert.restore((expert.nets.shares @ outputs)[None, :])


def prefixed(prefix: str, tensors: Tensors) -> Tensors:
    """Tensors with a part's name before theirs."""
    return {f"{prefix}.{name}": tensor for name, tensor in tensors.items()}


def by_part(tensors: Tensors) -> dict[str, Tensors]:
    """Tensors by the part that their names begin with.

    >>> by_part({"online.theta": np.zeros(1)})
    {'online': {'theta': array([0.])}}
    """
    parts: dict[str, Tensors] = {}
    for name, tensor in tensors.items():
        part, _, rest = name.partition(".")
        parts.setdefault(part, {})[rest] = tensor
    return parts
