"""A fitted model in one file: weights as safetensors, everything else as JSON in its header.

Weights of all nets are tensors named "number.name"; settings, classes, encoding and explanation
are one JSON record. A `QuiltSelector` has bytes for weights, and the kind of its estimator in the
record; a regression says so as its `task`, and a net for one keeps predictions of held-out rows.
Rows are not saved, and neither is code: a model trained by your own learner needs that learner
again. The header has a SHA-256 of weights and record, so damage is noticed before anything is used.
Nothing is ever unpickled. A file is replaced as a whole, or not at all.

>>> import numpy as np, tempfile, pathlib
>>> path = pathlib.Path(tempfile.mkdtemp()) / "model.safetensors"
>>> write_model(path, {"a": np.arange(3.0)}, {"classes": ["ham", "spam"]})
>>> tensors, record = read_model(path)
>>> tensors["a"], record
(array([0., 1., 2.]), {'classes': ['ham', 'spam']})
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from driftquilt import __version__
from driftquilt.data.encoder import Encoder
from driftquilt.errors import DriftquiltError, InputError, LearnerError, ModelFileError
from driftquilt.files import atomic_write
from driftquilt.learners.base import Learner, Model
from driftquilt.learners.mlp import MLP, MLPRegression
from driftquilt.quilt.explanation import Selection
from driftquilt.quilt.method import QuiltModel, TriedBound
from driftquilt.quilt.metrics import scoring_from_json, scoring_to_json
from driftquilt.search.bayes import Bayes
from driftquilt.search.shared import Shared
from driftquilt.text import json_safe

if TYPE_CHECKING:
    from driftquilt.quilt.estimator import QuiltEstimator

__all__ = [
    "CLASSIFICATION",
    "FORMAT",
    "HELD_OUT",
    "NET",
    "REGRESSION",
    "class_weights_of",
    "classes_from_json",
    "classes_to_json",
    "pack",
    "read_model",
    "settings_from_json",
    "settings_to_json",
    "starts_alike",
    "threshold_of",
    "unpack",
    "write_model",
]

#: Raised when files of the version before can no longer be read.
FORMAT = 1
#: The kind of a model that is a net; that of a `QuiltSelector` is its estimator's.
NET = "net"
#: The tensors of held-out rows begin so.
HELD_OUT = "held_out"
_START = 9  # bytes by which a safetensors file is known
_SEARCHES = {"Shared": Shared, "Bayes": Bayes}

#: The tasks of a model; files that name none are of the first.
CLASSIFICATION, REGRESSION = "classification", "regression"

C = TypeVar("C", bound="QuiltEstimator")


def pack(clf: QuiltEstimator) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Weights and record of a fitted estimator."""
    tensors = {
        f"{number}.{name}": tensor
        for number, model in enumerate(clf.model_.models)
        for name, tensor in model.tensors().items()
    }
    # Where a model was trained is not part of it.
    settings, learner = {**clf.get_params(deep=False), "engine": "local"}, clf.learner_
    is_net = type(learner) in (MLP, MLPRegression)
    if isinstance(learner, MLP) and is_net:  # settings may have changed since; weights have not
        settings |= learner.as_parameters()
    of_target, target = clf.pack_target()
    record = {
        "version": __version__,
        "settings": settings_to_json(settings),
        "learner": None if is_net else learner.settings(),
        "encoder": None if clf.encoder_ is None else clf.encoder_.to_json(),
        "rows": None if clf.encoder_ is not None else [clf.row_dtype_.str, *clf.row_shape_],
        "shares": list(clf.model_.shares),
        "selection": clf.selection_.to_json(),
        "search": json_safe(clf.search_),
        **target,
    }
    return tensors | of_target, record


