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
from driftquilt.quilt.metrics import (
    Codes,
    Floats,
    Metric,
    Predictions,
    Scoring,
    confusion_counts,
    find_metric,
    is_fast,
    is_one_sided,
    tune_threshold,
    weighted_scores,
)

_TWO = 2
_N_DRAWS, _N_BINS = 500, 10
_DRAWN_AT_ONCE = 1_000_000  # rows; 8 MB
_MAX_DRAWN, _MAX_SLOW = 20_000, 2_000  # rows of a draw; and where each draw is scored on its own


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
        limit = _MAX_DRAWN if is_fast(self.metric) else _MAX_SLOW
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


def describe(y: Codes, model: Predictions, classes: NDArray[Any]) -> Quality:
    """Return AUC (two classes), log loss, calibration and the confusion matrix."""
    everything = np.ones((1, len(y)))
    table = confusion_counts(y, model.codes, len(classes), everything)[0]
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
        if metric.top is not None and len(classes) != _TWO:
            raise InputError(f"{metric.name} takes two classes, not {len(classes)}")
        return cls(metric, y, classes, counts / counts.sum(), None, seed)

    @property
    def is_one_sided(self) -> bool:
        """Whether so many held-out rows have the same label that accuracy says little."""
        return is_one_sided(np.bincount(self.y))

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
