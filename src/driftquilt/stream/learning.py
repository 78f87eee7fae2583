"""Everything that a stream knows, as it follows from its rows: one row in, one step further.

Two models answer together: the `Champion`, which Quilt trained last, and an `OnlineNet` that has
learned from the first row on. Their probabilities are averaged, weighed by how well each has
predicted of late. So a stream has an answer before the first training, and a model that turns
out worse than plain online learning soon has no say.

    p = w · champion + (1 - w) · online      w = 1 / (1 + exp(champion's loss - online's loss))

where a loss is the sum of -log p over past rows, each faded by `FADE` per row since. A row is a
`Frame` of one. With class weights the answer is the class of the highest p times weight; the
probabilities stay those of the rows as they are.

Nothing here is random or looks at a clock, so the same rows lead to the same state; a restart
relies on it.

Paper: Algorithm 2, but for the segments and the training, which are the engine's.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftquilt.data.frame import Frame, Label, Row
from driftquilt.detectors.base import Detector, RecordedDetector
from driftquilt.errors import InputError
from driftquilt.learners.mlp import MLP, MLPModel
from driftquilt.learners.nets import Nets
from driftquilt.quilt.classifier import QuiltClassifier
from driftquilt.stream.features import FAR, Features
from driftquilt.stream.recent import RecentRows
from driftquilt.stream.snapshot import Expert, Snapshot

__all__ = ["FADE", "Champion", "Learning", "OnlineNet"]

FADE = 0.99
_RATE = 0.01  # of the online net
_PROBABILITY_MIN = 1e-3
_AHEAD_MAX = 30.0  # beyond it, exp makes no difference


class Learning:
    """The two models, their balance, the detector, and what has been counted."""

    def __init__(
        self, detector: Detector, seed: int, n_recent: int, *, keep_answers: bool = False
    ) -> None:
        """With `keep_answers` the last rows and what was answered are kept, for a score."""
        self.classes: list[Label] = []
        self._codes: dict[Label, int] = {}
        self.online = OnlineNet(MLP(learning_rate=_RATE), seed)
        self.champion: Champion | None = None
        self.detector = RecordedDetector(detector)
        self.n_rows = 0
        self.n_right = 0
        self._losses = [0.0, 0.0]  # faded: champion's, online's
        self._recent: deque[float] = deque(maxlen=n_recent)  # champion's, of the current segment
        self.answered = RecentRows() if keep_answers else None
        self._width = 0  # of the rows that the detector watches

    @property
    def recent_loss(self) -> float | None:
        """The champion's mean loss over the last rows of the current segment."""
        return float(np.mean(self._recent)) if self._recent else None

    def predict(self, row: Row) -> NDArray[np.float32]:
        """Probabilities (C,) of the classes so far."""
        probabilities: NDArray[np.float32] = self._live().predict(Frame.of_row(row))[0]
        return probabilities

    def label(self, probabilities: NDArray[np.float32]) -> Label | None:
        """The answer at these probabilities (C,); None before the first row is learned."""
        return self._live().labels(probabilities[None, :])[0]

    def predict_labels(self, rows: Sequence[Row]) -> list[Label | None]:
        """The answer to each row; None before the first row is learned."""
        live = self._live()
        return live.labels(live.predict(Frame.of_rows(rows))) if rows else []

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
        if self.answered is not None:
            self.answered.add(code, answer)
        if (weights := self._weights) is not None:
            answer = answer * weights[:n_known]
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
        if self.answered is not None:
            kept = self.answered.pack()
            tensors |= {f"answered.{name}": tensor for name, tensor in kept.items()}
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
        kinds = ("online", "champion", "detector", "answered")
        parts: dict[str, dict[str, NDArray[Any]]] = {kind: {} for kind in kinds}
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
        if self.answered is not None:
            self.answered.unpack(parts["answered"])

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
        return Snapshot(tuple(self.classes), experts, self._weights)

    @property
    def _weights(self) -> NDArray[np.float32] | None:
        """The class weights (C,) that the champion answers by; a class new to it counts 1."""
        champion = self.champion
        if champion is None or champion.clf.answer_weights is None:
            return None
        weights = np.ones(len(self.classes), dtype=np.float32)
        weights[champion.expert.codes] = champion.clf.answer_weights
        return weights

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
        models = [model.copy() for model in clf.model_.models]
        self.expert = Expert(encoder, Nets.of(models, clf.model_.shares), codes)
        self._own = {code: own for own, code in enumerate(codes.tolist())}

    def learn(self, frame: Frame, code: int, n_classes: int) -> NDArray[np.float32]:
        """One step of every net, unless the class is new to them; probabilities before it."""
        own, models = self._own.get(code), self.expert.nets.models
        x = self.expert.encoder.encode(frame)
        if own is None:
            return self._spread([model.predict_proba(x)[0] for model in models], n_classes)
        return self._spread([model.learn_one(x[0], own) for model in models], n_classes)

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Weights of the nets as they are now."""
        return {
            f"{fold}.{name}": tensor
            for fold, model in enumerate(self.expert.nets.models)
            for name, tensor in model.tensors().items()
        }

    def restore(self, tensors: dict[str, NDArray[Any]]) -> None:
        """Go on from the weights that `tensors` gave."""
        parts: dict[int, dict[str, NDArray[Any]]] = {}
        for name, tensor in tensors.items():
            fold, _, rest = name.partition(".")
            parts.setdefault(int(fold), {})[rest] = tensor
        n_models, n_classes = len(self.expert.nets.models), len(self._own)
        models = [self.clf.learner_.restore(parts.get(k, {}), n_classes) for k in range(n_models)]
        self.expert = replace(self.expert, nets=Nets.of(models, self.clf.model_.shares))

    def _spread(
        self, answers: Sequence[NDArray[np.float32]], n_classes: int
    ) -> NDArray[np.float32]:
        """The mean of the nets' answers (C',) over the classes of the stream (C,)."""
        shares, codes = self.expert.nets.shares.astype(np.float32), self.expert.codes
        mean = sum(share * answer for share, answer in zip(shares, answers, strict=True))
        spread = np.zeros(n_classes, dtype=np.float32)
        spread[codes] = mean
        return spread


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

    def __init__(self, learner: MLP, seed: int) -> None:
        self._learner = learner
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
        return Expert(self.features.encoder, self._nets, self._codes)

    def encode(self, frame: Frame) -> NDArray[np.float32]:
        """A row as the net sees it (d,), scaled by the rows learned so far."""
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
