"""What Quilt's two estimators share: rows, segments, the encoder, the search, and the file.

`QuiltClassifier` and `QuiltRegressor` are two classes on this one. It knows how rows of any kind
become segments of a matrix, how a method is made of the parameters, and what is kept of a fit. What
a target is, what is predicted, and what a model is judged by is theirs.
"""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, replace
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rich.console import Console
from rich.progress import track
from sklearn.base import BaseEstimator
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from driftquilt.core.loss import LOSSES
from driftquilt.core.sampling import Sampling
from driftquilt.core.segment import Segment, count_rows, cut
from driftquilt.core.training import Rule
from driftquilt.data.arrow import ArrowFrame
from driftquilt.data.calendar import sources
from driftquilt.data.column_types import AMOUNT_NOTE, find_amount
from driftquilt.data.encoder import Encoder
from driftquilt.data.frame import Frame
from driftquilt.data.rows import Features, Rows
from driftquilt.errors import InputError
from driftquilt.learners.base import Learner, Model
from driftquilt.learners.mlp import MLP
from driftquilt.quilt.executor import ENGINES, Executor, Threads, find_executor
from driftquilt.quilt.explanation import Selection
from driftquilt.quilt.method import DEFAULT, PAPER, FoldTrial, Quilt, QuiltModel, TriedBound
from driftquilt.quilt.metrics import Metric
from driftquilt.quilt.model_file import (
    REGRESSION,
    pack,
    read_model,
    starts_alike,
    unpack,
    write_model,
)
from driftquilt.search.base import Search
from driftquilt.search.shared import Shared

__all__ = [
    "DEFAULT_PRESET",
    "PAPER_PRESET",
    "QuiltEstimator",
    "RemoteHistory",
    "check_parameters",
    "keep_features",
    "to_matrix",
]

_SEARCHES = {"shared": DEFAULT.search, "bayes": PAPER.search}


class Preset(NamedTuple):
    """A method's settings, as parameters of an estimator."""

    search: str
    n_folds: int
    max_epochs: int
    patience: int
    hidden_units: int
    learning_rate: float | None
    batch_size: int
    score_rows: int | None
    score_every: int
    epoch_rows: int | None
    averaging: float
    blend: bool
    encode: str

    @classmethod
    def of(cls, search: str, quilt: Quilt, encode: str) -> Preset:
        assert isinstance(quilt.learner, MLP)  # noqa: S101
        training = (quilt.n_folds, quilt.max_epochs, quilt.patience)
        learner, sampling = astuple(quilt.learner), astuple(quilt.sampling)
        return cls._make((search, *training, *learner, *sampling, quilt.blend, encode))


DEFAULT_PRESET = Preset.of("shared", DEFAULT, "robust")
PAPER_PRESET = Preset.of("bayes", PAPER, "standard")


class RemoteHistory(Protocol):
    """A history of which an estimator gets only the rows to train on (`integrations.ray`)."""

    @property
    def n_rows(self) -> Sequence[int]:
        """Rows that each segment really has, the current one last."""

    def attach(
        self,
        quilt: Quilt,
        encoder: Encoder,
        classes: NDArray[Any],
        weights: NDArray[np.float64] | None,
    ) -> Quilt:
        """Return the method that scores all rows where they are."""


class QuiltEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator for the present that trains on the past segments which still hold."""

    task: ClassVar[str]
    _method: ClassVar[type[Quilt]] = Quilt

    #: Whether most of the current segment is still to come, as in a file, and its first rows may
    #: mislead. A stream trains again soon, and its panel is cautious by itself.
    checks_openings = True

    selection_: Selection
    model_: QuiltModel
    encoder_: Encoder | None
    learner_: Learner
    search_: list[TriedBound]
    disparity_max_: float

    def __init__(
        self,
        *,
        search: str | Search,
        disparity_max: float | None,
        n_folds: int,
        blend: bool,
        use_disparity: bool,
        use_gain: bool,
        init: str,
        hidden_units: int,
        learning_rate: float | None,
        batch_size: int,
        encode: str | bool,
        max_epochs: int,
        patience: int,
        score_rows: int | None,
        score_every: int,
        epoch_rows: int | None,
        averaging: float,
        engine: str | Executor,
        n_jobs: int | None,
        progress: bool,
        random_state: int | np.random.RandomState | None,
    ) -> None:
        self.search = search
        self.disparity_max = disparity_max
        self.n_folds = n_folds
        self.blend = blend
        self.use_disparity = use_disparity
        self.use_gain = use_gain
        self.init = init
        self.hidden_units = hidden_units
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.encode = encode
        self.max_epochs = max_epochs
        self.patience = patience
        self.score_rows = score_rows
        self.score_every = score_every
        self.epoch_rows = epoch_rows
        self.averaging = averaging
        self.engine = engine
        self.n_jobs = n_jobs
        self.progress = progress
        self.random_state = random_state

    @classmethod
    def paper(cls, **settings: Any) -> Self:
        """Make an estimator with the paper's settings; every epoch looks at every row."""
        return cls(**{**PAPER_PRESET._asdict(), **settings})

    def fit(
        self,
        X: Any,
        y: Any,
        segments: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Select past segments and train.

        `segments` is the segment that each row belongs to: integers, strings, dates, anything
        that can be compared. They count in order of first appearance; the last one is the
        current segment. None means that all rows are current. Rows of weight 0 count as if
        they were not there, but their classes are known. A `pyarrow.Table`, which may be a
        mapped file, is read in place; other tables are copied.
        """
        check_parameters(self.get_params(deep=False))
        return self.fit_rows(self._read(X, y, segments, sample_weight))

    def fit_rows(self, seen: Rows, remote: RemoteHistory | None = None) -> Self:
        """Select and train on rows that were read before.

        With `remote`, `seen` has only the rows that a training may draw from.
        """
        raise NotImplementedError

    def make_learner(self) -> Learner:
        """Make the learner that is trained."""
        raise NotImplementedError

    def pack_target(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return tensors and a record of what a fit knows of the target, for the model file."""
        raise NotImplementedError

    def unpack_target(self, tensors: Mapping[str, NDArray[Any]], record: dict[str, Any]) -> int:
        """Set what `pack_target` returned; return the number of outputs of a net."""
        raise NotImplementedError

    def forget_rows(self) -> Self:
        """Let go of the rows seen, which only `partial_fit` needs; saves their memory."""
        if hasattr(self, "_seen"):
            del self._seen
        return self

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write weights, encoding, settings and explanation to one safetensors file.

        The rows seen are not part of it.
        """
        check_is_fitted(self)
        write_model(path, *pack(self))

    @classmethod
    def load(cls, path: str | os.PathLike[str], learner: Learner | None = None) -> Self:
        """Read a model that `save` wrote; a torch model needs its learner to be given again."""
        return unpack(cls, *read_model(path), learner, os.fspath(path))

    def explain(self) -> str:
        """One sentence per past segment: what became of it, and why."""
        check_is_fitted(self)
        return self.selection_.explain()

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    @property
    def sampling(self) -> Sampling:
        """Which rows a training looks at."""
        return Sampling(self.score_rows, self.score_every, self.epoch_rows, self.averaging)

    @property
    def n_threads(self) -> int:
        """How many trainings may run at a time on threads of this process."""
        # Other learners may want every core, and torch's seed is that of the process.
        return self.n_jobs or os.cpu_count() or 1 if isinstance(self.make_learner(), MLP) else 1

    def choose_executor(self, effort: float) -> Executor:
        """Find what runs the trainings; `effort` is how many numbers they look at."""
        if isinstance(self.engine, Threads):
            return self.engine if isinstance(self.make_learner(), MLP) else Threads(1)
        on_threads = self.engine in ("local", "auto")
        n_workers = self.n_threads if on_threads else self.n_jobs or os.cpu_count() or 1
        return find_executor(self.engine, n_workers, effort)

    def example_row(self) -> NDArray[Any]:
        """Make a row like those that the models were trained on."""
        if self.encoder_ is None:
            return np.ones((1, *self.row_shape_), self.row_dtype_)
        return np.ones((1, self.encoder_.width), np.float32)

    def _read(self, X: Any, y: Any, segments: Any, sample_weight: Any) -> Rows:
        encode = self.encode is not False
        return Rows.read(
            X, y, segments, sample_weight, encode=encode, numbers=self.task == REGRESSION
        )

    def _join(self, rows: Rows, *, has_segments: bool) -> Rows:
        """Return the rows seen so far and these; without segments they continue the last one."""
        seen = getattr(self, "_seen", None)
        if seen is None and hasattr(self, "model_"):
            raise InputError(
                "this model was loaded from a file or has forgotten its rows, so it has weights "
                "but no rows; call fit with the past rows and the new ones together"
            )
        if seen is not None and not has_segments:
            rows = replace(rows, segments=[seen.segments[-1]])
        return rows if seen is None else seen.append(rows)

    def _train(
        self,
        rows: Rows,
        n_outputs: int,
        attach: Callable[[Quilt, Encoder], Quilt] | None = None,
        n_rows: Sequence[int] | None = None,
        **of_kind: Any,
    ) -> _Trained:
        """Select and train; `of_kind` are settings of the method, of this kind of target.

        `attach` gives the method that scores rows elsewhere, and `n_rows` what segments have there.
        """
        encoder, learner = self._fit_encoder(rows), self.make_learner()
        previous = self._previous(rows, encoder, learner)
        if previous:  # its weights mean what its own encoding made of the rows
            encoder = self.encoder_
        quilt = replace(self._quilt(learner, previous, n_outputs), **of_kind)
        n_columns = _width(rows.features, encoder)
        # A training on samples is short, however long the past is.
        effort = 0 if quilt.sampling.has_both else len(rows.y) * n_columns
        quilt = replace(quilt, executor=self.choose_executor(effort))
        if attach is not None and encoder is not None:
            quilt = attach(quilt, encoder)
        history, current = self._cut(rows, encoder, learner, n_columns)
        trials = self._watch(quilt.trials(history, current), quilt.count_trials(history))
        model = quilt.conclude(history, current, trials)
        counts = count_rows(rows.codes, len(rows.segments)).tolist() if n_rows is None else n_rows
        *n_past, n_current = counts
        selection = replace(model.selection, n_rows=tuple(n_past), n_current=n_current)
        return _Trained(
            encoder, learner, replace(model, selection=selection), quilt, history, current
        )

    def _fit_encoder(self, rows: Rows) -> Encoder | None:
        """Fit the encoder on the rows that a training may draw from."""
        if isinstance(rows.features, np.ndarray):
            return None
        n_columns = len(rows.features.columns)
        drawn = self.sampling.rows_to_keep(rows.codes, len(rows.segments), n_columns)
        encoder = Encoder.fit(rows.features, drawn, robust=self.encode == "robust")
        _warn_of_amounts(encoder)
        return encoder

    def _cut(
        self, rows: Rows, encoder: Encoder | None, learner: Learner, n_columns: int
    ) -> tuple[list[Segment], Segment]:
        """Cut rows into segments; of very long ones, the rows that a training draws from."""
        y, codes, weight = rows.y, rows.codes, rows.weight
        drawn = self.sampling.rows_to_keep(codes, len(rows.segments), n_columns)
        if drawn is not None:
            y, codes, weight = y[drawn], codes[drawn], weight[drawn]
        X = to_matrix(rows.features, encoder, learner, drawn)
        weight = (weight / rows.weight.mean()).astype(np.float32)
        return cut(X, y, codes, rows.segments, weight)

    def _as_trained(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Rows that are not encoded, if they are like those trained on; ints do as floats."""
        if rows.shape[1:] != self.row_shape_:
            raise InputError(
                f"X has rows of shape {rows.shape[1:]}, but the model was trained on rows of "
                f"shape {self.row_shape_}"
            )
        if self.row_dtype_.kind == "f":
            return rows.astype(np.float32, copy=False)
        if rows.dtype.kind == "f":
            raise InputError(
                f"X holds {rows.dtype}, but the model was trained on whole numbers "
                f"({self.row_dtype_}); give it those"
            )
        return rows

    def _knows(self, rows: Rows) -> bool:
        """Whether the target means to the model of the last fit what it means here."""
        raise NotImplementedError

    def _previous(self, rows: Rows, encoder: Encoder | None, learner: Learner) -> Sequence[Model]:
        """Return the models to start from: none, or those of the last fit where they still fit."""
        if self.init != "previous" or not hasattr(self, "model_"):
            return ()
        if not self._knows(rows):
            return ()
        if isinstance(rows.features, np.ndarray):
            same_rows = self.encoder_ is None and self.row_shape_ == rows.features.shape[1:]
        else:
            same_rows = (
                encoder is not None
                and self.encoder_ is not None
                and encoder.feature_names_out == self.encoder_.feature_names_out
            )
        models = self.model_.models
        return models if same_rows and starts_alike(learner, self.example_row(), models[0]) else ()

    def _quilt(self, learner: Learner, previous: Sequence[Model], n_classes: int) -> Quilt:
        search = _SEARCHES[self.search] if isinstance(self.search, str) else self.search
        if self.disparity_max is not None:
            search = Shared((float(self.disparity_max),))
        return self._method(
            learner=learner,
            n_folds=self.n_folds,
            max_epochs=self.max_epochs,
            patience=self.patience,
            seed=int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max)),
            sampling=self.sampling,
            n_classes=n_classes,
            search=search,
            rule=Rule(self.use_disparity, self.use_gain),
            previous=previous,
            blend=self.blend,
            checks_openings=self.checks_openings,
        )

    def _watch(self, trials: Iterator[FoldTrial], n_trials: int) -> Iterable[FoldTrial]:
        if not self.progress:
            return trials
        console = Console(stderr=True)
        return track(trials, "Searching the disparity bound", total=n_trials, console=console)

    def _keep(self, seen: Rows, trained: _Trained) -> None:
        for stale in ("feature_names_in_", "row_shape_", "row_dtype_"):
            if hasattr(self, stale):
                delattr(self, stale)
        model, learner = trained.model, trained.learner
        self.model_ = model
        self.learner_ = learner
        self.selection_ = model.selection
        self.search_ = model.tried_bounds()
        self.disparity_max_ = model.selection.disparity_max
        self.encoder_ = trained.encoder
        self._seen = seen
        if not isinstance(seen.features, np.ndarray):
            keep_features(self, seen.features)
        else:
            self.n_features_in_, self.row_shape_ = seen.features.shape[1], seen.features.shape[1:]
            is_table = isinstance(learner, MLP)
            self.row_dtype_ = np.dtype(np.float32) if is_table else seen.features.dtype


