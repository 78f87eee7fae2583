"""Algorithm 1: score the past, select, train one epoch, stop early.

Past segments are compared with the present by their mean head gradients. Disparity is the distance
between the two vectors; it stays high for another concept however long one trains. Gain is their
inner product: while it is positive, a step on the segment lowers the loss of the present.

    segments  (S, P)  mean head gradient of each past segment
    present   (P,)    mean head gradient of the validation part

A segment stays for the coming epoch when its gain is positive and its disparity below the bound,
both strictly. Either test can be switched off (the paper's ablation). The training part of the
current segment is not a candidate: it always stays.

A `Run` is one training in progress. It is driven from outside, so that a search can look at
the scores before it decides, and fork a run where two bounds part:

    score    both scores of every past segment under the model as it is now
    advance  one epoch on the selected segments and the current one, then validation

`train` is the plain loop over the two for one bound. Nothing is random but the order of rows,
which follows from `Task.seed` and the number of the epoch; a fork therefore goes on
exactly as the run it came from would have.

When to train more gently, and when to stop, follows from the validation loss alone. A `Sampling`
makes a training cheaper than the paper's: it looks at samples of rows, drawn from the same seed and
the epoch's number, and judges the weights averaged over the last epochs.

Paper: Definitions 1 and 2; Algorithm 1; "Parameters" (early stopping, with the figures of the
published evaluation).

>>> segments = np.array([[3.0, 4.0], [-1.0, 0.0]])
>>> disparity(segments, np.array([0.0, 0.0])).tolist()
[5.0, 1.0]
>>> gain(segments, np.array([2.0, 1.0])).tolist()
[10.0, -2.0]
>>> scores = Scores(disparity=np.array([0.1, 0.9, 0.1]), gain=np.array([0.2, 0.2, -0.1]))
>>> Rule().keep(scores, disparity_max=0.5).tolist()
[True, False, False]
>>> Rule(use_gain=False).keep(scores, disparity_max=0.5).tolist()
[True, False, True]
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from driftquilt.core.gradients import RemoteScorer, Scorable, mean_gradients
from driftquilt.core.sampling import EVERY_ROW, Sampling
from driftquilt.core.segment import History, Segment, gather
from driftquilt.errors import LearnerError

__all__ = [
    "EarlyStopping",
    "Epoch",
    "Plateau",
    "Rule",
    "Run",
    "Scores",
    "Task",
    "Time",
    "Trainable",
    "disparity",
    "expect_finite",
    "gain",
    "train",
]


def disparity(segments: NDArray[np.float64], present: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the distance of each segment's gradient to the present's, shape (S,)."""
    norms: NDArray[np.float64] = np.linalg.norm(segments - present, axis=1)
    return norms


