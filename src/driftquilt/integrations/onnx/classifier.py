"""A fitted QuiltClassifier as one ONNX graph: raw columns in, labels and probabilities out.

Each column of the table is an input (n, 1) under its name:

    numbers       float64  NaN where missing; booleans are 0 and 1, time spans seconds
    text          string   a sign of the caller's choice where missing
    dates         int64    microseconds since 1970, by the clock as written; lowest if missing
    times of day  int64    microseconds since midnight; lowest if missing

A model with `encode=False` has one input, "X" (n, d) float32. The outputs are

    label          (n,)    whole numbers as int64, other labels as they are
    probabilities  (n, C)  float32, in the order of `classes_`

The graph answers as `predict_proba` does, but for rounding (1e-5). It cannot refuse: what
`predict_proba` would raise an error for, such as an infinite number, gets an answer of no meaning.
How each input is given stands in the metadata, as JSON under "inputs", and the classes too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from driftquilt.data.calendar import CLOCK_PARTS, PARTS, group
from driftquilt.data.columns import FLOAT32_MAX
from driftquilt.data.encoder import Encoder
from driftquilt.errors import InputError, LearnerError
from driftquilt.integrations.onnx.graph import MISSING, ML, Graph, clock_parts, date_parts
from driftquilt.learners.mlp import MLPModel

if TYPE_CHECKING:
    from driftquilt.quilt.classifier import QuiltClassifier

__all__ = ["OUTPUTS", "describe_inputs", "to_onnx"]

OUTPUTS = ("label", "probabilities")
_MATRIX = "X"  # the input of rows that are not encoded

_DTYPES: dict[str, np.dtype[Any]] = {
    "numbers": np.dtype(np.float64),
    "text": np.dtype(np.str_),
    "dates": np.dtype(np.int64),
    "times of day": np.dtype(np.int64),
}


@dataclass(frozen=True)
class _Input:
    """A column of the raw table, what it holds, and the encoder's columns that it became."""

    name: str
    kind: str  # one of those above
    columns: tuple[str, ...]
    categories: tuple[str | None, ...] = ()

    @property
    def dtype(self) -> np.dtype[Any]:
        """How it is given."""
        return _DTYPES[self.kind]


def to_onnx(clf: QuiltClassifier, missing: str) -> bytes:
    """The file's content; `missing` is what stands for a missing text."""
    nets, inputs, classes = _nets(clf), _inputs(clf, missing), _read_classes(clf.classes_)
    graph = Graph([*(one.name for one in inputs), _MATRIX, *OUTPUTS])
    far = min(map(_reach, nets))
    if clf.encoder_ is not None:
        matrix, order = _add_columns(graph, clf.encoder_, inputs, missing, far)
    else:
        matrix, order = _add_matrix(graph, clf.n_features_in_, far)
    probabilities = graph.add("Mean", *(_add_net(graph, matrix, order, net) for net in nets))
    best = graph.add("ArgMax", probabilities, axis=1, keepdims=0)
    graph.output(OUTPUTS[0], graph.add("Gather", graph.constant(classes), best), classes.dtype)
    graph.output(OUTPUTS[1], probabilities, np.float32, width=len(classes))
    about = {"inputs": describe_inputs(clf, missing), "classes": classes.tolist()}
    return graph.to_bytes({name: json.dumps(value) for name, value in about.items()})


def describe_inputs(clf: QuiltClassifier, missing: str) -> list[dict[str, str]]:
    """Name and type of each input, and in words what it holds."""
    if clf.encoder_ is None:
        width = clf.n_features_in_
        return [{"name": _MATRIX, "type": "float32", "holds": f"{width} numbers per row"}]
    words = {
        "numbers": "numbers; NaN where missing",
        "text": f"text; {missing!r} where missing",
        "dates": f"microseconds since 1970 by the clock as written; {MISSING} where missing",
        "times of day": f"microseconds since midnight; {MISSING} where missing",
    }
    return [
        {
            "name": one.name,
            "type": "string" if one.kind == "text" else one.dtype.name,
            "holds": words[one.kind],
        }
        for one in _inputs_of(clf.encoder_)
    ]


def _nets(clf: QuiltClassifier) -> list[MLPModel]:
    nets = [net for net in clf.model_.models if isinstance(net, MLPModel)]
    if len(nets) < len(clf.model_.models):
        raise LearnerError(
            f"the model was trained by a {type(clf.learner_).__name__}, and only nets of the "
            "default learner can be written as ONNX; encode rows with clf.encoder_, and write "
            "your net with the exporter of its library, such as torch.onnx.export"
        )
    return nets


def _reach(net: MLPModel) -> float:
    """How far from 0 a feature may be for no sum in the net to overflow."""
    first, bias, head, offset = (np.abs(values).astype(np.float64) for values in net.layers())
    hidden = 1 + float((first.sum(axis=0) + bias).max())
    return FLOAT32_MAX / (2 * hidden * (1 + float((head.sum(axis=1) + offset).max())))


def _inputs_of(encoder: Encoder) -> list[_Input]:
    """The raw table's columns, in order."""
    inputs = []
    for name, places in group(encoder.columns).items():
        columns = tuple(encoder.columns[place] for place in places)
        categories = tuple(encoder.texts.get(columns[0], ()))
        kind = "text" if categories else "numbers"
        if len(columns) > 1:
            kind = {len(PARTS): "dates", len(CLOCK_PARTS): "times of day"}[len(columns)]
        inputs.append(_Input(name, kind, columns, categories))
    return inputs


