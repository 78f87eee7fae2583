"""A decision in three sentences, for the person who must approve the retraining."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from driftquilt.quilt.explanation import HALF, KEPT_FROM, Selection, percent
from driftquilt.text import plural

if TYPE_CHECKING:
    from driftquilt.decision.values import Method

__all__ = ["Constant", "how_much", "name_some", "sentences"]

_MOST_NAMED = 4
_FEW = 30  # held-out rows, of which nothing is concluded
_HARDLY = 0.005  # of accuracy: many rows make such a difference clear, but not worth much


class Constant(NamedTuple):
    """Always the same answer, that of most current rows; how many held-out rows it has right."""

    label: str
    n_right: int


def sentences(
    selection: Selection, methods: Sequence[Method], constant: Constant | None = None
) -> tuple[str, str, str]:
    """What was kept out of what, what it gains on rows nobody trained on, and what to do."""
    return _kept(selection), _gained(selection, methods), _advice(selection, methods, constant)


def name_some(names: Sequence[object]) -> str:
    """The first few names, and how many more there are.

    >>> name_some(["may", "june", "july", "august", "september", "october"])
    'may, june, july, august and 2 more'
    """
    shown = ", ".join(map(str, names[:_MOST_NAMED]))
    more = len(names) - _MOST_NAMED
    return f"{shown} and {more} more" if more > 0 else shown


def how_much(shares: Iterable[float]) -> str:
    """How many of the kept segments were used much, if not all were; each has a share of epochs.

    >>> how_much([0.9, 0.1, 0.0]), how_much([0.2, 0.3]), how_much([0.9, 0.01])
    (', 1 of them in more than half of the epochs', ', none of them in more than half of the \
epochs', '')
    """
    kept = [share for share in shares if share >= KEPT_FROM]
    n_much = sum(share > HALF for share in kept)
    if n_much == len(kept):
        return ""
    which = f"{n_much or 'none'} of them" if len(kept) > 1 else "but not"
    return f", {which} in more than half of the epochs"


def _kept(selection: Selection) -> str:
    kept = [use for use in selection if use.kept]
    n_rows, n_all = sum(use.n_rows for use in kept), sum(selection.n_rows)
    groups = {
        "": [use.name for use in kept if use.share > HALF],
        "in at most half of the epochs: ": [use.name for use in kept if use.share <= HALF],
        "hardly used: ": [use.name for use in selection if use.share and not use.kept],
        "dropped: ": [use.name for use in selection if not use.share],
    }
    named = "; ".join(f"{words}{name_some(names)}" for words, names in groups.items() if names)
    were = "was" if 1 in (len(kept), len(selection)) else "were"
    drawn = sum(use.share * use.n_rows for use in selection)
    of_past = f"; an epoch drew from {drawn:,.0f} on average" if kept else ""
    return (
        f"For {selection.current}, {len(kept)} of {plural(len(selection), 'past segment')} {were} "
        f"kept{how_much(use.share for use in kept)} "
        f"({n_rows:,} of {plural(n_all, 'past row')}{of_past}){': ' if named else ''}{named}."
    )


def _gained(selection: Selection, methods: Sequence[Method]) -> str:
    quilt, *others = methods
    if quilt.accuracy is None:
        return f"No rows of {selection.current} were held out, so what this gains is not known."
    low, high = quilt.interval
    compared = "; ".join(
        f"{other.name} has {other.n_right:,} right ({_share(other.accuracy)}), and Quilt is "
        f"{_VERDICTS[other.verdict]} ({plural(other.wins, 'row')} right that it has "
        f"wrong, {other.losses:,} the other way)"
        for other in others
    )
    return (
        f"Of {plural(quilt.n_rows, 'row')} of {selection.current} that nothing was trained on, "
        f"Quilt has {quilt.n_right:,} right ({_share(quilt.accuracy)}, 95 % interval "
        f"{_share(low)} to {_share(high)}){'; ' if compared else ''}{compared}."
    )


def _advice(selection: Selection, methods: Sequence[Method], constant: Constant | None) -> str:
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
            f"Always answering {constant.label} has {constant.n_right:,} of these rows right as "
            "well, so they do not show that this model has learned anything: do not take it on "
            "them alone."
        )
    if all(other.verdict == "no clear difference" for other in others):
        return (
            f"{quilt.n_rows:,} rows show no clear difference, so they speak neither for this model "
            f"nor against it: take it or not, and look again when there are more labelled rows of "
            f"{selection.current}."
        )
    return _verdict(quilt, others)


def _verdict(quilt: Method, others: Sequence[Method]) -> str:
    """What follows from differences that are clear."""
    better = [other.name for other in others if other.verdict == "better"]
    worse = [other for other in others if other.verdict == "worse"]
    far = [other for other in worse if _behind(quilt, other)]
    if far:
        best = max(far, key=lambda other: other.n_right)
        return f"Do not take this model: train on {_ROWS[best.name]} instead, which does better."
    if len(better) == len(others):
        than = "the others" if len(others) > 1 else f"{better[0]}, the only other"
        return f"Take this model: it is clearly better than {than}."
    if better:
        return _either(quilt, better, [other for other in others if other.name not in better])
    rows = " or ".join(_ROWS[other.name] for other in worse)
    return (
        f"Train on {rows}, which is simpler, or take this model: it is clearly behind, but by "
        f"less than {100 * _HARDLY:g} % of the rows."
    )


def _either(quilt: Method, better: Sequence[str], others: Sequence[Method]) -> str:
    """The model, or one that is simpler and as good as far as the rows tell."""
    rows = " or ".join(_ROWS[other.name] for other in others)
    beside = " and ".join(
        f"{'slightly behind' if other.verdict == 'worse' else 'not clearly different from'} "
        f"{other.name}"
        for other in others
    )
    return (
        f"Take this model, or train on {rows}, which is simpler: on {quilt.n_rows:,} rows this "
        f"model is clearly better than {' and '.join(better)}, and {beside}."
    )


_VERDICTS = {
    "better": "clearly better",
    "worse": "clearly worse",
    "no clear difference": "not clearly better or worse",
}
_ROWS = {"all data": "all data", "current only": "the current segment only"}


def _behind(quilt: Method, other: Method) -> bool:
    return (other.n_right - quilt.n_right) / quilt.n_rows >= _HARDLY


def _share(value: float | None) -> str:
    return percent(0.0) if value is None else f"{100 * value:.1f} %"
