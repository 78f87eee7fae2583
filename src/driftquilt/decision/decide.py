"""Select the past that a model for the present should be trained on, and measure what it gains.

Three models are trained with the same machinery and asked about the same held-out rows:

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
from numpy.typing import NDArray
from sklearn.base import clone

from driftquilt import __version__
from driftquilt.data.labels import warn_of_order
from driftquilt.decision.columns import (
    ColumnFacts,
    check_table,
    describe,
    features,
    leave_out,
    unfit_warning,
)
from driftquilt.decision.fitting import Case
from driftquilt.decision.labels import Labels, read_labels
from driftquilt.decision.layout import Layout, lay_out, spread
from driftquilt.decision.telling import find_telling, remark
from driftquilt.decision.telling import warning as telling_warning
from driftquilt.decision.values import Decision, Method
from driftquilt.decision.words import Constant, name_some
from driftquilt.errors import InputError
from driftquilt.quilt.classifier import QuiltClassifier
from driftquilt.text import plural

__all__ = ["Watch", "decide"]

#: Told what is being done, the number of steps that are over, and of all steps.
Watch: TypeAlias = Callable[[str, int, int], None]

_MOST_ASKED = 2_000  # rows of a past segment
_MOST_MEASURED = 100_000  # held-out rows
_MANY = 20  # whole numbers as classes, above which they may be amounts
_STEPS = (
    "reading the columns", "training Quilt", "training on all data",
    "training on the current segment only", "asking about the past",
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
    """Select, train and measure; `segments` is what a function of `cutting` gives.

    The current segment is the last, or the one that `current` names; later ones are then left
    out. The last `holdout` of its rows measures; 0 measures nothing. The columns to `drop` are
    not learned from: name the one that the segments came from.
    """
    step = _Steps(watch)
    step()
    check_table(table)
    clf = _prepare(estimator, seed)
    labels, facts, drop = read_labels(table, label), describe(table), set(drop)
    layout = lay_out(labels, segments, current=current, holdout=holdout)
    _refuse_holdout(layout, holdout, max(clf.n_folds, 2))
    case = Case.of(features(table, label, drop, facts=facts), labels, segments)
    telling = find_telling(case.features, layout)
    facts, said = remark(facts, telling), [telling_warning(telling)] if telling else []
    said += _warnings(layout, labels, [f for f in facts if f.name not in drop], holdout)
    step()
    quilt = case.fit(clf, layout.trained)
    methods = _measure(case, layout, quilt, step)
    step()
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
        correct=_ask_about_past(case, layout, quilt),
        methods=methods,
        columns=leave_out(_learned(facts, quilt), label, drop),
        warnings=tuple(said),
        version=__version__,
        constant=_constant(case, layout),
        model=quilt,
    )


def _learned(facts: Iterable[ColumnFacts], quilt: QuiltClassifier) -> Iterator[ColumnFacts]:
    """The facts; a column without a value among the rows to train on is in no model."""
    known = {*quilt.feature_names_in_}
    for fact in facts:
        lost = fact.used and fact.name not in known
        note = "left out: the rows to train on have no value of it"
        yield replace(fact, used=False, note=note) if lost else fact


class _Steps:
    """Tells a caller who watches which step begins."""

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
    made: QuiltClassifier = clone(estimator).set_params(random_state=seed)
    return made


def _refuse_holdout(layout: Layout, holdout: float, fewest: int) -> None:
    """Refuse to hold out rows that training needs, if there would be enough without."""
    n_left = len(layout.current)
    n_all = n_left + layout.n_held_out
    if n_left < fewest <= n_all:
        raise InputError(
            f"holdout is {holdout:g}, which leaves {n_left} of the {plural(n_all, 'row')} of "
            f"{layout.names[-1]} to train on, and it takes at least {fewest}; hold out less"
        )


def _measure(
    case: Case, layout: Layout, quilt: QuiltClassifier, step: Callable[[], None]
) -> tuple[Method, ...]:
    asked = spread(layout.held_out, _MOST_MEASURED)
    ours = case.right(quilt, asked)
    methods = [_method("Quilt", case, layout, quilt, ours, ours)]
    step()
    other = clone(quilt).set_params(use_disparity=False, use_gain=False)
    other = case.fit(other, layout.trained)
    methods.append(_method("all data", case, layout, other, ours, case.right(other, asked)))
    step()
    if len(np.unique(case.labels.codes[layout.current])) > 1:
        other = clone(quilt)  # lets go of the one before, and of the codes of all its rows
        other = case.fit(other, layout.current)
        methods.append(_method("current only", case, layout, other, ours, case.right(other, asked)))
    return tuple(methods)


def _method(
    name: str,
    case: Case,
    layout: Layout,
    clf: QuiltClassifier,
    ours: NDArray[np.bool_],
    theirs: NDArray[np.bool_],
) -> Method:
    return Method(
        name,
        case.validation_accuracy(clf, layout.current),
        int(theirs.sum()),
        len(theirs),
        int((ours & ~theirs).sum()),
        int((theirs & ~ours).sum()),
    )


def _constant(case: Case, layout: Layout) -> Constant | None:
    """The answer that most current rows have, and the held-out rows that it has right."""
    asked = case.labels.codes[spread(layout.held_out, _MOST_MEASURED)]
    if not len(asked):
        return None
    here = case.labels.count(layout.current)
    return Constant(str(case.labels.classes[here.argmax()]), int((asked == here.argmax()).sum()))


def _ask_about_past(case: Case, layout: Layout, quilt: QuiltClassifier) -> dict[str, float]:
    """Share of each past segment's rows that the model has right, from at most so many."""
    return {
        str(name): float(case.right(quilt, spread(layout.of(k), _MOST_ASKED)).mean())
        for k, name in enumerate(layout.names[:-1])
    }


