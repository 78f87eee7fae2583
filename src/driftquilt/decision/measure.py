"""How good each model is on held-out rows, whether one is better, and three sentences about it.

All models predict the same rows, so only the rows count that one predicts correctly and the other
does not: between two equally good models each of these is a coin toss (McNemar's exact test).

>>> low, high = interval(90, 100)
>>> round(low, 3), round(high, 3)
(0.826, 0.945)
>>> round(p_value(8, 1), 3), verdict(80, 8), verdict(3, 2)
(0.039, 'better', 'no clear difference')
>>> score = MethodScore("all data", validation=0.8, n_right=80, n_rows=100, wins=15, losses=2)
>>> score.accuracy, score.verdict
(0.8, 'better')
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

from driftquilt.quilt.explanation import Selection, percent
from driftquilt.text import plural

Verdict = Literal["better", "no clear difference", "worse"]

_Z = 1.959963984540054  # 95 % of a normal distribution lie within so many deviations
_SIGNIFICANT = 0.05

_MAX_NAMES = 4
_FEW = 30  # held-out rows, too few for a conclusion
_NEGLIGIBLE = 0.005  # of accuracy: with many rows even this is significant, but not worth much
_VERDICTS = {
    "better": "clearly better",
    "worse": "clearly worse",
    "no clear difference": "not clearly better or worse",
}
_ROWS = {"all data": "all data", "current only": "the current segment only"}


@dataclass(frozen=True)
class MethodScore:
    """One way to train, and its score on held-out rows; `wins` and `losses` are Quilt's against it.

    `validation` is the accuracy on the current rows used for validation, averaged over folds. A
    win is a row that Quilt predicts correctly and this method does not; Quilt has none against
    itself.
    """

    name: str
    validation: float
    n_right: int = 0
    n_rows: int = 0
    wins: int = 0
    losses: int = 0

    @property
    def accuracy(self) -> float | None:
        """Accuracy on the held-out rows; None if there are none."""
        return self.n_right / self.n_rows if self.n_rows else None

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the accuracy."""
        return interval(self.n_right, self.n_rows)

    @property
    def verdict(self) -> Verdict:
        """How Quilt compares with this method."""
        return verdict(self.wins, self.losses)

    def to_json(self) -> dict[str, Any]:
        """Plain values, with what follows from them for readers of the file."""
        return {
            **asdict(self),
            "accuracy": self.accuracy,
            "interval": self.interval,
            "p_value": p_value(self.wins, self.losses),
            "quilt_is": self.verdict,
        }


class ConstantAnswer(NamedTuple):
    """The most common label of the current rows, and how many held-out rows have it."""

    label: str
    n_right: int


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


def verdict(wins: int, losses: int) -> Verdict:
    """Return whether the model with `wins` is better, at a significance level of 5 %."""
    if p_value(wins, losses) >= _SIGNIFICANT:
        return "no clear difference"
    return "better" if wins > losses else "worse"


def sentences(
    selection: Selection, methods: Sequence[MethodScore], constant: ConstantAnswer | None = None
) -> tuple[str, str, str]:
    """Return what was used, what it gains and what to do, for the person who must approve it."""
    return _used(selection), _gained(selection, methods), _advice(selection, methods, constant)


def name_some(names: Sequence[object]) -> str:
    """Return the first few names, and how many more there are.

    >>> name_some(["may", "june", "july", "august", "september", "october"])
    'may, june, july, august and 2 more'
    """
    shown = ", ".join(map(str, names[:_MAX_NAMES]))
    n_more = len(names) - _MAX_NAMES
    return f"{shown} and {n_more} more" if n_more > 0 else shown


def _used(selection: Selection) -> str:
    used = [use for use in selection if use.used]
    were = "was" if 1 in (len(used), len(selection)) else "were"
    rows = f"{sum(use.n_rows for use in used):,} of {plural(sum(selection.n_rows), 'past row')}"
    names = _named_groups(selection)
    return (
        f"For {selection.current}, {len(used)} of {plural(len(selection), 'past segment')} {were} "
        f"used ({rows}){': ' if names else ''}{names}; {selection.composition()}."
    )


