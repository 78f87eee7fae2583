"""Estimators of other libraries: those that `select --model` trains, and how a file stores each.

    kind      estimator                       stored as
    lightgbm  LGBMClassifier                  LightGBM's text
    xgboost   XGBClassifier                   UBJSON
    catboost  CatBoostClassifier              cbm
    hgb       HistGradientBoostingClassifier  skops, like everything else of scikit-learn

Their regressors, `LGBMRegressor` and so on, are of the same kind and stored alike.
skops writes numbers and the names of types, and a file is read only if all of these types are of
scikit-learn or in `_TRUSTED`. Nothing is unpickled, and no file brings code along.

>>> kind_of(HistGradientBoostingClassifier())
'hgb'
>>> Stored.of(HistGradientBoostingClassifier()).format
'skops'
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, Self
from zipfile import ZIP_DEFLATED

import numpy as np
import sklearn
from numpy.typing import NDArray
from sklearn.base import clone, is_regressor
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from driftquilt.errors import InputError, MissingExtraError, ModelFileError
from driftquilt.text import listing

__all__ = ["BOOSTERS", "Stored", "comes_from", "kind_of", "make_booster"]

_SKOPS = "skops"
_PREFIXES = {"lightgbm": "LGBM", "xgboost": "XGB", "catboost": "CatBoost"}
_SETTINGS: dict[str, dict[str, Any]] = {
    "lightgbm": {"verbose": -1},
    "xgboost": {"enable_categorical": True},
    "catboost": {"verbose": False, "allow_writing_files": False},
}
#: The kinds of `make_booster`.
BOOSTERS = (*_PREFIXES, "hgb")
# Parts of HistGradientBoosting that skops does not know to be harmless.
_TRUSTED = [
    "functools.partial",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.utils.validation.check_array",
]


def make_booster(kind: str, *, is_regression: bool = False, **params: Any) -> Any:
    """Return a new estimator with its library's defaults but for `params`; it prints nothing."""
    for package in ("skops" if kind == "hgb" else kind, "pandas"):
        _import(package, kind)
    if kind == "hgb":
        hgb = HistGradientBoostingRegressor if is_regression else HistGradientBoostingClassifier
        return hgb(**params)
    name = _class_name(kind, is_regression=is_regression)
    return getattr(_import(kind, kind), name)(**_SETTINGS[kind] | params)


def _class_name(kind: str, *, is_regression: bool) -> str:
    return f"{_PREFIXES[kind]}{'Regressor' if is_regression else 'Classifier'}"


def kind_of(estimator: Any) -> str:
    """Return the kind of an estimator; that of others is the name of their class."""
    if isinstance(estimator, HistGradientBoostingClassifier | HistGradientBoostingRegressor):
        return "hgb"
    return _find_package(estimator) or type(estimator).__name__


def comes_from(estimator: Any, package: str) -> bool:
    """Whether a class of the estimator is of a package, which need not be installed."""
    return any(cls.__module__.partition(".")[0] == package for cls in type(estimator).__mro__)


def _find_package(estimator: Any) -> str | None:
    """Return which of the libraries an estimator comes from."""
    return next((package for package in _PREFIXES if comes_from(estimator, package)), None)


