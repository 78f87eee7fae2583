"""A net that learns every row as it comes, with a scale that follows the rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftquilt.data.frame import Frame
from driftquilt.learners.mlp import MLP, MLPModel
from driftquilt.learners.nets import Nets
from driftquilt.stream.features import Features
from driftquilt.stream.snapshot import Expert

__all__ = ["OnlineNet"]


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

    def pack(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Weights, and everything else as plain values."""
        tensors, features = self.features.pack()
        tensors = {f"features.{name}": tensor for name, tensor in tensors.items()}
        tensors |= {} if self._net is None else self._net.tensors()
        return tensors, {"features": features, "n_classes": self.n_classes}

    def unpack(self, tensors: dict[str, NDArray[Any]], record: dict[str, Any]) -> None:
        """Go on from what `pack` gave."""
        prefix = "features."
        known = {n.removeprefix(prefix): t for n, t in tensors.items() if n.startswith(prefix)}
        weights = {n: t for n, t in tensors.items() if not n.startswith(prefix)}
        self.features = Features.unpack(known, record["features"])
        if weights:
            self._use(self._learner.restore(weights, record["n_classes"]))

    def _use(self, net: MLPModel) -> None:
        self._net, self._nets, self._codes = net, Nets.of([net]), np.arange(net.n_classes)
