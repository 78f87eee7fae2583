"""The values of a report, made from decisions and replays; `html` renders them.

A page has one `Drift` for each model that was trained for a new current segment: the selection with
its scores, and the accuracy of the model and of others.

>>> Page("Churn", ("Two of three months were used.",), ()).drifts
()
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from driftquilt import __version__
from driftquilt.data.column_types import ColumnFacts
from driftquilt.decision.advice import Advice
from driftquilt.decision.data_check import Finding
from driftquilt.decision.decision import Decision, Origin
from driftquilt.decision.measure import MethodScore
from driftquilt.decision.task import CLASSES, TASKS, Task
from driftquilt.quilt.explanation import SegmentUse, Selection
from driftquilt.quilt.method import TriedBound
from driftquilt.quilt.metrics import metric_words
from driftquilt.text import plural, quote_name

if TYPE_CHECKING:  # a decision has no stream
    from driftquilt.decision.journal import PromotedModel, Replayed

__all__ = [
    "AccuracyLines",
    "ColumnNote",
    "Drift",
    "Page",
    "ScoreLine",
    "mean_accuracies",
    "page_of_decision",
    "page_of_replay",
]

Counts = Mapping[str, Mapping[int, float]]  # accuracy over some rows, by method and last row


@dataclass(frozen=True)
class Drift:
    """A model for a new current segment: what it was trained on, and its accuracy.

    `accuracies` are those on held-out rows by method, ours first. Where another metric decides,
    `scores` are by that one, and `measure` is its name in words. `row` is the row of the stream
    after which the current segment begins, if there is a stream. `of_past` is the model's accuracy
    on each past segment, or of numbers its error, where it is known.
    """

    selection: Selection
    accuracies: dict[str, float] = field(default_factory=dict)
    bounds: tuple[TriedBound, ...] = ()
    row: int | None = None
    of_past: dict[str, float] = field(default_factory=dict)
    scores: dict[str, float] = field(default_factory=dict)
    measure: str = "accuracy"

    @property
    def shown_scores(self) -> dict[str, float]:
        """The scores by the metric that decides."""
        return self.scores or self.accuracies

    @property
    def name(self) -> Hashable:
        """The name of the current segment."""
        return self.selection.current

    @cached_property
    def uses(self) -> tuple[SegmentUse, ...]:
        """How every past segment was used; a selection computes it each time it is asked."""
        return tuple(self.selection)

    @property
    def used(self) -> list[Hashable]:
        """The past segments that were used."""
        return [use.name for use in self.uses if use.used]


@dataclass(frozen=True)
class AccuracyLines:
    """Rolling accuracy by method, each value over the `window` rows before `rows`.

    `drifts` are the rows at which a drift was detected, whether or not a model followed.
    """

    rows: tuple[int, ...]
    by_method: dict[str, tuple[float | None, ...]]
    window: int
    drifts: tuple[int, ...] = ()


@dataclass(frozen=True)
class ScoreLine:
    """The score of a stream by a metric, each value over the `window` rows before a row."""

    metric: str
    rows: tuple[int, ...]
    values: tuple[float | None, ...]
    window: int
    drifts: tuple[int, ...] = ()


@dataclass(frozen=True)
class ColumnNote:
    """A column of the data: its type, the share of missing values, a remark."""

    name: str
    kind: str
    missing: float
    note: str = ""


@dataclass(frozen=True)
class Page:
    """Everything that a report shows; `cut` describes the segments, if that is known.

    `methods` are the ways to train that were compared on held-out rows, Quilt first, where one
    model was measured, and `advice` says what follows. `checks` are the findings of the data
    check, None where there was none. `task` says what is predicted, classes or numbers.
    """

    title: str
    sentences: tuple[str, ...]
    drifts: tuple[Drift, ...]
    accuracy: AccuracyLines | None = None
    columns: tuple[ColumnNote, ...] = ()
    warnings: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=dict)
    command: str = ""
    cut: str = ""
    methods: tuple[MethodScore, ...] = ()
    origin: Origin | None = None
    checks: tuple[Finding, ...] | None = None
    advice: Advice | None = None
    score: ScoreLine | None = None
    task: Task = CLASSES


def mean_accuracies(drifts: Iterable[Drift]) -> dict[str, float]:
    """Return each method's accuracy, averaged over the drifts that have it."""
    by_method: dict[str, list[float]] = {}
    for drift in drifts:
        for method, accuracy in drift.accuracies.items():
            by_method.setdefault(method, []).append(accuracy)
    return {method: float(np.mean(values)) for method, values in by_method.items()}


def page_of_decision(decision: Decision) -> Page:
    """Return a page with the one selection of a decision."""
    accuracies = {m.name: m.accuracy for m in decision.methods if m.accuracy is not None}
    scores = {m.name: m.shown_score.value for m in decision.methods if m.n_rows}
    drift = Drift(
        decision.selection, accuracies, decision.bounds, None, decision.of_past,
        {name: value for name, value in scores.items() if value is not None},
        _measure(decision.methods),
    )  # fmt: skip
    return Page(
        f"Retraining for {quote_name(decision.current)}",
        decision.sentences(),
        (drift,),
        None,
        _notes(decision.columns),
        decision.warnings,
        {"driftquilt": decision.version, "model": decision.kind},
        "" if decision.origin is None else decision.origin.command,
        decision.cut,
        decision.methods,
        decision.origin,
        decision.checks,
        decision.advice,
        task=TASKS[decision.task],
    )


