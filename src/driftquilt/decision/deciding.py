"""Select the past that a model for the present should be trained on, and measure what it gains.

Three models are trained in the same way and predict the same held-out rows:

    Quilt         trained on the past segments that agree with the current one
    all data      both tests of a segment switched off, so that every past segment is used
    current only  no past at all

>>> import numpy as np
>>> from driftquilt.decision.cutting import by_column
>>> rng = np.random.default_rng(0)
>>> x, month = rng.normal(size=1200), np.repeat(["april", "may", "june"], 400)
>>> y = (x > 0) ^ (month == "april")                       # April: another world
>>> table = pa.table({"x": x, "y": y, "month": month})
>>> small = QuiltClassifier(hidden_units=16)
>>> decision = decide(table, "y", by_column(table, "month"), drop=["month"], estimator=small)
>>> decision.sentences()[0].partition(" (")[0]
'For june, 1 of 2 past segments was kept'
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from sklearn.base import clone

from driftquilt import __version__
from driftquilt.data.column_types import (
    ColumnFacts,
    check_table,
    describe,
    features,
    leave_out,
    unused_warning,
)
from driftquilt.data.labels import warn_of_order
from driftquilt.decision.decision import Decision
from driftquilt.decision.layout import Labels, Layout, lay_out, read_labels, spread
from driftquilt.decision.leakage import find_leaking_columns, leakage_warning, note_leakage
from driftquilt.decision.measure import ConstantAnswer, MethodScore
from driftquilt.decision.sentences import name_some
from driftquilt.decision.training import LabelledTable
from driftquilt.errors import InputError
from driftquilt.quilt.classifier import QuiltClassifier
from driftquilt.text import plural

__all__ = ["Watch", "decide"]

#: Called with the name of the step that begins, the number of steps done, and of all steps.
Watch: TypeAlias = Callable[[str, int, int], None]

_MAX_PAST_ROWS = 2_000  # of each past segment to predict
_MAX_HELD_OUT = 100_000  # rows to predict
_MANY = 20  # whole numbers as classes, above which they may be amounts
_STEPS = (
    "reading the columns", "training Quilt", "training on all data",
    "training on the current segment only", "predicting the past",
)  # fmt: skip


def decide(
    table: pa.Table,
    label: str,
    segments: Any,
    *,
    current: Any = None,
    holdout: float = 0.3,
    seed: int = 0,
    drop: Iterable[str] = (),
    watch: Watch | None = None,
    estimator: QuiltClassifier | None = None,
) -> Decision:
    """Select, train and measure; `segments` is what a function of `cutting` returns.

    The current segment is the last one, or the one that `current` names; later ones are then
    left out. The last `holdout` of its rows is for measuring; with 0 nothing is measured. The
    columns in `drop` are not learned from: name the one that the segments came from.
    """
    begin_step = _Steps(watch)
    begin_step()
    check_table(table)
    clf = _prepare(estimator, seed)
    labels, facts, drop = read_labels(table, label), describe(table), set(drop)
    layout = lay_out(labels, segments, current=current, holdout=holdout)
    _refuse_holdout(layout, holdout, max(clf.n_folds, 2))
    rows = LabelledTable.of(features(table, label, drop, facts=facts), labels, segments)
    leaking = find_leaking_columns(rows.features, layout)
    facts, messages = note_leakage(facts, leaking), [leakage_warning(leaking)] if leaking else []
    messages += _warnings(layout, labels, [f for f in facts if f.name not in drop], holdout)
    begin_step()
    quilt = rows.fit(clf, layout.trained)
    methods = _measure(rows, layout, quilt, begin_step)
    begin_step()
    return Decision(
        label=label,
        classes=tuple(quilt.classes_.tolist()),
        current=str(layout.names[-1]),
        n_rows=table.num_rows,
        n_current=len(layout.current),
        n_held_out=layout.n_held_out,
        holdout=float(holdout),
        seed=seed,
        selection=quilt.selection_,
        bounds=tuple(quilt.search_),
        correct=_past_accuracies(rows, layout, quilt),
        methods=methods,
        columns=leave_out(_learned(facts, quilt), label, drop),
        warnings=tuple(messages),
        version=__version__,
        constant=_constant_answer(labels, layout),
        model=quilt,
        layout=layout,
    )


def _learned(facts: Iterable[ColumnFacts], quilt: QuiltClassifier) -> Iterator[ColumnFacts]:
    """Yield the facts; a column without a value among the rows to train on is not used."""
    known = {*quilt.feature_names_in_}
    note = "left out: it has no value in the rows to train on"
    for fact in facts:
        is_empty = fact.used and fact.name not in known
        yield replace(fact, used=False, note=note) if is_empty else fact


class _Steps:
    """Reports each step as it begins."""

    def __init__(self, watch: Watch | None) -> None:
        self._watch, self._done = watch, 0

    def __call__(self) -> None:
        if self._watch is not None:
            self._watch(_STEPS[self._done], self._done, len(_STEPS))
        self._done += 1


def _prepare(estimator: QuiltClassifier | None, seed: int) -> QuiltClassifier:
    if estimator is None:
        return QuiltClassifier(random_state=seed)
    if not isinstance(estimator, QuiltClassifier) or not estimator.encode:
        raise InputError(
            f"the estimator is {estimator!r}; give a QuiltClassifier that encodes columns "
            "(encode=True)"
        )
    clf: QuiltClassifier = clone(estimator).set_params(random_state=seed)
    return clf


def _refuse_holdout(layout: Layout, holdout: float, n_min: int) -> None:
    """Refuse to hold out rows that training needs, if there would be enough otherwise."""
    n_left = len(layout.current)
    n_all = n_left + layout.n_held_out
    if n_left < n_min <= n_all:
        raise InputError(
            f"holdout is {holdout:g}, which leaves {n_left} of the {plural(n_all, 'row')} of "
            f"{layout.names[-1]} to train on, but at least {n_min} are needed; hold out less"
        )


def _measure(
    rows: LabelledTable, layout: Layout, quilt: QuiltClassifier, begin_step: Callable[[], None]
) -> tuple[MethodScore, ...]:
    held_out = spread(layout.held_out, _MAX_HELD_OUT)
    ours = rows.correct(quilt, held_out)

    def score(name: str, clf: QuiltClassifier) -> MethodScore:
        theirs = ours if clf is quilt else rows.correct(clf, held_out)
        wins, losses = int((ours & ~theirs).sum()), int((theirs & ~ours).sum())
        validation = rows.validation_accuracy(clf, layout.current)
        return MethodScore(name, validation, int(theirs.sum()), len(theirs), wins, losses)

    scores = [score("Quilt", quilt)]
    begin_step()
    other = clone(quilt).set_params(use_disparity=False, use_gain=False)
    scores.append(score("all data", rows.fit(other, layout.trained)))
    begin_step()
    if len(np.unique(rows.labels.codes[layout.current])) > 1:
        other = clone(quilt)  # frees the previous one, with the codes of all its rows
        scores.append(score("current only", rows.fit(other, layout.current)))
    return tuple(scores)


def _constant_answer(labels: Labels, layout: Layout) -> ConstantAnswer | None:
    """Return the most common label of the current rows, and how many held-out rows have it."""
    held_out = labels.codes[spread(layout.held_out, _MAX_HELD_OUT)]
    if not len(held_out):
        return None
    code = labels.count(layout.current).argmax()
    return ConstantAnswer(str(labels.classes[code]), int((held_out == code).sum()))


def _past_accuracies(
    rows: LabelledTable, layout: Layout, quilt: QuiltClassifier
) -> dict[str, float]:
    """Return the model's accuracy on a sample of each past segment."""
    return {
        str(name): float(rows.correct(quilt, spread(layout.of(k), _MAX_PAST_ROWS)).mean())
        for k, name in enumerate(layout.names[:-1])
    }


