"""A net that learns every row as it comes, from the first on, and never begins anew.

It is what Quilt's model is weighed against: after a drift it is behind, but it needs no history
and no wait. Columns and classes may come late; the net grows with them.

>>> net = OnlineNet(MLP(hidden_units=16, learning_rate=0.05), seed=0)
>>> for turn in range(200):
...     _ = net.learn({"heads": float(turn % 2)}, turn % 2)
>>> int(net.predict({"heads": 1.0}).argmax()), int(net.predict({"heads": 0.0}).argmax())
(1, 0)
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftquilt.data.frame import Frame
from driftquilt.data.row import Row
from driftquilt.learners.mlp import MLP, MLPModel
from driftquilt.learners.mlp_answers import ScaledNets
from driftquilt.stream.features import FAR, Features, Scales

__all__ = ["FrozenNet", "OnlineNet"]

_NOTHING = np.empty(0, dtype=np.float32)


@dataclass(frozen=True, eq=False)
class FrozenNet:
    """The net at one moment."""

    net: MLPModel | None
    scales: Scales

    def scaled(self) -> tuple[tuple[str, ...], ScaledNets] | None:
        """Names of columns and the net that takes them, if they are all numbers."""
        scales = self.scales
        if self.net is None or not scales.width or len(scales.names) < scales.width:
            return None
        return scales.names, ScaledNets([self.net], scales.mean, scales.deviation, FAR)

    def predict(self, frame: Frame) -> NDArray[np.float32]:
        """Probabilities (n, C) of the classes so far, as `OnlineNet.predict`, but for rounding."""
        if self.net is None:
            return np.empty((len(frame), 0), dtype=np.float32)
        if not self.scales.width:
            return self.net.predict_proba(np.zeros((len(frame), 1), dtype=np.float32))
        return self.net.predict_proba(self.scales(frame))


class OnlineNet:
    """The net, the places of its columns, and how many classes it knows."""

    def __init__(self, learner: MLP, seed: int) -> None:
        self._learner = learner
        self._seed = seed
        self.features = Features()
        self._net: MLPModel | None = None

    @property
    def n_classes(self) -> int:
        """Classes that a row has had so far."""
        return 0 if self._net is None else self._net.n_classes

    def predict(self, row: Row) -> NDArray[np.float32]:
        """Probabilities of the classes so far; none before the first row."""
        if self._net is None:
            return _NOTHING
        answer: NDArray[np.float32] = self._net.predict_proba(self.vector(row)[None, :])[0]
        return answer

    def frozen(self) -> FrozenNet:
        """The net as it is now, which does not learn."""
        net = None if self._net is None else self._net.copy()
        return FrozenNet(net, self.features.frozen())

    def learn(self, row: Row, code: int) -> NDArray[np.float32]:
        """One step on a row of class `code`; gives the probabilities before it."""
        net, x = self._net, self.vector(row)  # scaled by the rows before this one
        self.features.learn(row)
        width = max(len(self.features), 1)
        if net is not None and len(x) == width and code < net.n_classes:
            return net.learn_one(x, code)
        before = _NOTHING if net is None else net.predict_proba(x[None, :])[0]
        x = np.append(x, np.zeros(width - len(x), dtype=np.float32))
        if net is None:
            self._net = self._learner.start(x[None, :], code + 1, self._seed)
        else:
            self._net = net.grow(width, max(code + 1, net.n_classes))
        self._net.learn_one(x, code)
        return before

    def vector(self, row: Row) -> NDArray[np.float32]:
        """The row as the net sees it."""
        vector = self.features(row)
        return vector if len(vector) else np.zeros(1, dtype=np.float32)

    def pack(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Weights, and everything else as plain values."""
        tensors = {} if self._net is None else self._net.tensors()
        return tensors, {"features": self.features.to_json(), "n_classes": self.n_classes}

    def unpack(self, tensors: dict[str, NDArray[Any]], record: dict[str, Any]) -> None:
        """Go on from what `pack` gave."""
        self.features = Features.from_json(record["features"])
        if tensors:
            self._net = self._learner.restore(tensors, record["n_classes"])
