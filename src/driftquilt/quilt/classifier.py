"""QuiltClassifier: scikit-learn's contract over `quilt.method`.

It reads tables of any kind, fits the encoding on the rows it is given, cuts them into
segments, lets Quilt select and train, and keeps the outcome with its explanation.

>>> import numpy as np
>>> from driftquilt import QuiltClassifier
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(660, 2))
>>> month = np.repeat(["April", "May", "June"], [300, 300, 60])
>>> y = np.where((X[:, 0] > 0) ^ (month == "April"), "buys", "leaves")  # April: another world
>>> clf = QuiltClassifier(hidden_units=32, random_state=0).fit(X, y, segments=month)
>>> clf.predict([[2.0, 0.0], [-2.0, 0.0]])
array(['buys', 'leaves'], dtype='<U6')
>>> {use.name: use.used for use in clf.selection_}
{'April': False, 'May': True}
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import astuple, replace
from numbers import Integral, Real
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from rich.console import Console
from rich.progress import track
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_is_fitted

from driftquilt.core.sampling import Sampling
from driftquilt.core.segment import Segment, count_rows, cut
from driftquilt.core.selection import Rule
from driftquilt.data.arrow import ArrowFrame
from driftquilt.data.calendar import sources
from driftquilt.data.encoder import Encoder
from driftquilt.data.frame import Frame, read_frame
from driftquilt.data.labels import codes_by_name, warn_of_order
from driftquilt.data.rows import Features, Rows, read_array
from driftquilt.errors import InputError
from driftquilt.learners.base import Learner, Model
from driftquilt.learners.mlp import MLP
from driftquilt.quilt.blending import Judge
from driftquilt.quilt.executor import ENGINES, Executor, Threads, find_executor, one_blas_thread
from driftquilt.quilt.explanation import Selection
from driftquilt.quilt.method import DEFAULT, PAPER, FoldTrial, Quilt, QuiltModel
from driftquilt.quilt.metrics import Metric, Scoring, find_metric
from driftquilt.quilt.model_file import pack, read_model, starts_alike, unpack, write_model
from driftquilt.search.base import Search
from driftquilt.search.shared import Shared
from driftquilt.text import suggest

__all__ = [
    "QuiltClassifier",
    "RemoteHistory",
    "check_parameters",
    "class_weights",
    "keep_features",
    "refuse_one_class",
    "select_segments",
    "to_matrix",
]

_SEARCHES = {"shared": DEFAULT.search, "bayes": PAPER.search}


class _Preset(NamedTuple):
    """A method's settings, as parameters of the classifier."""

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
    def of(cls, search: str, quilt: Quilt, encode: str) -> _Preset:
        assert isinstance(quilt.learner, MLP)  # noqa: S101
        training = (quilt.n_folds, quilt.max_epochs, quilt.patience)
        learner, sampling = astuple(quilt.learner), astuple(quilt.sampling)
        return cls._make((search, *training, *learner, *sampling, quilt.blend, encode))


_DEFAULT = _Preset.of("shared", DEFAULT, "robust")
_PAPER = _Preset.of("bayes", PAPER, "standard")


class RemoteHistory(Protocol):
    """A history of which the classifier gets only the rows to train on (`integrations.ray`)."""

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


class QuiltClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A classifier for the present that trains on the past segments which still hold.

    Parameters
    ----------
    search : "shared", "bayes" or a Search
        How the disparity bound is found: all candidates in one pass, or the paper's random
        and guided trials.
    disparity_max : float, optional
        A bound to use without searching.
    n_folds : int
        1 splits the current segment once, its first half for training and its second for
        validation, as in the paper. With more, its parts take turns at validating and the
        models' probabilities are averaged.
    blend : bool
        Whether the model is a mixture of three: trained on all data, on the selected segments and
        on the current one alone, weighted by what they say of current rows that they were not
        trained on. False gives the selection alone.
    use_disparity, use_gain : bool
        Switch either test of a segment off.
    init : "random" or "previous"
        Start every training from random weights, or from those of the previous fit where
        classes and features are still the same.
    hidden_units, learning_rate, batch_size
        Of the default learner, a net with one hidden layer. A learning rate of None goes by the
        number of columns.
    learner : Learner, optional
        What is trained instead, such as `TorchLearner(module)`.
    encode : "robust", "standard" or False
        How columns are imputed, encoded and scaled, fitted on the rows given to `fit`. "standard"
        scales numbers by mean and deviation. "robust" does so too, but encodes columns with heavy
        tails by rank, and of text gives only the 40 most frequent values a column, not 256. With
        False, arrays of numbers of any shape go to the learner as they are.
    class_weight : dict or "balanced", optional
        Weights of classes, by label or its text: what a wrong answer about each costs. Training and
        `predict` go by them; `predict_proba` gives the probabilities of the rows as they are.
    scoring : str, dict or callable, optional
        What chooses the bound and the blend among finished trainings: the name of a scikit-learn
        scorer, "precision_at_5%", a cost matrix or a scorer, by its score of current rows that
        the models were not trained on; None is the log loss, which also counts a class with few
        current rows by past ones. Trainings minimise the log loss whatever it is, and `predict`
        does not go by it; see `threshold_`. A scorer is code and is not saved.
    max_epochs, patience : int
        Training ends after `max_epochs`, or after `patience` epochs without progress.
    score_rows : int, optional
        How many rows of each past segment are looked at to score it, a new sample each time;
        None looks at all.
    score_every : int
        Segments are scored and selected again every so many epochs.
    epoch_rows : int, optional
        How many rows an epoch trains on: those of the current segment and a sample of the
        selected ones, a new sample each time; None takes all.
    averaging : float
        How much of the weights' running average an epoch keeps, from 0 (no average) to below 1.
    engine : "local", "processes", "ray", "auto" or an Executor
        Where folds are trained, and bounds that can be tried on their own: on threads of this
        process (the default learner only; others go one after the other), in processes, or on a
        Ray cluster (extra `ray`); "auto" is Ray where a cluster is at hand and pays for itself,
        else local. The outcome is the same, bit for bit.
    n_jobs : int, optional
        Cores of this machine to use; None uses all.
    progress : bool
        Draw a bar while the bound is searched.
    random_state : int, optional
        Makes everything repeatable, bit for bit on one machine.

    Attributes
    ----------
    selection_ : Selection
        Per past segment: its weight in the model, used or not, its scores and their curves;
        `explain()` says why, `composition()` what the model is made of, `to_frame()` gives a
        table.
    disparity_max_ : float
        The bound found, averaged over folds.
    search_ : list of TriedBound
        Every bound that was tried, with its validation loss.
    model_ : QuiltModel
        The trained models, and every trial with its epochs.
    encoder_ : Encoder or None
        How columns become numbers.
    learner_ : Learner
        What was trained.
    class_weights_ : ndarray or None
        The weight of each of `classes_`.
    threshold_ : float or None
        Of two classes, the probability from which on `predict` answers the second one; None for
        the most probable class. Set it after `fit`, which forgets it; `save` keeps it.

    """

    def __init__(
        self,
        *,
        search: str | Search = _DEFAULT.search,
        disparity_max: float | None = None,
        n_folds: int = _DEFAULT.n_folds,
        blend: bool = _DEFAULT.blend,
        use_disparity: bool = True,
        use_gain: bool = True,
        init: str = "random",
        hidden_units: int = _DEFAULT.hidden_units,
        learning_rate: float | None = _DEFAULT.learning_rate,
        batch_size: int = _DEFAULT.batch_size,
        learner: Learner | None = None,
        encode: str | bool = _DEFAULT.encode,
        class_weight: Mapping[Any, float] | str | None = None,
        scoring: Scoring | None = None,
        max_epochs: int = _DEFAULT.max_epochs,
        patience: int = _DEFAULT.patience,
        score_rows: int | None = _DEFAULT.score_rows,
        score_every: int = _DEFAULT.score_every,
        epoch_rows: int | None = _DEFAULT.epoch_rows,
        averaging: float = _DEFAULT.averaging,
        engine: str | Executor = "local",
        n_jobs: int | None = None,
        progress: bool = False,
        random_state: int | np.random.RandomState | None = None,
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
        self.learner = learner
        self.encode = encode
        self.class_weight = class_weight
        self.scoring = scoring
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
        """Make a classifier with the paper's settings; every epoch looks at every row."""
        return cls(**{**_PAPER._asdict(), **settings})

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
        return self.fit_rows(
            Rows.read(X, y, segments, sample_weight, encode=self.encode is not False)
        )

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: ArrayLike | None = None,
        segments: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add a batch to the rows seen so far, then select and train again.

        Rows whose segment is known join it, others open new segments; without `segments` the
        batch continues the last one. The outcome is that of `fit` on all batches together.
        """
        check_parameters(self.get_params(deep=False))
        seen = getattr(self, "_seen", None)
        if seen is None and hasattr(self, "model_"):
            raise InputError(
                "this model was loaded from a file or has forgotten its rows, so it has weights "
                "but no rows; call fit with the past rows and the new ones together"
            )
        rows = Rows.read(X, y, segments, sample_weight, encode=self.encode is not False)
        if classes is not None:
            rows = rows.declare(classes)
        if seen is not None and segments is None:
            rows = replace(rows, segments=[seen.segments[-1]])
        return self.fit_rows(rows if seen is None else seen.append(rows))

    def forget_rows(self) -> Self:
        """Let go of the rows seen, which only `partial_fit` needs; saves their memory."""
        if hasattr(self, "_seen"):
            del self._seen
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row; with class weights, that of the highest product.

        With `threshold_`, it is the second of two classes from that probability on.
        """
        return self.answers(self.predict_proba(X))

    def answers(self, probabilities: NDArray[Any]) -> NDArray[Any]:
        """The classes that `predict` answers with at these probabilities."""
        weights = self.answer_weights
        if weights is not None:
            probabilities = probabilities * weights.astype(np.float32)
        labels: NDArray[Any] = self.classes_[probabilities.argmax(axis=1)]
        return labels

    @property
    def answer_weights(self) -> NDArray[np.float64] | None:
        """What probabilities are multiplied with before the highest is the answer."""
        if self.threshold_ is not None:
            return np.array([self.threshold_, 1 - self.threshold_])
        return self.class_weights_

    def predict_proba(self, X: Any) -> NDArray[np.float32]:
        """Class probabilities of each row, in the order of `classes_`."""
        check_is_fitted(self)
        rows = self._as_trained(read_array(X)) if self.encoder_ is None else read_frame(X)
        with one_blas_thread():
            return self.model_.predict_proba(to_matrix(rows, self.encoder_, self.learner_))

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

    def to_onnx(self, *, missing: str = "") -> bytes:
        """The model and its encoding as one ONNX graph, for runtimes without driftquilt.

        Every column is an input, (n, 1): numbers as float64 with NaN for a missing one, text as
        strings with `missing` for a missing one, dates and times of day as int64 microseconds; the
        outputs are `label` and `probabilities`. It takes the extra `onnx` and the default learner;
        more in `integrations.onnx`.
        """
        check_is_fitted(self)
        from driftquilt.integrations.onnx import to_onnx  # noqa: PLC0415  # few need it

        return to_onnx(self, missing)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    def make_learner(self) -> Learner:
        """Make the learner that is trained."""
        if self.learner is not None:
            return self.learner
        return MLP(self.hidden_units, self.learning_rate, self.batch_size)

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

    def fit_rows(self, seen: Rows, remote: RemoteHistory | None = None) -> Self:
        """Select and train on rows that were read before.

        With `remote`, `seen` has only the rows that a training may draw from.
        """
        weights = class_weights(seen, self.class_weight)
        rows = seen.weighing(seen.weight if weights is None else seen.weight * weights[seen.y])
        refuse_one_class(rows)
        encoder = self._fit_encoder(rows)
        warn_of_order(rows.segments)
        learner = self.make_learner()
        previous = self._previous(rows, encoder, learner)
        if previous:  # its weights mean what its own encoding made of the rows
            encoder = self.encoder_
        of_class = () if weights is None else tuple(weights.tolist())
        quilt = replace(
            self._quilt(learner, previous, len(rows.classes)),
            class_weights=of_class,
            judge=self._make_judge(rows, of_class),
        )
        n_columns = _width(rows.features, encoder)
        # A training on samples is short, however long the past is.
        effort = 0 if quilt.sampling.has_both else len(rows.y) * n_columns
        quilt = replace(quilt, executor=self.choose_executor(effort))
        if remote is not None and encoder is not None:
            quilt = remote.attach(quilt, encoder, rows.classes, weights)
        history, current = self._cut(rows, encoder, learner, n_columns)
        trials = self._watch(quilt.trials(history, current), quilt.count_trials(history))
        model = quilt.conclude(history, current, trials)
        counts = count_rows(rows.codes, len(rows.segments)).tolist()
        *n_past, n_current = counts if remote is None else remote.n_rows
        selection = replace(model.selection, n_rows=tuple(n_past), n_current=n_current)
        self._keep(seen, encoder, learner, replace(model, selection=selection))
        self.class_weights_: NDArray[np.float64] | None = weights
        self.threshold_: float | None = None
        return self

    def _fit_encoder(self, rows: Rows) -> Encoder | None:
        """Fit the encoder on the rows that a training may draw from."""
        if isinstance(rows.features, np.ndarray):
            return None
        n_columns = len(rows.features.columns)
        drawn = self.sampling.rows_to_keep(rows.codes, len(rows.segments), n_columns)
        return Encoder.fit(rows.features, drawn, robust=self.encode == "robust")

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

    def _previous(self, rows: Rows, encoder: Encoder | None, learner: Learner) -> Sequence[Model]:
        """The models to start from: none, or those of the last fit where they still fit."""
        if self.init != "previous" or not hasattr(self, "model_"):
            return ()
        if not np.array_equal(self.classes_, rows.classes):
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
        return Quilt(
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
        )

    def _make_judge(self, rows: Rows, of_class: Sequence[float]) -> Judge | None:
        """Return what scores models by the metric; none for the log loss, or without a past."""
        metric, classes = find_metric(self.scoring), rows.classes
        if metric.is_log_loss or len(rows.segments) == 1:
            return None
        if metric.costs is not None:
            metric.cost_matrix(classes)  # refuses labels that are not classes
        if metric.top is not None and len(classes) != 2:  # noqa: PLR2004
            raise InputError(f"{metric.name} takes two classes, not {len(classes)}")
        return Judge(metric, classes, of_class)

    def _watch(self, trials: Iterator[FoldTrial], n_trials: int) -> Iterable[FoldTrial]:
        if not self.progress:
            return trials
        console = Console(stderr=True)
        return track(trials, "Searching the disparity bound", total=n_trials, console=console)

    def _keep(
        self, rows: Rows, encoder: Encoder | None, learner: Learner, model: QuiltModel
    ) -> None:
        for stale in ("feature_names_in_", "row_shape_", "row_dtype_"):
            if hasattr(self, stale):
                delattr(self, stale)
        self.model_ = model
        self.learner_ = learner
        self.selection_ = model.selection
        self.search_ = model.tried_bounds()
        self.disparity_max_ = model.selection.disparity_max
        self.classes_ = rows.classes
        self.encoder_ = encoder
        self._seen = rows
        if not isinstance(rows.features, np.ndarray):
            keep_features(self, rows.features)
        else:
            self.n_features_in_, self.row_shape_ = rows.features.shape[1], rows.features.shape[1:]
            is_table = isinstance(learner, MLP)
            self.row_dtype_ = np.dtype(np.float32) if is_table else rows.features.dtype