def unpack(
    cls: type[C],
    tensors: dict[str, NDArray[Any]],
    record: dict[str, Any],
    learner: Learner | None,
    where: str,
) -> C:
    """Return the estimator that `pack` took apart; `where` it was found is for messages."""
    if (kind := record.get("kind", NET)) != NET:
        raise ModelFileError(
            f"{where} holds a model of the kind {kind}; read it with QuiltSelector.load"
        )
    if (task := record.get("task", CLASSIFICATION)) != cls.task:
        raise ModelFileError(
            f"{where} holds a {task} model, and {cls.__name__} is for {cls.task}; read it with "
            "driftquilt.load_model"
        )
    try:
        return _restore(cls, tensors, record, learner)
    except DriftquiltError:
        raise
    except (LookupError, ArithmeticError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(f"{where} is not a net's model file: {error!r}") from error


def _restore(
    cls: type[C], tensors: dict[str, NDArray[Any]], record: dict[str, Any], learner: Learner | None
) -> C:
    if record["learner"] is not None and learner is None:
        raise InputError(
            f"this model was trained by your own learner, {record['learner']}; pass it "
            "again: QuiltClassifier.load(path, learner=...)"
        )
    own: dict[str, Any] = {} if learner is None else {"learner": learner}
    clf = cls(**settings_from_json(record["settings"]), **own)
    clf.learner_ = clf.make_learner()
    n_outputs = clf.unpack_target(tensors, record)
    clf.selection_ = Selection.from_json(record["selection"])
    shares = tuple(map(float, record.get("shares", ())))
    n_models = len(shares) or len(clf.selection_.folds)
    models = _models(tensors, clf.learner_, n_models, n_outputs)
    clf.model_ = QuiltModel(models=models, shares=shares, selection=clf.selection_)
    clf.search_ = [TriedBound(*line) for line in record["search"]]
    clf.disparity_max_ = clf.selection_.disparity_max
    _restore_input(clf, record)
    if not all(starts_alike(clf.learner_, clf.example_row(), model) for model in models):
        raise ModelFileError("the weights are not those of a net for the rows it describes")
    return clf


def classes_to_json(classes: NDArray[Any]) -> dict[str, Any]:
    """Return the classes as JSON knows them."""
    return {"dtype": classes.dtype.str, "values": classes.tolist()}


def classes_from_json(record: dict[str, Any]) -> NDArray[Any]:
    """Return what `classes_to_json` was given."""
    return np.array(record["values"], dtype=record["dtype"])


def class_weights_of(record: dict[str, Any], n_classes: int) -> NDArray[np.float64] | None:
    """Return the weights of classes; none in a file whose probabilities they are part of."""
    weights = record.get("class_weights")
    if weights is not None and len(weights) != n_classes:
        raise ValueError("not every class has a weight")
    return None if weights is None else np.array(weights, dtype=np.float64)


def threshold_of(record: dict[str, Any], n_classes: int) -> float | None:
    """Return the threshold of two classes; early files have none."""
    threshold = record.get("threshold")
    if threshold is not None and (n_classes != 2 or not 0 <= threshold <= 1):  # noqa: PLR2004
        raise ValueError("a threshold is a probability, and for two classes")
    return None if threshold is None else float(threshold)


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
    tensors: dict[str, NDArray[Any]], maker: Learner, n_models: int, n_classes: int
) -> list[Model]:
    by_model: list[dict[str, NDArray[Any]]] = [{} for _ in range(n_models)]
    for name, tensor in tensors.items():
        number, _, rest = name.partition(".")
        if number != HELD_OUT:
            by_model[int(number)][rest] = tensor
    return [maker.restore(part, n_classes) for part in by_model]


def _restore_input(clf: QuiltEstimator, record: dict[str, Any]) -> None:
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
    """Return the settings of an estimator as JSON knows them; not its learner, which is code."""
    search = settings["search"]
    if not isinstance(search, str):
        if type(search).__name__ not in _SEARCHES:
            raise InputError(f"a model with the search {search!r} cannot be saved: it is code")
        plain = {name: np.asarray(value).tolist() for name, value in asdict(search).items()}
        search = {"kind": type(search).__name__, **plain}
    state = settings["random_state"]
    changed = {
        "engine": engine if isinstance(engine := settings.get("engine"), str) else "local",
        "search": search,
        "random_state": int(state) if isinstance(state, int | np.integer) else None,
    }
    if "quantiles" in settings:
        changed["quantiles"] = [*map(float, settings["quantiles"])]
    else:
        weights = settings["class_weight"]
        if isinstance(weights, Mapping):
            weights = [[json_safe(label), float(weight)] for label, weight in weights.items()]
        changed |= {"class_weight": weights, "scoring": scoring_to_json(settings.get("scoring"))}
    plain = {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in settings.items()
        if name != "learner"
    }
    return {**plain, **changed}


