"""How much of the answer comes from all data, from the selected past, and from the present alone.

A selection can be wrong: where nothing drifted, or where the few labelled rows of the current
segment do not stand for the rest of it, training on everything is better. So three models are
trained per fold, and their probabilities are mixed:

    all       on all past segments and the current one
    selected  on the segments that Quilt selects
    current   on the current segment alone

The mixture is judged by what each model says of labelled rows that it was not trained on. Folds
are blocks in time, as neighbours are alike. First the weights of highest likelihood are found
(EM, with some rows' worth of belief in the selection). Then they are drawn back towards "all": a
share t of the way to those weights is gone, where t has the highest

    mean gain in log-likelihood over "all"  -  its standard error

and the error counts whole blocks of rows, not single ones. Few labelled rows, or blocks that
contradict each other, thus move the model little. Nor do rows that lack classes: what they say
counts by the share of past rows whose class they have.

The labelled rows are the first of their segment, and may not stand for the rest of it. How far such
rows are trusted is learned from the past (`Openings`): the models are asked about the first rows of
past segments, as many as are labelled now, and about later ones. Where a gain differs between the
two by more than chance, that difference adds to the standard error. So does what a class of few
labelled rows leaves open, by how much the gain varies over its past rows.

A class with few labelled rows, or none, is easily forgotten by a model that hardly looks at the
past, and few rows speak for it. So it borrows past rows (`borrow_rows`), which count as one row
together where it has none, and less the more it has. Both choices, of a candidate and of the
weights, listen to them.

`choose_candidate` leans the same way: of the candidates whose loss cannot be told from the lowest,
it takes the one that uses most of the past. `choose_by_score` does so for any metric, by the score
of all rows and those with one block of rows left out each (the jackknife). Where those are not
defined, as AUC is not once the only block with a positive row is left out, no difference is sure.
A fold has few rows to choose by, so it listens to those of the others too, by `OTHER_FOLDS`.

    likelihood  (K, n)  what each of K models gives to the true class of each labelled row, in
                        order of time, and of each borrowed row after them

>>> L = np.array([[0.5] * 40, [0.9] * 40, [0.1] * 40])
>>> blend_weights(L, np.ones(40)).round(2).tolist()
[0.0, 1.0, 0.0]
>>> blend_weights(L[:, :2], np.ones(2)).argmax()
np.int64(1)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from driftquilt.core.segment import History, Pick, Segment, gather
from driftquilt.quilt.metrics import (
    Metric,
    NumberMetric,
    Predictions,
    tune_threshold,
    weigh,
    weighted_scores,
)

__all__ = [
    "ONE_ERROR",
    "OTHER_FOLDS",
    "PARTS",
    "Judge",
    "Openings",
    "blend_numbers",
    "blend_weights",
    "blocks_of",
    "borrow_rows",
    "choose_by_merit",
    "choose_by_score",
    "choose_candidate",
    "replace_mixture",
]

#: What a blended model is made of, in the order of its weights.
PARTS = ("all", "selected", "current")
#: What a row of another fold counts when a fold chooses its candidate.
OTHER_FOLDS = 0.75

#: Standard errors by which a single model has to score higher than a blend.
ONE_ERROR = 1.0

_BLOCKS = 8  # of rows that count as one observation each
_LOWEST = 1e-6  # likelihood; a model that was sure and wrong once is not out for good
_EM_STEPS = 200
_GREEDY_STEPS = 40
_BELIEF = np.array([0.2, 5.0, 0.2])  # rows that speak for each model before any is seen
_SHARES = np.linspace(0, 1, 41)
_ERRORS = 0.5  # standard errors within which a candidate is as good as the best
_NEGLIGIBLE = 0.01  # weight below which a model is left out
_ENOUGH = 20  # labelled rows of a class that borrows none
_BORROWED = 32  # past rows of a class at most
_OPENINGS = 32  # past segments whose openings are looked at, the last ones
_OPENING_ROWS = 4096  # of all of them together


#: By the weights of a mixture, the variance of its mean gain that labelled rows do not show.
OpenVariance: TypeAlias = Callable[[NDArray[np.float64]], float]


def _nothing_open(_: NDArray[np.float64]) -> float:
    return 0.0


def borrow_rows(history: History, current: Segment) -> Segment:
    """Past rows of the classes that the current segment has few of, evenly over time.

    Those of a class have a weight of 1 / (1 + its current rows) together.
    """
    y = np.concatenate([segment.y for segment in history])
    n_current = np.bincount(current.y, minlength=int(y.max()) + 1)
    rows = np.zeros(0, dtype=np.intp)
    for code in np.unique(y):
        if n_current[code] < _ENOUGH:
            known = np.flatnonzero(y == code)
            places = np.linspace(0, len(known) - 1, min(len(known), _BORROWED))
            rows = np.union1d(rows, known[places.astype(np.intp)])
    first = np.cumsum([0, *map(len, history)])[:-1]
    parts = np.split(rows, np.searchsorted(rows, first[1:]))
    picks = [Pick(s, part - a) for s, part, a in zip(history, parts, first, strict=True)]
    borrowed = gather(picks)
    share = 1 / (1 + n_current[borrowed.y]) / np.bincount(borrowed.y)[borrowed.y]
    return replace(borrowed, weight=share.astype(np.float32))


@dataclass(frozen=True, eq=False)
class Openings:
    """First rows of past segments, as many as are labelled now, and some of the rest of each.

    `starts` numbers the first of these rows in each part: the opening of a segment, its rest, the
    opening of the next. `n_current` counts the labelled rows of each class.
    """

    rows: Segment
    starts: NDArray[np.intp]
    n_current: NDArray[np.intp]

    @classmethod
    def of(cls, history: History, current: Segment) -> Openings:
        """Draw the rows; where a segment is short, its opening is its first half."""
        rng = np.random.default_rng(0)  # even distances would fall in with the hours of a day
        recent = [segment for segment in history if len(segment) > 1][-_OPENINGS:]
        most = _OPENING_ROWS // (2 * max(len(recent), 1))
        picks, sizes = [], []
        for segment in recent:
            middle = min(len(current), len(segment) // 2)
            for first, end in ((0, middle), (middle, len(segment))):
                drawn = rng.choice(end - first, min(end - first, most), replace=False)
                picks.append(Pick(segment, first + np.sort(drawn)))
                sizes.append(len(drawn))
        rows = gather(picks) if picks else current.take(slice(0, 0))
        n_classes = 1 + max(segment.top_code for segment in (*history, current))
        starts = np.cumsum([0, *sizes], dtype=np.intp)[:-1]
        return cls(rows, starts, np.bincount(current.y, minlength=n_classes))

    def open_variance(self, likelihood: NDArray[np.float64]) -> OpenVariance:
        """Return `variance` by the weights of models that give these rows a likelihood (K, m)."""
        L = np.maximum(likelihood, _LOWEST)
        return lambda weights: self.variance(np.log(weights @ L) - np.log(L[0]))

    def variance(self, gain: NDArray[np.float64]) -> float:
        """Return what the labelled rows leave open of a mean gain, by the gain of these rows.

        >>> month = Segment("may", np.zeros((120, 1)), np.arange(120) % 2, np.ones(120))
        >>> openings = Openings.of([month], month.take(slice(0, 40)))
        >>> openings.variance(np.where(np.arange(120) < 40, 0.5, 0.0))
        0.25
        """
        return self._between(gain) + self._of_rare_classes(gain) if len(gain) else 0.0

    def _between(self, gain: NDArray[np.float64]) -> float:
        """Return the mean squared difference of openings from the rest, less what is by chance."""
        sizes = np.diff([*self.starts, len(gain)])
        means = np.add.reduceat(gain, self.starts) / sizes
        chance = (np.add.reduceat(gain**2, self.starts) / sizes - means**2) / sizes
        differences = means[::2] - means[1::2]
        return max(float(np.mean(differences**2 - chance[::2] - chance[1::2])), 0.0)

    def _of_rare_classes(self, gain: NDArray[np.float64]) -> float:
        """Return the variance due to classes that have few labelled rows."""
        n_classes = len(self.n_current)
        rare = self.n_current < _ENOUGH
        if not rare.any():
            return 0.0
        share = np.bincount(self.rows.y, minlength=n_classes) / len(gain)
        off = np.bincount(self.rows.y, (gain - gain.mean()) ** 2, n_classes) / len(gain)
        return float(np.sum((share * off / (self.n_current + 1))[rare]))


def blend_weights(
    likelihood: NDArray[np.float64],
    weight: NDArray[np.floating],
    coverage: float = 1.0,
    n_borrowed: int = 0,
    *,
    open_variance: OpenVariance = _nothing_open,
    belief: NDArray[np.float64] = _BELIEF,
    negligible: float = _NEGLIGIBLE,
) -> NDArray[np.float64]:
    """Return the weights of `PARTS`, or of other models if "all" comes first; their sum is 1.

    `coverage` is the share of past rows whose class the labelled rows have, `belief` how many rows
    speak for each model before any is seen. A weight below `negligible` becomes 0. The last
    `n_borrowed` rows are not labelled rows of the present; the standard error leaves them out.
    `open_variance` is that of the mean gain of a mixture, as far as blocks of rows do not show it.
    """
    L = np.maximum(likelihood, _LOWEST)
    best = _most_likely(L, weight, belief)
    chosen = _lean(best, lambda v: np.log(v @ L), weight, n_borrowed, open_variance)
    return _settle(chosen, coverage, negligible)


def blend_numbers(
    outputs: NDArray[np.float64],
    loss_of: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    weight: NDArray[np.floating],
    coverage: float = 1.0,
    *,
    negligible: float = _NEGLIGIBLE,
) -> NDArray[np.float64]:
    """Return the same for predictions that are numbers (K, n, Q), by the loss of each row.

    The weights of the lowest loss are found in small steps, each towards the model that helps most.

    >>> y = np.linspace(0, 1, 40)
    >>> outputs = np.stack([np.full(40, 0.5), y, 1 - y])[:, :, None]
    >>> blend_numbers(outputs, lambda z: np.abs(z[:, 0] - y), np.ones(40)).round(2).tolist()
    [0.0, 1.0, 0.0]
    """
    steps = np.eye(len(outputs))
    counts = np.zeros(len(outputs))
    for number in range(1, _GREEDY_STEPS + 1):
        tried = [np.tensordot((counts + one) / number, outputs, axes=1) for one in steps]
        counts += steps[int(np.argmin([_mean(loss_of(z), weight) for z in tried]))]
    best = counts / _GREEDY_STEPS
    chosen = _lean(best, lambda v: -loss_of(np.tensordot(v, outputs, axes=1)), weight)
    return _settle(chosen, coverage, negligible)


def _settle(chosen: NDArray[np.float64], coverage: float, negligible: float) -> NDArray[np.float64]:
    """Return weights drawn back to "all" by what is not covered, without negligible ones."""
    drawn = (1 - coverage) * np.eye(len(chosen))[0] + coverage * chosen
    drawn = np.where(drawn < negligible, 0.0, drawn)
    weights: NDArray[np.float64] = drawn / drawn.sum()
    return weights


def _lean(
    best: NDArray[np.float64],
    merit: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    weight: NDArray[np.floating],
    n_borrowed: int = 0,
    open_variance: OpenVariance = _nothing_open,
) -> NDArray[np.float64]:
    """Return weights from "all" to the best ones, as far as the merits leave no doubt."""
    rest = np.eye(len(best))[0]
    mixtures = [(1 - share) * rest + share * best for share in _SHARES]
    of_rest = merit(rest)
    safe = []
    for mixture in mixtures:
        gain = merit(mixture) - of_rest
        variance = _error(gain, weight, n_borrowed) ** 2 + open_variance(mixture)
        safe.append(_mean(gain, weight) - math.sqrt(variance))
    weights: NDArray[np.float64] = mixtures[int(np.argmax(safe))]
    return weights


def choose_candidate(
    likelihood: NDArray[np.float64], weight: NDArray[np.floating], n_borrowed: int = 0
) -> int:
    """Return the candidate to use; they go from those that use least of the past to most."""
    return choose_by_merit(np.log(np.maximum(likelihood, _LOWEST)), weight, n_borrowed)


def choose_by_merit(
    merit: NDArray[np.float64], weight: NDArray[np.floating], n_borrowed: int = 0
) -> int:
    """Return the same by the merit of each row, such as its negated loss, (K, n)."""
    best = int(np.argmax([_mean(row, weight) for row in merit]))
    for number in range(len(merit) - 1, best, -1):
        loss = merit[best] - merit[number]
        if _mean(loss, weight) <= _ERRORS * _error(loss, weight, n_borrowed):
            return number
    return best


def choose_by_score(scores: NDArray[np.float64], errors: float = _ERRORS) -> int:
    """Return the candidate to use, by scores of shape (K, 1 + B); the later ones are preferred.

    The first column is the score of all rows, the others those without each block of `blocks_of`.
    A later candidate is taken if it is worse by at most so many standard errors. Where no score is
    defined, it is the last one.

    >>> choose_by_score(np.array([[0.9, 0.9, 0.9], [0.8, 0.7, 0.9], [0.5, 0.5, 0.5]]), errors=1)
    1
    """
    defined = np.flatnonzero(np.isfinite(scores[:, 0]))
    if not len(defined):
        return len(scores) - 1
    best = int(defined[np.argmax(scores[defined, 0])])
    for number in defined[defined > best][::-1].tolist():
        whole, *left_out = scores[best] - scores[number]
        spread = np.sqrt((1 - 1 / len(left_out)) * np.sum((left_out - np.mean(left_out)) ** 2))
        if not whole > errors * spread:
            return int(number)
    return best


def replace_mixture(scores: NDArray[np.float64]) -> int:
    """Return the candidate that scores highest, if clearly ahead of the mixture, the last row.

    >>> replace_mixture(np.array([[0.9, 0.9, 0.9], [0.7, 0.5, 0.9], [0.8, 0.8, 0.8]]))
    0
    """
    mixture = len(scores) - 1
    defined = np.flatnonzero(np.isfinite(scores[:mixture, 0]))
    if not len(defined):
        return mixture
    best = int(defined[np.argmax(scores[defined, 0])])
    return (best, mixture)[choose_by_score(scores[[best, mixture]], ONE_ERROR)]


@dataclass(frozen=True, eq=False)
class Judge:
    """Scores models by a metric, of rows that they were not trained on; all rows count alike.

    Of a metric of numbers, outputs are predicted numbers (n, 1), and there are no classes.

    A metric of answers, such as F1, goes by the threshold that suits each model best if there are
    two classes, as a rare class is hardly ever the most probable one. Of more classes it goes by
    the most probable answer, times `class_weights`; costs go by the cheapest one.
    """

    metric: Metric | NumberMetric
    classes: NDArray[Any]
    class_weights: Sequence[float] = ()

    def scores(self, y: NDArray[Any], outputs: NDArray[Any]) -> NDArray[np.float64]:
        """Return the score of all rows, and those without each block, for `choose_by_score`."""
        counts = np.ones((1 + len(blocks_of(len(y))), len(y)))
        for number, block in enumerate(blocks_of(len(y)), start=1):
            counts[number, block] = 0
        if isinstance(self.metric, NumberMetric):
            return self.metric.weighted(y, outputs[:, 0], None, counts)
        answers = self._answers(self.metric, y, outputs)
        return weighted_scores(self.metric, y, answers, self.classes, counts)

    def _answers(self, metric: Metric, y: NDArray[Any], chances: NDArray[Any]) -> Predictions:
        threshold = tune_threshold(metric, y, chances, self.classes)
        if threshold is not None:
            return Predictions.of(chances, weigh(threshold))
        if metric.costs is not None:
            p = np.asarray(chances, dtype=np.float64)
            return Predictions(p, metric.decide(p, self.classes))
        return Predictions.of(chances, np.array(self.class_weights) if self.class_weights else None)


def blocks_of(n_rows: int) -> list[NDArray[np.intp]]:
    """Return the rows of each block of neighbours that counts as one observation."""
    return np.array_split(np.arange(n_rows), min(_BLOCKS, n_rows))


def _most_likely(
    L: NDArray[np.float64], weight: NDArray[np.floating], belief: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Find the weights under which the labels are most likely, some rows being believed before."""
    weights = np.full(len(L), 1 / len(L))
    for _ in range(_EM_STEPS):
        shares = weights[:, None] * L
        weights = (shares / shares.sum(axis=0)) @ weight + belief
        weights /= weights.sum()
    return weights


def _mean(values: NDArray[np.float64], weight: NDArray[np.floating]) -> float:
    return float(np.average(values, weights=weight))


def _error(values: NDArray[np.float64], weight: NDArray[np.floating], n_borrowed: int) -> float:
    """Return the standard error of the mean, each block of neighbours being one observation."""
    off = ((values - _mean(values, weight)) * weight)[: len(values) - n_borrowed]
    sums = [off[block].sum() for block in blocks_of(len(off))]
    return float(np.sqrt(sum(total**2 for total in sums)) / weight.sum())