@dataclass(frozen=True)
class Stored:
    """How the fits of one estimator are stored: the format, and the estimator's parameters.

    With skops, every fit has the parameters.
    """

    format: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    is_regression: bool = False

    @classmethod
    def of(cls, estimator: Any) -> Self:
        """Choose the format; refuse what is code."""
        package = _find_package(estimator)
        if package is None:
            return cls(_SKOPS)
        numbers = bool(is_regressor(estimator))
        if type(estimator).__name__ != _class_name(package, is_regression=numbers):
            raise _not_stored(type(estimator).__qualname__)
        parameters = {name: _plain(name, v) for name, v in estimator.get_params().items()}
        return cls(package, parameters, numbers)

    def make(self, fits: Sequence[Any] = ()) -> Any:
        """Return the estimator without a fit; with skops, from one of its `fits`."""
        if self.format == _SKOPS:
            return clone(fits[0])
        name = _class_name(self.format, is_regression=self.is_regression)
        return getattr(_import(self.format, self.format), name)(**self.parameters)

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` reads."""
        versions = {"scikit-learn": sklearn.__version__} if self.format == _SKOPS else {}
        stored = {"format": self.format, "parameters": dict(self.parameters), "versions": versions}
        return stored | ({"is_regression": True} if self.is_regression else {})

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """Read a format; refuse a skops model of another scikit-learn, whose parts may differ."""
        version = data["versions"].get("scikit-learn", sklearn.__version__)
        if version.split(".")[:2] != sklearn.__version__.split(".")[:2]:
            raise ModelFileError(
                f"the model was saved with scikit-learn {version}, and this is "
                f"{sklearn.__version__}; install that version, or fit and save again"
            )
        return cls(data["format"], data["parameters"], bool(data.get("is_regression")))

    def dump(self, model: Any) -> bytes:
        """Return a fitted estimator as bytes."""
        return _FORMATS[self.format].dump(model)

    def load(self, content: bytes) -> Any:
        """Return the fitted estimator that `dump` was given; LightGBM's as a `LightGBMModel`."""
        return _FORMATS[self.format].load(content, self)


class LightGBMModel:
    """A LightGBM model read from its text; `booster_` is LightGBM's own object."""

    def __init__(self, booster: Any) -> None:
        self.booster_ = booster

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Return the numbers of a regression."""
        numbers: NDArray[np.float64] = np.asarray(self.booster_.predict(X))
        return numbers

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Class probabilities of each row."""
        chances: NDArray[np.float64] = np.asarray(self.booster_.predict(X))
        return chances if chances.ndim > 1 else np.column_stack([1 - chances, chances])


@dataclass(frozen=True)
class _Format:
    dump: Callable[[Any], bytes]
    load: Callable[[bytes, Stored], Any]


def _dump_lightgbm(model: Any) -> bytes:
    text: str = model.booster_.model_to_string()
    return text.encode()


def _load_lightgbm(content: bytes, _: Stored) -> Any:
    return LightGBMModel(_import("lightgbm", "lightgbm").Booster(model_str=content.decode()))


def _dump_xgboost(model: Any) -> bytes:
    return bytes(model.get_booster().save_raw("ubj"))


def _load_xgboost(content: bytes, stored: Stored) -> Any:
    model = stored.make()
    model.load_model(bytearray(content))
    return model


def _dump_catboost(model: Any) -> bytes:
    with tempfile.TemporaryDirectory() as folder:  # it writes to files alone
        path = Path(folder) / "model.cbm"
        model.save_model(str(path), format="cbm")
        return path.read_bytes()


def _load_catboost(content: bytes, stored: Stored) -> Any:
    model = stored.make()
    model.load_model(blob=content)
    return model


def _dump_skops(model: Any) -> bytes:
    io = _import("skops.io", "hgb")
    try:
        content: bytes = io.dumps(model, compression=ZIP_DEFLATED)
        strange = sorted({*io.get_untrusted_types(data=content)} - {*_TRUSTED})
    except (TypeError, AttributeError, NotImplementedError) as error:
        raise _not_stored(type(model).__name__) from error
    if strange:
        raise _not_stored(listing(strange))
    return content


def _load_skops(content: bytes, _: Stored) -> Any:
    return _import("skops.io", "hgb").loads(content, trusted=_TRUSTED)


_FORMATS = {
    "lightgbm": _Format(_dump_lightgbm, _load_lightgbm),
    "xgboost": _Format(_dump_xgboost, _load_xgboost),
    "catboost": _Format(_dump_catboost, _load_catboost),
    _SKOPS: _Format(_dump_skops, _load_skops),
}


def _plain(name: str, value: Any) -> Any:
    """Return the value of a parameter as JSON has it; refuse code."""
    plain = value.item() if isinstance(value, np.generic) else value
    try:
        json.dumps(plain)
    except TypeError as error:
        raise _not_stored(f"{name}={value!r}") from error
    return plain


def _not_stored(what: str) -> InputError:
    return InputError(
        f"an estimator with {what} cannot be saved: it is code. LGBMClassifier, XGBClassifier, "
        "CatBoostClassifier, their regressors and what consists of scikit-learn's own classes can; "
        "else fit again where you predict, with the same rows and sample_weight_"
    )


def _import(name: str, extra: str) -> ModuleType:
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingExtraError(name.partition(".")[0], extra=extra) from error