def settings_from_json(settings: dict[str, Any]) -> dict[str, Any]:
    """Return what `settings_to_json` was given."""
    search = settings["search"]
    if isinstance(search, dict):
        search = dict(search)
        kind = _SEARCHES[search.pop("kind")]
        search = kind(**{k: tuple(v) if isinstance(v, list) else v for k, v in search.items()})
    if "quantiles" in settings:
        return {**settings, "search": search, "quantiles": tuple(settings["quantiles"])}
    weights = settings["class_weight"]
    if isinstance(weights, list):
        weights = dict(weights)
    encode = "standard" if settings["encode"] is True else settings["encode"]  # an earlier version
    scoring = scoring_from_json(settings.get("scoring"))  # early files have none
    changed = {"search": search, "class_weight": weights, "encode": encode, "scoring": scoring}
    return {**settings, **changed}


def write_model(
    path: str | os.PathLike[str], tensors: dict[str, NDArray[Any]], record: dict[str, Any]
) -> None:
    """Write the weights and the record, replacing what stands at `path`."""
    target = Path(path)
    if target.is_dir() or not target.parent.is_dir():
        reason = "is a folder" if target.is_dir() else f"there is no folder {target.parent}"
        raise ModelFileError(f"cannot write a model to {target}: {reason}; choose another path")
    text = json.dumps(record)
    header = {"driftquilt": text, "format": str(FORMAT), "sha256": _digest(tensors, text)}
    with atomic_write(target) as file:
        file.write(_sort_header(save(tensors, metadata=header)))


def read_model(path: str | os.PathLike[str]) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """Weights and record of a model file; ModelFileError for anything else."""
    _refuse_other_files(Path(path))
    try:
        with safe_open(os.fspath(path), framework="numpy") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError as error:
        raise ModelFileError(f"there is no model file at {path}") from error
    except (SafetensorError, OSError, ValueError, TypeError) as error:
        raise ModelFileError(f"{path} is damaged or not a model file: {error}") from error
    if "driftquilt" not in header:
        raise ModelFileError(f"{path} is a safetensors file, but not one that driftquilt wrote")
    if header.get("format") != str(FORMAT):
        raise ModelFileError(
            f"{path} has format {header.get('format')}, this version reads {FORMAT}; "
            "install the driftquilt that wrote it, or a newer one"
        )
    if header.get("sha256") != _digest(tensors, header["driftquilt"]):
        raise ModelFileError(f"{path} is damaged: its checksum does not match; save it again")
    return tensors, json.loads(header["driftquilt"])


def _sort_header(content: bytes) -> bytes:
    """Sort the header, which safetensors writes in another order each time."""
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    header["__metadata__"] = dict(sorted(header["__metadata__"].items()))
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)  # weights begin at a multiple of eight
    return len(text).to_bytes(8, "little") + text + content[end:]


def _refuse_other_files(path: Path) -> None:
    """Refuse a folder, and a file that begins like something else."""
    if path.is_dir():
        models = sorted(path.glob("*.safetensors"))
        hint = f"its model, {models[0]}" if models else "a model file; it holds none"
        raise ModelFileError(f"{path} is a folder; name {hint}")
    if not path.is_file():
        return
    with path.open("rb") as file:
        start = file.read(_START)
    if len(start) == _START and start[-1:] != b"{":  # eight bytes of length, then JSON
        raise ModelFileError(
            f"{path} is not a model file; name one that `driftquilt select` or `save` wrote, such "
            "as model.safetensors"
        )


def _digest(tensors: dict[str, NDArray[Any]], text: str) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype.str} {tensor.shape}".encode())
        digest.update(np.ascontiguousarray(tensor).tobytes())
    return digest.hexdigest()
