"""Everything that a stream knows, as it follows from its rows: one row in, one step further.

Two models answer together: the `Champion`, which Quilt trained last, and an `OnlineNet` that has
learned from the first row on. Their probabilities are averaged, weighed by how well each has
predicted of late. So a stream has an answer before the first training, and a model that turns
out worse than plain online learning soon has no say.

    p = w · champion + (1 - w) · online      w = 1 / (1 + exp(champion's loss - online's loss))

where a loss is the sum of -log p over past rows, each faded by `FADE` per row since. A row is a
`Frame` of one.

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

from driftquilt.data.encoder import CATEGORIES_MAX, Encoder
from driftquilt.data.frame import Frame, Label, Row
from driftquilt.detectors.base import Detector, RecordedDetector
from driftquilt.errors import InputError
from driftquilt.learners.mlp import MLP, MLPModel
from driftquilt.learners.nets import Nets
from driftquilt.quilt.classifier import QuiltClassifier
from driftquilt.stream.recent import RecentRows
from driftquilt.stream.snapshot import Expert, Snapshot

__all__ = ["FADE", "FAR", "Champion", "Features", "Learning", "OnlineNet"]

FADE = 0.99
FAR = 10.0  # deviations
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
        if self.answered is not None:
            self.answered.add(code, answer)
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
        tensors = {} if self._net is None else self._net.tensors()
        return tensors, {"features": self.features.to_json(), "n_classes": self.n_classes}

    def unpack(self, tensors: dict[str, NDArray[Any]], record: dict[str, Any]) -> None:
        """Go on from what `pack` gave."""
        self.features = Features.from_json(record["features"])
        if tensors:
            self._use(self._learner.restore(tensors, record["n_classes"]))

    def _use(self, net: MLPModel) -> None:
        self._net, self._nets, self._codes = net, Nets.of([net]), np.arange(net.n_classes)


class Features:
    """The running scale of a stream: an encoder that grows with every row that is learned.

    Numbers are scaled by the mean and deviation of the rows so far, text becomes a 0/1 column for
    each of its categories. Columns and categories take the next free place when they first appear,
    so that a vector only ever grows at its end; what a row lacks is zero. A number that has not
    varied yet is zero too, and none is further from zero than `FAR`: one slip of a sensor must not
    throw a net off for good.

    `encoder` is what rows are encoded with now. Its means and deviations change with every row;
    `encoder.copy()` does not.

    >>> features = Features()
    >>> for row in [{"age": 20.0}, {"age": 40.0, "city": "Rome"}, {"city": "Oslo"}]:
    ...     features.learn(Frame.of_row(row))
    >>> features.encoder.feature_names_out
    ('age', 'city=Rome', 'city=Oslo')
    >>> features.encoder.encode(Frame.of_row({"age": 50.0, "city": "Rome"}))
    array([[2., 1., 0.]], dtype=float32)
    """

    def __init__(self) -> None:
        self.encoder = _make_encoder((), {}, (np.empty(0), np.empty(0)), {}, 0)
        self._n = np.empty(0, dtype=np.int64)  # rows that had a value, by number
        self._m2 = np.empty(0)  # sum of squares around the mean
        self._known = frozenset[str]()  # names of numbers

    def __len__(self) -> int:
        return self.encoder.width

    def learn(self, frame: Frame) -> None:
        """Take in a row: new places, and what its numbers say of their scale."""
        if self._has_news(frame):
            self._add_places(frame)
        self.encoder.learn_scale(frame, self._n, self._m2)

    def to_json(self) -> dict[str, Any]:
        """Plain values, from which `from_json` makes the same again."""
        encoder = self.encoder
        places = dict(zip(encoder.names, encoder.places.tolist(), strict=True))
        scale = np.zeros((3, encoder.width))
        scale[:, encoder.places] = self._n, encoder.mean, self._m2
        n_rows, mean, m2 = scale.tolist()
        return {
            "places": [
                [name, dict(encoder.texts[name]) if name in encoder.texts else places[name]]
                for name in encoder.columns
            ],
            "names": list(encoder.feature_names_out),
            "scale": [[int(n) for n in n_rows], mean, m2],
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Features:
        features = cls()
        columns = tuple(name for name, _ in data["places"])
        numbers = {name: place for name, place in data["places"] if isinstance(place, int)}
        texts = {name: dict(place) for name, place in data["places"] if isinstance(place, dict)}
        n_rows, mean, m2 = ([part[place] for place in numbers.values()] for part in data["scale"])
        features._n = np.array(n_rows, dtype=np.int64)
        features._m2 = np.array(m2, dtype=np.float64)
        features._known = frozenset(numbers)
        with np.errstate(divide="ignore", invalid="ignore"):
            deviation = np.where(features._m2 > 0, np.sqrt(features._m2 / features._n), np.inf)
        scale = np.array(mean, dtype=np.float64), deviation
        features.encoder = _make_encoder(columns, numbers, scale, texts, len(data["names"]))
        return features

    def _has_news(self, frame: Frame) -> bool:
        if not self._known.issuperset(frame.names):
            return True
        return bool(frame.texts) and any(
            self._is_new(name, column[0]) for name, column in frame.texts.items()
        )

    def _is_new(self, name: str, category: str) -> bool:
        places = self.encoder.texts.get(name)
        if places is None:
            return name not in self._known
        return category not in places and len(places) < CATEGORIES_MAX

    def _add_places(self, frame: Frame) -> None:
        encoder = self.encoder
        columns, width = list(encoder.columns), encoder.width
        numbers = dict(zip(encoder.names, encoder.places.tolist(), strict=True))
        texts = dict(encoder.texts)
        # In the order of names, so that places do not depend on how a row is written down.
        for name in sorted((*frame.names, *frame.texts)):
            if name not in numbers and name not in texts:
                columns.append(name)
            if name in frame.texts and self._is_new(name, frame.texts[name][0]):
                texts[name] = {**texts.get(name, {}), frame.texts[name][0]: width}
            elif name not in frame.texts and name not in numbers and name not in texts:
                numbers[name] = width
            else:
                continue
            width += 1
        added = np.zeros(len(numbers) - len(encoder.names))
        self._n = np.append(self._n, added.astype(np.int64))
        self._m2 = np.append(self._m2, added)
        self._known = frozenset(numbers)
        scale = np.append(encoder.mean, added), np.append(encoder.deviation, added + np.inf)
        self.encoder = _make_encoder(tuple(columns), numbers, scale, texts, width)


def _make_encoder(
    columns: tuple[str, ...],
    numbers: dict[str, int],
    scale: tuple[NDArray[np.float64], NDArray[np.float64]],
    texts: Any,
    width: int,
) -> Encoder:
    """An encoder of numbers and categories at these places."""
    places = np.array(list(numbers.values()), dtype=np.intp)
    flags = np.full(len(numbers), -1, dtype=np.intp)
    return Encoder(columns, tuple(numbers), *scale, places, flags, texts, width, limit=FAR)
