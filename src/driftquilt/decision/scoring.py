"""Score held-out predictions by any metric, and find out whether one model is better than another.

All models predict the same rows. To see how much a score depends on which rows happened to be
held out, rows are drawn again and again with replacement (a paired bootstrap): in each draw all
models are scored on the same rows, so their differences have an interval of their own. A model is
better if 95 % of the differences are above 0. Differences in accuracy are tested exactly instead
(McNemar). Fewer than 30 rows are too few for either.

    y         (n,)    places in `classes`, or numbers
    chances   (n, C)  probabilities
    counts    (b, n)  how often each of b draws has each row

Higher is always better inside this module; what is shown has the sign that people expect. What is
asked of the held-out rows is a `ClassQuestion` or a `NumberQuestion`: they know how the answers of
a model are read, scored and described, and the rest is the same for both.

>>> y, classes = np.array([0, 1, 0, 1] * 50), np.array(["no", "yes"])
>>> sharp = Predictions.of(np.where(y[:, None] == [0, 1], 0.9, 0.1))
>>> vague = Predictions.of(np.full((200, 2), 0.5))
>>> scorer = ClassScorer(find_metric("log_loss"), classes)
>>> trial = Trial(scorer, y, {"sharp": sharp, "vague": vague})
>>> trial.score("sharp").value, trial.compare("sharp", "vague").verdict
(0.105..., 'better')
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from driftquilt.decision.incumbent import read_incumbent, read_numbers_of
from driftquilt.decision.labels import Amounts, Labels
from driftquilt.decision.layout import Layout, Rows, spread
from driftquilt.decision.measure import (
    FEW_ROWS,
    INCUMBENT,
    CalibrationBin,
    Comparison,
    ConstantAnswer,
    MethodScore,
    NumberQuality,
    Quality,
    Score,
    Stretch,
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
    NumberMetric,
    NumberPredictions,
    Predictions,
    amount,
    confusion_counts,
    find_metric,
    find_number_metric,
    is_fast,
    is_one_sided,
    metric_words,
    tune_threshold,
    weighted_scores,
)
from driftquilt.quilt.selector import QuiltSelector
from driftquilt.text import plural

_TWO = 2
_N_DRAWS, _N_BINS = 500, 10
_DRAWN_AT_ONCE = 1_000_000  # rows; 8 MB
_MAX_DRAWN, _MAX_SLOW = 20_000, 2_000  # rows of a draw; and where each draw is scored on its own
_MAX_POINTS, _MAX_STRETCHES, _PER_STRETCH = 240, 40, 20  # of what is drawn; rows of a stretch
_NEARLY_ALL, _NEARLY_ALL_VARIANCE = 0.995, 0.9995  # which real data seldom allow
_ALIKE = 0.95  # share of the most common class, above which a high accuracy means little


@dataclass(frozen=True, eq=False)
class ClassScorer:
    """Scores predicted classes by a metric."""

    metric: Metric
    classes: NDArray[Any]

    def scores(self, y: Codes, model: Predictions, counts: Floats) -> Floats:
        """Return the score of each draw; higher is better, NaN where it is not defined."""
        return weighted_scores(self.metric, y, model, self.classes, counts)

    def errors(self, y: Codes, model: Predictions) -> Floats:
        """Return how wrong the answer to each row is: 0 or 1."""
        return np.not_equal(model.codes, y).astype(np.float64)

    @property
    def max_drawn(self) -> int:
        """How many rows a draw may have."""
        return _MAX_DRAWN if is_fast(self.metric) else _MAX_SLOW


@dataclass(frozen=True, eq=False)
class NumberScorer:
    """Scores predicted numbers by a metric."""

    metric: NumberMetric
    max_drawn: int = _MAX_DRAWN

    def scores(self, y: Floats, model: NumberPredictions, counts: Floats) -> Floats:
        """Return the score of each draw; higher is better, NaN where it is not defined."""
        return self.metric.weighted(y, model.values, model.ends, counts)

    def errors(self, y: Floats, model: NumberPredictions) -> Floats:
        """Return how wrong the answer to each row is."""
        return np.abs(y - model.values)


class Trial:
    """Models that predicted the same rows, compared by one metric; seeded, so it is repeatable."""

    def __init__(self, scorer: Any, y: NDArray[Any], models: Mapping[str, Any], seed: int = 0):
        self.metric: Metric | NumberMetric = scorer.metric
        self._scorer, self._y, self._models, self._seed = scorer, y, models, seed

    def value(self, name: str) -> float:
        """Return the score of a model; higher is better, NaN where it is not defined."""
        everything = np.ones((1, len(self._y)))
        return float(self._scorer.scores(self._y, self._models[name], everything)[0])

    def score(self, name: str) -> Score:
        """Return the score of a model with its 95 % interval, as it is shown."""
        value = self.value(name)
        if self.metric.name == "accuracy":
            low, high = interval(round(value * len(self._y)), len(self._y))
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
            p, found = p_value(wins, losses), verdict(wins, losses, len(self._y))
        else:
            p = _two_sided(draws)
            found = "no clear difference"
            if len(self._y) < FEW_ROWS:
                found = "too few rows"
            elif is_significant(p) and not ends[0] <= 0 <= ends[1]:
                found = "better" if difference > 0 else "worse"
        return Comparison(self.metric.name, difference, ends, p, found)

    def count(self, one: str, other: str) -> tuple[int, int]:
        """Return on how many rows the first is less wrong than the second, and the reverse."""
        ours, theirs = (self._scorer.errors(self._y, self._models[name]) for name in (one, other))
        return int((ours < theirs).sum()), int((theirs < ours).sum())

    @cached_property
    def _deviations(self) -> dict[str, Floats]:
        """How far the score of each draw is from the score of all rows drawn from."""
        rows, score = spread(np.arange(len(self._y)), self._scorer.max_drawn), self._scorer.scores
        y, models = self._y[rows], {name: m.take(rows) for name, m in self._models.items()}
        centre = {n: score(y, m, np.ones((1, len(y))))[0] for n, m in models.items()}
        draws: dict[str, list[Floats]] = {name: [] for name in models}
        for counts in _draw(len(y), self._seed):
            for name, model in models.items():
                draws[name].append(score(y, model, counts))
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


def describe_numbers(y: Floats, model: NumberPredictions) -> NumberQuality:
    """Return the errors of predicted numbers, over all held-out rows and along them."""
    off = y - model.values
    covered = width = None
    if model.ends is not None:
        low, high = model.ends.T
        covered, width = (low <= y) & (y <= high), float((high - low).mean())
    r2 = find_number_metric("r2").score(y, model.values)
    shown = spread(np.arange(len(y)), _MAX_POINTS)
    points = zip(y[shown].tolist(), model.values[shown].tolist(), strict=True)
    return NumberQuality(
        float(np.abs(off).mean()),
        float(np.sqrt((off**2).mean())),
        r2 if math.isfinite(r2) else None,
        float(off.mean()),
        None if covered is None else float(covered.mean()),
        width,
        _stretches(off, covered),
        tuple((_short(truth), _short(answer)) for truth, answer in points),
    )


def _stretches(off: Floats, covered: NDArray[np.bool_] | None) -> tuple[Stretch, ...]:
    n_parts = min(_MAX_STRETCHES, -(-len(off) // _PER_STRETCH))
    stretches = []
    for part in np.array_split(np.arange(len(off)), n_parts):
        low, middle, high = map(_short, np.quantile(off[part], (0.1, 0.5, 0.9)))
        error, last = _short(np.abs(off[part]).mean()), int(part[-1]) + 1
        share = None if covered is None else _short(covered[part].mean())
        stretches.append(Stretch(last, error, low, middle, high, share))
    return tuple(stretches)


def _short(value: float) -> float:
    """Return a number with six digits, which is all that a drawing has room for."""
    return float(f"{value:.6g}")


@dataclass(frozen=True, eq=False)
class ClassQuestion:
    """Which model predicts the classes of these rows best: the rows, and the metric that decides.

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
        cls, metric: Metric, labels: Labels, layout: Layout, held_out: Rows, seed: int = 0
    ) -> ClassQuestion:
        """Ask about these held-out rows; only classes that were seen count."""
        seen = np.union1d(labels.present(layout.trained), labels.present(held_out))
        y, classes = np.searchsorted(seen, labels.codes[held_out]), labels.classes[seen]
        counts = labels.count(layout.current)[seen]
        if metric.costs is not None:
            metric.cost_matrix(classes)  # refuses labels that are not classes
        if metric.top is not None and len(classes) != _TWO:
            raise InputError(f"{metric.name} takes two classes, not {len(classes)}")
        return cls(metric, y, classes, counts / counts.sum(), None, seed)

    def beside(
        self, table: pa.Table, name: str | None, labels: Labels, rows: Rows
    ) -> tuple[ClassQuestion, list[str]]:
        """Return the question with the incumbent in a column, and notes on how it is answered."""
        question, notes = self, list[str]()
        if name is not None:
            known = replace(labels, classes=self.classes)
            question = replace(self, incumbent=read_incumbent(table, name, known, rows))
        if question.metric.name == "accuracy" and question.is_one_sided:
            question = replace(question, metric=find_metric("log_loss"))
            notes.append(
                "most held-out rows have the same label, so log loss decides, not accuracy"
            )
        if question.fallback is not None:
            words, instead = map(metric_words, (question.metric.name, question.fallback.name))
            notes.append(
                f"the incumbent {name!r} holds labels, so its {words} is not known, and it is "
                f"compared by {instead}"
            )
        return question, notes

    @property
    def is_one_sided(self) -> bool:
        """Whether so many held-out rows have the same label that accuracy says little."""
        return is_one_sided(np.bincount(self.y))

    @property
    def fallback(self) -> Metric | None:
        """The metric for comparisons with labels, where the chosen one takes probabilities."""
        if self.incumbent is None or self.incumbent.has_chances or self.metric.uses_answers:
            return None
        return find_metric("balanced_accuracy" if self.is_one_sided else "accuracy")

    def read(self, clf: Any, chances: NDArray[Any]) -> Predictions:
        """Return predictions over all classes; a model gives those it has not seen no chance."""
        places = np.searchsorted(self.classes, clf.classes_)
        full = np.zeros((len(chances), len(self.classes)))
        full[:, places] = chances
        answers = places[np.searchsorted(clf.classes_, clf.answers(chances))]
        return Predictions(full, answers)

    def set_metric(self, clf: Any, labels: Labels, layout: Layout) -> None:
        """Let the metric choose bound and blend too, unless the model has one of its own.

        Classes that no row to train on has would be unknown to it.
        """
        has_all_classes = len(labels.present(layout.trained)) == len(self.classes)
        if clf.scoring is None and not self.metric.is_log_loss and has_all_classes:
            clf.set_params(scoring=self.metric)

    def validation(self, clf: Any, folds: Sequence[tuple[Codes, NDArray[Any]]]) -> float:
        """Return the mean over folds of the accuracy on rows it was not trained on."""
        return float(np.mean([(clf.answers(p) == clf.classes_[y]).mean() for y, p in folds]))

    def tune(self, clf: Any, y: Codes, chances: NDArray[Any]) -> None:
        """Set the threshold of a model for the answers that are compared; see `tune_threshold`."""
        clf.threshold_ = None
        if chances.shape[1] == len(self.classes):
            metric = self.fallback or self.metric
            clf.threshold_ = tune_threshold(metric, y, chances, self.classes)

    def scorer(self, metric: Metric) -> ClassScorer:
        """Return what scores predictions of these rows."""
        return ClassScorer(metric, self.classes)

    def describe(self, model: Predictions) -> Quality:
        """Return other figures of a model."""
        return describe(self.y, model, self.classes)

    def has_score(self, model: Predictions) -> bool:
        """Return whether the metric is known of a model."""
        return self.fallback is None or model.has_chances

    def n_right(self, model: Predictions) -> int:
        """Return how many answers are right."""
        return int((model.codes == self.y).sum())

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
        n_right = int((self.y == best).sum())
        return ConstantAnswer(str(self.classes[best]), n_right, _shown(self.metric, values[best]))

    def too_good(self, methods: Sequence[MethodScore]) -> tuple[str, dict[str, float]]:
        """Return in words that all models are nearly always right, if rows are not all alike."""
        n_alike = np.bincount(self.y).max(initial=0)
        worst = min(method.accuracy or 0.0 for method in methods)
        if worst < _NEARLY_ALL or n_alike > _ALIKE * len(self.y):
            return "", {}
        words = f"get at least {100 * worst:.1f} % of {plural(len(self.y), 'held-out row')} right"
        return words, {"rows": len(self.y), "accuracy": worst}

    def is_slow(self) -> bool:
        """Return whether nearly every row has the class of the row before."""
        return bool((self.y[1:] == self.y[:-1]).mean() >= _NEARLY_ALL)


