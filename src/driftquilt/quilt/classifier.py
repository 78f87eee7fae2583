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

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_is_fitted

from driftquilt.data.columns import as_array
from driftquilt.data.encoder import Encoder
from driftquilt.data.frame import read_frame
from driftquilt.data.labels import codes_by_name, warn_of_order
from driftquilt.data.rows import Rows, read_array
from driftquilt.errors import InputError
from driftquilt.learners.base import Learner
from driftquilt.learners.mlp import MLP
from driftquilt.quilt.blending import Judge
from driftquilt.quilt.estimator import (
    DEFAULT_PRESET,
    QuiltEstimator,
    RemoteHistory,
    check_parameters,
    to_matrix,
)
from driftquilt.quilt.executor import Executor, one_blas_thread
from driftquilt.quilt.explanation import Selection
from driftquilt.quilt.method import Quilt
from driftquilt.quilt.metrics import Scoring, find_metric
from driftquilt.quilt.model_file import (
    CLASSIFICATION,
    REGRESSION,
    class_weights_of,
    classes_from_json,
    classes_to_json,
    threshold_of,
)
from driftquilt.quilt.regressor import QuiltRegressor
from driftquilt.search.base import Search
from driftquilt.text import suggest

__all__ = ["QuiltClassifier", "class_weights", "refuse_one_class", "select_segments"]