def gain(segments: NDArray[np.float64], present: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the inner product of each segment's gradient with the present's, shape (S,)."""
    products: NDArray[np.float64] = segments @ present
    return products


@dataclass(frozen=True, eq=False)
class Scores:
    """Both scores of every past segment at one moment of training, each of shape (S,)."""

    disparity: NDArray[np.float64]
    gain: NDArray[np.float64]


@dataclass(frozen=True)
class Rule:
    """Which of the two tests a segment has to pass."""

    use_disparity: bool = True
    use_gain: bool = True

    def keep(self, scores: Scores, disparity_max: float) -> NDArray[np.bool_]:
        """Return a mask over the past segments, shape (S,)."""
        mask = np.ones(len(scores.gain), dtype=bool)
        if self.use_gain:
            mask &= scores.gain > 0
        if self.use_disparity:
            mask &= scores.disparity < disparity_max
        return mask


@dataclass(frozen=True)
class EarlyStopping:
    """Over after `patience` epochs in a row that did not improve by `min_delta`.

    `after(loss)` gives the next state and leaves the old one as it was, so that a training can be
    forked at any epoch.

    >>> stopping = EarlyStopping(patience=2)
    >>> for loss in [0.9, 0.5, 0.5, 0.49995]:
    ...     stopping = stopping.after(loss)
    >>> stopping.over
    True
    """

    patience: int = 10
    min_delta: float = 1e-4
    best: float = math.inf
    waited: int = 0

    def after(self, loss: float) -> EarlyStopping:
        if loss < self.best - self.min_delta:
            return replace(self, best=loss, waited=0)
        return replace(self, waited=self.waited + 1)

    @property
    def over(self) -> bool:
        return self.waited >= self.patience


@dataclass(frozen=True)
class Plateau:
    """Cuts the learning rate to a tenth after more than `patience` epochs without progress.

    Progress is an improvement by a fraction of `min_fraction` of the best loss so far.
    `rate` multiplies the learner's own learning rate.

    >>> plateau = Plateau(patience=1)
    >>> for loss in [0.9, 0.9, 0.9]:
    ...     plateau = plateau.after(loss)
    >>> plateau.rate
    0.1
    """

    patience: int = 10
    min_fraction: float = 1e-4
    rate: float = 1.0
    best: float = math.inf
    waited: int = 0

    def after(self, loss: float) -> Plateau:
        if loss < self.best * (1 - self.min_fraction):
            return replace(self, best=loss, waited=0)
        if self.waited < self.patience:
            return replace(self, waited=self.waited + 1)
        return replace(self, rate=self.rate * 0.1, waited=0)


class Trainable(Scorable, Protocol):
    """What Algorithm 1 asks of the model it trains."""

    def train_epoch(
        self, segments: Sequence[Segment], rng: np.random.Generator, rate: float
    ) -> None:
        """Train once on every row of the segments, in the order `rng.permutation(n_rows)`.

        Rows are numbered through the segments as they are given; the order is the first thing
        drawn from `rng`. `rate` multiplies the model's own learning rate.
        """

    def copy(self) -> Self:
        """Return an independent model that would go on training exactly as this one."""

    def blend(self, other: Self, share: float) -> None:
        """Move the weights towards those of `other`; a share of 1 takes them over."""


M = TypeVar("M", bound=Trainable)


class Time(NamedTuple):
    """A moment, or the time between two, in seconds."""

    wall: float = 0.0
    cpu: float = 0.0

    def since(self, earlier: Time) -> Time:
        return Time(self.wall - earlier.wall, self.cpu - earlier.cpu)

    def plus(self, more: Time) -> Time:
        return Time(self.wall + more.wall, self.cpu + more.cpu)


_NO_TIME = Time()

# Tells the generator of the rows to score from that of the rows to train on and their order.
_SCORING = 2


@dataclass(frozen=True)
class Epoch:
    """What happened in one epoch: the scores it began with, the loss it ended with.

    `n_rows` are those of the selected segments and the current one, sampled or not.
    """

    scores: Scores
    selected: NDArray[np.bool_]
    validation_loss: float
    n_rows: int
    rate: float
    time: Time = _NO_TIME


@dataclass(frozen=True)
class Task:
    """What stays the same while a model is trained.

    `clock` is asked before and after each step for `Epoch.time`; it changes nothing else. With
    `remote_scorer`, the history has only the rows to train on, and its scores come from there.
    With `evenly`, rows of the past and of the present are drawn alike and nothing is scored: that
    is training on all data.
    """

    history: History
    current: Segment
    validation: Segment
    rule: Rule = field(default_factory=Rule)
    max_epochs: int = 2000
    patience: int = 10
    seed: int = 0
    sampling: Sampling = EVERY_ROW
    clock: Callable[[], Time] = Time
    remote_scorer: RemoteScorer | None = None
    evenly: bool = False


class Run(Generic[M]):
    """One training in progress; `best` is the model of the epoch with the lowest loss."""

    def __init__(self, task: Task, model: M) -> None:
        self.task = task
        self.model = model
        self.average = model.copy() if task.sampling.averaging else model
        self.best = model
        self.best_loss = math.inf
        self.epochs: list[Epoch] = []
        self._stopping = EarlyStopping(patience=task.patience)
        self._plateau = Plateau(patience=task.patience)
        self._scores: Scores | None = None
        self._scored_after = 0  # epochs
        self._samples: dict[int, Sequence[Segment]] = {}  # of this epoch, shared by all forks
        self._scoring = _NO_TIME
        self._present, _ = self._validate()

    @property
    def finished(self) -> bool:
        return self._stopping.over or len(self.epochs) >= self.task.max_epochs

    @property
    def is_due_for_scores(self) -> bool:
        """Whether the scores of the last time are too old to select by."""
        age = len(self.epochs) - self._scored_after
        return self._scores is None or age >= self.task.sampling.score_every

    def score(self) -> Scores:
        """Return both scores of every past segment; computed at most once per epoch."""
        if self.task.evenly:
            return Scores(*np.full((2, len(self.task.history)), np.nan))
        if self._scores is None or self.is_due_for_scores:
            started = self.task.clock()
            gradients = self._past_gradients()
            self._scores = Scores(
                disparity(gradients, self._present), gain(gradients, self._present)
            )
            self._scored_after = len(self.epochs)
            self._scoring = self.task.clock().since(started)
        return self._scores

    def advance(self, selected: NDArray[np.bool_]) -> Epoch:
        """Train one epoch on the selected past segments and the current one."""
        task, scores, rate = self.task, self.score(), self._plateau.rate
        started, rng = task.clock(), self._draw()
        past = [segment for segment, is_in in zip(task.history, selected, strict=True) if is_in]
        n_rows = sum(map(len, past)) + len(task.current)
        rows = gather(task.sampling.to_train(past, task.current, rng, evenly=task.evenly))
        self.model.train_epoch([rows], rng, rate)
        if self.average is not self.model:
            self.average.blend(self.model, task.sampling.share_of_epoch(len(self.epochs) + 1))
        self._present, loss = self._validate()
        time = task.clock().since(started).plus(self._scoring)
        self._scoring = _NO_TIME
        epoch = Epoch(scores, selected, loss, n_rows, rate, time)
        self.epochs.append(epoch)
        self._judge(loss)
        return epoch

    def fork(self) -> Run[M]:
        """Make a second run that continues exactly as this one would."""
        twin = copy.copy(self)
        twin.model = self.model.copy()
        twin.average = twin.model if self.average is self.model else self.average.copy()
        twin.epochs = self.epochs.copy()
        return twin

    def _past_gradients(self) -> NDArray[np.float64]:
        """Mean head gradient of every past segment, under the model that is kept."""
        if self.task.remote_scorer is not None:
            return self.task.remote_scorer(self.average)
        return mean_gradients(self.average, self._rows_to_score())

    def _rows_to_score(self) -> Sequence[Segment]:
        epoch = len(self.epochs)
        if epoch not in self._samples:
            self._samples.clear()
            rng = self._draw(_SCORING)
            self._samples[epoch] = self.task.sampling.to_score(self.task.history, rng)
        return self._samples[epoch]

    def _draw(self, *purpose: int) -> np.random.Generator:
        return np.random.default_rng((self.task.seed, len(self.epochs), *purpose))

    def _validate(self) -> tuple[NDArray[np.float64], float]:
        gradients, losses = self.average.head_gradients([self.task.validation])
        return gradients[0], float(losses[0])

    def _judge(self, loss: float) -> None:
        self._stopping = self._stopping.after(loss)
        self._plateau = self._plateau.after(loss)
        if loss < self.best_loss:
            self.best, self.best_loss = self.average.copy(), loss


def train(run: Run[M], disparity_max: float) -> Iterator[Epoch]:
    """Drive a run to its end with one disparity bound, epoch by epoch."""
    while not run.finished:
        yield run.advance(run.task.rule.keep(run.score(), disparity_max))


def expect_finite(best_loss: float) -> None:
    """Refuse a training, or the best of several, that never had a finite validation loss."""
    if not math.isfinite(best_loss):
        raise LearnerError(
            "the validation loss was not a finite number in any epoch: training diverged; lower "
            "the learning rate or look for extreme values in the rows"
        )
