"""Quilt: retrain on the past segments that agree with the present.

For each fold of the current segment a disparity bound is searched; every trial trains a model
with Algorithm 1, and the trial with the lowest validation loss wins. With one fold this is the
paper's method; with more, the parts of the current segment take turns at validating and the
winners' probabilities are averaged.

With `blend`, the default, all folds use the same candidate, and the winners are mixed with models
of all data and of the present alone, by what `blending` finds. With a `judge`, its metric and not
the loss chooses the candidate, and whether one model alone replaces the mixture.

A method gets the history (past segments, oldest first, perhaps none) and the labelled rows of the
current segment; `adapt` returns a model that predicts. Every method promises:

- Column c of its predictions is class c, for every class that any segment has.
- The same segments and settings give the same model, bit for bit.
- Segments are read, never changed.

Paper: Algorithm 1 and "Parameters".

>>> import numpy as np
>>> from driftquilt.core.segment import cut
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(600, 2)).astype(np.float32)
>>> month = np.repeat([0, 1, 2], 200)
>>> y = ((X[:, 0] > 0) ^ (month == 0)).astype(np.int64)      # April was the other way round
>>> history, current = cut(X, y, month, ["April", "May", "June"])
>>> model = Quilt(MLP(hidden_units=32), search=Shared((0.2, 0.5, 1.0))).adapt(history, current)
>>> [(use.name, use.used) for use in model.selection]
[('April', False), ('May', True)]
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import inf
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from driftquilt.core.gradients import RemoteScorer
from driftquilt.core.sampling import EVERY_ROW, Sampling
from driftquilt.core.segment import History, Segment, count_classes, folds, join
from driftquilt.core.training import Epoch, Rule, Task, Time
from driftquilt.errors import InputError
from driftquilt.learners.base import Learner, Model
from driftquilt.learners.mlp import MLP, MLPRegression
from driftquilt.quilt.blending import (
    OTHER_FOLDS,
    PARTS,
    Judge,
    Openings,
    blend_weights,
    borrow_rows,
    choose_by_score,
    choose_candidate,
    replace_mixture,
)
from driftquilt.quilt.executor import Executor, Threads, one_blas_thread
from driftquilt.quilt.explanation import Selection, explain_folds
from driftquilt.search.base import DISPARITY_RANGE, Everything, Search, Trial, best
from driftquilt.search.bayes import Bayes
from driftquilt.search.shared import Shared

__all__ = [
    "CANDIDATES",
    "DEFAULT",
    "PAPER",
    "Average",
    "Fitted",
    "FoldTrial",
    "Method",
    "Quilt",
    "QuiltModel",
    "Training",
    "TrialsByPart",
    "TriedBound",
    "by_part",
    "read_clock",
    "same_candidates",
]

#: The bounds tried by default, as shares of the largest disparity before training.
CANDIDATES = (0.0, 0.354, 0.707, 2.0)

_PAPER_RULE = Rule()

#: The trials of a fold, by the part of a blended model that they are for.
TrialsByPart: TypeAlias = Mapping[str, Sequence[Trial[Model]]]


class Fitted(Protocol):
    """A model that predicts."""

    def predict_proba(self, X: NDArray[Any]) -> NDArray[np.float32]:
        """Class probabilities of each row, shape (n, C)."""


class Method(Protocol):
    """A way to get a model for the current segment."""

    def adapt(self, history: History, current: Segment) -> Fitted: ...


def read_clock() -> Time:
    """Return the time now, on the wall and of this process on the CPU."""
    return Time(time.perf_counter(), time.process_time())


@dataclass(frozen=True)
class Training:
    """Settings of every method that trains a learner; by default those of the paper.

    `n_classes` is needed only where a class is known that no row has. `clock` times the epochs.
    `remote_scorer` scores a history whose rows are not all here; see `core.training.Task`. With
    `blend`, folds are blocks in time.
    """

    learner: Learner = field(default_factory=MLP)
    n_folds: int = 1
    max_epochs: int = 2000
    patience: int = 10
    seed: int = 0
    sampling: Sampling = EVERY_ROW
    n_classes: int | None = None
    clock: Callable[[], Time] = read_clock
    remote_scorer: RemoteScorer | None = None
    blend: bool = False

    def count_classes(self, history: History, current: Segment) -> int:
        """Return the number of classes; of a net for numbers, that of its outputs."""
        if isinstance(self.learner, MLPRegression):
            return self.learner.loss.n_outputs
        n_classes = count_classes(history, current)
        if self.n_classes is not None and self.n_classes < n_classes:
            raise InputError(
                f"n_classes is {self.n_classes}, but a row has class code {n_classes - 1}; set it "
                f"to at least {n_classes}, or to None to count them"
            )
        return self.n_classes or n_classes

    def tasks(self, history: History, current: Segment, rule: Rule = _PAPER_RULE) -> list[Task]:
        """One training to do per fold of the current segment."""
        return [
            Task(
                history,
                train,
                self.sampling.to_validate(validation),
                rule=rule,
                max_epochs=self.max_epochs,
                patience=self.patience,
                seed=self.seed + fold,
                sampling=self.sampling,
                clock=self.clock,
                remote_scorer=self.remote_scorer,
            )
            for fold, (train, validation) in enumerate(
                folds(current, self.n_folds, in_blocks=self.blend and bool(history))
            )
        ]


@dataclass(frozen=True)
class Average:
    """Several models that answer with the mean of their probabilities.

    `shares` are their weights in it, which add up to 1; none means that all have the same.
    `trainings` are the epochs that made each of them, where they are known.
    """

    models: Sequence[Fitted]
    shares: Sequence[float] = field(default=(), kw_only=True)
    trainings: Sequence[Sequence[Epoch]] = field(default=(), repr=False, kw_only=True)

    def predict_proba(self, X: NDArray[Any]) -> NDArray[np.float32]:
        return self._mean(model.predict_proba(X) for model in self.models)

    def predict(self, X: NDArray[Any]) -> NDArray[np.float32]:
        """Return the same for models that answer with numbers, (n, Q)."""
        models: Sequence[Any] = self.models
        return self._mean(model.predict(X) for model in models)

    def _mean(self, answers: Iterator[NDArray[np.float32]]) -> NDArray[np.float32]:
        if self.shares:
            weighed = (np.float32(s) * p for s, p in zip(self.shares, answers, strict=True))
            return functools.reduce(np.add, weighed)
        total = functools.reduce(np.add, answers)
        total /= len(self.models)
        return total


class FoldTrial(NamedTuple):
    """A trial, the fold it belongs to, and which part of a blended model it is for."""

    fold: int
    trial: Trial[Model]
    part: str = "selected"


class TriedBound(NamedTuple):
    """One trial of the search, in a line."""

    fold: int
    disparity_max: float
    validation_loss: float
    n_epochs: int
    won: bool


@dataclass(frozen=True, kw_only=True)
class QuiltModel(Average):
    """The winners of all folds, with every trial and what became of every past segment."""

    models: Sequence[Model]
    trials: tuple[FoldTrial, ...] = field(default=(), repr=False)
    selection: Selection

    def by_fold(self) -> list[Average]:
        """Return the model of each fold alone, which was not trained on the fold's own rows."""
        n_folds = len(self.selection.folds)
        shares = [share * n_folds for share in self.shares[::n_folds]]
        return [Average(self.models[k::n_folds], shares=shares) for k in range(n_folds)]

    def tried_bounds(self) -> list[TriedBound]:
        """Every trial of the search in a line, fold by fold, by rising bound."""
        lines = [
            TriedBound(
                fold,
                trial.disparity_max,
                trial.validation_loss,
                len(trial.epochs),
                trial.disparity_max == self.selection.folds[fold].disparity_max,
            )
            for fold, trial, part in self.trials
            if part == "selected"
        ]
        return sorted(lines, key=lambda line: (line.fold, line.disparity_max))