def _warnings(
    layout: Layout, labels: Labels, facts: Sequence[ColumnFacts], holdout: float
) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_order(layout.names)
    messages = [str(warning.message) for warning in caught]
    name, codes = layout.names[-1], labels.codes
    if layout.without_labels and not layout.later:
        messages.append(_without_labels(layout.without_labels, name))
    if layout.n_unlabelled:
        of_all = f"{layout.n_unlabelled:,} of {plural(len(codes), 'row')}"
        messages.append(f"no {labels.name!r} in {of_all}, left out")
    if (layout.rows[1:] < layout.rows[:-1]).any():
        messages.append(
            "rows of one segment have rows of others between them; a month without its year, for "
            "example, mixes the years"
        )
    if layout.later:
        messages.append(f"segments after {name} are left out: {name_some(layout.later)}")
    messages += unused_warning(facts)
    if holdout and not layout.n_held_out:
        messages.append(f"{name} has too few rows to hold {holdout:.0%} of them out")
    return [*messages, *_class_warnings(layout, labels)]


def _without_labels(names: Sequence[Hashable], current: Hashable) -> str:
    if len(names) == 1:
        return f"the last segment, {names[0]}, has no labels; decided for {current}"
    last = f"the last {len(names)} segments, {name_some(names)},"
    return f"{last} have no labels; decided for {current}"


def _class_warnings(layout: Layout, labels: Labels) -> list[str]:
    name, messages = layout.names[-1], []
    trained, here = labels.present(layout.trained), labels.present(layout.current)
    past_only = labels.classes[np.setdiff1d(trained, here)].tolist()
    new = labels.classes[np.setdiff1d(labels.codes[layout.held_out], trained)].tolist()
    if labels.classes.dtype.kind in "iu" and len(labels.classes) > _MANY:
        messages.append(
            f"the label {labels.name!r} holds {len(labels.classes)} different whole numbers; if it "
            "is an amount, bin it, for example into low, middle and high"
        )
    if past_only:
        messages.append(
            f"the class {name_some(past_only)} occurs only in the past, not in the rows of {name} "
            "to train on"
        )
    if len(here) == 1:
        messages.append(
            f"the rows of {name} to train on are all {labels.classes[here[0]]}, so there is no "
            "model of the current segment only to compare with"
        )
    if new:
        messages.append(
            f"the class {name_some(new)} occurs only in the held-out rows of {name}; no model can "
            "know it"
        )
    return messages
