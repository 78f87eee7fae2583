"""The scores of a method on held-out rows, as values and in words, and the test of two accuracies.

All models predict the same rows, so only the rows count that one predicts correctly and the other
does not: between two equally good models each of these is a coin toss (McNemar's exact test).
Other metrics are scored and compared in `scoring`. On fewer than 30 rows there is no verdict.

>>> low, high = interval(90, 100)
>>> round(low, 3), round(high, 3)
(0.826, 0.945)
>>> round(p_value(8, 1), 3), verdict(80, 8), verdict(3, 2), verdict(9, 0, n_rows=12)
(0.039, 'better', 'no clear difference', 'too few rows')
>>> score = MethodScore("all data", validation=0.8, n_right=80, n_rows=100, wins=15, losses=2)
>>> score.accuracy, score.verdict
(0.8, 'better')
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple, TypeVar

Verdict = Literal["better", "no clear difference", "worse", "too few rows"]
_T = TypeVar("_T", "Score", "Comparison")

#: The names of the methods that are compared.
QUILT, ALL_DATA, CURRENT_ONLY, INCUMBENT = "Quilt", "all data", "current only", "incumbent"
#: Held-out rows, below which nothing is concluded.
FEW_ROWS = 30

_Z = 1.959963984540054  # 95 % of a normal distribution lie within so many deviations
_SIGNIFICANT = 0.05

_MAX_NAMES = 4


@dataclass(frozen=True)
class Score:
    """The score of one model by the metric that decides, with its 95 % interval.

    The value is None where the metric is not defined, or needs probabilities that are not there.
    """

    metric: str
    value: float | None = None
    interval: tuple[float, float] | None = None
    lower_is_better: bool = False


@dataclass(frozen=True)
class Comparison:
    """How one model compares with another on the same rows, by one metric.

    The difference, with its 95 % interval, is above 0 where the first model is better.
    """

    metric: str
    difference: float
    interval: tuple[float, float]
    p_value: float
    verdict: Verdict


class CalibrationBin(NamedTuple):
    """Rows of about one probability: its mean, the share that came true, and their number."""

    chance: float
    share: float
    n_rows: int


@dataclass(frozen=True)
class Quality:
    """What else there is to know of a model: AUC is for two classes, the rest for probabilities.

    `confusion` counts held-out rows by true class and answer, in the order of `classes`.
    """

    auc: float | None = None
    log_loss: float | None = None
    calibration_error: float | None = None
    calibration: tuple[CalibrationBin, ...] = ()
    confusion: tuple[tuple[int, ...], ...] = ()
    classes: tuple[str, ...] = ()

    @property
    def figures(self) -> dict[str, float | None]:
        """The figures that are shown beside the metric that decides, by the metric's name."""
        return {"roc_auc": self.auc, "log_loss": self.log_loss}

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "calibration": [part._asdict() for part in self.calibration]}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Quality:
        """Read what `to_json` returned."""
        bins = tuple(CalibrationBin(**part) for part in data["calibration"])
        confusion = tuple(tuple(map(int, row)) for row in data["confusion"])
        classes = tuple(data["classes"])
        return cls(**{**data, "calibration": bins, "confusion": confusion, "classes": classes})


class Stretch(NamedTuple):
    """Held-out rows in a row: the last one's number among them, and how far answers were off.

    `error` is the mean absolute error. `low`, `middle` and `high` are quantiles (10, 50 and 90 %)
    of what was missing: the truth minus the answer. `covered` is the share of the truths in their
    intervals, None without intervals.
    """

    last: int
    error: float
    low: float
    middle: float
    high: float
    covered: float | None


@dataclass(frozen=True)
class NumberQuality:
    """What else there is to know of predicted numbers.

    `bias` is the mean of what was missing, the truth minus the answer. `coverage` is the share of
    the truths in intervals for 80 %, `width` the mean width of these; None of a model without
    intervals. `stretches` are the held-out rows in order, `points` the truth and the answer of some
    of them.
    """

    mae: float
    rmse: float
    r2: float | None
    bias: float
    coverage: float | None = None
    width: float | None = None
    stretches: tuple[Stretch, ...] = ()
    points: tuple[tuple[float, float], ...] = ()

    @property
    def figures(self) -> dict[str, float | None]:
        """The figures that are shown beside the metric that decides, by the metric's name."""
        return {
            "neg_mean_absolute_error": self.mae,
            "neg_root_mean_squared_error": self.rmse,
            "r2": self.r2,
            "coverage": self.coverage,
        }

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**asdict(self), "stretches": [part._asdict() for part in self.stretches]}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> NumberQuality:
        """Read what `to_json` returned."""
        stretches = tuple(Stretch(**part) for part in data["stretches"])
        points = tuple((float(truth), float(answer)) for truth, answer in data["points"])
        return cls(**{**data, "stretches": stretches, "points": points})


