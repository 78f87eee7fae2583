"""Which model: the net, or gradient boosting; chosen by held-out rows, and read from any file.

`choose_model` fits both on the past that still holds and compares what they say of current rows
that they were not trained on. Blocks in time of the current rows are held out, and the net is
fitted without each of them; its validation loss would flatter it, as that is the lowest over
epochs. `QuiltSelector` holds blocks out anyway. The net is taken unless the other scores higher by
more than a standard error; of few rows the difference says little, and the net is the smaller
model.

>>> rng = np.random.default_rng(0)
>>> X, month = rng.normal(size=(660, 2)), np.repeat(["April", "May", "June"], [300, 300, 60])
>>> y = (X[:, 0] > 0) ^ (month == "April")
>>> choice = choose_model(X, y, month, random_state=0)
>>> choice.kind, type(choice.model).__name__, sorted(choice.scores)
('hgb', 'QuiltSelector', ['hgb', 'net'])
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone

from driftquilt.data.rows import Rows
from driftquilt.errors import InputError
from driftquilt.quilt.blending import ONE_ERROR, Judge, choose_by_score
from driftquilt.quilt.boosters import BOOSTERS, kind_of, make_booster
from driftquilt.quilt.classifier import QuiltClassifier
from driftquilt.quilt.estimator import check_parameters
from driftquilt.quilt.executor import one_blas_thread
from driftquilt.quilt.metrics import find_metric, find_number_metric
from driftquilt.quilt.model_file import NET, REGRESSION, read_model
from driftquilt.quilt.regressor import QuiltRegressor
from driftquilt.quilt.selector import QuiltSelector
from driftquilt.text import suggest

__all__ = [
    "AUTO",
    "MODELS",
    "Model",
    "ModelChoice",
    "check_model",
    "check_params",
    "choose_model",
    "kind_of_model",
    "load_model",
    "make_selector",
    "parameter_names",
]

Model = QuiltClassifier | QuiltRegressor | QuiltSelector
AUTO = "auto"
#: What a model can be called; "auto" is the choice between two.
MODELS = (NET, *BOOSTERS, AUTO)
_OTHER = "hgb"
_TRIED = 64  # rows
# Parameters that have an option of their own.
_OPTIONS_OF_ALL = {"random_state": "--seed"}
_OPTIONS = _OPTIONS_OF_ALL | {
    "engine": "--engine", "class_weight": "--class-weight", "scoring": "--metric"
}  # fmt: skip
_N_BLOCKS = 3
_FEWEST = 12  # current rows by which models can be compared


class ModelChoice(NamedTuple):
    """The kind that was chosen, both models, fitted, and the score of each on held-out rows.

    `metric` is the name of the score, of which higher is better; a log loss is negative.
    `scores` is empty if there were too few rows to compare.
    """

    kind: str
    models: dict[str, Model]
    metric: str
    scores: dict[str, float]

    @property
    def model(self) -> Model:
        """The model that was chosen."""
        return self.models[self.kind]

    def sentence(self) -> str:
        """Return what was chosen, and by how much."""
        if not self.scores:
            return f"The model is {self.kind}: there are too few current rows to compare."
        ahead = self.scores[self.kind] - max(v for k, v in self.scores.items() if k != self.kind)
        figures = ", ".join(f"{kind} {score:.4f}" for kind, score in self.scores.items())
        how = "is ahead" if ahead > 0 else "is behind by less than a standard error"
        return (
            f"The model is {self.kind}: on held-out current rows it {how} in {self.metric} "
            f"({figures}; difference {ahead:+.4f})."
        )


def make_selector(
    kind: str,
    *,
    quilt: QuiltClassifier | QuiltRegressor | None = None,
    scoring: Any = None,
    random_state: int = 0,
    params: Mapping[str, Any] | None = None,
) -> QuiltSelector:
    """Return a selector around a booster; `MissingExtraError` if its library is not installed.

    `quilt` has the settings of the net that ranks the segments; with a QuiltRegressor the booster
    is a regressor. `params` are the booster's.
    """
    if kind not in BOOSTERS:
        raise InputError(f"unknown model {kind!r}; {suggest(kind, MODELS)}")
    if quilt is not None:
        quilt = clone(quilt).set_params(random_state=random_state)
    booster = make_booster(kind, is_regression=isinstance(quilt, QuiltRegressor), **params or {})
    return QuiltSelector(booster, quilt=quilt, scoring=scoring, random_state=random_state)


def check_model(kind: str) -> None:
    """Refuse an unknown kind of model; `MissingExtraError` if its library is not installed."""
    if kind not in MODELS:
        raise InputError(f"unknown model {kind!r}; {suggest(kind, MODELS)}")
    if kind != NET:
        make_booster(_OTHER if kind == AUTO else kind)


def check_params(
    kind: str, params: Mapping[str, Any], *, is_regression: bool | None = None
) -> None:
    """Refuse parameters that the estimator of a kind of model does not take.

    Those of a booster are tried on a few rows, if it is known what it is to predict.

    >>> check_params("net", {"max_epochs": 0})
    Traceback (most recent call last):
    driftquilt.errors.InputError: max_epochs must be a whole number of at least 1, but got 0
    """
    if params and kind == AUTO:
        raise InputError(
            "parameters belong to one kind of model, and 'auto' chooses between two; name the model"
        )
    tasks = (False, True) if is_regression is None else (is_regression,)
    options = _OPTIONS if kind == NET else _OPTIONS_OF_ALL
    for name in params:
        if name in options:
            raise InputError(f"{name!r} is not a parameter to set here; use {options[name]}")
        known = sorted(
            {known for task in tasks for known in parameter_names(kind, is_regression=task)}
        )
        if name not in known:
            raise InputError(
                f"the model {kind!r} has no parameter {name!r}; {suggest(name, known)}"
            )
    if kind == NET:
        check_parameters(params)
    elif params and is_regression is not None:
        _try_booster(kind, params, is_regression=is_regression)


def parameter_names(kind: str, *, is_regression: bool) -> set[str]:
    """Return the names of the parameters that may be set."""
    if kind == NET:
        net = QuiltRegressor() if is_regression else QuiltClassifier()
        return {*net.get_params(deep=False)} - {*_OPTIONS, "learner", "progress"}
    booster = make_booster(kind, is_regression=is_regression)
    written = inspect.signature(type(booster).__init__).parameters.values()
    named = {one.name for one in written if one.kind is not one.VAR_KEYWORD}
    return ({*booster.get_params()} | named) - {*_OPTIONS_OF_ALL, "self"}


def _try_booster(kind: str, params: Mapping[str, Any], *, is_regression: bool) -> None:
    X, y = np.arange(_TRIED * 2.0).reshape(_TRIED, 2), np.arange(_TRIED) % 2
    try:
        make_booster(kind, is_regression=is_regression, **params).fit(X, y)
    except Exception as error:
        raise InputError(f"the model {kind!r} does not take {dict(params)}: {error}") from error


def kind_of_model(model: Model) -> str:
    """Return the kind of a model: "net", or that of its estimator."""
    return NET if isinstance(model, QuiltClassifier | QuiltRegressor) else kind_of(model.estimator)


def load_model(path: str | os.PathLike[str]) -> Model:
    """Read a model that the `save` of any of Quilt's estimators wrote."""
    record = read_model(path)[1]
    if record.get("kind", NET) != NET:
        return QuiltSelector.load(path)
    is_regression = record.get("task") == REGRESSION
    return QuiltRegressor.load(path) if is_regression else QuiltClassifier.load(path)