class QuiltClassifier(ClassifierMixin, QuiltEstimator):  # type: ignore[misc]
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

    task = CLASSIFICATION

    def __init__(
        self,
        *,
        search: str | Search = DEFAULT_PRESET.search,
        disparity_max: float | None = None,
        n_folds: int = DEFAULT_PRESET.n_folds,
        blend: bool = DEFAULT_PRESET.blend,
        use_disparity: bool = True,
        use_gain: bool = True,
        init: str = "random",
        hidden_units: int = DEFAULT_PRESET.hidden_units,
        learning_rate: float | None = DEFAULT_PRESET.learning_rate,
        batch_size: int = DEFAULT_PRESET.batch_size,
        learner: Learner | None = None,
        encode: str | bool = DEFAULT_PRESET.encode,
        class_weight: Mapping[Any, float] | str | None = None,
        scoring: Scoring | None = None,
        max_epochs: int = DEFAULT_PRESET.max_epochs,
        patience: int = DEFAULT_PRESET.patience,
        score_rows: int | None = DEFAULT_PRESET.score_rows,
        score_every: int = DEFAULT_PRESET.score_every,
        epoch_rows: int | None = DEFAULT_PRESET.epoch_rows,
        averaging: float = DEFAULT_PRESET.averaging,
        engine: str | Executor = "local",
        n_jobs: int | None = None,
        progress: bool = False,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        super().__init__(
            search=search,
            disparity_max=disparity_max,
            n_folds=n_folds,
            blend=blend,
            use_disparity=use_disparity,
            use_gain=use_gain,
            init=init,
            hidden_units=hidden_units,
            learning_rate=learning_rate,
            batch_size=batch_size,
            encode=encode,
            max_epochs=max_epochs,
            patience=patience,
            score_rows=score_rows,
            score_every=score_every,
            epoch_rows=epoch_rows,
            averaging=averaging,
            engine=engine,
            n_jobs=n_jobs,
            progress=progress,
            random_state=random_state,
        )
        self.learner = learner
        self.class_weight = class_weight
        self.scoring = scoring

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
        rows = self._read(X, y, segments, sample_weight)
        if classes is not None:
            rows = rows.declare(classes)
        return self.fit_rows(self._join(rows, has_segments=segments is not None))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable class of each row.

        With class weights, it is the class of the highest product. With `threshold_`, it is the
        second of two classes from that probability on.
        """
        return self.answers(self.predict_proba(X))

    def answers(self, probabilities: NDArray[Any]) -> NDArray[Any]:
        """Return the classes that `predict` answers with at these probabilities."""
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

    def predict_encoded(self, X: NDArray[Any]) -> NDArray[np.float32]:
        """Return the class probabilities of rows that were encoded before."""
        return self.model_.predict_proba(X)

    def to_onnx(self, *, missing: str = "") -> bytes:
        """Return the model and its encoding as one ONNX graph, for runtimes without driftquilt.

        Every column is an input, (n, 1): numbers as float64 with NaN for a missing one, text as
        strings with `missing` for a missing one, dates and times of day as int64 microseconds; the
        outputs are `label` and `probabilities`. It takes the extra `onnx` and the default learner;
        more in `integrations.onnx`.
        """
        check_is_fitted(self)
        from driftquilt.integrations.onnx import to_onnx  # noqa: PLC0415  # few need it

        return to_onnx(self, missing)

    def make_learner(self) -> Learner:
        """Make the learner that is trained."""
        if self.learner is not None:
            return self.learner
        return MLP(self.hidden_units, self.learning_rate, self.batch_size)

    def fit_rows(self, seen: Rows, remote: RemoteHistory | None = None) -> Self:
        """Select and train on rows that were read before.

        With `remote`, `seen` has only the rows that a training may draw from.
        """
        weights = class_weights(seen, self.class_weight)
        rows = seen.weighing(seen.weight if weights is None else seen.weight * weights[seen.y])
        refuse_one_class(rows)
        warn_of_order(rows.segments)
        of_class = () if weights is None else tuple(weights.tolist())

        def attach(quilt: Quilt, encoder: Encoder) -> Quilt:
            return quilt if remote is None else remote.attach(quilt, encoder, rows.classes, weights)

        trained = self._train(
            rows,
            len(rows.classes),
            attach,
            None if remote is None else remote.n_rows,
            class_weights=of_class,
            judge=self._make_judge(rows, of_class),
        )
        self._keep(seen, trained)
        self.classes_ = rows.classes
        self.class_weights_: NDArray[np.float64] | None = weights
        self.threshold_: float | None = None
        return self

    def pack_target(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Return a record of classes, their weights and the threshold, for the model file."""
        weights = self.class_weights_
        return {}, {
            "classes": classes_to_json(self.classes_),
            "class_weights": None if weights is None else weights.tolist(),
            "threshold": self.threshold_,
        }

    def unpack_target(self, tensors: Mapping[str, NDArray[Any]], record: dict[str, Any]) -> int:  # noqa: ARG002
        """Set what `pack_target` returned; return the number of classes."""
        self.classes_ = classes_from_json(record["classes"])
        self.class_weights_ = class_weights_of(record, len(self.classes_))
        self.threshold_ = threshold_of(record, len(self.classes_))
        return len(self.classes_)

    def _knows(self, rows: Rows) -> bool:
        return np.array_equal(self.classes_, rows.classes)

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


def select_segments(
    X: Any,
    y: Any,
    segments: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    task: str | None = None,
    **settings: Any,
) -> Selection:
    """Return which past segments to train on, with a weight for each; the last one is current.

    `task` is "classification" or "regression"; None means that numbers of which some are not whole
    are a regression. `settings` are those of `QuiltClassifier` or `QuiltRegressor`, such as
    `random_state=0`. What a segment's rows count is its `weight`; `row_weights(segments)` gives
    them row by row, for the `sample_weight` of another model.

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
    kinds: dict[str, type[QuiltEstimator]] = {
        kind.task: kind for kind in (QuiltClassifier, QuiltRegressor)
    }
    known = (REGRESSION if _is_amount(y) else CLASSIFICATION) if task is None else task
    if known not in kinds:
        raise InputError(f"task is {task!r}; {suggest(str(task), [*kinds])}")
    return kinds[known](**settings).fit(X, y, segments, sample_weight).selection_


def _is_amount(y: Any) -> bool:
    """Return whether targets are numbers of which some are not whole."""
    values = as_array(y)
    is_float: bool = values.dtype.kind == "f"
    return is_float and bool((values[np.isfinite(values)] % 1 != 0).any())


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
    """Raise InputError for a weight of a label that is not among the classes."""
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
