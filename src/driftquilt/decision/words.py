"""A decision in three sentences, for the person who must approve the retraining."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from driftquilt.methods.explanation import Selection, percent

if TYPE_CHECKING:
    from driftquilt.decision.values import Method

__all__ = ["name_some", "sentences"]

_MOST_NAMED = 4
_FEW = 30  # held-out rows, of which nothing is concluded
_HARDLY = 0.005  # of accuracy: many rows make such a difference clear, but not worth much


def sentences(selection: Selection, methods: Sequence[Method]) -> tuple[str, str, str]:
    """What was kept out of what, what it gains on rows nobody trained on, and what to do."""
    return _kept(selection), _gained(selection, methods), _advice(selection, methods)


def name_some(names: Sequence[object]) -> str:
    """The first few names, and how many more there are.

    >>> name_some(["may", "june", "july", "august", "september", "october"])
    'may, june, july, august and 2 more'
    """
    shown = ", ".join(map(str, names[:_MOST_NAMED]))
    more = len(names) - _MOST_NAMED
    return f"{shown} and {more} more" if more > 0 else shown


def _kept(selection: Selection) -> str:
    kept = [use for use in selection if use.kept]
    n_rows, n_all = sum(use.n_rows for use in kept), sum(selection.n_rows)
    dropped = [use.name for use in selection if not use.kept]
    most = sorted(kept, key=lambda use: -use.share)[:_MOST_NAMED]
    others = [use for use in kept if use not in most]
    named = name_some([use.name for use in [*(u for u in kept if u in most), *others]])
    named = f": {named}" if kept else ""
    left_out = f"; dropped: {name_some(dropped)}" if dropped else ""
    return (
        f"For {selection.current}, {len(kept)} of {len(selection)} past segments were kept "
        f"({n_rows:,} of {n_all:,} past rows){named}{left_out}."
    )


def _gained(selection: Selection, methods: Sequence[Method]) -> str:
    quilt, *others = methods
    if quilt.accuracy is None:
        return f"No rows of {selection.current} were held out, so what this gains is not known."
    low, high = quilt.interval
    compared = "; ".join(
        f"{other.name} has {other.n_right:,} right ({_share(other.accuracy)}), and Quilt is "
        f"{_VERDICTS[other.verdict]} ({other.wins} rows right that it has wrong, {other.losses} "
        "the other way)"
        for other in others
    )
    return (
        f"Of {quilt.n_rows:,} rows of {selection.current} that nothing was trained on, Quilt has "
        f"{quilt.n_right:,} right ({_share(quilt.accuracy)}, 95 % interval {_share(low)} to "
        f"{_share(high)}){'; ' if compared else ''}{compared}."
    )


def _advice(selection: Selection, methods: Sequence[Method]) -> str:
    quilt, *others = methods
    if quilt.accuracy is None:
        return "Hold some rows out and measure before you take this model."
    if quilt.n_rows < _FEW:
        return (
            f"{quilt.n_rows} held-out row(s) are too few to tell: label more rows of "
            f"{selection.current}, or hold more of them out, before you take this model."
        )
    worse = [other for other in others if other.verdict == "worse" and _behind(quilt, other)]
    if worse:
        best = max(worse, key=lambda other: other.n_right)
        return f"Do not take this model: train on {_ROWS[best.name]} instead, which does better."
    better = [other.name for other in others if other.verdict == "better"]
    if len(better) == len(others) > 0:
        return "Take this model: it is clearly better than the others."
    if better:
        rest = [other.name for other in others if other.verdict != "better"]
        return (
            f"Take this model, or the simpler one: on {quilt.n_rows:,} rows it is clearly better "
            f"than {' and '.join(better)}, and not clearly different from {' and '.join(rest)}, or "
            "by less than half a point."
        )
    return (
        f"{quilt.n_rows:,} rows show no clear difference: take the simplest, and look again when "
        f"there are more labelled rows of {selection.current}."
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
