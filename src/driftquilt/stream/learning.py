"""Everything that a stream knows, as it follows from its rows: one row in, one step further.

Two models answer together: the champion, which Quilt trained last, and a net that has learned
online from the first row on. Their probabilities are averaged, weighed by how well each has
predicted of late. So a stream has an answer before the first training, and a model that turns
out worse than plain online learning soon has no say.

    p = w · champion + (1 - w) · online      w = 1 / (1 + exp(champion's loss - online's loss))

where a loss is the sum of -log p over past rows, each faded by `FADE` per row since.

Nothing here is random or looks at a clock, so the same rows lead to the same state; a restart
relies on it.

Paper: Algorithm 2, but for the segments and the training, which are the runner's.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from driftquilt.data.frame import Frame
from driftquilt.data.row import Row
from driftquilt.detectors.base import Detector
from driftquilt.learners.mlp import MLP
from driftquilt.learners.mlp_answers import ScaledNets
from driftquilt.stream.champion import Champion, FrozenChampion
from driftquilt.stream.online import FrozenNet, OnlineNet
from driftquilt.stream.rows import Label

__all__ = ["FADE", "FrozenLearning", "Learning"]

FADE = 0.99
_RATE = 0.01  # of the online net
_LEAST_PROBABILITY = 1e-3
_MOST = 30.0  # beyond it, exp makes no difference
_FEW = 2_048  # numbers in rows that are answered faster one by one
_CLOSE = 1e-4  # far above what rounding does to a probability


class FrozenLearning:
    """The two models and their balance at one moment; any number of threads may ask."""

    def __init__(
        self,
        classes: Sequence[Label],
        champion: FrozenChampion | None,
        online: FrozenNet,
        share: np.float32,
    ) -> None:
        self.classes = tuple(classes)
        self._champion, self._online, self._share = champion, online, share
        self._short = _short_way(champion, online, float(share), len(self.classes))

    def predict(self, frame: Frame) -> NDArray[np.float32]:
        """Probabilities (n, C) of the classes, as `Learning.predict`, but for rounding."""
        if self._short and frame.numbers.size <= _FEW and not frame.texts:
            return self._predict_few(frame)
        online = self._online.predict(frame)
        if self._champion is None:
            return online
        return _mix(self._champion.predict(frame, len(self.classes)), online, self._share)

    def _predict_few(self, frame: Frame) -> NDArray[np.float32]:
        if self._champion is not None:
            self._champion.encode.expect(frame)
        probabilities = np.zeros((len(frame), len(self.classes)), dtype=np.float32)
        for names, nets, share in self._short:
            nets.add(frame.select(names), share, probabilities)
        return probabilities


_Part: TypeAlias = tuple[tuple[str, ...], ScaledNets, float]


def _short_way(
    champion: FrozenChampion | None, online: FrozenNet, share: float, n_classes: int
) -> list[_Part]:
    """Both models as scaled nets with their share, if numbers are all that either knows."""
    plain = online.scaled()
    if plain is None or online.net is None or online.net.n_classes != n_classes:
        return []
    if champion is None:
        return [(*plain, 1.0)]
    trained = champion.scaled(n_classes)
    return [] if trained is None else [(*trained, share), (*plain, 1.0 - share)]


class Learning:
    """The two models, their balance, the detector, and what has been counted."""

    def __init__(self, detector: Detector, seed: int, n_recent: int) -> None:
        self.classes: list[Label] = []
        self._codes: dict[Label, int] = {}
        self.online = OnlineNet(MLP(learning_rate=_RATE), seed)
        self.champion: Champion | None = None
        self.detector = detector
        self.n_rows = 0
        self.n_right = 0
        self._losses = [0.0, 0.0]  # faded: champion's, online's
        self._recent: deque[float] = deque(maxlen=n_recent)  # champion's, of the current segment
        self._width = 0  # of the rows that the detector watches

    @property
    def recent_loss(self) -> float | None:
        """The champion's mean loss over the last rows of the current segment."""
        return float(np.mean(self._recent)) if self._recent else None

    def predict(self, row: Row) -> NDArray[np.float32]:
        """Probabilities of the classes so far."""
        online = self.online.predict(row)
        if self.champion is None:
            return online
        return self._mix(self.champion.predict(row, len(self.classes)), online)

    def answer_many(self, rows: Sequence[Row]) -> list[Label | None]:
        """The most probable label of each row, the one that `predict` tells; None before the first.

        A matrix is multiplied in another order than a row, so where two labels are all but
        equal the row is asked alone.
        """
        if not self.classes or not rows:
            return [None] * len(rows)
        probabilities = self.frozen().predict(Frame.of_rows(rows))
        codes = probabilities.argmax(axis=1)
        for at in _close(probabilities):
            codes[at] = self.predict(rows[at]).argmax()
        return [self.classes[code] for code in codes.tolist()]

    def frozen(self) -> FrozenLearning:
        """What answers now, which does not learn."""
        champion = None if self.champion is None else self.champion.frozen()
        return FrozenLearning(self.classes, champion, self.online.frozen(), self._share)

    def learn(self, row: Row, label: Label) -> bool:
        """Predict, learn, detect; whether the detector fired."""
        n_known = len(self.classes)
        watched = self.online.vector(row) if self.detector.watches == "row" else None
        code = self._code(label)
        answer = self.online.learn(row, code)
        if self.champion is not None:
            own = self.champion.learn(row, code, len(self.classes))[:n_known]
            answer, online = self._mix(own, answer), answer
            self._weigh(own, online, code)
        wrong = n_known > 0 and int(answer.argmax()) != code
        self.n_rows += 1
        self.n_right += n_known > 0 and not wrong
        return self._detect(float(wrong), watched)

    def crown(self, champion: Champion | None) -> None:
        """Let a new model answer; both models begin with an equal say."""
        self.champion = champion
        self._losses = [0.0, 0.0]
        self._recent.clear()

    def begin_segment(self, *, drift: bool) -> None:
        """Forget what was counted of the segment that ended; after a drift, the detector does."""
        self._recent.clear()
        if drift:
            self.detector = self.detector.fresh()

    def pack(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Weights, and everything else as plain values."""
        tensors, online = self.online.pack()
        tensors = {f"online.{name}": tensor for name, tensor in tensors.items()}
        if self.champion is not None:
            nets = self.champion.tensors()
            tensors |= {f"champion.{name}": tensor for name, tensor in nets.items()}
        return tensors, {
            "classes": self.classes,
            "online": online,
            "detector": self.detector.state(),
            "counts": [self.n_rows, self.n_right, self._width],
            "losses": self._losses,
            "recent": list(self._recent),
        }

    def unpack(
        self,
        tensors: dict[str, NDArray[Any]],
        record: dict[str, Any],
        champion: Champion | None,
    ) -> None:
        """Go on from what `pack` gave; the champion comes as it was trained."""
        parts: dict[str, dict[str, NDArray[Any]]] = {"online": {}, "champion": {}}
        for name, tensor in tensors.items():
            kind, _, rest = name.partition(".")
            parts[kind][rest] = tensor
        self.online.unpack(parts["online"], record["online"])
        self.champion = champion
        if champion is not None:
            champion.restore(parts["champion"])
        self.classes = list(record["classes"])
        self._codes = {label: code for code, label in enumerate(self.classes)}
        self.detector.restore(record["detector"])
        self.n_rows, self.n_right, self._width = record["counts"]
        self._losses = list(record["losses"])
        self._recent.clear()
        self._recent.extend(record["recent"])

    def _code(self, label: Label) -> int:
        code = self._codes.setdefault(label, len(self.classes))
        if code == len(self.classes):
            self.classes.append(label)
        return code

    def _mix(
        self, champion: NDArray[np.float32], online: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        return _mix(champion, online, self._share)

    @property
    def _share(self) -> np.float32:
        """How much the champion has to say."""
        ahead = max(-_MOST, min(_MOST, self._losses[0] - self._losses[1]))
        return np.float32(1 / (1 + math.exp(ahead)))

    def _weigh(self, champion: NDArray[np.float32], online: NDArray[np.float32], code: int) -> None:
        for at, answer in enumerate((champion, online)):
            likelihood = float(answer[code]) if code < len(answer) else 0.0
            loss = -math.log(max(likelihood, _LEAST_PROBABILITY))
            self._losses[at] = FADE * self._losses[at] + loss
            if at == 0:
                self._recent.append(loss)

    def _detect(self, wrong: float, watched: NDArray[np.float32] | None) -> bool:
        if watched is None:
            self.detector.update(wrong)
        else:
            if len(watched) != self._width:  # columns came: what it has seen says nothing of them
                self.detector, self._width = self.detector.fresh(), len(watched)
            self.detector.update(watched)
        return self.detector.drift_detected


def _mix(
    champion: NDArray[np.float32], online: NDArray[np.float32], share: np.float32
) -> NDArray[np.float32]:
    mixed: NDArray[np.float32] = share * champion + (1 - share) * online
    return mixed


def _close(probabilities: NDArray[np.float32]) -> list[int]:
    """Rows of (n, C) whose two most probable classes rounding might swap."""
    if probabilities.shape[1] == 1:
        return []
    two = np.partition(probabilities, -2, axis=1)[:, -2:]
    close: list[int] = np.flatnonzero(two[:, 1] - two[:, 0] < _CLOSE).tolist()
    return close