def _warnings(
    layout: Layout, labels: Labels, facts: Sequence[ColumnFacts], holdout: float
) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_order(layout.names)
    said = [str(warning.message) for warning in caught]
    name, codes = layout.names[-1], labels.codes
    if layout.without_labels and not layout.later:
        said.append(_without_labels(layout.without_labels, name))
    if layout.n_unlabelled:
        of_all = f"{layout.n_unlabelled:,} of {plural(len(codes), 'row')}"
        said.append(f"no {labels.name!r} in {of_all}, left out")
    if (layout.rows[1:] < layout.rows[:-1]).any():
        said.append(
            "rows of one segment stand apart, with others between them; a month without its year, "
            "for one, would mix the years"
        )
    if layout.later:
        said.append(f"segments after {name} are left out: {name_some(layout.later)}")
    said += unfit_warning(facts)
    if holdout and not layout.n_held_out:
        said.append(f"{name} has too few rows to hold {holdout:.0%} of them out")
    return [*said, *_class_warnings(layout, labels)]


def _without_labels(names: Sequence[Hashable], current: Hashable) -> str:
    if len(names) == 1:
        return f"the last segment, {names[0]}, has no labels; decided for {current}"
    last = f"the last {len(names)} segments, {name_some(names)},"
    return f"{last} have no labels; decided for {current}"


def _class_warnings(layout: Layout, labels: Labels) -> list[str]:
    name, said = layout.names[-1], []
    trained, here = labels.present(layout.trained), labels.present(layout.current)
    past_only = labels.classes[np.setdiff1d(trained, here)].tolist()
    new = labels.classes[np.setdiff1d(labels.codes[layout.held_out], trained)].tolist()
    if labels.classes.dtype.kind in "iu" and len(labels.classes) > _MANY:
        said.append(
            f"the label {labels.name!r} holds {len(labels.classes)} different whole numbers; if it "
            "is an amount, bin it, for example into low, middle and high"
        )
    if past_only:
        said.append(
            f"the rows of {name} to train on have none of the class {name_some(past_only)}, which "
            "is in the past only"
        )
    if len(here) == 1:
        said.append(
            f"the rows of {name} to train on are all {labels.classes[here[0]]}, so that there is "
            "no model of the current segment only to compare with"
        )
    if new:
        said.append(
            f"the class {name_some(new)} is only in the held-out rows of {name}; no model can "
            "know it"
        )
    return said
