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
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftquilt.data.frame import Frame, Row
from driftquilt.data.labels import Label
from driftquilt.detectors.base import Detector, RecordedDetector
from driftquilt.learners.mlp import MLP
from driftquilt.stream.experts import Champion, Expert, OnlineNet

__all__ = ["FADE", "Learning", "Snapshot"]

FADE = 0.99
_RATE = 0.01  # of the online net
_PROBABILITY_MIN = 1e-3
_AHEAD_MAX = 30.0  # beyond it, exp makes no difference


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What answers at one moment: the experts, each with its share, and the classes.

    Everything that a stream predicts comes from `predict`, one row or many, here or in the service.
    A row's answer does not depend on the rows that come with it. (That of a learner of your own
    does if its `predict_proba` rounds differently for a matrix.)
    """

    classes: tuple[Label, ...]
    experts: tuple[tuple[Expert, float], ...]

    def predict(self, frame: Frame) -> NDArray[np.float32]:
        """Probabilities (n, C) of the classes; any number of threads may ask a copy."""
        probabilities = np.zeros((len(frame), len(self.classes)), dtype=np.float32)
        for expert, share in self.experts:
            expert.add(frame, share, probabilities)
        return probabilities

    def copy(self) -> Snapshot:
        """The same for good, whatever is learned later."""
        return Snapshot(self.classes, tuple((e.copy(), share) for e, share in self.experts))


class Learning:
    """The two models, their balance, the detector, and what has been counted."""

    def __init__(self, detector: Detector, seed: int, n_recent: int) -> None:
        self.classes: list[Label] = []
        self._codes: dict[Label, int] = {}
        self.online = OnlineNet(MLP(learning_rate=_RATE), seed)
        self.champion: Champion | None = None
        self.detector = RecordedDetector(detector)
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
        """Probabilities (C,) of the classes so far."""
        probabilities: NDArray[np.float32] = self._live().predict(Frame.of_row(row))[0]
        return probabilities

    def predict_labels(self, rows: Sequence[Row]) -> list[Label | None]:
        """The most probable label of each row; None before the first row is learned."""
        if not self.classes or not rows:
            return [None] * len(rows)
        codes = self._live().predict(Frame.of_rows(rows)).argmax(axis=1)
        return [self.classes[code] for code in codes.tolist()]

    def snapshot(self) -> Snapshot:
        """What answers now; it does not learn."""
        return self._live().copy()

    def learn(self, row: Row, label: Label) -> bool:
        """Predict, learn, detect; whether the detector fired."""
        n_known, frame = len(self.classes), Frame.of_row(row)
        x = self.online.encode(frame)
        code = self._code(label)
        answer = self.online.learn(frame, code, x)
        if self.champion is not None:
            own = self.champion.learn(frame, code, len(self.classes))[:n_known]
            answer, online = self._mix(own, answer), answer
            self._weigh(own, online, code)
        wrong = n_known > 0 and int(answer.argmax()) != code
        self.n_rows += 1
        self.n_right += n_known > 0 and not wrong
        return self._detect(float(wrong), x if self.detector.watches == "row" else None)

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
        tensors["detector.seen"] = self.detector.pack()
        if self.champion is not None:
            nets = self.champion.tensors()
            tensors |= {f"champion.{name}": tensor for name, tensor in nets.items()}
        return tensors, {
            "classes": self.classes,
            "online": online,
            "n_seen": len(self.detector),
            "n_rows": self.n_rows,
            "n_right": self.n_right,
            "width": self._width,
            "losses": {"champion": self._losses[0], "online": self._losses[1]},
            "recent": list(self._recent),
        }

    def unpack(
        self,
        tensors: dict[str, NDArray[Any]],
        record: dict[str, Any],
        champion: Champion | None,
    ) -> None:
        """Go on from what `pack` gave; the champion comes as it was trained."""
        parts: dict[str, dict[str, NDArray[Any]]] = {"online": {}, "champion": {}, "detector": {}}
        for name, tensor in tensors.items():
            kind, _, rest = name.partition(".")
            parts[kind][rest] = tensor
        self.online.unpack(parts["online"], record["online"])
        self.champion = champion
        if champion is not None:
            champion.restore(parts["champion"])
        self.classes = list(record["classes"])
        self._codes = {label: code for code, label in enumerate(self.classes)}
        self.n_rows, self.n_right = record["n_rows"], record["n_right"]
        self._width, n_seen = record["width"], record["n_seen"]
        seen = parts["detector"].get("seen", np.zeros(0, dtype=np.uint8))
        self.detector.replay(seen, n_seen, self.n_rows - n_seen)
        self._losses = [record["losses"][name] for name in ("champion", "online")]
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
        """The answer that is scored, as both models gave it when they learned the row."""
        share = self._share
        mixed: NDArray[np.float32] = share * champion + (1 - share) * online
        return mixed

    def _live(self) -> Snapshot:
        """What answers now, without a copy: it changes with the next row."""
        if not self.classes:
            return Snapshot((), ())
        experts: tuple[tuple[Expert, float], ...] = ((self.online.expert, 1.0),)
        if self.champion is not None:
            share = float(self._share)
            experts = ((self.champion.expert, share), (self.online.expert, 1 - share))
        return Snapshot(tuple(self.classes), experts)

    @property
    def _share(self) -> np.float32:
        """How much the champion has to say."""
        ahead = max(-_AHEAD_MAX, min(_AHEAD_MAX, self._losses[0] - self._losses[1]))
        return np.float32(1 / (1 + math.exp(ahead)))

    def _weigh(self, champion: NDArray[np.float32], online: NDArray[np.float32], code: int) -> None:
        for at, answer in enumerate((champion, online)):
            likelihood = float(answer[code]) if code < len(answer) else 0.0
            loss = -math.log(max(likelihood, _PROBABILITY_MIN))
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