class _Trained(NamedTuple):
    """What a training made, and what it was made of."""

    encoder: Encoder | None
    learner: Learner
    model: QuiltModel
    quilt: Quilt
    history: list[Segment]
    current: Segment


def _warn_of_amounts(encoder: Encoder) -> None:
    """Warn of columns of text that look like numbers, of which little is learned as text."""
    for name, categories in encoder.texts.items():
        example = find_amount([text for text in categories if text is not None])
        if example is not None:
            warnings.warn(f"column {name!r} is {AMOUNT_NOTE.format(repr(example))}", stacklevel=6)


def keep_features(estimator: Any, features: Frame | ArrowFrame) -> None:
    """Set what scikit-learn wants to know of the columns that an estimator was fitted on."""
    names = sources(features.columns)
    estimator.n_features_in_ = len(names)
    if features.named:
        estimator.feature_names_in_ = np.array(names, dtype=object)


def _width(features: Features, encoder: Encoder | None) -> int:
    """Count the numbers in a row."""
    if encoder is not None:
        return encoder.width
    assert isinstance(features, np.ndarray)  # noqa: S101
    return math.prod(features.shape[1:])


def to_matrix(
    rows: Features,
    encoder: Encoder | None,
    learner: Learner,
    drawn: NDArray[np.intp] | None = None,
) -> NDArray[Any]:
    """Return rows as the learner takes them, all or those drawn."""
    if not isinstance(rows, np.ndarray):
        assert encoder is not None  # noqa: S101
        return encoder.transform(rows, drawn)
    if drawn is not None:
        rows = rows[drawn]
    if not isinstance(learner, MLP):
        return rows
    if rows.ndim != 2:  # noqa: PLR2004
        raise InputError(
            f"X has shape {rows.shape}, but the default learner takes two-dimensional tables; "
            "give a learner such as TorchLearner(module) for other rows"
        )
    return rows.astype(np.float32, copy=False)


