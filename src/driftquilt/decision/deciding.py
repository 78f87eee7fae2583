"""Select the past that a model for the present should be trained on, and measure what it gains.

Three models are trained in the same way and predict the same held-out rows:

    Quilt         trained on the past segments that agree with the current one
    all data      both tests of a segment switched off, so that every past segment is used
    current only  no past at all

The label is a class or a number (`task`), which goes the same way. The model is a net, or gradient
boosting for which `QuiltSelector` chooses the past. That needs its rows in memory, so of very large
tables it is given rows at even distances.

No rows are copied to train on some of them: consecutive rows are sliced out of the Arrow table. If
they are scattered, all rows are given and the others get weight 0, as if they were absent.

>>> import numpy as np
>>> from driftquilt.decision.cutting import by_column
>>> rng = np.random.default_rng(0)
>>> x, month = rng.normal(size=1200), np.repeat(["april", "may", "june"], 400)
>>> y = (x > 0) ^ (month == "april")                       # April: another world
>>> table = pa.table({"x": x, "y": y, "month": month})
>>> small = QuiltClassifier(hidden_units=16)
>>> decision = decide(table, "y", by_column(table, "month"), drop=["month"], estimator=small)
>>> decision.sentences()[0].partition(" (")[0]
'For june, 1 of 2 past segments was used'
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.base import clone, is_regressor

from driftquilt import __version__
from driftquilt.core.sampling import Sampling
from driftquilt.core.segment import Segment, folds
from driftquilt.data.arrow import SMALLEST_PIECE, ArrowFrame, read_in_place
from driftquilt.data.column_types import (
    BLOCK,
    ColumnFacts,
    check_table,
    describe,
    features,
    leave_out,
    present,
)
from driftquilt.decision.data_check import check_scores, find_problems
from driftquilt.decision.decision import Decision
from driftquilt.decision.labels import AnyLabels, Labels, read_target
from driftquilt.decision.layout import Layout, Rows, lay_out, spread
from driftquilt.decision.leakage import note_leakage
from driftquilt.decision.measure import (
    ALL_DATA,
    CURRENT_ONLY,
    INCUMBENT,
    QUILT,
    MethodScore,
    name_some,
)
from driftquilt.decision.scoring import score_methods
from driftquilt.decision.task import NUMBERS, TASKS, Task, outputs_of
from driftquilt.errors import InputError
from driftquilt.quilt.classifier import QuiltClassifier, present_weights, refuse_unknown_classes
from driftquilt.quilt.executor import one_blas_thread
from driftquilt.quilt.method import Fitted, TriedBound
from driftquilt.quilt.metrics import Metric, NumberMetric, Scoring
from driftquilt.quilt.model_file import NET
from driftquilt.quilt.models import (
    AUTO,
    Model,
    ModelChoice,
    check_model,
    check_params,
    choose_model,
    kind_of_model,
    make_selector,
)
from driftquilt.quilt.regressor import QuiltRegressor
from driftquilt.quilt.selector import QuiltSelector
from driftquilt.text import plural

#: Called with the name of the step that begins, the number of steps done, and of all steps.
Watch: TypeAlias = Callable[[str, int, int], None]
Outputs: TypeAlias = NDArray[np.float32] | NDArray[np.float64]

M = TypeVar("M", QuiltClassifier, QuiltRegressor, QuiltSelector)
Net = TypeVar("Net", QuiltClassifier, QuiltRegressor)

#: Rows times columns that a model which is not a net is given.
MAX_VALUES = 20_000_000

_MAX_PAST_ROWS = 2_000  # of each past segment to predict
_MAX_HELD_OUT = 100_000  # rows to predict
_FEW_RUNS = 64  # of rows, above which those that are not used get weight 0
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
    estimator: Model | None = None,
    model: str = NET,
    scoring: Scoring | NumberMetric | None = None,
    incumbent: str | None = None,
    task: str | None = None,
    accept_data: bool = False,
    params: Mapping[str, Any] | None = None,
    **settings: Any,
) -> Decision:
    """Select, train and measure; `segments` is what a function of `cutting` returns.

    The current segment is the last one, or the one that `current` names; later ones are then
    left out. The last `holdout` of its rows is for measuring; with 0 nothing is measured. The
    columns in `drop` are not learned from: name the one that the segments came from.

    The label holds classes or numbers, as `task` says ("classes" or "numbers"); without it, text
    and booleans are classes, and numbers are if they are whole and no more than 20 different ones.

    `model` is the kind of model: "net", "lightgbm", "xgboost", "catboost", "hgb", or "auto" for the
    better of "net" and "hgb". `estimator` is a QuiltClassifier or QuiltRegressor with the settings
    of the net, or a QuiltSelector around your own model; instead of the first two, `settings` are
    theirs.

    `scoring` is the metric by which methods are compared, as in `quilt.metrics`; default log loss,
    or of numbers the mean absolute error. It also chooses the bound and the blend of each method,
    unless the estimator has its own; a net for numbers goes by its loss. Of two classes, a
    threshold for it is tuned on validation rows where it scores answers. `incumbent` is a column
    with the predictions of the model in use, to compare with: labels, of two classes the
    probability of the second, or numbers. It is not learned from.

    `params` are parameters of the model's estimator: of a net the same as `settings`, of "lightgbm"
    those of LightGBM's, and so on.

    Findings of the data check that make the scores worthless turn the advice into "check-data";
    with `accept_data` they don't.
    """
    begin_step = _Steps(watch)
    begin_step()
    check_table(table)
    labels, facts = read_target(table, label, task), describe(table)
    kind = TASKS[labels.task]
    clf = _prepare(kind, estimator, model, seed, settings, params or {})
    if isinstance(labels, Labels):
        refuse_unknown_classes(getattr(clf, "class_weight", None), labels.classes.tolist())
    drop = {*drop, *([] if incumbent is None else [incumbent])}
    layout = lay_out(labels, segments, current=current, holdout=holdout)
    _refuse_holdout(layout, holdout, max(clf.n_folds, 2))
    held_out, metric = spread(layout.held_out, _MAX_HELD_OUT), kind.find_metric(scoring)
    _refuse_intervals(metric, clf, model)
    question: Any = kind.question
    question, notes = question.of(metric, labels, layout, held_out, seed).beside(
        table, incumbent, labels, held_out
    )
    question.set_metric(clf, labels, layout)
    rows = LabelledTable.of(features(table, label, drop, facts=facts), labels, segments)
    learned = [fact for fact in facts if fact.name not in drop]
    checks = find_problems(table, rows.features, labels, segments, layout, learned)
    facts = note_leakage(facts, [f.column for f in checks if f.kind == "segment_leak" and f.column])
    begin_step()
    used = _Used.of(layout, rows if model != NET or isinstance(clf, QuiltSelector) else None)
    choice = None
    if model == AUTO:
        choice = rows.choose(clf, used.rows, question.metric, seed)
        notes.append(choice.sentence())
    quilt = rows.fit(clf, used.rows) if choice is None else choice.model
    methods = _measure(rows, used, held_out, quilt, question, begin_step)
    trained = [method for method in methods if method.name != INCUMBENT]
    begin_step()
    return Decision(
        label=label,
        classes=tuple(quilt.classes_.tolist()) if isinstance(labels, Labels) else (),
        current=str(layout.names[-1]),
        n_rows=table.num_rows,
        n_current=len(layout.current),
        n_held_out=layout.n_held_out,
        holdout=float(holdout),
        seed=seed,
        selection=quilt.selection_,
        bounds=_bounds(quilt),
        of_past=_measure_past(rows, layout, quilt),
        methods=methods,
        columns=leave_out(_learned(facts, quilt), label, drop),
        warnings=(*_warnings(layout, holdout), *used.notes, *notes),
        version=__version__,
        constant=question.constant(),
        checks=(*check_scores(question, trained), *checks),
        metric=question.metric.name,
        incumbent=incumbent,
        threshold=getattr(quilt, "threshold_", None),
        task=labels.task,
        task_reason=labels.reason(),
        accept_data=accept_data,
        kind=kind_of_model(quilt),
        choice={} if choice is None else choice.scores,
        sets=tuple(quilt.search_) if isinstance(quilt, QuiltSelector) else (),
        model=quilt,
        layout=layout,
    )


@dataclass(frozen=True, eq=False)
class _Used:
    """The rows that models are trained on: all that may be, or those that fit in memory."""

    past: Rows
    current: Rows
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, layout: Layout, in_memory: LabelledTable | None) -> _Used:
        """Take all rows, or with a table whose rows have to be in memory, at most so many."""
        current = layout.current
        past = layout.trained[: len(layout.trained) - len(current)]
        if in_memory is None:
            return cls(past, current)
        n_max = MAX_VALUES // in_memory.features.num_columns
        n_all = len(past) + len(current)
        if n_all <= n_max:
            return cls(past, current)
        current = spread(current, n_max // 2)
        past = spread(past, n_max - len(current))
        n_used = len(past) + len(current)
        note = f"this model holds its rows in memory: it was given {n_used:,} of {n_all:,} rows"
        return cls(past, current, (note,))

    @property
    def rows(self) -> Rows:
        """Past and current rows, segment by segment."""
        return np.concatenate([self.past, self.current])


def _bounds(quilt: Model) -> tuple[TriedBound, ...]:
    """Return the bounds that the net tried; of a selector, the net that ranks for it."""
    net = quilt.quilt_ if isinstance(quilt, QuiltSelector) else quilt
    return () if net is None else tuple(net.search_)


def _learned(facts: Iterable[ColumnFacts], quilt: Model) -> Iterator[ColumnFacts]:
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


def _prepare(
    kind: Task,
    estimator: Model | None,
    model: str,
    seed: int,
    settings: dict[str, Any],
    params: Mapping[str, Any],
) -> Model:
    """Return the model to fit; to choose one, the net."""
    check_model(model)
    check_params(model, params, is_regression=kind.name == NUMBERS.name)
    if model == NET:
        settings = settings | dict(params)
    if params and estimator is not None and model == NET:
        raise InputError("the estimator has its own parameters; set them there, not by `params`")
    if isinstance(estimator, QuiltSelector) and model == NET:
        return _prepare_own(kind, estimator, seed)
    net = kind.make_net(**settings) if estimator is None else estimator
    if not isinstance(net, kind.net) or not net.encode:
        raise InputError(
            f"the estimator is {net!r}, and the label holds {kind.name}; give a "
            f"{kind.net.__name__} that encodes columns (encode='robust' or 'standard'), or without "
            "`model` a QuiltSelector"
        )
    if model != NET and getattr(net, "class_weight", None) is not None:
        raise InputError(f"class_weight is for the model {NET!r} only, but the model is {model!r}")
    if model in (NET, AUTO):
        own: Model = clone(net).set_params(random_state=seed)
        return own
    return make_selector(model, quilt=net, random_state=seed, params=params)


def _prepare_own(kind: Task, selector: QuiltSelector, seed: int) -> QuiltSelector:
    """Return a copy of a selector around the caller's own model."""
    if is_regressor(selector) != (kind.name == "numbers"):
        raise InputError(f"{selector.estimator!r} is not for a label that holds {kind.name}")
    if not is_regressor(selector) and not hasattr(selector, "predict_proba"):
        raise InputError(f"{selector.estimator!r} gives no probabilities; give another model")
    own: QuiltSelector = clone(selector).set_params(random_state=seed)
    return own


