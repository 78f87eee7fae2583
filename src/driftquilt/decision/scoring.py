"""Score held-out predictions by any metric, and find out whether one model is better than another.

All models predict the same rows. To see how much a score depends on which rows happened to be
held out, rows are drawn again and again with replacement (a paired bootstrap): in each draw all
models are scored on the same rows, so their differences have an interval of their own. A model is
better if 95 % of the differences are above 0. Differences in accuracy are tested exactly instead
(McNemar).

    y         (n,)    places in `classes`
    chances   (n, C)  probabilities
    counts    (b, n)  how often each of b draws has each row

Higher is always better inside this module; what is shown has the sign that people expect.

>>> y, classes = np.array([0, 1, 0, 1] * 50), np.array(["no", "yes"])
>>> sharp = Predictions.of(np.where(y[:, None] == [0, 1], 0.9, 0.1))
>>> vague = Predictions.of(np.full((200, 2), 0.5))
>>> trial = Trial(find_metric("log_loss"), y, classes, {"sharp": sharp, "vague": vague})
>>> trial.score("sharp").value, trial.compare("sharp", "vague").verdict
(0.105..., 'better')
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from driftquilt.decision.advice import INCUMBENT
from driftquilt.decision.layout import Labels, Layout, Rows, spread
from driftquilt.decision.measure import (
    CalibrationBin,
    Comparison,
    ConstantAnswer,
    MethodScore,
    Quality,
    Score,
    interval,
    is_significant,
    p_value,
    verdict,
)
from driftquilt.errors import InputError
from driftquilt.quilt.metrics import Metric, Scoring, find_metric

Codes = NDArray[np.integer[Any]]
Floats = NDArray[np.float64]

_TWO = 2
_N_DRAWS, _N_BINS, _N_THRESHOLDS = 500, 10, 99
_DRAWN_AT_ONCE = 1_000_000  # rows; 8 MB
_MAX_DRAWN, _MAX_SLOW = 20_000, 2_000  # rows of a draw; and where each draw is scored on its own
_LOWEST = 1e-7  # probability; a model that was sure and wrong once does not lose everything
_ONE_SIDED = 0.8  # of the rows
_FROM_CONFUSION = ("f1", "balanced_accuracy", "precision", "recall")
_RANKED = ("roc_auc", "average_precision")
_TOP = re.compile(r"precision_at_(\d+(?:\.\d+)?)(%?)")


@dataclass(frozen=True, eq=False)
class Predictions:
    """What a model says of some rows: probabilities, and the code of its answer to each.

    Of a model that gave labels only, probabilities are 0 and 1, and `has_chances` is false.
    """

    chances: Floats
    codes: Codes
    has_chances: bool = True

    @classmethod
    def of(cls, chances: NDArray[Any], weights: NDArray[Any] | None = None) -> Predictions:
        """Answer with the most probable class; `weights` of classes multiply probabilities."""
        p = np.asarray(chances, dtype=np.float64)
        return cls(p, (p if weights is None else p * weights).argmax(axis=1))

    @classmethod
    def of_answers(cls, codes: Codes, n_classes: int) -> Predictions:
        """Take answers without probabilities."""
        return cls(np.eye(n_classes)[codes], codes, has_chances=False)

    def take(self, rows: Any) -> Predictions:
        """Return those of some rows."""
        return Predictions(self.chances[rows], self.codes[rows], self.has_chances)


class Trial:
    """Models that predicted the same rows, compared by one metric; seeded, so it is repeatable."""

    def __init__(
        self,
        metric: Metric,
        y: Codes,
        classes: NDArray[Any],
        models: Mapping[str, Predictions],
        seed: int = 0,
    ) -> None:
        self.metric, self._y, self._classes = metric, y, classes
        self._models, self._seed = models, seed

    def value(self, name: str) -> float:
        """Return the score of a model; higher is better, NaN where it is not defined."""
        everything = np.ones((1, len(self._y)))
        return float(self._score(self._y, self._models[name], everything)[0])

    def score(self, name: str) -> Score:
        """Return the score of a model with its 95 % interval, as it is shown."""
        value = self.value(name)
        if self.metric.name == "accuracy":
            low, high = interval(self._n_right(name), len(self._y))
        else:
            low, high = _middle(value + self._deviations[name])
        if not math.isfinite(value):
            return Score(self.metric.name, lower_is_better=self.metric.is_loss)
        if self.metric.is_loss:
            value, low, high = -value, -high, -low
        return Score(self.metric.name, value, (low, high), self.metric.is_loss)

    def compare(self, one: str, other: str) -> Comparison:
        """Test whether one model is better than another."""
        difference = self.value(one) - self.value(other)
        draws = difference + self._deviations[one] - self._deviations[other]
        ends = _middle(draws)
        if self.metric.name == "accuracy":
            wins, losses = self.count(one, other)
            p, found = p_value(wins, losses), verdict(wins, losses)
        else:
            p = _two_sided(draws)
            found = "no clear difference"
            if is_significant(p) and not ends[0] <= 0 <= ends[1]:
                found = "better" if difference > 0 else "worse"
        return Comparison(self.metric.name, difference, ends, p, found)

    def count(self, one: str, other: str) -> tuple[int, int]:
        """Return how many rows only one of them, and only the other, answers correctly."""
        ours, theirs = (self._models[name].codes == self._y for name in (one, other))
        return int((ours & ~theirs).sum()), int((theirs & ~ours).sum())

    def _n_right(self, name: str) -> int:
        return int((self._models[name].codes == self._y).sum())

    def _score(self, y: Codes, model: Predictions, counts: Floats) -> Floats:
        return weighted_scores(self.metric, y, model, self._classes, counts)

    @cached_property
    def _deviations(self) -> dict[str, Floats]:
        """How far the score of each draw is from the score of all rows drawn from."""
        limit = _MAX_DRAWN if _is_fast(self.metric) else _MAX_SLOW
        rows = spread(np.arange(len(self._y)), limit)
        y, models = self._y[rows], {name: m.take(rows) for name, m in self._models.items()}
        centre = {n: self._score(y, m, np.ones((1, len(y))))[0] for n, m in models.items()}
        draws: dict[str, list[Floats]] = {name: [] for name in models}
        for counts in _draw(len(y), self._seed):
            for name, model in models.items():
                draws[name].append(self._score(y, model, counts))
        return {name: np.concatenate(parts) - centre[name] for name, parts in draws.items()}


def _draw(n_rows: int, seed: int) -> Iterator[Floats]:
    """Yield how often each row is in each draw, some draws at a time."""
    rng = np.random.default_rng(seed)
    at_once = max(1, _DRAWN_AT_ONCE // max(n_rows, 1))
    for first in range(0, _N_DRAWS, at_once):
        n_draws = min(at_once, _N_DRAWS - first)
        cells = rng.integers(n_rows, size=(n_draws, n_rows)) + n_rows * np.arange(n_draws)[:, None]
        counts = np.bincount(cells.ravel(), minlength=n_draws * n_rows)
        yield counts.reshape(n_draws, n_rows).astype(np.float64)


def _middle(draws: Floats) -> tuple[float, float]:
    """Return the range that holds 95 % of the draws; NaN without any that has a score."""
    known = draws[np.isfinite(draws)]
    if not len(known):
        return math.nan, math.nan
    low, high = np.quantile(known, (0.025, 0.975))
    return float(low), float(high)


def _two_sided(draws: Floats) -> float:
    known = draws[np.isfinite(draws)]
    tail = 1 + min((known <= 0).sum(), (known >= 0).sum())
    return float(min(1.0, 2 * tail / (1 + len(known))))


def weighted_scores(
    metric: Metric, y: Codes, model: Predictions, classes: NDArray[Any], counts: Floats
) -> Floats:
    """Return the score of each draw; NaN where the metric is not defined."""
    values = _row_values(metric, y, model, classes)
    with np.errstate(divide="ignore", invalid="ignore"):
        if values is not None:
            means: Floats = counts @ values / counts.sum(axis=1)
            return means
        if metric.name in _FROM_CONFUSION:
            return _from_confusion(metric.name, _confusion(y, model.codes, len(classes), counts))
        if metric.name in _RANKED:
            return _ranked(metric.name, y, model.chances, counts)
        if (top := _TOP.fullmatch(metric.name)) and len(classes) == _TWO:
            return _precision_at(float(top[1]), bool(top[2]), y, model.chances[:, 1], counts)
    return np.array([_slow_score(metric, y, model, classes, count) for count in counts])


def _is_fast(metric: Metric) -> bool:
    names = ("log_loss", "neg_log_loss", "accuracy", *_FROM_CONFUSION, *_RANKED)
    return metric.costs is not None or metric.name in names or bool(_TOP.fullmatch(metric.name))


def _row_values(
    metric: Metric, y: Codes, model: Predictions, classes: NDArray[Any]
) -> Floats | None:
    """Return the values whose mean is the score; none if the metric is no mean over rows."""
    if metric.costs is not None:
        return -metric.cost_matrix(classes)[y, model.codes]
    if metric.name == "accuracy":
        return np.equal(model.codes, y).astype(np.float64)
    if metric.name in ("log_loss", "neg_log_loss"):
        p = np.clip(model.chances, _LOWEST, None)
        logs: Floats = np.log(p[np.arange(len(y)), y] / p.sum(axis=1))
        return logs
    return None


def _confusion(y: Codes, codes: Codes, n_classes: int, counts: Floats) -> Floats:
    """Return rows by true class and answer, (b, C, C)."""
    cells, at = np.unique(y.astype(np.int64) * n_classes + codes, return_inverse=True)
    table = np.zeros((len(counts), n_classes * n_classes))
    table[:, cells] = counts @ np.eye(len(cells))[at]
    return table.reshape(-1, n_classes, n_classes)


def _from_confusion(name: str, confusion: Floats) -> Floats:
    """Return what scikit-learn's scorer of that name returns; the mean over more than two classes.

    With two classes it is of the second, but for balanced accuracy.
    """
    right, truth = np.einsum("bcc->bc", confusion), confusion.sum(axis=2)
    answered = confusion.sum(axis=1)
    if name == "balanced_accuracy":
        recall: Floats = np.nanmean(np.where(truth > 0, right / truth, np.nan), axis=1)
        return recall
    below = {"f1": (truth + answered) / 2, "precision": answered, "recall": truth}[name]
    by_class = np.where(below > 0, right / below, 0.0)
    if by_class.shape[1] == _TWO:
        return by_class[:, 1]
    seen = truth + answered > 0
    means: Floats = np.where(seen, by_class, 0.0).sum(axis=1) / seen.sum(axis=1)
    return means


def _ranked(name: str, y: Codes, chances: Floats, counts: Floats) -> Floats:
    """Return the area under a curve; of more than two classes, each against the rest, the mean."""
    area = _auc if name == "roc_auc" else _average_precision
    n_classes = chances.shape[1]
    if n_classes == _TWO:
        return area(y == 1, chances[:, 1], counts)
    areas = [area(y == k, chances[:, k], counts) for k in range(n_classes) if (y == k).any()]
    means: Floats = np.mean(areas, axis=0)
    return means


def _by_rank(positive: NDArray[np.bool_], p: Floats, counts: Floats) -> tuple[Floats, Floats]:
    """Return positive and other rows by rising probability, equal ones together: (b, groups)."""
    order = np.argsort(p, kind="stable")
    first = np.flatnonzero(np.diff(p[order], prepend=-np.inf))
    ranked = counts[:, order]
    yes = np.add.reduceat(ranked * positive[order], first, axis=1)
    return yes, np.add.reduceat(ranked, first, axis=1) - yes


def _auc(positive: NDArray[np.bool_], p: Floats, counts: Floats) -> Floats:
    yes, no = _by_rank(positive, p, counts)
    below = np.cumsum(no, axis=1) - no / 2
    area: Floats = (yes * below).sum(axis=1) / (yes.sum(axis=1) * no.sum(axis=1))
    return area


def _average_precision(positive: NDArray[np.bool_], p: Floats, counts: Floats) -> Floats:
    yes, no = (part[:, ::-1] for part in _by_rank(positive, p, counts))
    n_yes, n_all = np.cumsum(yes, axis=1), np.cumsum(yes + no, axis=1)
    precision = np.where(n_all > 0, n_yes / n_all, 0.0)
    area: Floats = (yes * precision).sum(axis=1) / yes.sum(axis=1)
    return area


def _precision_at(number: float, is_share: bool, y: Codes, p: Floats, counts: Floats) -> Floats:
    order = np.argsort(-p, kind="stable")
    ranked, totals = counts[:, order], counts.sum(axis=1, keepdims=True)
    n_top = np.maximum(np.ceil(totals * number / 100) if is_share else int(number), 1)
    before = np.cumsum(ranked, axis=1) - ranked
    taken = np.clip(n_top - before, 0, ranked)
    precision: Floats = (taken * y[order]).sum(axis=1) / taken.sum(axis=1)
    return precision


def _slow_score(
    metric: Metric, y: Codes, model: Predictions, classes: NDArray[Any], count: Floats
) -> float:
    """Score one draw by scikit-learn, which refuses rows that lack a class for some metrics."""
    rows = np.repeat(np.arange(len(y)), count.astype(np.int64))
    chances = np.eye(len(classes))[model.codes] if metric.uses_answers else model.chances
    try:
        return metric.score(y[rows], chances[rows], classes)
    except ValueError:
        return math.nan


def tune_threshold(
    metric: Metric, y: Codes, chances: Floats, classes: NDArray[Any]
) -> float | None:
    """Return the probability from which on the second of two classes is the best answer.

    None means the most probable class: for metrics of probabilities, for accuracy, and for more
    than two classes. Of costs it follows from the matrix; otherwise it is the best of some
    quantiles on these rows, which should be those that the model was not trained on.
    """
    if len(classes) != _TWO or not metric.uses_answers or metric.name == "accuracy":
        return None
    if metric.costs is not None:
        matrix = metric.cost_matrix(classes)
        wrong_yes, wrong_no = matrix[0, 1] - matrix[0, 0], matrix[1, 0] - matrix[1, 1]
        both = wrong_yes + wrong_no
        return float(wrong_yes / both) if min(wrong_yes, wrong_no) >= 0 < both else None
    p = chances[:, 1]
    if len(np.unique(y)) < _TWO:
        return None
    tried = np.unique(np.quantile(p, np.linspace(0.005, 0.995, _N_THRESHOLDS)))
    everything = np.ones((1, len(y)))
    scores = [
        weighted_scores(metric, y, Predictions.of(chances, weigh(t)), classes, everything)[0]
        for t in tried
    ]
    best = np.flatnonzero(np.asarray(scores) == np.nanmax(scores))
    return float(tried[best[np.abs(tried[best] - 0.5).argmin()]])


def weigh(threshold: float) -> Floats:
    """Return weights of two classes by which the second wins from a probability on."""
    return np.array([threshold, 1 - threshold])


def describe(y: Codes, model: Predictions, classes: NDArray[Any]) -> Quality:
    """Return AUC (two classes), log loss, calibration and the confusion matrix."""
    everything = np.ones((1, len(y)))
    table = _confusion(y, model.codes, len(classes), everything)[0]
    confusion = tuple(tuple(int(n) for n in row) for row in table)
    names = tuple(map(str, classes.tolist()))
    if not model.has_chances:
        return Quality(confusion=confusion, classes=names)

    def score(name: str) -> float:
        metric = find_metric(name)
        return float(weighted_scores(metric, y, model, classes, everything)[0])

    auc = score("roc_auc") if len(classes) == _TWO else None
    bins = _calibrate(y, model.chances)
    error = sum(part.n_rows * abs(part.share - part.chance) for part in bins) / len(y)
    return Quality(auc, -score("log_loss"), error, bins, confusion, names)


def _calibrate(y: Codes, chances: Floats) -> tuple[CalibrationBin, ...]:
    """Return probabilities and what came true, in bins of equally many rows.

    With two classes they are those of the second one, otherwise those of the most probable one.
    """
    if chances.shape[1] == _TWO:
        p, came_true = chances[:, 1], y == 1
    else:
        p, came_true = chances.max(axis=1), chances.argmax(axis=1) == y
    order = np.argsort(p, kind="stable")
    return tuple(
        CalibrationBin(float(p[part].mean()), float(came_true[part].mean()), len(part))
        for part in np.array_split(order, min(_N_BINS, len(order)))
    )


@dataclass(frozen=True, eq=False)
class Question:
    """Which model predicts these rows best: the rows, and the metric that decides.

    `incumbent` are the predictions of the model in use. If they are labels and the metric takes
    probabilities, comparisons with it go by `fallback`.
    """

    metric: Metric
    y: Codes
    classes: NDArray[Any]
    shares: Floats  # of the classes among the current rows
    incumbent: Predictions | None = None
    seed: int = 0

    @classmethod
    def of(
        cls,
        scoring: Scoring | None,
        labels: Labels,
        layout: Layout,
        held_out: Rows,
        seed: int = 0,
    ) -> Question:
        """Ask about these held-out rows; only classes that were seen count."""
        metric = find_metric(scoring)
        seen = np.union1d(labels.present(layout.trained), labels.present(held_out))
        y, classes = np.searchsorted(seen, labels.codes[held_out]), labels.classes[seen]
        counts = labels.count(layout.current)[seen]
        if metric.costs is not None:
            metric.cost_matrix(classes)  # refuses labels that are not classes
        if _TOP.fullmatch(metric.name) and len(classes) != _TWO:
            raise InputError(f"{metric.name} takes two classes, not {len(classes)}")
        return cls(metric, y, classes, counts / counts.sum(), None, seed)

    @property
    def is_one_sided(self) -> bool:
        """Whether so many held-out rows have the same label that accuracy says little."""
        return 0 < len(self.y) * _ONE_SIDED <= self.n_alike

    @property
    def n_alike(self) -> int:
        """How many held-out rows have the most common label."""
        return int(np.bincount(self.y).max(initial=0))

    @property
    def fallback(self) -> Metric | None:
        """The metric for comparisons with labels, where the chosen one takes probabilities."""
        if self.incumbent is None or self.incumbent.has_chances or self.metric.uses_answers:
            return None
        return find_metric("balanced_accuracy" if self.is_one_sided else "accuracy")

    def tune(self, y: Codes, chances: Floats) -> float | None:
        """Return the threshold for the answers that are compared; see `tune_threshold`."""
        if chances.shape[1] != len(self.classes):
            return None
        return tune_threshold(self.fallback or self.metric, y, chances, self.classes)

    def score(
        self, models: Mapping[str, Predictions], validation: Mapping[str, float]
    ) -> tuple[MethodScore, ...]:
        """Return the scores of all methods, the incumbent's last; Quilt comes first in `models`."""
        first = next(iter(models))
        if not len(self.y):
            return tuple(MethodScore(name, validation[name]) for name in models)
        found = {**models, **({} if self.incumbent is None else {INCUMBENT: self.incumbent})}
        with_chances = {n: m for n, m in found.items() if self.fallback is None or m.has_chances}
        trial = Trial(self.metric, self.y, self.classes, with_chances, self.seed)
        last = trial
        if self.fallback is not None:
            last = Trial(self.fallback, self.y, self.classes, found, self.seed)

        def of(name: str) -> MethodScore:
            wins, losses = last.count(first, name)
            has_score, is_old = name in with_chances, name == INCUMBENT
            unknown = Score(self.metric.name, lower_is_better=self.metric.is_loss)
            return MethodScore(
                name,
                validation.get(name),
                int((found[name].codes == self.y).sum()),
                len(self.y),
                wins,
                losses,
                trial.score(name) if has_score else unknown,
                None if name == first else (last if is_old else trial).compare(first, name),
                None if is_old or INCUMBENT not in found else last.compare(name, INCUMBENT),
                describe(self.y, found[name], self.classes),
            )

        return tuple(map(of, found))

    def constant(self) -> ConstantAnswer | None:
        """Return the best answer that is the same for every row; none without held-out rows."""
        if not len(self.y):
            return None
        chances, everything = np.tile(self.shares, (len(self.y), 1)), np.ones((1, len(self.y)))
        scores = [
            weighted_scores(
                self.metric, self.y, Predictions(chances, codes), self.classes, everything
            )
            for codes in (np.full(len(self.y), code) for code in range(len(self.classes)))
        ]
        values = [float(score[0]) for score in scores]
        is_free = self.metric.uses_answers and self.metric.name != "accuracy"
        best = int(np.argmax(values) if is_free else self.shares.argmax())
        value = -values[best] if self.metric.is_loss else values[best]
        n_right = int((self.y == best).sum())
        known = value if math.isfinite(value) else None
        return ConstantAnswer(str(self.classes[best]), n_right, known)
