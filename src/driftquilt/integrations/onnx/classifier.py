"""A fitted QuiltClassifier as one ONNX graph: raw columns in, labels and probabilities out.

Each column of the table is an input of its own; `columns` says how its values are given. A model
with `encode=False` has one input, "X" (n, d) float32. The outputs are

    label          (n,)    whole numbers as int64, other labels as they are
    probabilities  (n, C)  float32, in the order of `classes_`

The graph answers as `predict_proba` does, but for rounding (1e-5). It cannot refuse: what
`predict_proba` would raise an error for, such as an infinite number, gets an answer of no meaning.
How each input is given stands in the metadata, as JSON under "inputs", and the classes too.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from driftquilt.data.columns import FLOAT32_MAX
from driftquilt.errors import InputError, LearnerError
from driftquilt.integrations.onnx.columns import Input, add_columns, inputs_of
from driftquilt.integrations.onnx.graph import Graph
from driftquilt.integrations.onnx.moments import MISSING
from driftquilt.learners.mlp import MLPModel

if TYPE_CHECKING:
    from driftquilt.quilt.classifier import QuiltClassifier

__all__ = ["OUTPUTS", "describe_inputs", "to_onnx"]

OUTPUTS = ("label", "probabilities")
_MATRIX = "X"  # the input of rows that are not encoded


def to_onnx(clf: QuiltClassifier, missing: str) -> bytes:
    """The file's content; `missing` is what stands for a missing text."""
    nets, inputs, classes = _nets(clf), _inputs(clf, missing), _read_classes(clf.classes_)
    graph = Graph([*(one.name for one in inputs), _MATRIX, *OUTPUTS])
    far = min(map(_reach, nets))
    if inputs:
        matrix, order = add_columns(graph, inputs, missing, far)
    else:
        matrix, order = _add_matrix(graph, clf.n_features_in_, far)
    probabilities = graph.add("Mean", *(_add_net(graph, matrix, order, net) for net in nets))
    best = graph.add("ArgMax", probabilities, axis=1, keepdims=0)
    graph.output(OUTPUTS[0], graph.add("Gather", graph.constant(classes), best), classes.dtype)
    graph.output(OUTPUTS[1], probabilities, np.float32, width=len(classes))
    told = {"inputs": describe_inputs(clf, missing), "classes": classes.tolist()}
    return graph.to_bytes({name: json.dumps(value) for name, value in told.items()})


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
        for one in inputs_of(clf.encoder_)
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


def _add_matrix(graph: Graph, width: int, far: float) -> tuple[str, list[int]]:
    """Rows that are not encoded, and which feature of a net each of their columns is."""
    bounds = (graph.constant(np.array(bound, dtype=np.float32)) for bound in (-far, far))
    matrix = graph.add("Clip", graph.input(_MATRIX, np.float32, width=width), *bounds)
    return matrix, list(range(width))


def _add_net(graph: Graph, matrix: str, order: Sequence[int], net: MLPModel) -> str:
    """Its probabilities; `order` tells which feature of the net each column of the matrix is."""
    first, bias, head, offset = net.layers()
    weights = [graph.constant(values) for values in (first[order], bias, head, offset)]
    hidden = graph.add("Relu", graph.add("Gemm", matrix, *weights[:2]))
    return graph.add("Softmax", graph.add("Gemm", hidden, *weights[2:], transB=1), axis=1)


def _inputs(clf: QuiltClassifier, missing: str) -> list[Input]:
    """The raw columns, if ONNX can take them under their names and with this sign."""
    inputs = [] if clf.encoder_ is None else inputs_of(clf.encoder_)
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


def _free_sign(inputs: Sequence[Input]) -> str:
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