@dataclass(frozen=True)
class Quilt(Training):
    """The method; `previous` holds models to start from, fold by fold, instead of random ones.

    `class_weights` are part of the weights of the rows, so a training sees more of some classes
    than there are; the finished models know, and their probabilities are those of the rows as they
    are.
    The executor runs folds side by side, and bounds too where the search can be split. `judge`
    chooses among finished trainings; none means the validation loss. `everything` is how a blend
    trains on all data. With `checks_openings`, labelled rows are trusted as far as the first rows
    of past segments stood for the rest.
    """

    search: Search = field(default_factory=lambda: Shared(CANDIDATES, relative=True))
    everything: Everything = field(default_factory=Everything)
    rule: Rule = field(default_factory=Rule)
    previous: Sequence[Model] = ()
    class_weights: Sequence[float] = ()
    executor: Executor = field(default_factory=Threads)
    judge: Judge | None = None
    checks_openings: bool = True

    def adapt(self, history: History, current: Segment) -> QuiltModel:
        return self.conclude(history, current, self.trials(history, current))

    def trials(self, history: History, current: Segment) -> Iterator[FoldTrial]:
        """Every trial of every fold, with the fold's number."""
        n_classes = self.count_classes(history, current)
        quilt = replace(self, n_classes=n_classes, executor=Threads(1), judge=None)
        n_parts = -(-self.executor.n_workers // self.n_folds)
        searches = [
            (part, search)
            for part, whole in self._searches(history).items()
            for search in whole.split(n_parts)
        ]
        items = [
            (fold, part, search)
            for fold in range(self.n_folds)
            for part, search in searches
            if fold == self._folds_alike(fold, part)[0]
        ]
        results = self.executor.run(_try_bounds, (quilt, history, current), items)
        with one_blas_thread():
            for number, trial in results:
                first, part, _ = items[number]
                for fold in self._folds_alike(first, part):
                    yield FoldTrial(fold, trial, part)

    def task(self, history: History, current: Segment, fold: int, part: str) -> Task:
        """Return the training to do for a part in a fold, and in those that share it."""
        tasks = self.tasks(history, current, self.rule)
        alike = self._folds_alike(fold, part)
        if len(alike) == 1:
            return tasks[fold]
        blocks = [rows for _, rows in folds(current, self.n_folds, in_blocks=True)]
        left = [rows for number, rows in enumerate(blocks) if number not in alike]
        validation = join([tasks[number].validation for number in alike])
        return replace(tasks[alike[0]], current=join(left), validation=validation)

    def _folds_alike(self, fold: int, part: str) -> range:
        """Return the folds that share a training, which sees the own rows of none of them."""
        n_alike = self.everything.n_folds if part == "all" else 1
        if 2 * n_alike > self.n_folds:  # too few current rows would be left to train on
            n_alike = 1
        first = fold - fold % n_alike
        return range(first, min(first + n_alike, self.n_folds))

    def conclude(
        self, history: History, current: Segment, trials: Iterable[FoldTrial]
    ) -> QuiltModel:
        """Return the model that the finished trials add up to."""
        ordered = tuple(sorted(trials, key=lambda t: (t.fold, t.part, t.trial.disparity_max)))
        if self.class_weights:
            ordered = _calibrated(ordered, np.array(self.class_weights))
        n_folds = 1 + max(trial.fold for trial in ordered)
        of_folds = [
            {part: [t.trial for t in ordered if (t.fold, t.part) == (fold, part)] for part in PARTS}
            for fold in range(n_folds)
        ]
        if not self.blend or not history:
            with one_blas_thread():
                winners = self._choose_winners(history, current, of_folds)
            selection = explain_folds(history, current, winners, self.rule)
            weights, chosen = np.ones(1), [winners]
        else:
            with one_blas_thread():
                chosen, weights = self._mix(history, current, of_folds)
            selection = explain_folds(history, current, chosen[1], self.rule, weights)
        used = [trials for trials, share in zip(chosen, weights, strict=True) if share > 0]
        return QuiltModel(
            models=[trial.model for trials in used for trial in trials],
            shares=[float(w) / n_folds for w in weights if 0 < w < 1 for _ in range(n_folds)],
            trainings=[trial.epochs for trials in used for trial in trials],
            trials=ordered,
            selection=selection,
        )

    def _choose_winners(
        self, history: History, current: Segment, of_folds: Sequence[TrialsByPart]
    ) -> list[Trial[Model]]:
        """Return the trial of each fold that is its model, where nothing is blended."""
        if self.judge is not None and history:
            validations = [task.validation for task in self.tasks(history, current)]
            return _choose_by_score(self.judge, of_folds, validations)
        return [best(parts["selected"]) for parts in of_folds]

    def _mix(
        self, history: History, current: Segment, of_folds: Sequence[TrialsByPart]
    ) -> tuple[list[list[Trial[Model]]], NDArray[np.float64]]:
        """Return the trials of all folds for each of `PARTS`, and the shares of these."""
        validations = [task.validation for task in self.tasks(history, current)]
        borrowed = borrow_rows(history, current)
        weight = np.concatenate([self._row_weights(validations), borrowed.weight])
        chosen = _choose(of_folds, validations, borrowed, weight, self.judge)
        answers = [_likelihood(trials, validations, borrowed) for trials in chosen]
        coverage = _coverage(history, current)
        openings = Openings.of(history if self.checks_openings else [], current)
        weights = blend_weights(
            np.stack(answers),
            weight,
            coverage,
            len(borrowed),
            open_variance=openings.open_variance(
                np.stack([_mean_likelihood(trials, openings.rows) for trials in chosen])
            ),
        )
        if self.judge is not None:
            weights = _blend_by_score(self.judge, weights, chosen, validations)
        return chosen, weights

    def _row_weights(self, parts: Sequence[Segment]) -> NDArray[np.float64]:
        """Return the weights of rows one after the other, without those of their classes."""
        weight = np.concatenate([part.weight for part in parts]).astype(np.float64)
        if not self.class_weights:
            return weight
        of_class = np.array(self.class_weights)[np.concatenate([part.y for part in parts])]
        np.divide(weight, of_class, out=weight, where=of_class > 0)
        return weight

    def count_trials(self, history: History) -> int:
        """How many trials there will be, over all folds."""
        return self.n_folds * sum(s.n_trials for s in self._searches(history).values())

    def _searches(self, history: History) -> dict[str, Search]:
        """Return the search for each part; a single trial where no bound could differ."""
        selected: Search = Shared((DISPARITY_RANGE[1],))
        if history and self.rule.use_disparity:
            selected = self.search
        if not history or not self.blend:
            return {"selected": selected}
        searches: dict[str, Search] = {"all": self.everything, "selected": selected}
        if 0.0 not in getattr(selected, "candidates", ()):  # which lets nothing pass
            searches["current"] = Shared((0.0,))
        return searches

    def start(self, task: Task, fold: int, n_classes: int) -> Callable[[], Model]:
        """Return what makes the model that every trial of a fold starts from."""
        if self.previous:
            tensors = self.previous[fold % len(self.previous)].tensors()
            return lambda: self.learner.restore(tensors, n_classes)
        return lambda: self.learner.start(task.current.X, n_classes, task.seed)


def _calibrated(
    trials: Sequence[FoldTrial], class_weights: NDArray[np.float64]
) -> tuple[FoldTrial, ...]:
    """Copy the trials, with models that undo what the class weights did to their answers."""
    offsets = -np.log(np.where(class_weights > 0, class_weights, 1.0))
    twins = {id(one.trial.model): one.trial.model.copy() for one in trials}  # some share a model
    for twin in twins.values():
        twin.add_to_logits(offsets)
    return tuple(
        one._replace(trial=replace(one.trial, model=twins[id(one.trial.model)])) for one in trials
    )


def _coverage(history: History, current: Segment) -> float:
    """Return the share of past rows whose class the current segment has."""
    seen = np.unique(current.y)
    return sum(int(np.isin(s.y, seen).sum()) for s in history) / sum(map(len, history))


def _choose(
    of_folds: Sequence[TrialsByPart],
    validations: Sequence[Segment],
    borrowed: Segment,
    weight: NDArray[np.float64],
    judge: Judge | None,
) -> list[list[Trial[Model]]]:
    """Return the trials of all folds that make each part of a blend, in the order of `PARTS`.

    Where the folds tried the same candidates, each also listens to the rows of the others.
    """
    selected = [best(parts["selected"]) for parts in of_folds]
    options = same_candidates(of_folds)
    if judge is not None:
        selected = _choose_by_score(judge, of_folds, validations)
    elif options:
        answers = [_likelihood(trials, validations, borrowed) for trials in options]
        likelihood = np.stack(answers)
        fold_of = np.repeat(np.arange(len(validations)), [len(rows) for rows in validations])
        for fold in range(len(validations)):
            heard = weight.copy()
            heard[: len(fold_of)][fold_of != fold] *= OTHER_FOLDS
            selected[fold] = options[choose_candidate(likelihood, heard, len(borrowed))][fold]
    return by_part(of_folds, selected)


def by_part(
    of_folds: Sequence[TrialsByPart], selected: list[Trial[Model]]
) -> list[list[Trial[Model]]]:
    """Return the trials of all folds for each of `PARTS`, of which those selected were chosen."""
    everything = [best(parts["all"]) for parts in of_folds]
    current = [
        next(t for t in (*parts["current"], *parts["selected"]) if t.disparity_max == 0)
        for parts in of_folds
    ]
    return [everything, selected, current]


def same_candidates(
    of_folds: Sequence[TrialsByPart],
) -> list[list[Trial[Model]]]:
    """Return the trials of each candidate in all folds; none if the folds tried different ones."""
    by_candidate = [{t.candidate: t for t in parts["selected"]} for parts in of_folds]
    if len({tuple(trials) for trials in by_candidate}) > 1:
        return []
    return [list(trials) for trials in zip(*map(dict.values, by_candidate), strict=True)]


def _choose_by_score(
    judge: Judge,
    of_folds: Sequence[TrialsByPart],
    validations: Sequence[Segment],
) -> list[Trial[Model]]:
    """Choose the trial of each fold by score: one candidate for all, if they tried the same."""

    def choose(
        options: Sequence[Sequence[Trial[Model]]], rows: Sequence[Segment]
    ) -> Sequence[Trial[Model]]:
        known = [o for o in options if all(t.finished and t.validation_loss < inf for t in o)]
        y = np.concatenate([part.y for part in rows])
        scores = [judge.scores(y, _chances(trials, rows)) for trials in known]
        return known[choose_by_score(np.array(scores))]

    options = same_candidates(of_folds)
    if options:
        return [*choose(options, validations)]
    return [
        choose([[trial] for trial in parts["selected"]], [rows])[0]
        for parts, rows in zip(of_folds, validations, strict=True)
    ]


def _blend_by_score(
    judge: Judge,
    mixture: NDArray[np.float64],
    chosen: Sequence[Sequence[Trial[Model]]],
    validations: Sequence[Segment],
) -> NDArray[np.float64]:
    """Return the weights of `PARTS`: one alone where it clearly scores higher than the mixture."""
    chances = np.stack([_chances(trials, validations) for trials in chosen])
    y = np.concatenate([rows.y for rows in validations])
    options = [*np.eye(len(PARTS)), mixture]
    scores = [judge.scores(y, np.tensordot(shares, chances, axes=1)) for shares in options]
    weights: NDArray[np.float64] = options[replace_mixture(np.array(scores))]
    return weights


def _chances(trials: Sequence[Trial[Model]], validations: Sequence[Segment]) -> NDArray[np.float64]:
    """Predict, with each fold's model, the rows that it was not trained on, (n, C)."""
    answers = (t.model.predict_proba(v.X) for t, v in zip(trials, validations, strict=True))
    return np.concatenate([*answers]).astype(np.float64)


def _likelihood(
    trials: Sequence[Trial[Model]], validations: Sequence[Segment], borrowed: Segment
) -> NDArray[np.float64]:
    """Return what each fold's model gives to the true class of the rows it was not trained on.

    Borrowed rows come last; theirs is the mean over folds.
    """
    own = [_of_truth(trial, rows) for trial, rows in zip(trials, validations, strict=True)]
    if not len(borrowed):
        return np.concatenate(own)
    return np.concatenate([*own, _mean_likelihood(trials, borrowed)])


def _mean_likelihood(trials: Sequence[Trial[Model]], rows: Segment) -> NDArray[np.float64]:
    """Return what the models of all folds give to the true class of each row on average."""
    mean: NDArray[np.float64] = np.mean([_of_truth(trial, rows) for trial in trials], axis=0)
    return mean


def _of_truth(trial: Trial[Model], rows: Segment) -> NDArray[np.float64]:
    of_truth = trial.model.predict_proba(rows.X)[np.arange(len(rows)), rows.y]
    chances: NDArray[np.float64] = of_truth.astype(np.float64)
    return chances


def _try_bounds(
    shared: tuple[Quilt, History, Segment], item: tuple[int, str, Search]
) -> Iterator[Trial[Model]]:
    """Yield the trials of one search for one fold."""
    quilt, history, current = shared
    fold, part, search = item
    task = quilt.task(history, current, fold, part)
    start = quilt.start(task, fold, quilt.count_classes(history, current))
    with one_blas_thread():
        yield from search.trials(task, start)


#: The settings of the paper: 3 random and 3 guided trials, one split, every row every epoch.
PAPER = Quilt(search=Bayes())

#: What measures best on streams of many kinds (benchmarks/README.md).
DEFAULT = Quilt(
    learner=MLP(learning_rate=None, batch_size=64),
    n_folds=4,
    patience=6,
    sampling=Sampling(score_rows=256, score_every=3, epoch_rows=2048, averaging=0.8),
    search=Shared(CANDIDATES, relative=True),
    blend=True,
)
