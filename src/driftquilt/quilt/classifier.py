"""QuiltClassifier: scikit-learn's contract over `quilt.method`.

It reads tables of any kind, fits the encoding on the rows it is given, cuts them into
segments, lets Quilt select and train, and keeps the outcome with its explanation.

>>> import numpy as np
>>> from driftquilt import QuiltClassifier
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(900, 2))
>>> month = np.repeat(["April", "May", "June"], 300)
>>> y = np.where((X[:, 0] > 0) ^ (month == "April"), "buys", "leaves")  # April: another world
>>> clf = QuiltClassifier(hidden_units=32, random_state=0).fit(X, y, segments=month)
>>> clf.predict([[2.0, 0.0], [-2.0, 0.0]])
array(['buys', 'leaves'], dtype='<U6')
>>> {use.name: use.kept for use in clf.selection_}
{'April': False, 'May': True}
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted

from driftquilt.core.sampling import Sampling
from driftquilt.core.segment import Segment, count_rows, cut
from driftquilt.core.selection import Rule
from driftquilt.data.codes import warn_of_order
from driftquilt.data.encoder import Encoder
from driftquilt.data.header import sources
from driftquilt.data.rows import Rows, read_array
from driftquilt.data.table import read_table
from driftquilt.errors import InputError
from driftquilt.learners.base import Learner, Model
from driftquilt.learners.mlp import MLP
from driftquilt.quilt import classifier_file
from driftquilt.quilt.classifier_file import starts_alike
from driftquilt.quilt.classifier_rows import AllRows, class_weights, to_matrix, width
from driftquilt.quilt.executor import Executor, Threads, find_executor, one_blas_thread
from driftquilt.quilt.method import DEFAULT, PAPER, FoldTrial, Quilt, QuiltModel
from driftquilt.quilt.settings import check_settings
from driftquilt.search.base import Search
from driftquilt.search.shared import Shared

__all__ = ["QuiltClassifier"]


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
    encode : bool
        Whether columns are imputed, encoded and scaled, fitted on the rows given to `fit`. If
        False, arrays of numbers of any shape go to the learner as they are.
    class_weight : dict or "balanced", optional
        Weights of classes, by label.
    max_epochs, patience : int
        Training ends after `max_epochs`, or after `patience` epochs without progress.
    score_rows : int, optional
        How many rows of each past segment are looked at to score it, drawn anew each time; None
        looks at all.
    score_every : int
        Segments are scored anew, and selected, every so many epochs.
    epoch_rows : int, optional
        How many rows an epoch trains on: those of the current segment and a sample of the
        selected ones, drawn anew; None takes all.
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
        Per past segment: kept or not, the share of epochs it was used in, its scores and
        their curves; `explain()` says why, `to_frame()` gives a table.
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

    """

    def __init__(
        self,
        *,
        search: str | Search = "shared",
        disparity_max: float | None = None,
        n_folds: int = 4,
        use_disparity: bool = True,
        use_gain: bool = True,
        init: str = "random",
        hidden_units: int = 256,
        learning_rate: float | None = None,
        batch_size: int = 64,
        learner: Learner | None = None,
        encode: bool = True,
        class_weight: Mapping[Any, float] | str | None = None,
        max_epochs: int = 2000,
        patience: int = 8,
        score_rows: int | None = 256,
        score_every: int = 3,
        epoch_rows: int | None = 2048,
        averaging: float = 0.8,
        engine: str | Executor = "local",
        n_jobs: int | None = None,
        progress: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        self.search = search
        self.disparity_max = disparity_max
        self.n_folds = n_folds
        self.use_disparity = use_disparity
        self.use_gain = use_gain
        self.init = init
        self.hidden_units = hidden_units
        self.learning_rate = learning_rate
        self.batch_size = batch_size
        self.learner = learner
        self.encode = encode
        self.class_weight = class_weight
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
        """The paper's settings, in which every epoch looks at every row; others as given."""
        return cls(
            **{
                "search": "bayes",
                "n_folds": 1,
                "learning_rate": 1e-3,
                "batch_size": 128,
                "patience": 10,
                "score_rows": None,
                "score_every": 1,
                "epoch_rows": None,
                "averaging": 0.0,
                **settings,
            }
        )

    def fit(
        self,
        X: Any,
        y: Any,
        segments: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Select past segments and train.

        `segments` tells which segment each row belongs to: integers, strings, dates, anything
        that can be compared. They count in order of first appearance; the last one is the
        current segment. None means that all rows are current. Rows of weight 0 count as if
        they were not there, but their classes are known. A `pyarrow.Table`, which may be a
        mapped file, is read in place; other tables are copied.
        """
        check_settings(self.get_params(deep=False))
        return self._fit(Rows.read(X, y, segments, sample_weight, encode=self.encode))

    def partial_fit(
        self,
        X: Any,
        y: Any,
        classes: ArrayLike | None = None,
        segments: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add a batch to the rows seen so far, and select and train anew.

        Rows whose segment is known join it, others open new segments; without `segments` the
        batch continues the last one. The outcome is that of `fit` on all batches together.
        """
        check_settings(self.get_params(deep=False))
        seen = getattr(self, "_seen", None)
        if seen is None and hasattr(self, "model_"):
            raise InputError(
                "this model was loaded from a file or has forgotten its rows, so it has weights "
                "but no rows; call fit with the past rows and the new ones together"
            )
        rows = Rows.read(X, y, segments, sample_weight, encode=self.encode)
        if classes is not None:
            rows = rows.declare(classes)
        if seen is not None and segments is None:
            rows = replace(rows, segments=[seen.segments[-1]])
        return self._fit(rows if seen is None else seen.append(rows))

    def forget_rows(self) -> Self:
        """Let go of the rows seen, which only `partial_fit` needs; saves their memory."""
        if hasattr(self, "_seen"):
            del self._seen
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row."""
        probabilities = self.predict_proba(X)
        labels: NDArray[Any] = self.classes_[probabilities.argmax(axis=1)]
        return labels

    def predict_proba(self, X: Any) -> NDArray[np.float32]:
        """Class probabilities of each row, in the order of `classes_`."""
        check_is_fitted(self)
        rows = self._as_trained(read_array(X)) if self.encoder_ is None else read_table(X)
        with one_blas_thread():
            return self.model_.predict_proba(to_matrix(rows, self.encoder_, self.learner_))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write weights, encoding, settings and explanation to one safetensors file.

        The rows seen are not part of it.
        """
        check_is_fitted(self)
        classifier_file.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], learner: Learner | None = None) -> Self:
        """Read a model that `save` wrote; a torch model needs its learner to be given again."""
        return classifier_file.load(cls, path, learner)

    def to_onnx(self, *, missing: str = "") -> bytes:
        """The model and its encoding as one ONNX graph, for runtimes without driftquilt.

        Every column is an input, (n, 1): numbers as float64 with NaN for a missing one, text as
        strings with `missing` for a missing one, dates and times of day as int64 microseconds; the
        outputs are `label` and `probabilities`. It takes the extra `onnx` and the default learner;
        more in `integrations.onnx.classifier`.
        """
        check_is_fitted(self)
        from driftquilt.integrations.onnx.classifier import to_onnx  # noqa: PLC0415  # few need it

        return to_onnx(self, missing)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = tags.input_tags.string = tags.input_tags.categorical = True
        return tags

    def _fit(self, seen: Rows, past: AllRows | None = None) -> Self:
        """Select and train; with `past`, `seen` is only what a training may draw from."""
        weights = class_weights(seen, self.class_weight)
        rows = seen.weighing(seen.weight if weights is None else seen.weight * weights[seen.y])
        if len(rows.y) < 2 or len(rows.classes) < 2:  # noqa: PLR2004
            raise InputError(
                f"found {len(rows.y)} sample(s) of {len(rows.classes)} class(es) "
                f"{rows.classes.tolist()}; training needs at least two rows and two classes"
            )
        encoder = self._fit_encoder(rows)
        warn_of_order(rows.segments)
        learner = self._make_learner()
        previous = self._previous(rows, encoder, learner)
        if previous:  # its weights mean what its own encoding made of the rows
            encoder = self.encoder_
        n_numbers = len(rows.y) * width(rows.features, encoder)
        quilt = self._quilt(learner, previous, len(rows.classes), n_numbers)
        if past is not None and encoder is not None:
            quilt = past.place(quilt, encoder, rows.classes, weights)
        history, current = self._cut(rows, encoder, learner)
        trials = self._watch(quilt.trials(history, current), quilt.count_trials(history))
        model = quilt.conclude(history, current, trials)
        counts = count_rows(rows.codes, len(rows.segments)).tolist()
        *n_past, n_current = counts if past is None else past.n_rows
        selection = replace(model.selection, n_rows=tuple(n_past), n_current=n_current)
        self._keep(seen, encoder, learner, replace(model, selection=selection))
        return self

    def _fit_encoder(self, rows: Rows) -> Encoder | None:
        """An encoder of the rows that a training may draw from."""
        if isinstance(rows.features, np.ndarray):
            return None
        held = self._sampling().rows_to_keep(
            rows.codes, len(rows.segments), len(rows.features.names)
        )
        return Encoder.fit(rows.features, held)

    def _cut(
        self, rows: Rows, encoder: Encoder | None, learner: Learner
    ) -> tuple[list[Segment], Segment]:
        """The segments in memory; of very long ones the rows that a training draws from."""
        y, codes, weight = rows.y, rows.codes, rows.weight
        n_columns = width(rows.features, encoder)
        held = self._sampling().rows_to_keep(codes, len(rows.segments), n_columns)
        if held is not None:
            y, codes, weight = y[held], codes[held], weight[held]
        X = to_matrix(rows.features, encoder, learner, held)
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

    def _make_learner(self) -> Learner:
        if self.learner is not None:
            return self.learner
        return MLP(self.hidden_units, self.learning_rate, self.batch_size)

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
        return models if same_rows and starts_alike(learner, self._example(), models[0]) else ()

    def _example(self) -> NDArray[Any]:
        """A row like those the models were trained on."""
        if self.encoder_ is None:
            return np.ones((1, *self.row_shape_), self.row_dtype_)
        return np.ones((1, len(self.encoder_.feature_names_out)), np.float32)

    def _quilt(
        self, learner: Learner, previous: Sequence[Model], n_classes: int, n_numbers: int = 0
    ) -> Quilt:
        searches = {"shared": DEFAULT.search, "bayes": PAPER.search}
        search = searches[self.search] if isinstance(self.search, str) else self.search
        if self.disparity_max is not None:
            search = Shared((float(self.disparity_max),))
        return Quilt(
            learner=learner,
            n_folds=self.n_folds,
            max_epochs=self.max_epochs,
            patience=self.patience,
            seed=int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max)),
            sampling=self._sampling(),
            n_classes=n_classes,
            executor=self._executor(learner, n_numbers),
            search=search,
            rule=Rule(self.use_disparity, self.use_gain),
            previous=previous,
        )

    def _executor(self, learner: Learner, n_numbers: int) -> Executor:
        sampled = self.epoch_rows is not None and self.score_rows is not None
        # A training that samples is short, however long the past is.
        return find_executor(*self._engine(learner), effort=0 if sampled else n_numbers)

    def _engine(self, learner: Learner) -> tuple[str | Executor, int]:
        """Where to work, and on how many cores if it is here."""
        on_threads = isinstance(self.engine, Threads) or self.engine in ("local", "auto")
        if on_threads and not isinstance(learner, MLP):
            # Code of others may want every core, and torch's seed is everybody's.
            return self.engine if isinstance(self.engine, str) else Threads(1), 1
        return self.engine, self.n_jobs or os.cpu_count() or 1

    def _sampling(self) -> Sampling:
        return Sampling(self.score_rows, self.score_every, self.epoch_rows, self.averaging)

    def _watch(self, trials: Iterator[FoldTrial], n_trials: int) -> Iterable[FoldTrial]:
        if not self.progress:
            return trials
        from rich.console import Console  # noqa: PLC0415
        from rich.progress import track  # noqa: PLC0415

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
            names = sources(rows.features.names)
            self.n_features_in_ = len(names)
            if rows.features.named:
                self.feature_names_in_ = np.array(names, dtype=object)
        else:
            self.n_features_in_, self.row_shape_ = rows.features.shape[1], rows.features.shape[1:]
            is_table = isinstance(learner, MLP)
            self.row_dtype_ = np.dtype(np.float32) if is_table else rows.features.dtype