@dataclass(frozen=True, eq=False)
class NumberQuestion:
    """Which model predicts the numbers of these rows best: the rows, and the metric that decides.

    `constant_value` is the best constant answer by the current rows. `incumbent` are the
    predictions of the model in use; they have no intervals, so a metric of intervals has a
    `fallback`.
    """

    metric: NumberMetric
    y: Floats
    constant_value: float
    constant_ends: Floats
    incumbent: NumberPredictions | None = None
    seed: int = 0

    @classmethod
    def of(
        cls, metric: NumberMetric, labels: Amounts, layout: Layout, held_out: Rows, seed: int = 0
    ) -> NumberQuestion:
        """Ask about these held-out rows."""
        current = labels.of(layout.current)
        best = float(current.mean() if metric.is_squared else np.median(current))
        ends = np.quantile(current, (0.1, 0.9))
        return cls(metric, labels.of(held_out), best, ends, None, seed)

    def beside(
        self, table: pa.Table, name: str | None, labels: Amounts, rows: Rows
    ) -> tuple[NumberQuestion, list[str]]:
        """Return the question with the incumbent in a column, and notes on how it is answered."""
        if name is None:
            return self, []
        question = replace(self, incumbent=read_numbers_of(table, name, labels, rows))
        if question.fallback is None:
            return question, []
        words, instead = map(metric_words, (self.metric.name, question.fallback.name))
        return question, [
            f"the incumbent {name!r} has no intervals, so its {words} is not known, and it is "
            f"compared by {instead}"
        ]

    @property
    def fallback(self) -> NumberMetric | None:
        """The metric for comparisons with numbers alone, where the chosen one takes intervals."""
        if self.incumbent is None or not self.metric.takes_intervals:
            return None
        return find_number_metric("mae")

    def read(self, clf: Any, outputs: NDArray[Any]) -> NumberPredictions:  # noqa: ARG002
        """Return predictions."""
        return NumberPredictions.of(outputs)

    def set_metric(self, clf: Any, labels: Amounts, layout: Layout) -> None:  # noqa: ARG002
        """Let the metric choose the blend too; a net goes by its own loss."""
        if isinstance(clf, QuiltSelector) and clf.scoring is None:
            clf.set_params(scoring=self.metric)

    def validation(self, clf: Any, folds: Sequence[tuple[Floats, NDArray[Any]]]) -> float:  # noqa: ARG002
        """Return the mean absolute error on rows it was not trained on."""
        y, outputs = (np.concatenate(parts) for parts in zip(*folds, strict=True))
        return float(np.abs(y - outputs[:, 0]).mean())

    def tune(self, clf: Any, y: Floats, outputs: NDArray[Any]) -> None:
        """Leave a model as it is: numbers have no threshold."""

    def scorer(self, metric: NumberMetric) -> NumberScorer:
        """Return what scores predictions of these rows."""
        return NumberScorer(metric)

    def describe(self, model: NumberPredictions) -> NumberQuality:
        """Return other figures of a model."""
        return describe_numbers(self.y, model)

    def has_score(self, model: NumberPredictions) -> bool:
        """Return whether the metric is known of a model."""
        return self.fallback is None or model.ends is not None

    def n_right(self, model: NumberPredictions) -> None:
        """Return nothing: no number is right."""

    def constant(self) -> ConstantAnswer | None:
        """Return the best answer that is the same for every row; none without held-out rows."""
        if not len(self.y):
            return None
        answers, ends = np.full(len(self.y), self.constant_value), self.constant_ends
        value = self.metric.score(self.y, answers, np.tile(ends, (len(self.y), 1)))
        return ConstantAnswer(amount(self.constant_value), None, _shown(self.metric, value))

    def too_good(self, methods: Sequence[MethodScore]) -> tuple[str, dict[str, float]]:
        """Return in words that all models are nearly always right."""
        worst = min(method.figures.get("r2") or 0.0 for method in methods)
        if worst < _NEARLY_ALL_VARIANCE:
            return "", {}
        rows = plural(len(self.y), "held-out row")
        words = f"explain at least {100 * worst:.2f} % of the variance of {rows}"
        return words, {"rows": len(self.y), "r2": worst}

    def is_slow(self) -> bool:
        """Return whether the number of the row before explains nearly all of the variance."""
        return find_number_metric("r2").score(self.y[1:], self.y[:-1]) >= _NEARLY_ALL_VARIANCE