def _refuse_intervals(metric: Metric | NumberMetric, clf: Model, model: str) -> None:
    """Refuse a metric of intervals for models that give none."""
    takes_intervals = isinstance(metric, NumberMetric) and metric.takes_intervals
    if takes_intervals and (model != NET or isinstance(clf, QuiltSelector)):
        raise InputError(
            f"{metric.name} scores intervals, which only the model {NET!r} gives; compare by mae "
            "or rmse"
        )


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
    rows: LabelledTable,
    used: _Used,
    held_out: Rows,
    quilt: Model,
    question: Any,
    begin_step: Callable[[], None],
) -> tuple[MethodScore, ...]:
    models, validation = dict[str, Any](), dict[str, float]()

    def add(name: str, clf: Model, trained: Rows) -> None:
        folds = rows.hold_out(clf, trained, used.current)
        y, outputs = (np.concatenate(parts) for parts in zip(*folds, strict=True))
        question.tune(clf, y, outputs)
        validation[name] = question.validation(clf, folds)
        models[name] = question.read(clf, rows.predict(clf, held_out))

    add(QUILT, quilt, used.rows)
    begin_step()
    other = clone(quilt)
    if not isinstance(other, QuiltSelector):
        other.set_params(use_disparity=False, use_gain=False)
    add(ALL_DATA, rows.fit(other, used.rows, selects=False), used.rows)
    begin_step()
    if rows.are_enough(used.current):
        other = clone(quilt)  # frees the previous one, with the codes of all its rows
        add(CURRENT_ONLY, rows.fit(other, used.current, selects=False), used.current)
    return score_methods(question, models, validation)