def _is_count(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 1


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_flag(value: Any) -> bool:
    return isinstance(value, bool)


def _is_search(value: Any) -> bool:
    if isinstance(value, str):
        return value in ("shared", "bayes")
    needed = ("trials", "split", "n_trials")
    has_all = not isinstance(value, type) and all(hasattr(value, name) for name in needed)
    return has_all and value.n_trials >= 1


def _is_engine(value: Any) -> bool:
    if isinstance(value, str):
        return value in ENGINES
    methods = (getattr(value, name, None) for name in ("run", "place"))
    return not isinstance(value, type) and all(map(callable, methods))


def _is_learner(value: Any) -> bool:
    return not isinstance(value, type) and hasattr(value, "start") and hasattr(value, "restore")


def _is_weighting(value: Any) -> bool:
    if isinstance(value, Mapping):
        return all(_is_number(weight) and 0 <= weight < math.inf for weight in value.values())
    return isinstance(value, str) and value == "balanced"


def _is_levels(value: Any) -> bool:
    if not isinstance(value, Sequence | np.ndarray) or isinstance(value, str) or not len(value):
        return False
    return all(_is_number(v) and 0 < v < 1 for v in value) and [*sorted({*value})] == [*value]


def _is_seed(value: Any) -> bool:
    if isinstance(value, Integral) and not isinstance(value, bool):
        return 0 <= int(value) < 2**32
    return isinstance(value, np.random.RandomState) or value is np.random


_COUNT = (_is_count, "a whole number of at least 1")
_COUNT_OR_ALL = (lambda v: v is None or _is_count(v), "None or a whole number of at least 1")
_FLAG = (_is_flag, "True or False")

PARAMETERS: dict[str, tuple[Callable[[Any], bool], str]] = {
    "search": (
        _is_search,
        "'shared', 'bayes' or a search object of at least one trial",
    ),
    "disparity_max": (
        lambda v: v is None or (_is_number(v) and v >= 0),
        "None or a number of at least 0",
    ),
    "n_folds": _COUNT,
    "blend": _FLAG,
    "use_disparity": _FLAG,
    "use_gain": _FLAG,
    "init": (
        lambda v: isinstance(v, str) and v in ("random", "previous"),
        "'random' or 'previous'",
    ),
    "hidden_units": _COUNT,
    "learning_rate": (
        lambda v: v is None or (_is_number(v) and 0 < v < 1),
        "None or a number between 0 and 1",
    ),
    "batch_size": _COUNT,
    "learner": (
        lambda v: v is None or _is_learner(v),
        "None or a learner, such as TorchLearner(module)",
    ),
    "encode": (
        lambda v: v is False or (isinstance(v, str) and v in ("robust", "standard")),
        "'robust', 'standard' or False",
    ),
    "loss": (lambda v: isinstance(v, str) and v in LOSSES, f"one of {', '.join(LOSSES)}"),
    "quantiles": (_is_levels, "rising numbers between 0 and 1"),
    "class_weight": (
        lambda v: v is None or _is_weighting(v),
        "None, 'balanced' or a dict of weights, each 0 or more, by label",
    ),
    "scoring": (
        lambda v: v is None or isinstance(v, str | Mapping | Metric) or callable(v),
        "None, the name of a metric, a cost matrix or a scorer",
    ),
    "max_epochs": _COUNT,
    "patience": _COUNT,
    "score_rows": _COUNT_OR_ALL,
    "score_every": _COUNT,
    "epoch_rows": _COUNT_OR_ALL,
    "averaging": (lambda v: _is_number(v) and 0 <= v < 1, "a number from 0 to below 1"),
    "engine": (_is_engine, "'local', 'processes', 'ray', 'auto' or an executor object"),
    "n_jobs": _COUNT_OR_ALL,
    "progress": _FLAG,
    "random_state": (
        lambda v: v is None or _is_seed(v),
        "None, a whole number from 0 to 2**32 - 1 or a numpy RandomState",
    ),
}


def check_parameters(parameters: Mapping[str, Any]) -> None:
    """Raise InputError for the first parameter that cannot be used.

    >>> check_parameters({"n_folds": 0})
    Traceback (most recent call last):
    driftquilt.errors.InputError: n_folds must be a whole number of at least 1, but got 0
    """
    for name, (is_good, rule) in PARAMETERS.items():
        if name in parameters and not is_good(parameters[name]):
            raise InputError(f"{name} must be {rule}, but got {parameters[name]!r}")
