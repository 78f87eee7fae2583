"""What to do after a decision: one word for machines, and three sentences for people.

    promote         take the model trained on the selected past
    keep-incumbent  keep the model in use: no new one is clearly better
    use-all         train on all data instead
    use-current     train on the current segment only instead
    collect-more    the held-out rows cannot tell; label more
    check-data      the scores mean little, because of what the data check found

Training on all data is the simplest, so it is what to do unless something else is clearly better.
Findings of the data check that block take the place of the first, third and fourth word. All
follow from scores and findings alone, so they can be derived again from any decision.

>>> quilt = MethodScore("Quilt", 0.9, n_right=90, n_rows=100)
>>> others = MethodScore("all data", 0.7, n_right=70, n_rows=100, wins=22, losses=2)
>>> advise("may", [quilt, others]).action
'promote'
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from driftquilt.decision.data_check import Finding
from driftquilt.decision.measure import (
    ALL_DATA,
    CURRENT_ONLY,
    FEW_ROWS,
    INCUMBENT,
    QUILT,
    Comparison,
    ConstantAnswer,
    MethodScore,
    name_some,
)
from driftquilt.quilt.explanation import Selection, percent
from driftquilt.quilt.metrics import figure, metric_words
from driftquilt.text import plural, quote_name

Action = Literal[
    "promote", "keep-incumbent", "use-all", "use-current", "collect-more", "check-data"
]

_NEGLIGIBLE = 0.005  # of a score: with many rows even this is significant, but not worth much
_NEGLIGIBLE_LOSS = 0.01  # of a loss, as a share of it
_VERDICTS = {
    "better": "Quilt is clearly better",
    "worse": "Quilt is clearly worse",
    "no clear difference": "Quilt is not clearly better or worse",
    "too few rows": "the rows are too few to say which is better",
}
_ROWS = {ALL_DATA: "all data", CURRENT_ONLY: "the current segment only"}
_ACTIONS: dict[str, Action] = {
    QUILT: "promote",
    ALL_DATA: "use-all",
    CURRENT_ONLY: "use-current",
}


@dataclass(frozen=True)
class Advice:
    """What to do, why, and the metric that it rests on."""

    action: Action
    reason: str
    metric: str


def advise(
    current: object,
    methods: Sequence[MethodScore],
    constant: ConstantAnswer | None = None,
    checks: Sequence[Finding] = (),
) -> Advice:
    """Return what follows from the scores; Quilt comes first in `methods`, then all data.

    `checks` are the findings of the data check; those that block leave nothing to act on.
    """
    quilt, *rest = methods
    others = [method for method in rest if method.name != INCUMBENT]
    has_incumbent = len(others) < len(rest)
    choice = _choose(quilt, others)
    metric = quilt.shown_score.metric
    if choice.against_incumbent is not None:
        metric = choice.against_incumbent.metric
    action, reason = _refuse(current, choice, constant, has_incumbent=has_incumbent)
    if not reason and choice.against_incumbent is not None:
        action, reason = _against_incumbent(current, choice, choice.against_incumbent)
    elif not reason:
        action, reason = _among_new(current, choice, quilt, others)
    blocking = [finding for finding in checks if finding.blocks]
    if blocking and action in _ACTIONS.values():
        action, reason = "check-data", _doubt(blocking)
    return Advice(action, reason, metric)


def sentences(
    selection: Selection,
    methods: Sequence[MethodScore],
    constant: ConstantAnswer | None = None,
    checks: Sequence[Finding] = (),
) -> tuple[str, str, str]:
    """Return what was used, what it gains and what to do, for the person who must approve it."""
    advice = advise(quote_name(selection.current), methods, constant, checks)
    return _used(selection), _gained(selection, methods), advice.reason


def _choose(quilt: MethodScore, others: Sequence[MethodScore]) -> MethodScore:
    """Return the method to take: the simplest, unless another is clearly better.

    One that is far ahead of Quilt is taken before it. Quilt is taken before all data, the first
    of the others, if it is clearly better, or if it alone is clearly better than the incumbent.
    """
    far_ahead = [other for other in others if _is_far_ahead(other)]
    if far_ahead:
        return min(far_ahead, key=lambda other: other.comparison.difference)
    simplest = others[0] if others else quilt
    if simplest.verdict == "better":
        return quilt
    compared = simplest.against_incumbent
    return simplest if compared is None or compared.verdict == "better" else quilt


def _refuse(
    current: object, choice: MethodScore, constant: ConstantAnswer | None, *, has_incumbent: bool
) -> tuple[Action, str]:
    """Return why the rows allow no conclusion; no reason if they do."""
    if not choice.n_rows:
        return "collect-more", "Hold some rows out and measure before you take this model."
    if choice.n_rows < FEW_ROWS:
        return "collect-more", (
            f"{plural(choice.n_rows, 'held-out row')} cannot tell: label more rows of {current}, "
            "or hold more of them out, before you take this model."
        )
    if constant is not None and _is_no_better(choice, constant):
        end = "keep the incumbent" if has_incumbent else "do not take it on them alone"
        reason = (
            f"{_describe_constant(choice, constant)}, so they do not show that this model has "
            f"learned anything: {end}."
        )
        return "keep-incumbent" if has_incumbent else "collect-more", reason
    return "collect-more", ""


def _doubt(blocking: Sequence[Finding]) -> str:
    """Return which finding makes the scores worthless, and what to do."""
    shown = next((finding for finding in blocking if finding.column), blocking[0])
    n_more = len(blocking) - 1
    more = f" (and {plural(n_more, 'more finding')} like that)" if n_more else ""
    return (
        f"Do not act on these scores before you have checked the data: {shown.sentence}"
        f"{more}. Then select again; if the data is right as it is, add --accept-data."
    )


def _is_no_better(best: MethodScore, constant: ConstantAnswer) -> bool:
    """Return whether a constant answer does as well, by the metric if it is known for both."""
    score = best.shown_score
    if score.value is None or constant.score is None:
        counts = constant.n_right, best.n_right
        return counts[0] is not None and counts[1] is not None and counts[0] >= counts[1]
    if score.lower_is_better:
        return constant.score <= score.value
    return constant.score >= score.value


def _describe_constant(best: MethodScore, constant: ConstantAnswer) -> str:
    score = best.shown_score
    if constant.n_right is not None and best.n_right is not None and _by_count(best, constant):
        more = constant.n_right > best.n_right
        end = f", {best.name} only {best.n_right:,}" if more else " as well"
        return (
            f"Always answering {constant.label} gets {constant.n_right:,} of these rows right{end}"
        )
    return (
        f"Without looking at the rows, always answering {constant.label}, the "
        f"{metric_words(score.metric)} is {figure(score.metric, constant.score)}, and that of "
        f"{best.name} is {figure(score.metric, score.value)}"
    )


def _by_count(best: MethodScore, constant: ConstantAnswer) -> bool:
    score = best.shown_score
    return score.metric == "accuracy" or score.value is None or constant.score is None


def _against_incumbent(
    current: object, choice: MethodScore, compared: Comparison
) -> tuple[Action, str]:
    """Return what follows from the comparison of the best new model with the one in use."""
    difference = figure(compared.metric, abs(compared.difference))
    by = f"(by {difference} in {metric_words(compared.metric)})"
    if compared.verdict == "better" and choice.name == QUILT:
        return "promote", f"Take this model: it is clearly better than the incumbent {by}."
    if compared.verdict == "better" and _is_far_ahead(choice):
        return _ACTIONS[choice.name], (
            f"Do not take this model: train on {_ROWS[choice.name]} instead, which does better, "
            f"and clearly better than the incumbent {by}."
        )
    if compared.verdict == "better":
        return _ACTIONS[choice.name], (
            f"Train on {_ROWS[choice.name]}, which is simpler: this model is "
            f"{_standing(choice)} {choice.name}, which is clearly better than the incumbent {by}."
        )
    than = "this model" if choice.name == QUILT else f"training on {_ROWS[choice.name]}"
    if compared.verdict == "worse":
        return "keep-incumbent", f"Keep the incumbent: it is clearly better than {than} {by}."
    return "keep-incumbent", (
        f"Keep the incumbent: {choice.n_rows:,} rows show no clear difference between it and "
        f"{than} {by}; look again when there are more labelled rows of {current}."
    )


def _among_new(
    current: object, choice: MethodScore, quilt: MethodScore, others: Sequence[MethodScore]
) -> tuple[Action, str]:
    """Return what follows from the comparison of Quilt with the simpler ways to train."""
    if choice.name == QUILT:
        return "promote", _take(quilt, others)
    rows = _ROWS[choice.name]
    if _is_far_ahead(choice):
        reason = f"Do not take this model: train on {rows} instead, which does better."
        return _ACTIONS[choice.name], reason
    return _ACTIONS[choice.name], (
        f"Train on {rows}, which is simpler: on {quilt.n_rows:,} rows this model is "
        f"{_stands(others)}; look again when there are more labelled rows of {current}."
    )


def _take(quilt: MethodScore, others: Sequence[MethodScore]) -> str:
    """Return that this model may be taken, or simpler ones that are equally good so far."""
    better = [other.name for other in others if other.verdict == "better"]
    rest = [other for other in others if other.verdict != "better"]
    if not rest:
        than = "the others" if len(others) > 1 else f"{better[0]}, the only other"
        return f"Take this model: it is clearly better than {than}."
    rows = " or ".join(_ROWS[other.name] for other in rest)
    return (
        f"Take this model, or train on {rows}, which is simpler: on {quilt.n_rows:,} rows this "
        f"model is {_stands(others)}."
    )


def _stands(others: Sequence[MethodScore]) -> str:
    """Return how Quilt stands to each of the others."""
    names = dict[str, list[str]]()
    for other in others:
        names.setdefault(_standing(other), []).append(other.name)
    return ", and ".join(f"{words} {' or '.join(alike)}" for words, alike in names.items())


def _standing(other: MethodScore) -> str:
    """Return how Quilt stands to a method that is not far ahead of it."""
    if other.verdict == "worse":
        return f"behind (by less than {_negligible(other)})"
    return "clearly better than" if other.verdict == "better" else "not clearly different from"


def _is_far_ahead(other: MethodScore) -> bool:
    """Return whether a method is clearly better than Quilt, by more than next to nothing."""
    score = other.shown_score
    least = _NEGLIGIBLE
    if score.lower_is_better and score.value is not None:
        least = _NEGLIGIBLE_LOSS * score.value
    return other.verdict == "worse" and -other.comparison.difference >= least


def _negligible(method: MethodScore) -> str:
    score = method.shown_score
    if score.metric == "accuracy":
        return f"{100 * _NEGLIGIBLE:g} % of the rows"
    if score.lower_is_better:
        return f"{100 * _NEGLIGIBLE_LOSS:g} % of its {metric_words(score.metric)}"
    return f"{_NEGLIGIBLE:g} in {metric_words(score.metric)}"


def _used(selection: Selection) -> str:
    used = [use for use in selection if use.used]
    were = "was" if 1 in (len(used), len(selection)) else "were"
    rows = f"{sum(use.n_rows for use in used):,} of {plural(sum(selection.n_rows), 'past row')}"
    names = _named_groups(selection)
    return (
        f"For {quote_name(selection.current)}, {len(used)} of "
        f"{plural(len(selection), 'past segment')} {were} used "
        f"({rows}){': ' if names else ''}{names}; {selection.composition()}."
    )


def _named_groups(selection: Selection) -> str:
    """Return the segments by what became of them."""
    groups: dict[str, list[object]] = {"used": [], "used in part": [], "dropped": []}
    for use in selection:
        groups[use.word].append(quote_name(use.name))
    return "; ".join(
        f"{'' if word == 'used' else f'{word}: '}{name_some(names)}"
        for word, names in groups.items()
        if names
    )


def _gained(selection: Selection, methods: Sequence[MethodScore]) -> str:
    (quilt, *others), current = methods, quote_name(selection.current)
    if not quilt.n_rows:
        return f"No rows of {current} were held out, so what this gains is not known."
    compared = "".join(f"; {_compare(other)}" for other in others)
    rows = f"{plural(quilt.n_rows, 'held-out row')} of {current}"
    if quilt.n_right is None:
        return f"On {rows}, the {_describe_score(quilt, ' of Quilt')}{compared}."
    score, ends, by = quilt.shown_score, "", ""
    if score.metric == "accuracy" or score.value is None or score.interval is None:
        low, high = (_share(end) for end in quilt.interval or ())
        ends = f", 95 % interval {low} to {high}"
    else:
        by = f"; its {_describe_score(quilt)}"
    return (
        f"Of {rows}, Quilt gets {quilt.n_right:,} right ({_share(quilt.accuracy)}{ends}){by}"
        f"{compared}."
    )


def _describe_score(method: MethodScore, whose: str = "") -> str:
    """Return the score by the metric that decides, with its interval."""
    score = method.shown_score
    ends = [figure(score.metric, end) for end in score.interval or ()]
    interval = f" (95 % interval {' to '.join(ends)})" if ends else ""
    return f"{metric_words(score.metric)}{whose} is {figure(score.metric, score.value)}{interval}"


def _compare(other: MethodScore) -> str:
    """Return how Quilt compares with a method, in words."""
    compared, value = other.comparison, other.shown_score.value
    name = "the incumbent" if other.name == INCUMBENT else other.name
    if compared.metric == "accuracy":
        return (
            f"{name} gets {other.n_right or 0:,} right ({_share(other.accuracy)}), and "
            f"{_VERDICTS[other.verdict]} ({plural(other.wins, 'row')} only Quilt gets right, "
            f"{other.losses:,} only {name})"
        )
    low, high = (figure(compared.metric, end) for end in compared.interval)
    difference, ends = figure(compared.metric, compared.difference), f"{low} to {high}"
    by = f"difference {difference}, 95 % interval {ends}"
    if compared.metric != other.shown_score.metric:
        words = metric_words(compared.metric)
        return f"by {words}, against {name}, {_VERDICTS[other.verdict]} ({by})"
    has = figure(compared.metric, value)
    return f"{name} has {has}, and {_VERDICTS[other.verdict]} ({by})"


def _share(value: float | None) -> str:
    return percent(0.0) if value is None else f"{100 * value:.1f} %"