def select_segments(
    X: Any,
    y: Any,
    segments: ArrayLike,
    sample_weight: ArrayLike | None = None,
    **settings: Any,
) -> Selection:
    """Return which past segments to train on, with a weight for each; the last one is current.

    `settings` are those of `QuiltClassifier`, such as `random_state=0`. What a segment's rows
    count is its `weight`; `row_weights(segments)` gives them row by row, for the `sample_weight`
    of another model.

    >>> rng = np.random.default_rng(0)
    >>> X, month = rng.normal(size=(660, 2)), np.repeat(["April", "May", "June"], [300, 300, 60])
    >>> y = (X[:, 0] > 0) ^ (month == "April")
    >>> selection = select_segments(X, y, month, hidden_units=32, random_state=0)
    >>> {use.name: use.used for use in selection}
    {'April': False, 'May': True}
    >>> weight = selection.row_weights(month)
    >>> bool(weight[0] < weight[300] <= weight[-1] == 1)
    True
    """
    classifier = QuiltClassifier(**settings).fit(X, y, segments, sample_weight)
    selection: Selection = classifier.selection_
    return selection


def keep_features(estimator: Any, features: Frame | ArrowFrame) -> None:
    """Set what scikit-learn wants to know of the columns that an estimator was fitted on."""
    names = sources(features.columns)
    estimator.n_features_in_ = len(names)
    if features.named:
        estimator.feature_names_in_ = np.array(names, dtype=object)