def _measure_past(rows: LabelledTable, layout: Layout, quilt: Model) -> dict[str, float]:
    """Return the model's accuracy, or its mean absolute error, on a sample of each past segment."""
    return {
        str(name): rows.measure(quilt, spread(layout.of(k), _MAX_PAST_ROWS))
        for k, name in enumerate(layout.names[:-1])
    }


def _warnings(layout: Layout, holdout: float) -> tuple[str, ...]:
    name, messages = layout.names[-1], []
    if layout.later:
        messages.append(f"segments after {name} are left out: {name_some(layout.later)}")
    if holdout and not layout.n_held_out:
        messages.append(f"{name} has too few rows to hold {holdout:.0%} of them out")
    return tuple(messages)


class FoldPredictions(NamedTuple):
    """What one fold's model says of rows that it was not trained on, and the truth.

    Codes and probabilities, or numbers and predicted numbers (n, 1).
    """

    y: NDArray[Any]
    outputs: Outputs


@dataclass(frozen=True, eq=False)
class LabelledTable:
    """The columns to learn from, the label and the segment of each row."""

    features: pa.Table
    labels: AnyLabels
    segments: pa.ChunkedArray
    in_place: ArrowFrame
    incomplete: frozenset[str]  # columns with missing values

    @classmethod
    def of(cls, features: pa.Table, labels: AnyLabels, segments: Any) -> LabelledTable:
        """Prepare columns that have been checked."""
        if isinstance(segments, pa.Array):
            segments = pa.chunked_array([segments])
        names = features.column_names
        incomplete = frozenset(name for name in names if not present(features[name]).all())
        return cls(features, labels, segments, read_in_place(features), incomplete)

    def fit(self, clf: M, rows: Rows, *, selects: bool = True) -> M:
        """Train on these rows only; columns and classes that none of them has are left out.

        Without `selects`, a selector takes all of them as they are.
        """
        if isinstance(clf, QuiltSelector):
            X, y, segments = self._read(rows)
            with _quiet():
                return clf.fit(X, y, segments if selects else None)
        if isinstance(clf, QuiltClassifier):
            seen = self.labels.distinct(rows).tolist()
            clf.set_params(class_weight=present_weights(clf.class_weight, seen))
        used = np.zeros(self.features.num_rows, dtype=bool)
        used[rows] = True
        X = self.features.select(self._names(used))
        with _quiet():
            bounds = _runs(used)
            if len(bounds) > _FEW_RUNS + len(used) // SMALLEST_PIECE:
                return self._fit_weighed(clf, X, used)
            parts = [(a, b - a) for a, b in bounds]
            chunks = [c for a, n in parts for c in self.segments.slice(a, n).chunks]
            segments = pa.chunked_array(chunks, self.segments.type)
            X = pa.concat_tables([X.slice(a, n) for a, n in parts])
            y = self.labels.to_fit([slice(a, a + n) for a, n in parts])
            return clf.fit(X, y, segments=segments).forget_rows()

    def choose(
        self, net: Model, rows: Rows, metric: Metric | NumberMetric, seed: int
    ) -> ModelChoice:
        """Fit the net and gradient boosting on these rows, and choose."""
        assert not isinstance(net, QuiltSelector)  # noqa: S101
        X, y, segments = self._read(rows)
        with _quiet():
            return choose_model(X, y, segments, quilt=net, scoring=metric, random_state=seed)

    def are_enough(self, rows: Rows) -> bool:
        """Return whether a model can be trained on these rows alone: they differ in their label."""
        return len(self.labels.distinct(rows)) > 1

    def correct(self, clf: Model, rows: Rows) -> NDArray[np.bool_]:
        """Return whether the answer to each row is its class."""
        assert not isinstance(clf, QuiltRegressor)  # noqa: S101
        right: NDArray[np.bool_] = clf.answers(self.predict(clf, rows)) == self.labels.of(rows)
        return right

    def measure(self, clf: Model, rows: Rows) -> float:
        """Return the accuracy on these rows; of numbers, the mean absolute error."""
        if isinstance(self.labels, Labels):
            return float(self.correct(clf, rows).mean())
        return float(np.abs(self.predict(clf, rows)[:, 0] - self.labels.of(rows)).mean())

    def predict(self, clf: Model, rows: Rows) -> Outputs:
        """Return what `outputs_of` returns, some rows at a time."""
        if not len(rows):
            return np.zeros((0, max(len(getattr(clf, "classes_", ())), 1)))
        parts = np.split(rows, range(BLOCK, len(rows), BLOCK))
        if isinstance(clf, QuiltClassifier):
            return np.concatenate([self._chances(clf, clf.model_, part) for part in parts])
        columns = self.features.select([*clf.feature_names_in_])
        return np.concatenate([outputs_of(clf, columns.take(part)) for part in parts])

    def hold_out(self, clf: Model, trained: Rows, current: Rows) -> list[FoldPredictions]:
        """Return what models that are trained alike say of current rows they have not seen."""
        if isinstance(clf, QuiltClassifier):
            return self.predict_folds(clf, current)
        if isinstance(clf, QuiltRegressor):
            return [FoldPredictions(*clf.held_out_numbers())]
        y = self.labels.of(current)
        if len(clf.classes_):
            y = np.searchsorted(clf.classes_, y)
        if clf.held_out_ is not None:
            return [FoldPredictions(y, clf.held_out_)]
        outputs = np.zeros((len(y), max(len(clf.classes_), 1)))
        for block in np.array_split(np.arange(len(y)), clf.n_folds):
            rest = trained[~np.isin(trained, current[block])]
            known = self.labels.distinct(rest)
            places = np.searchsorted(clf.classes_, known) if len(clf.classes_) else np.zeros(1, int)
            if len(known) == 1:
                outputs[block[:, None], places] = 1 if len(clf.classes_) else known
            else:
                other = self.fit(clone(clf), rest, selects=False)
                outputs[block[:, None], places] = self.predict(other, current[block])
        return [FoldPredictions(y, outputs)]

    def predict_folds(self, clf: QuiltClassifier, current: Rows) -> list[FoldPredictions]:
        """Return what each fold's model says of the current rows it was not trained on.

        Of a very long segment only the rows held in training count.
        """
        assert clf.encoder_ is not None  # noqa: S101
        sampling = Sampling(clf.score_rows, clf.score_every, clf.epoch_rows)
        width = clf.encoder_.width
        held = sampling.rows_to_keep(np.zeros(len(current), dtype=np.int32), 1, width)
        current = current if held is None else current[held]
        y = np.searchsorted(clf.classes_, self.labels.of(current))
        numbers = np.arange(len(current))  # stand for the rows, to see how folds divide them
        weight = np.ones(len(y), dtype=np.float32)
        rows = Segment("", numbers[:, None], y, weight)
        in_blocks = clf.blend and len(clf.selection_) > 0
        divided = folds(rows, clf.n_folds, in_blocks=in_blocks)
        return [
            FoldPredictions(y[part.X[:, 0]], self._chances(clf, model, current[part.X[:, 0]]))
            for model, (_, part) in zip(clf.model_.by_fold(), divided, strict=True)
        ]

    def _read(self, rows: Rows) -> tuple[pa.Table, Any, pa.ChunkedArray]:
        """Return these rows in memory: columns that have a value among them, labels, segments."""
        used = np.zeros(self.features.num_rows, dtype=bool)
        used[rows] = True
        X = self.features.select(self._names(used)).take(rows)
        return X, self.labels.to_fit([rows]), self.segments.take(pa.array(rows))

    def _names(self, used: NDArray[np.bool_]) -> list[str]:
        return [
            name
            for name in self.features.column_names
            if name not in self.incomplete or (present(self.features[name]) & used).any()
        ]

    def _fit_weighed(self, clf: Net, X: pa.Table, used: NDArray[np.bool_]) -> Net:
        y, weight = self.labels.to_fit_weighed(used), used.astype(np.float64)
        return clf.fit(X, y, self.segments, sample_weight=weight).forget_rows()

    def _chances(self, clf: QuiltClassifier, model: Fitted, rows: Rows) -> Outputs:
        assert clf.encoder_ is not None  # noqa: S101
        with one_blas_thread():
            return model.predict_proba(clf.encoder_.transform(self.in_place.take(rows)))


@contextmanager
def _quiet() -> Iterator[None]:
    """Ignore two warnings that `decide` reports once, not at every training."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="segments appear in the order")
        warnings.filterwarnings("ignore", message="The number of unique classes is greater")
        yield


def _runs(used: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Return the first row and the end of each run of rows."""
    edges = np.flatnonzero(np.diff(used, prepend=False, append=False))
    return [(a, b) for a, b in edges.reshape(-1, 2).tolist()]
