"""Everything that a stream knows, as it follows from its rows: one row in, one step further.

A panel of experts answers: a net that has learned online from the first row on, one that sees the
last labels as well, what the last labels alone say, the newest of Quilt's models, which learns on,
and the most useful of its models so far, each as it was trained. `FixedShare` weighs their answers
by how well each has predicted of late.

    answer = Σ share_k · answer_k      over the experts that count (`_LEAST`)

So a stream has an answer before the first training, nothing waits for an alarm, a model that turns
out worse than plain online learning soon has no say, and where an old concept returns an old model
takes over. Models that count next to nothing are asked about every eighth row only, and after an
error. A row is a `Frame` of one. With class weights the answer is the class of the highest
probability times weight; the probabilities stay those of the rows as they are.

A detector that watches errors gets those of the newest model as it was trained: a model that
learns on absorbs a drift before it shows.

Nothing here is random or looks at a clock, so the same rows lead to the same state; a restart
relies on it.

Paper: Algorithm 2, but for the segments and the training, which are the engine's.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from driftquilt.data.frame import Frame, Label, Row
from driftquilt.detectors.base import Detector, RecordedDetector
from driftquilt.stream.experts.evidence import Evidence
from driftquilt.stream.experts.mixture import FixedShare
from driftquilt.stream.experts.nets import Champion, by_part, prefixed
from driftquilt.stream.recent import RecentRows
from driftquilt.stream.snapshot import Expert, Snapshot
from driftquilt.stream.task import Classification, Task

__all__ = ["LABELS", "NEWEST", "ONLINE", "WITH_LABELS", "Learning", "Panel", "archived"]

#: Who answers: all experts, those that see rows and no labels before them, or the newest model as
#: it was trained.
Panel: TypeAlias = Literal["all", "rows", "model"]

# What the experts are called.
ONLINE, WITH_LABELS, LABELS, NEWEST = "online", "online with labels", "labels", "newest"

_PART_NEWEST, _PART_ARCHIVED = 0.15, 0.1  # of the whole, when a model is new
_LEAST = 0.003  # the share of an expert that counts
_WAKE_EVERY = 8  # rows
_USE_FADE = 0.9995
_HELP_FADE, _HELP = 0.999, 30.0  # nats by which the net that sees labels is ahead
_ARM_ROWS = 100  # after an alarm, unless a model comes first

_Answers: TypeAlias = dict[str, NDArray[Any]]


def archived(number: int) -> str:
    """Return what the expert is called that is a model as it was trained."""
    return f"model {number}"


class Learning:
    """The experts, their shares, the detector, and what has been counted."""

    def __init__(
        self,
        detector: Detector | Evidence,
        seed: int,
        n_recent: int,
        *,
        keep_answers: bool = False,
        panel: Panel = "all",
        max_models: int = 10,
        task: Task | None = None,
    ) -> None:
        """With `keep_answers` the last rows and what was answered are kept, for a score.

        Without a task the labels are classes.
        """
        self.task = Classification() if task is None else task
        self.online = self.task.online(seed)
        self._with_labels = self.task.online(seed + 1, sees_labels=True)
        self._labels = self.task.history
        self._follows_labels = panel == "all" or self.task.needs_labels
        self.champion: Champion | None = None
        self.archive: dict[int, Expert] = {}  # by number, the newest last
        self.panel, self._max_models = panel, max_models
        self.mixture = FixedShare()
        for name in [ONLINE, WITH_LABELS, LABELS] if panel == "all" else [ONLINE]:
            self.mixture.add(name, 1 / (1 + len(self.mixture.weights)))
        self.detector: Evidence | RecordedDetector = (
            detector.fresh() if isinstance(detector, Evidence) else RecordedDetector(detector)
        )
        self.n_rows = 0
        self._use: dict[int, float] = {}  # faded share of each archived model
        self._gain = [0.0, 0.0]  # of the newest model over the one before: nats, rows
        self._ahead = 0.0  # of the online net that sees labels, in nats, faded
        self._was_wrong = False
        self._armed_at = 0  # the row from which on the evidence counts
        self._recent: deque[float] = deque(maxlen=n_recent)  # newest's, of the current segment
        self.answered = RecentRows() if keep_answers else None
        self._width = 0  # of the rows that the detector watches

    @property
    def classes(self) -> list[Label]:
        """Labels so far, in order of appearance; none where they are numbers."""
        return self.task.classes

    @property
    def n_right(self) -> int:
        """Rows that were predicted right, each right before it was learned."""
        return self.task.n_right

    @property
    def recent_loss(self) -> float | None:
        """The newest model's mean loss over the last rows of the current segment."""
        return float(np.mean(self._recent)) if self._recent else None

    @property
    def labels_help(self) -> bool:
        """Whether the last labels say so much of the next that models should see them."""
        return self.panel == "all" and self._ahead > _HELP

    @property
    def gain(self) -> float | None:
        """Nats per row by which the newest model is better than the one before, on rows since."""
        total, n_rows = self._gain
        return total / n_rows if n_rows else None

    @property
    def resembles(self) -> int | None:
        """The archived model that has the most say, if it has much and is not the newest."""
        older = [n for n in list(self.archive)[:-1] if archived(n) in self.mixture.weights]
        shares = {number: self.mixture.weights[archived(number)] for number in older}
        best = max(shares, key=shares.__getitem__, default=None)
        return best if best is not None and shares[best] >= 0.2 else None  # noqa: PLR2004

    def predict(self, row: Row) -> NDArray[Any]:
        """Probabilities (C,) of the classes so far, or a number (1,)."""
        answer: NDArray[Any] = self.live().predict(Frame.of_row(row))[0]
        return answer

    def label(self, answer: NDArray[Any]) -> Any:
        """Return the label that an answer (C,) stands for; None before the first row."""
        return self.live().labels(answer[None, :])[0]

    def predict_labels(self, rows: Sequence[Row]) -> list[Any]:
        """Return the answer to each row; None before the first row is learned."""
        live = self.live()
        return live.labels(live.predict(Frame.of_rows(rows))) if rows else []

    def snapshot(self) -> Snapshot:
        """Return what answers now; it does not learn."""
        return self.live().copy()

    def learn(self, row: Row, label: Any) -> bool:
        """Predict, learn, detect; whether the detector fired."""
        task, frame = self.task, Frame.of_row(row)
        n_known, dtype = task.n_outputs, task.dtype
        x = self.online.encode(frame)
        y = task.read(label)
        answers = self._learn_all(frame, x, y, n_known)
        answer = np.zeros(n_known, dtype=dtype)
        for name, share in self._leading().items():
            answer[: len(answers[name])] += dtype(share) * answers[name]
        if self.answered is not None:
            self.answered.add(y, answer)
        self._was_wrong = task.is_wrong(answer, y, self._weights)
        self.n_rows += 1
        self._weigh(answers, y)
        fired = self._detect(answers, answer, y, x)
        task.count(answer, y, self._was_wrong)
        return fired

    def crown(self, champion: Champion) -> None:
        """Let a model answer that is new, or was chosen again: it begins with much of the say."""
        number = champion.number
        self.champion = champion
        self.archive.pop(number, None)
        self.archive[number] = champion.as_trained()
        self._use[number] = self._use.get(number, 1.0)
        if self.panel == "model":
            self.archive, self.mixture = {number: self.archive[number]}, FixedShare()
        if self.panel != "model":
            self.mixture.add(NEWEST, _PART_NEWEST)
        self.mixture.add(archived(number), _PART_ARCHIVED)
        self._recent.clear()
        self._gain, self._armed_at = [0.0, 0.0], self.n_rows
        while len(self.archive) > self._max_models:
            candidates = list(self.archive)[: min(-1, 1 - self._max_models // 2)]
            gone = min(candidates or list(self.archive)[:1], key=self._use.__getitem__)
            del self.archive[gone], self._use[gone]
            self.mixture.remove(archived(gone))
            if isinstance(self.detector, Evidence):
                self.detector.forget(archived(gone))

    def catch_up(self, champion: Champion, rows: Sequence[tuple[Row, Label]]) -> None:
        """Let a new model learn the last rows, which came while it was trained."""
        # Where it sees labels, it has them as they are now; those of then are gone.
        columns = self._labels.columns() if champion.expert.sees_labels else {}
        for row, label in rows:
            frame = Frame.of_row({**row, **columns})
            champion.learn(frame, self.task.read(label), self.task.n_outputs)

    def begin_segment(self, *, drift: bool) -> None:
        """Forget what was counted of the segment that ended; after a drift, the detector does."""
        self._recent.clear()
        if drift:
            self.restart_detector()
            self._armed_at = self.n_rows + _ARM_ROWS  # of models that were good before the drift

    def restart_detector(self) -> None:
        """Restart the detector."""
        if isinstance(self.detector, Evidence):
            self.detector.restart()
        else:
            self.detector = self.detector.fresh()

    def pack(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Weights, and everything else as plain values."""
        tensors, online = self.online.pack()
        tensors = prefixed("online", tensors)
        record: dict[str, Any] = {"online": online}
        if self.panel == "all":
            others, record["with_labels"] = self._with_labels.pack()
            tensors |= prefixed("with_labels", others)
        if self._follows_labels:
            record["labels"] = self._labels.pack()
        if isinstance(self.detector, Evidence):
            record["evidence"], n_seen = self.detector.pack(), 0
        else:
            tensors["detector.seen"], n_seen = self.detector.pack(), len(self.detector)
        if self.champion is not None:
            tensors |= prefixed("champion", self.champion.tensors())
        if self.answered is not None:
            tensors |= prefixed("answered", self.answered.pack())
        return tensors, {
            **record,
            **self.task.pack(),
            "n_seen": n_seen,
            "n_rows": self.n_rows,
            "width": self._width,
            "shares": self.mixture.weights,
            "archive": [[number, self._use[number]] for number in self.archive],
            "gain": self._gain,
            "ahead": self._ahead,
            "was_wrong": bool(self._was_wrong),
            "armed_at": self._armed_at,
            "recent": list(self._recent),
        }

    def unpack(
        self,
        tensors: dict[str, NDArray[Any]],
        record: dict[str, Any],
        models: Mapping[int, Champion],
        newest: int | None,
    ) -> None:
        """Go on from what `pack` gave; models come as they were trained, by number."""
        parts = by_part(tensors)
        self.online.unpack(parts.get("online", {}), record["online"])
        self.task.unpack(record)
        self.n_rows = record["n_rows"]
        self._width, n_seen = record["width"], record["n_seen"]
        self._recent.clear()
        self._recent.extend(record["recent"])
        if self.answered is not None:
            self.answered.unpack(parts.get("answered", {}))
        if isinstance(self.detector, Evidence):
            self.detector.unpack(record["evidence"])
        else:
            seen = parts.get("detector", {}).get("seen", np.zeros(0, dtype=np.uint8))
            self.detector.replay(seen, n_seen, self.n_rows - n_seen)
        if "shares" not in record:  # of the versions before the panel
            self._go_on_without_panel(models, newest)
        else:
            self._unpack_panel(parts, record, models, newest)
        self.champion = None if newest is None else models.get(newest)  # none if it is damaged
        if self.champion is not None:
            self.champion.restore(parts.get("champion", {}))

    def _unpack_panel(
        self,
        parts: dict[str, dict[str, NDArray[Any]]],
        record: dict[str, Any],
        models: Mapping[int, Champion],
        newest: int | None,
    ) -> None:
        if self.panel == "all":
            self._with_labels.unpack(parts.get("with_labels", {}), record["with_labels"])
        if self._follows_labels:
            self._labels.unpack(record["labels"])
        self.mixture.weights = dict(record["shares"])
        kept = [(number, use) for number, use in record["archive"] if number in models]
        self.archive = {number: models[number].as_trained() for number, _ in kept}
        self._use = dict(kept)
        for number, _ in record["archive"]:
            if number not in models:  # its file is damaged
                self.mixture.remove(archived(number))
        if newest not in models:
            self.mixture.remove(NEWEST)
        if not self.mixture.weights:  # one model alone was to answer
            self.mixture.add(ONLINE, 1.0)
        self._gain, self._ahead = list(record["gain"]), record["ahead"]
        self._was_wrong, self._armed_at = record["was_wrong"], record["armed_at"]

    def _go_on_without_panel(self, models: Mapping[int, Champion], newest: int | None) -> None:
        """Go on from a store without a panel: its newest model stays, other experts start now."""
        if newest is not None and newest in models:
            self.crown(models[newest])

    def _learn_all(self, frame: Frame, x: NDArray[np.float32], y: Any, n_known: int) -> _Answers:
        """Return the answers (C,) of all experts asked; those that learn do so afterwards."""
        answers: _Answers = {}
        labelled = frame.with_constants(self._labels.columns()) if self.panel == "all" else frame
        answers[ONLINE] = self.online.learn(frame, y, x)
        if self.panel == "all":
            answers[WITH_LABELS] = self._with_labels.learn(labelled, y)
            answers[LABELS] = self._labels.answer(n_known)
        for number in self._awake():
            expert = self.archive[number]
            answer = np.zeros((1, self.task.n_outputs), dtype=self.task.dtype)
            expert.add(labelled if expert.sees_labels else frame, 1.0, answer)
            answers[archived(number)] = answer[0, :n_known]
        if self.champion is not None and self.panel != "model":
            row = labelled if self.champion.expert.sees_labels else frame
            answers[NEWEST] = self.champion.learn(row, y, self.task.n_outputs)[:n_known]
        if self._follows_labels:
            self._labels.learn(y)
        return answers

    def _awake(self) -> list[int]:
        """Return the archived models asked about the next row; the two newest always are."""
        numbers, weights = list(self.archive), self.mixture.weights
        return [
            number
            for at, number in enumerate(numbers)
            if at >= len(numbers) - 2
            or self._was_wrong
            or weights[archived(number)] >= _LEAST
            or (self.n_rows + number) % _WAKE_EVERY == 0
        ]

    def _leading(self) -> dict[str, float]:
        """Return the experts that count, each with its share; the shares add up to 1."""
        weights = {n: w for n, w in self.mixture.weights.items() if w >= _LEAST}
        total = sum(weights.values())
        return {name: weight / total for name, weight in weights.items()}

    def _weigh(self, answers: _Answers, y: Any) -> None:
        loss = self.task.loss
        losses = {name: loss(answer, y) for name, answer in answers.items()}
        self.mixture.update({n: losses[n] for n in losses if n in self.mixture.weights})
        newest = list(self.archive)[-2:]
        if len(newest) == 2:  # noqa: PLR2004
            self._gain[0] += losses[archived(newest[0])] - losses[archived(newest[1])]
            self._gain[1] += 1
        if newest:
            name = NEWEST if NEWEST in answers else archived(newest[-1])
            self._recent.append(self.task.cost(answers[name], y))
        if self.panel == "all":
            self._ahead = _HELP_FADE * self._ahead + losses[ONLINE] - losses[WITH_LABELS]
        for number in self.archive:
            share = self.mixture.weights[archived(number)]
            self._use[number] = _USE_FADE * self._use[number] + (1 - _USE_FADE) * share

    def live(self) -> Snapshot:
        """Return what answers now, without a copy: it changes with the next row."""
        if not self.task.n_outputs:
            return self.task.snapshot((), {}, None, None)
        leading = self._leading()
        own: dict[str, Expert] = {ONLINE: self.online.expert, WITH_LABELS: self._with_labels.expert}
        if self.champion is not None:
            own[NEWEST] = self.champion.expert
        own |= {archived(number): expert for number, expert in self.archive.items()}
        experts = tuple((own[name], share) for name, share in leading.items() if name != LABELS)
        base = None
        if LABELS in leading:
            base = self.task.dtype(leading[LABELS]) * self._labels.answer(self.task.n_outputs)
        columns = self._labels.columns() if self.panel == "all" else {}
        return self.task.snapshot(experts, columns, base, self._weights)

    @property
    def _weights(self) -> NDArray[np.float32] | None:
        """The class weights (C,) that the champion answers by; a class new to it counts 1."""
        champion = self.champion
        if champion is None or champion.answer_weights is None:
            return None
        weights = np.ones(len(self.classes), dtype=np.float32)
        weights[champion.expert.codes] = champion.answer_weights
        return weights

    def _detect(
        self, answers: _Answers, answer: NDArray[Any], y: Any, x: NDArray[np.float32]
    ) -> bool:
        newest = archived(list(self.archive)[-1]) if self.archive else None
        watched = answer if newest is None else answers[newest]
        wrong = self.task.is_wrong(watched, y, self._weights)
        self.task.watch(watched, y)
        if isinstance(self.detector, Evidence):
            return newest is not None and self._find(answers, answer, y, newest, wrong=wrong)
        if self.detector.watches == "error":
            self.detector.update(float(wrong))
        else:
            if len(x) != self._width:  # columns came: what it has seen says nothing of them
                self.detector, self._width = self.detector.fresh(), len(x)
            self.detector.update(x)
        return self.detector.drift_detected

    def _find(
        self, answers: _Answers, answer: NDArray[Any], y: Any, newest: str, *, wrong: bool
    ) -> bool:
        """Take the row in as evidence; whether it is enough."""
        assert isinstance(self.detector, Evidence)  # noqa: S101
        if self.n_rows <= self._armed_at:
            return False
        others, watched, weights = dict[str, bool](), answers[newest], self._weights
        for name, other in {"all": answer, **answers}.items():
            if name not in (newest, LABELS):
                better = self.task.better(other, watched, y, weights, wrong=wrong)
                if better is not None:  # one of both is right
                    others[name] = better
        self.detector.update(self.n_rows - 1, wrong=wrong, others=others)
        return self.detector.drift_detected