def class_weights(
    rows: Rows, class_weight: Mapping[Any, float] | str | None
) -> NDArray[np.float64] | None:
    """Return a weight per class, or None; for "balanced", a class without a row weighs 1.

    >>> class_weights(Rows.read(np.zeros((3, 2)), ["ham", "ham", "spam"]), {"spam": 3.0})
    array([1., 3.])
    """
    if class_weight is None:
        return None
    weights = np.ones(len(rows.classes))
    if isinstance(class_weight, Mapping):
        refuse_unknown_classes(class_weight, rows.classes.tolist())
        codes = codes_by_name(rows.classes.tolist())
        for label, weight in class_weight.items():
            weights[codes[label]] = weight
    else:
        y = rows.y[rows.weight > 0]
        seen = np.unique(y)
        weights[seen] = compute_class_weight(class_weight, classes=seen, y=y)
    return weights


def refuse_unknown_classes(
    class_weight: Mapping[Any, float] | str | None, classes: Sequence[Any]
) -> None:
    """Raise InputError for a weight of a label that is none of the classes."""
    for label in class_weight if isinstance(class_weight, Mapping) else ():
        if label not in codes_by_name(classes):
            names = [*map(str, classes)]
            raise InputError(f"class_weight names {label!r}; {suggest(label, names)}")


def present_weights(
    class_weight: Mapping[Any, float] | str | None, classes: Sequence[Any]
) -> Mapping[Any, float] | str | None:
    """Return the class weights without those of classes that the rows at hand lack.

    >>> present_weights({"spam": 3.0, "ham": 1.0}, ["ham", "post"])
    {'ham': 1.0}
    """
    if not isinstance(class_weight, Mapping):
        return class_weight
    codes = codes_by_name(classes)
    return {label: weight for label, weight in class_weight.items() if label in codes}


def refuse_one_class(rows: Rows) -> None:
    """Raise InputError for rows that no classifier can be trained on."""
    if len(rows.y) < 2 or len(rows.classes) < 2:  # noqa: PLR2004
        raise InputError(
            f"found {len(rows.y)} sample(s) of {len(rows.classes)} class(es) "
            f"{rows.classes.tolist()}; training needs at least two rows and two classes"
        )


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