def _named_groups(selection: Selection) -> str:
    """Return the segments by what became of them."""
    groups: dict[str, list[object]] = {"used": [], "used in part": [], "dropped": []}
    for use in selection:
        groups[use.word].append(use.name)
    return "; ".join(
        f"{'' if word == 'used' else f'{word}: '}{name_some(names)}"
        for word, names in groups.items()
        if names
    )


def _gained(selection: Selection, methods: Sequence[MethodScore]) -> str:
    quilt, *others = methods
    if quilt.accuracy is None:
        return f"No rows of {selection.current} were held out, so what this gains is not known."
    low, high = quilt.interval
    compared = "".join(
        f"; {other.name} gets {other.n_right:,} right ({_share(other.accuracy)}), and Quilt is "
        f"{_VERDICTS[other.verdict]} ({plural(other.wins, 'row')} only Quilt gets right, "
        f"{other.losses:,} only {other.name})"
        for other in others
    )
    return (
        f"Of {plural(quilt.n_rows, 'held-out row')} of {selection.current}, Quilt gets "
        f"{quilt.n_right:,} right ({_share(quilt.accuracy)}, 95 % interval {_share(low)} to "
        f"{_share(high)}){compared}."
    )


def _advice(
    selection: Selection, methods: Sequence[MethodScore], constant: ConstantAnswer | None
) -> str:
    quilt, *others = methods
    if quilt.accuracy is None:
        return "Hold some rows out and measure before you take this model."
    if quilt.n_rows < _FEW:
        return (
            f"{plural(quilt.n_rows, 'held-out row')} cannot tell: label more rows of "
            f"{selection.current}, or hold more of them out, before you take this model."
        )
    if constant is not None and constant.n_right >= quilt.n_right:
        return (
            f"Always answering {constant.label} gets {constant.n_right:,} of these rows right as "
            "well, so they do not show that this model has learned anything: do not take it on "
            "them alone."
        )
    if all(other.verdict == "no clear difference" for other in others):
        return (
            f"{quilt.n_rows:,} rows show no clear difference, so they speak neither for this model "
            f"nor against it: take it or not, and look again when there are more labelled rows of "
            f"{selection.current}."
        )
    return _conclude(quilt, others)


def _conclude(quilt: MethodScore, others: Sequence[MethodScore]) -> str:
    """Return what follows from clear differences."""
    better = [other.name for other in others if other.verdict == "better"]
    worse = [other for other in others if other.verdict == "worse"]
    far_ahead = [other for other in worse if _is_far_ahead(other, quilt)]
    if far_ahead:
        best = max(far_ahead, key=lambda other: other.n_right)
        return f"Do not take this model: train on {_ROWS[best.name]} instead, which does better."
    if len(better) == len(others):
        than = "the others" if len(others) > 1 else f"{better[0]}, the only other"
        return f"Take this model: it is clearly better than {than}."
    if better:
        return _either(quilt, better, [other for other in others if other.name not in better])
    rows = " or ".join(_ROWS[other.name] for other in worse)
    return (
        f"Train on {rows}, which is simpler, or take this model: it is clearly behind, but by "
        f"less than {100 * _NEGLIGIBLE:g} % of the rows."
    )


def _either(quilt: MethodScore, better: Sequence[str], others: Sequence[MethodScore]) -> str:
    """Return that both this model and simpler ones, equally good so far, may be taken."""
    rows = " or ".join(_ROWS[other.name] for other in others)
    compared = " and ".join(
        f"{'slightly behind' if other.verdict == 'worse' else 'not clearly different from'} "
        f"{other.name}"
        for other in others
    )
    return (
        f"Take this model, or train on {rows}, which is simpler: on {quilt.n_rows:,} rows this "
        f"model is clearly better than {' and '.join(better)}, and {compared}."
    )


def _is_far_ahead(other: MethodScore, quilt: MethodScore) -> bool:
    return (other.n_right - quilt.n_right) / quilt.n_rows >= _NEGLIGIBLE


def _share(value: float | None) -> str:
    return percent(0.0) if value is None else f"{100 * value:.1f} %"