def choose_model(
    X: Any,
    y: Any,
    segments: ArrayLike | None = None,
    *,
    quilt: QuiltClassifier | QuiltRegressor | None = None,
    scoring: Any = None,
    random_state: int = 0,
) -> ModelChoice:
    """Fit the net and scikit-learn's gradient boosting, and return the one that predicts better.

    `segments` is the segment of each row, the last one being the current one. `quilt` has the
    settings of the net; with a QuiltRegressor both predict numbers. `scoring` is what "better"
    means, as in `QuiltSelector`; by default the log loss, or the mean absolute error. It takes the
    extra `hgb`.
    """
    net = QuiltClassifier() if quilt is None else quilt
    is_regression = isinstance(net, QuiltRegressor)
    metric = find_number_metric(scoring) if is_regression else find_metric(scoring)
    other = make_selector(_OTHER, quilt=net, scoring=metric, random_state=random_state)
    other.set_params(n_folds=_N_BLOCKS).fit(X, y, segments=segments)
    fitted = other.quilt_
    if fitted is None:
        raise InputError("there is no past segment, so there is nothing to choose; fit a model")
    rows = Rows.read(X, y, segments, numbers=is_regression)
    assert other.held_out_ is not None  # noqa: S101  # there is a past
    current = np.flatnonzero(rows.codes == len(rows.segments) - 1)
    if len(current) < _FEWEST:
        return ModelChoice(NET, {NET: fitted}, metric.name, {})
    kinds: tuple[str, str] = (_OTHER, NET)  # the preferred one comes last
    outputs = [other.held_out_, _hold_out(fitted, rows, current)]
    judge = Judge(metric, rows.classes)
    scores = np.array([judge.scores(rows.y[current], p) for p in outputs])
    kind = kinds[choose_by_score(scores, errors=ONE_ERROR)]
    found = dict(zip(kinds, scores[:, 0].tolist(), strict=True))
    return ModelChoice(kind, {NET: fitted, _OTHER: other}, metric.name, found)


def _hold_out(
    net: QuiltClassifier | QuiltRegressor, rows: Rows, current: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Return what nets say of blocks of current rows that they were not trained on."""
    outputs = np.zeros((len(current), max(len(rows.classes), 1)))
    for block in np.array_split(np.arange(len(current)), _N_BLOCKS):
        weight = rows.weight.copy()
        weight[current[block]] = 0
        used = rows.weighing(weight)
        names = used.columns_with_values()
        fresh = clone(net).fit_rows(used.select(names))
        test = rows.select(names).features
        assert fresh.encoder_ is not None  # noqa: S101
        assert not isinstance(test, np.ndarray)  # noqa: S101
        with one_blas_thread():
            encoded = fresh.encoder_.transform(test.take(current[block]))
            outputs[block] = fresh.predict_encoded(encoded)
    return outputs