Question: TypeAlias = ClassQuestion | NumberQuestion


def score_methods(
    question: Any, models: Mapping[str, Any], validation: Mapping[str, float]
) -> tuple[MethodScore, ...]:
    """Return the scores of all methods, the incumbent's last; Quilt comes first in `models`."""
    first = next(iter(models))
    if not len(question.y):
        n_right = 0 if isinstance(question, ClassQuestion) else None
        return tuple(MethodScore(name, validation[name], n_right) for name in models)
    found = dict(models)
    if question.incumbent is not None:
        found[INCUMBENT] = question.incumbent
    scored = {name: model for name, model in found.items() if question.has_score(model)}
    trial = Trial(question.scorer(question.metric), question.y, scored, question.seed)
    last = trial
    if question.fallback is not None:
        last = Trial(question.scorer(question.fallback), question.y, found, question.seed)
    unknown = Score(question.metric.name, lower_is_better=question.metric.is_loss)

    def of(name: str) -> MethodScore:
        wins, losses = last.count(first, name)
        is_old = name == INCUMBENT
        return MethodScore(
            name,
            validation.get(name),
            question.n_right(found[name]),
            len(question.y),
            wins,
            losses,
            trial.score(name) if name in scored else unknown,
            None if name == first else (last if is_old else trial).compare(first, name),
            None if is_old or INCUMBENT not in found else last.compare(name, INCUMBENT),
            question.describe(found[name]),
        )

    return tuple(map(of, found))


def _shown(metric: Metric | NumberMetric, value: float) -> float | None:
    """Return a score as it is shown; none where it is not defined."""
    if not math.isfinite(value):
        return None
    return -value if metric.is_loss else value
