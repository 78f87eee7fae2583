"""What of a QuiltClassifier goes into its model file, and how it comes back.

Weights of all folds are tensors named "fold.name"; settings, classes, encoding and
explanation are one JSON record. Rows are not saved, and neither is code: a model trained by a
learner of the user's own needs that learner again.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from driftquilt import __version__
from driftquilt.data.encoder import Encoder
from driftquilt.errors import DriftquiltError, InputError, LearnerError, ModelFileError
from driftquilt.learners.base import Learner, Model
from driftquilt.learners.mlp import MLP
from driftquilt.quilt.explanation import Selection
from driftquilt.quilt.method import QuiltModel, TriedBound
from driftquilt.quilt.model_file import read_model, write_model
from driftquilt.search.bayes import Bayes
from driftquilt.search.shared import Shared
from driftquilt.text import json_safe

if TYPE_CHECKING:
    from driftquilt.quilt.classifier import QuiltClassifier

__all__ = [
    "load",
    "pack",
    "save",
    "settings_from_json",
    "settings_to_json",
    "starts_alike",
    "unpack",
]

_SEARCHES = {"Shared": Shared, "Bayes": Bayes}

C = TypeVar("C", bound="QuiltClassifier")


def save(clf: QuiltClassifier, path: str | os.PathLike[str]) -> None:
    """Write a fitted classifier."""
    write_model(path, *pack(clf))


def pack(clf: QuiltClassifier) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Weights and record of a fitted classifier."""
    tensors = {
        f"{fold}.{name}": tensor
        for fold, model in enumerate(clf.model_.models)
        for name, tensor in model.tensors().items()
    }
    # Where it was trained is no part of a model.
    settings, learner = {**clf.get_params(deep=False), "engine": "local"}, clf.learner_
    if type(learner) is MLP:  # settings may have been changed since; the weights have not
        settings |= asdict(learner)
    record = {
        "version": __version__,
        "settings": settings_to_json(settings),
        "learner": None if type(learner) is MLP else learner.settings(),
        "classes": _classes_to_json(clf.classes_),
        "encoder": None if clf.encoder_ is None else clf.encoder_.to_json(),
        "rows": None if clf.encoder_ is not None else [clf.row_dtype_.str, *clf.row_shape_],
        "selection": clf.selection_.to_json(),
        "search": [[json_safe(value) for value in line] for line in clf.search_],
    }
    return tensors, record


def load(cls: type[C], path: str | os.PathLike[str], learner: Learner | None) -> C:
    """Read a classifier that `save` wrote."""
    return unpack(cls, *read_model(path), learner, os.fspath(path))


def unpack(
    cls: type[C],
    tensors: dict[str, NDArray[Any]],
    record: dict[str, Any],
    learner: Learner | None,
    where: str,
) -> C:
    """The classifier that `pack` took apart; `where` it was found is for messages."""
    try:
        return _restore(cls, tensors, record, learner)
    except DriftquiltError:
        raise
    except (LookupError, ArithmeticError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(f"{where} is not a classifier's model file: {error!r}") from error


def _restore(
    cls: type[C], tensors: dict[str, NDArray[Any]], record: dict[str, Any], learner: Learner | None
) -> C:
    if record["learner"] is not None and learner is None:
        raise InputError(
            f"this model was trained by a learner of your own, {record['learner']}; give it "
            "again: QuiltClassifier.load(path, learner=...)"
        )
    clf = cls(**settings_from_json(record["settings"]), learner=learner)
    clf.learner_ = clf._make_learner()
    clf.classes_ = np.array(record["classes"]["values"], dtype=record["classes"]["dtype"])
    clf.selection_ = Selection.from_json(record["selection"])
    models = _models(tensors, clf.learner_, len(clf.selection_.folds), len(clf.classes_))
    clf.model_ = QuiltModel(models=models, selection=clf.selection_)
    clf.search_ = [TriedBound(*line) for line in record["search"]]
    clf.disparity_max_ = clf.selection_.disparity_max
    _restore_input(clf, record)
    if not all(starts_alike(clf.learner_, clf._example(), model) for model in models):
        raise ModelFileError("the weights are not those of a net for the rows it describes")
    return clf


def starts_alike(learner: Learner, X: NDArray[Any], model: Model) -> bool:
    """Whether the learner would start, for rows like X, a net of the model's very shape."""
    try:
        fresh = learner.start(X, model.n_classes, seed=0).tensors()
    except LearnerError:
        return False
    return _shapes(fresh) == _shapes(model.tensors())


def _shapes(tensors: dict[str, NDArray[Any]]) -> dict[str, tuple[Any, ...]]:
    return {name: (tensor.dtype, *tensor.shape) for name, tensor in tensors.items()}


def _models(
    tensors: dict[str, NDArray[Any]], maker: Learner, n_folds: int, n_classes: int
) -> list[Model]:
    by_fold: list[dict[str, NDArray[Any]]] = [{} for _ in range(n_folds)]
    for name, tensor in tensors.items():
        fold, _, rest = name.partition(".")
        by_fold[int(fold)][rest] = tensor
    return [maker.restore(part, n_classes) for part in by_fold]


def _restore_input(clf: QuiltClassifier, record: dict[str, Any]) -> None:
    clf.encoder_ = None if record["encoder"] is None else Encoder.from_json(record["encoder"])
    if clf.encoder_ is None:
        dtype, *shape = record["rows"]
        clf.row_dtype_, clf.row_shape_ = np.dtype(dtype), tuple(shape)
        clf.n_features_in_ = clf.row_shape_[0]
        return
    clf.n_features_in_ = len(clf.encoder_.names_in)
    if clf.encoder_.named:
        clf.feature_names_in_ = np.array(clf.encoder_.names_in, dtype=object)


def settings_to_json(settings: dict[str, Any]) -> dict[str, Any]:
    """The settings of a classifier as JSON knows them; not its learner, which is code."""
    search, weights = settings["search"], settings["class_weight"]
    if not isinstance(search, str):
        if type(search).__name__ not in _SEARCHES:
            raise InputError(f"a model with the search {search!r} cannot be saved: it is code")
        plain = {name: np.asarray(value).tolist() for name, value in asdict(search).items()}
        search = {"kind": type(search).__name__, **plain}
    if isinstance(weights, Mapping):
        weights = [[json_safe(label), float(weight)] for label, weight in weights.items()]
    state = settings["random_state"]
    changed = {
        "engine": engine if isinstance(engine := settings.get("engine"), str) else "local",
        "search": search,
        "class_weight": weights,
        "random_state": int(state) if isinstance(state, int | np.integer) else None,
    }
    plain = {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in settings.items()
        if name != "learner"
    }
    return {**plain, **changed}


def settings_from_json(settings: dict[str, Any]) -> dict[str, Any]:
    """What `settings_to_json` was given."""
    search, weights = settings["search"], settings["class_weight"]
    if isinstance(search, dict):
        search = dict(search)
        kind = _SEARCHES[search.pop("kind")]
        search = kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in search.items()})
    if isinstance(weights, list):
        weights = dict(weights)
    return {**settings, "search": search, "class_weight": weights}


def _classes_to_json(classes: NDArray[Any]) -> dict[str, Any]:
    return {"dtype": classes.dtype.str, "values": classes.tolist()}