def _measure(methods: Sequence[MethodScore]) -> str:
    """Return the metric that decides, in words."""
    score = methods[0].shown_score
    return f"{metric_words(score.metric)}{', lower is better' if score.lower_is_better else ''}"


def page_of_replay(
    replayed: Replayed,
    baselines: Counts | None = None,
    *,
    origin: Origin | None = None,
    warnings: Sequence[str] = (),
    columns: Sequence[ColumnFacts] = (),
) -> Page:
    """Return a page with a selection per segment; `baselines` are accuracies of other methods."""
    whole = {
        count.row: count.value for count in replayed.accuracy if count.n_rows == replayed.count
    }
    counts = {"Quilt": whole, **(baselines or {})}
    skipped = replayed.n_skipped
    without = f"{plural(skipped, 'row')} without {replayed.label!r}, skipped"
    return Page(
        f"Replay of {plural(replayed.n_rows, 'row')}",
        _sentences(replayed, alone=bool(baselines)),
        tuple(_drift(replayed, drift, counts) for drift in replayed.drifts),
        _rolling(replayed, counts, tuple(row for row in whole if row >= replayed.window)),
        _notes(columns),
        (*((without,) if skipped else ()), *warnings),
        {"driftquilt": __version__ if origin is None else origin.version},
        "" if origin is None else origin.command,
        "the rows from drift to drift, or until a segment was full",
        origin=origin,
        score=_score(replayed),
    )


def _notes(columns: Sequence[ColumnFacts]) -> tuple[ColumnNote, ...]:
    return tuple(ColumnNote(c.name, c.kind, c.missing, c.note) for c in columns)


def _sentences(replayed: Replayed, *, alone: bool) -> tuple[str, ...]:
    share = replayed.n_right / max(replayed.n_rows, 1)
    among = ", including those before each new model took over" if replayed.drifts else ""
    sentences = [
        f"In {plural(replayed.n_rows, 'row')} {plural(replayed.n_drifts, 'drift')} "
        f"{'was' if replayed.n_drifts == 1 else 'were'} detected, and a new model took over in "
        f"{plural(len(replayed.drifts), 'segment')}.",
        "Each row was predicted before it was learned, by the models so far and small nets "
        f"that learn from every row: {replayed.n_right:,} predictions were correct "
        f"({100 * share:.1f} % of all rows{among})."
        f"{' All data and current only have no such nets beside them.' if alone else ''}",
    ]
    if replayed.metric is not None:
        sentences.append(_score_sentence(replayed))
    if replayed.drifts:
        last = replayed.drifts[-1]
        n_used = sum(use.used for use in last.selection)
        sentences.append(
            f"The last model took over after row {last.row:,} and uses {n_used} of "
            f"{plural(len(last.selection), 'past segment')}"
            f"{f'; {last.selection.composition()}' if len(last.selection) else ''}."
        )
    return tuple(sentences)


def _score_sentence(replayed: Replayed) -> str:
    """Return what the metric says of the last rows."""
    last = replayed.accuracy[-1].score if replayed.accuracy else None
    figure = "not defined" if last is None else f"{last:.3f}"
    if last is not None and replayed.lower_is_better:
        figure += ", and lower is better"
    n_rows = plural(min(replayed.window, replayed.n_rows), "row")
    return f"The {metric_words(replayed.metric or '')} of the last {n_rows} is {figure}."


def _score(replayed: Replayed) -> ScoreLine | None:
    scores = {row: value for row, value in replayed.scores.items() if row >= replayed.window}
    if replayed.metric is None or not scores:
        return None
    rows, values = tuple(scores), tuple(scores.values())
    return ScoreLine(replayed.metric, rows, values, replayed.window, replayed.drift_rows)


def _drift(replayed: Replayed, drift: PromotedModel, counts: Counts) -> Drift:
    """Return the segment's last model; accuracies are from its first model to its end."""
    begin = replayed.begin_of(drift)
    end = min((row for row in replayed.seals if row > drift.row), default=replayed.n_rows)
    in_segment = {
        name: [
            value
            for row, value in count.items()
            if drift.since <= row - replayed.count and row <= end
        ]
        for name, count in counts.items()
    }
    accuracies = {name: float(np.mean(values)) for name, values in in_segment.items() if values}
    selection = replace(drift.selection, current=f"rows from {begin:,} on")
    return Drift(selection, accuracies, drift.bounds, begin or None)


def _rolling(replayed: Replayed, counts: Counts, rows: tuple[int, ...]) -> AccuracyLines | None:
    """Return each method's accuracy over the rows before, where all of them were measured."""
    window, step = replayed.window, replayed.count

    def mean(count: Mapping[int, float], row: int) -> float | None:
        values = [count[at] for at in range(row, row - window, -step) if at in count]
        return float(np.mean(values)) if len(values) == window // step else None

    by_method = {name: tuple(mean(count, row) for row in rows) for name, count in counts.items()}
    return AccuracyLines(rows, by_method, window, replayed.drift_rows) if rows else None