@dataclass(frozen=True)
class MethodScore:
    """One way to train, and its score on held-out rows; `wins` and `losses` are Quilt's against it.

    `validation` is the accuracy on the current rows used for validation, averaged over folds, or
    of numbers the mean absolute error; the incumbent has none. A win is a row that Quilt predicts
    correctly and this method does not, or of numbers one that Quilt is closer to; Quilt has none
    against itself. Numbers have no `n_right`. `against_quilt` is how Quilt compares with this
    method, `against_incumbent` how this method compares with the incumbent. Early files have only
    counts.
    """

    name: str
    validation: float | None
    n_right: int | None = 0
    n_rows: int = 0
    wins: int = 0
    losses: int = 0
    score: Score | None = None
    against_quilt: Comparison | None = None
    against_incumbent: Comparison | None = None
    quality: Quality | NumberQuality | None = None

    @property
    def accuracy(self) -> float | None:
        """Accuracy on the held-out rows; None if there are none, and of numbers."""
        return self.n_right / self.n_rows if self.n_rows and self.n_right is not None else None

    @property
    def interval(self) -> tuple[float, float] | None:
        """95 % interval of the accuracy; None of numbers."""
        return None if self.n_right is None else interval(self.n_right, self.n_rows)

    @property
    def figures(self) -> dict[str, float | None]:
        """The accuracy, and other figures of the kind of task, by the metric's name."""
        right = {} if self.n_right is None else {"accuracy": self.accuracy}
        return right | ({} if self.quality is None else self.quality.figures)

    @property
    def comparison(self) -> Comparison:
        """How Quilt compares with this method, by the metric that decides."""
        if self.against_quilt is not None:
            return self.against_quilt
        difference = (self.wins - self.losses) / max(self.n_rows, 1)
        p = p_value(self.wins, self.losses)
        found = verdict(self.wins, self.losses, self.n_rows)
        return Comparison("accuracy", difference, (difference, difference), p, found)

    @property
    def verdict(self) -> Verdict:
        """How Quilt compares with this method."""
        return self.comparison.verdict

    @property
    def shown_score(self) -> Score:
        """The score by the metric that decides; the accuracy in early files."""
        if self.score is not None:
            return self.score
        return Score("accuracy", self.accuracy, self.interval if self.n_rows else None)

    def to_json(self) -> dict[str, Any]:
        """Plain values, with what follows from them for readers of the file."""
        return {
            **asdict(self),
            "accuracy": self.accuracy,
            "interval": self.interval,
            "p_value": self.comparison.p_value,
            "quilt_is": self.verdict,
            "quality": None if self.quality is None else self.quality.to_json(),
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> MethodScore:
        """Read what `to_json` returned; early files have no more than counts."""
        counts = ("name", "validation", "n_right", "n_rows", "wins", "losses")
        quality = data.get("quality")
        return cls(
            **{name: data[name] for name in counts},
            score=_read(Score, data.get("score")),
            against_quilt=_read(Comparison, data.get("against_quilt")),
            against_incumbent=_read(Comparison, data.get("against_incumbent")),
            quality=None if quality is None else _read_quality(quality),
        )


def _read(kind: type[_T], data: dict[str, Any] | None) -> _T | None:
    if data is None:
        return None
    ends = data["interval"]
    numbers = {name: _number(data[name]) for name in ("difference", "p_value") if name in data}
    return kind(**{**data, **numbers, "interval": ends and tuple(map(_number, ends))})


def _read_quality(data: dict[str, Any]) -> Quality | NumberQuality:
    return Quality.from_json(data) if "confusion" in data else NumberQuality.from_json(data)


def _number(value: float | None) -> float:
    """Read a number that JSON has as null if it is not finite."""
    return math.nan if value is None else float(value)


class ConstantAnswer(NamedTuple):
    """The best constant answer, how many held-out rows it gets right, and its score.

    Where probabilities are scored, it is the most common label of the current rows, and its
    probabilities are the shares of the classes among them. Of numbers it is the median or the mean
    of the current rows, and none is right.
    """

    label: str
    n_right: int | None
    score: float | None = None


def interval(n_right: int, n_rows: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of an accuracy; (0, 1) without rows."""
    if n_rows == 0:
        return 0.0, 1.0
    share, z2 = n_right / n_rows, _Z**2 / n_rows
    middle = (share + z2 / 2) / (1 + z2)
    half = _Z * math.sqrt(share * (1 - share) / n_rows + z2 / (4 * n_rows)) / (1 + z2)
    return max(0.0, middle - half), min(1.0, middle + half)


def p_value(wins: int, losses: int) -> float:
    """Return the probability of a count at least as uneven if both are equally good; two-sided."""
    n = wins + losses
    if wins == losses:
        return 1.0
    tail = (
        math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) - n * math.log(2)
        for k in range(min(wins, losses) + 1)
    )
    return min(1.0, 2 * math.fsum(map(math.exp, tail)))


def verdict(wins: int, losses: int, n_rows: int | None = None) -> Verdict:
    """Return whether the model with `wins` is better, at a significance level of 5 %.

    `n_rows` counts the rows that both predicted, also those on which they agree.
    """
    if n_rows is not None and n_rows < FEW_ROWS:
        return "too few rows"
    if not is_significant(p_value(wins, losses)):
        return "no clear difference"
    return "better" if wins > losses else "worse"


def is_significant(p: float) -> bool:
    """Return whether a difference is clear, at a significance level of 5 %."""
    return p < _SIGNIFICANT


def name_some(names: Sequence[object]) -> str:
    """Return the first few names, and how many more there are.

    >>> name_some(["may", "june", "july", "august", "september", "october"])
    'may, june, july, august and 2 more'
    """
    shown = ", ".join(map(str, names[:_MAX_NAMES]))
    n_more = len(names) - _MAX_NAMES
    return f"{shown} and {n_more} more" if n_more > 0 else shown