def _add_columns(
    graph: Graph, encoder: Encoder, inputs: Sequence[_Input], missing: str, far: float
) -> tuple[str, list[int]]:
    """The matrix (n, d) float32, and which of the encoder's features each of its columns is.

    Numbers come first, then what was missing, then text. No value is farther from 0 than `far`.
    """
    values = {one: graph.input(one.name, one.dtype, width=1) for one in inputs}
    numbers = {one: value for one, value in values.items() if one.kind != "text"}
    parts, order = _add_numbers(graph, encoder, numbers, far) if numbers else ([], [])
    for one in inputs:
        if one.kind == "text":
            signs = [missing if category is None else category for category in one.categories]
            # Zeros for what is none of them, which is what the encoder does.
            hot = graph.add("OneHotEncoder", values[one], domain=ML, cats_strings=signs, zeros=1)
            parts.append(graph.add("Flatten", hot, axis=1))
            order += encoder.texts[one.name].values()
    return graph.add("Concat", *parts, axis=1), order


def _add_numbers(
    graph: Graph, encoder: Encoder, values: dict[_Input, str], far: float
) -> tuple[list[str], list[int]]:
    """All columns of numbers at once: scaled, and 1 where one is missing that was so at fit."""
    made = {"numbers": lambda _, value: value, "dates": date_parts, "times of day": clock_parts}
    raw = graph.add("Concat", *(made[one.kind](graph, at) for one, at in values.items()), axis=1)
    which = np.array([encoder.names.index(name) for one in values for name in one.columns])
    absent = graph.add("IsNaN", raw)
    scaled = _scale(graph, raw, absent, encoder.mean[which], encoder.deviation[which], far)
    parts, order = [scaled], encoder.places[which].tolist()
    flagged = np.flatnonzero(encoder.flags[which] >= 0)
    if len(flagged):
        flags = graph.add("Gather", absent, graph.constant(flagged), axis=1)
        parts.append(graph.cast(flags, np.float32))
        order += encoder.flags[which[flagged]].tolist()
    return parts, order


def _scale(
    graph: Graph,
    raw: str,
    absent: str,
    mean: NDArray[np.float64],
    deviation: NDArray[np.float64],
    far: float,
) -> str:
    """As `Encoder.encode` does: in float64, 0 where missing."""
    scaled = graph.add("Sub", raw, graph.constant(mean))
    scaled = graph.add("Div", scaled, graph.constant(deviation))
    low, zero, high = (graph.constant(np.array(v)) for v in (-far, 0.0, far))
    bounded = graph.add("Clip", scaled, low, high)
    return graph.cast(graph.add("Where", absent, zero, bounded), np.float32)


def _add_matrix(graph: Graph, width: int, far: float) -> tuple[str, list[int]]:
    """Rows that are not encoded, and which feature of a net each of their columns is."""
    bounds = (graph.constant(np.array(bound, dtype=np.float32)) for bound in (-far, far))
    matrix = graph.add("Clip", graph.input(_MATRIX, np.float32, width=width), *bounds)
    return matrix, list(range(width))


def _add_net(graph: Graph, matrix: str, order: Sequence[int], net: MLPModel) -> str:
    """Its probabilities; `order` has the net's feature for each column of the matrix."""
    first, bias, head, offset = net.layers()
    weights = [graph.constant(values) for values in (first[order], bias, head, offset)]
    hidden = graph.add("Relu", graph.add("Gemm", matrix, *weights[:2]))
    return graph.add("Softmax", graph.add("Gemm", hidden, *weights[2:], transB=1), axis=1)


def _inputs(clf: QuiltClassifier, missing: str) -> list[_Input]:
    """The raw columns, if ONNX can take them under their names and with this sign."""
    inputs = [] if clf.encoder_ is None else _inputs_of(clf.encoder_)
    free = _free_sign(inputs)
    if not isinstance(missing, str):
        raise InputError(
            f"missing is {missing!r}, but a text stands for a missing one in ONNX; give one that "
            f"no column holds, such as to_onnx(missing={free!r})"
        )
    _refuse_unwritable("the sign for a missing text", [missing])
    for one in inputs:
        where = f"column {one.name!r}"
        if one.name in ("", *OUTPUTS):
            raise InputError(
                f"{where} cannot be an input of an ONNX graph, whose outputs are called "
                f"{OUTPUTS[0]!r} and {OUTPUTS[1]!r}; rename it, and fit again"
            )
        if missing in one.categories:
            raise InputError(
                f"{where} holds the text {missing!r}, which would stand for a missing one; give "
                f"another sign, such as to_onnx(missing={free!r})"
            )
        _refuse_unwritable(where, [one.name, *(c for c in one.categories if c is not None)])
    return inputs


def _free_sign(inputs: Sequence[_Input]) -> str:
    """A text that is none of the categories."""
    taken = {category for one in inputs for category in one.categories}
    return next(sign for n in count(1) if (sign := "?" * n) not in taken)


def _read_classes(classes: NDArray[Any]) -> NDArray[Any]:
    """The classes as ONNX knows them."""
    read = np.array(classes.tolist())
    if read.dtype.kind not in "biufU":
        raise InputError(
            f"the labels {classes.tolist()} are of no kind that ONNX has; fit with labels that "
            "are all numbers, all booleans or all text"
        )
    if read.dtype.kind == "U":  # which has lost zeros at the end
        _refuse_unwritable("a label", classes.tolist())
    return read


def _refuse_unwritable(where: str, texts: Sequence[str]) -> None:
    """ONNX has text as UTF-8, and runtimes end it at a zero."""
    for text in texts:
        if "\0" in text or any("\ud800" <= letter <= "\udfff" for letter in text):
            raise InputError(
                f"{where} has a zero character or half a character in {text!r}, which ONNX cannot "
                "hold; clean the text, and fit again"
            )
