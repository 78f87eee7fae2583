"""A fitted net as one ONNX graph: raw columns in, labels and probabilities or numbers out.

Each column of the table is an input (n, 1) under its name:

    numbers       float64  NaN where missing; booleans are 0 and 1, time spans seconds
    text          string   a sign of the caller's choice where missing
    dates         int64    microseconds since 1970, by the clock as written; lowest if missing
    times of day  int64    microseconds since midnight; lowest if missing

A model with `encode=False` has one input, "X" (n, d) float32. The outputs are

    label          (n,)    whole numbers as int64, other labels as they are
    probabilities  (n, C)  float32, in the order of `classes_`

and of a QuiltRegressor

    prediction  (n,)    float64
    interval    (n, 2)  float64, for the coverage that was asked for

The graph answers as `predict_proba` does, but for rounding (1e-5). It cannot refuse: what
`predict_proba` would raise an error for, such as an infinite number, gets an answer of no meaning.
How each input is given stands in the metadata, as JSON under "inputs", and the classes too.

The graph is made node by node; a value of it is a name. Those of inputs and outputs are the
caller's, all others are made up and never meet them. The format is an old one on purpose, so that
runtimes of the last years read it.

Dates and times of day become the numbers that `data.calendar` makes of them. They are whole
numbers, because the last instant of a day, as seconds in floating point, would be the next day.

    parts  (n, 6) or (n, 2)  float64, NaN where missing, in the order of `PARTS`

The calendar repeats itself every 400 years, so one table of where its years begin is enough.

>>> graph = Graph(["x"])
>>> x = graph.input("x", np.float64, width=1)
>>> graph.output("twice", graph.add("Add", x, x), np.float64, width=1)
>>> b"driftquilt" in graph.to_bytes({"made": "here"})
True
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from driftquilt import __version__
from driftquilt.data.calendar import CLOCK_PARTS, PARTS, group
from driftquilt.data.columns import FLOAT32_MAX
from driftquilt.data.encoder import Encoder
from driftquilt.errors import InputError, LearnerError, MissingExtraError
from driftquilt.learners.mlp import MLPModel, RegressionModel
from driftquilt.quilt.regressor import QuiltRegressor

if TYPE_CHECKING:
    import onnx

    from driftquilt.quilt.classifier import QuiltClassifier

__all__ = ["NUMBER_OUTPUTS", "OUTPUTS", "describe_inputs", "to_onnx"]

OUTPUTS = ("label", "probabilities")
NUMBER_OUTPUTS = ("prediction", "interval")
_MATRIX = "X"  # the input of rows that are not encoded

_DTYPES: dict[str, np.dtype[Any]] = {
    "numbers": np.dtype(np.float64),
    "text": np.dtype(np.str_),
    "dates": np.dtype(np.int64),
    "times of day": np.dtype(np.int64),
}

ML = "ai.onnx.ml"  # the operators that know text
_FORMAT, _OPERATORS = 8, {"": 17, ML: 3}
_ROWS = "rows"  # the name of their number, which is open

MISSING = np.iinfo(np.int64).min
_DAY = 86_400 * 10**6  # microseconds
_THURSDAY = 3  # 1 January 1970, Mondays being 0
_TURN = np.arange("2000", "2401", dtype="M8[Y]").astype("M8[D]").astype(np.int64)
_YEARS = _TURN - _TURN[0]  # the day on which each of 400 years begins, and the one after
_LENGTHS = np.diff(_YEARS, append=_YEARS[-1] + 366)


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


def to_onnx(clf: QuiltClassifier | QuiltRegressor, missing: str, coverage: float = 0.8) -> bytes:
    """Return the file's content; `missing` is what stands for a missing text.

    `coverage` is that of a regressor's intervals.
    """
    nets, inputs = _nets(clf), _inputs(clf, missing)
    graph = Graph([*(one.name for one in inputs), _MATRIX, *_outputs(clf)])
    far = min(map(_reach, nets))
    if clf.encoder_ is not None:
        matrix, order = _add_columns(graph, clf.encoder_, inputs, missing, far)
    else:
        matrix, order = _add_matrix(graph, clf.n_features_in_, far)
    answers = [_add_net(graph, matrix, order, net) for net in nets]
    mean = _add_mean(graph, answers, clf.model_.shares)
    about: dict[str, Any] = {"inputs": describe_inputs(clf, missing)}
    if isinstance(clf, QuiltRegressor):
        _add_numbers_out(graph, mean, clf, coverage)
        about["coverage"] = coverage
    else:
        about["classes"] = _add_classes_out(graph, mean, clf)
    return graph.to_bytes({name: json.dumps(value) for name, value in about.items()})


def _outputs(clf: QuiltClassifier | QuiltRegressor) -> tuple[str, str]:
    return NUMBER_OUTPUTS if isinstance(clf, QuiltRegressor) else OUTPUTS


def _add_classes_out(graph: Graph, probabilities: str, clf: QuiltClassifier) -> list[Any]:
    """Give labels and probabilities; return the classes."""
    classes, weighed = _read_classes(clf.classes_), probabilities
    if clf.answer_weights is not None:
        weights = graph.constant(clf.answer_weights.astype(np.float32))
        weighed = graph.add("Mul", probabilities, weights)
    best = graph.add("ArgMax", weighed, axis=1, keepdims=0)
    graph.output(OUTPUTS[0], graph.add("Gather", graph.constant(classes), best), classes.dtype)
    graph.output(OUTPUTS[1], probabilities, np.float32, width=len(classes))
    labels: list[Any] = classes.tolist()
    return labels


def _add_numbers_out(graph: Graph, outputs: str, clf: QuiltRegressor, coverage: float) -> None:
    """Give the number of each row and its interval, as `predict` and `predict_interval` do."""
    loss, target = clf.net_loss, clf.target_
    spread, center = (graph.constant(np.array(v)) for v in (target.spread, target.middle))
    rising = graph.sort(graph.cast(outputs, np.float64), loss.n_outputs)
    weights, shift = map(graph.constant, clf.interval_rule(coverage))
    ends = graph.add("Add", graph.add("MatMul", rising, weights), shift)
    middle, low, high = (
        graph.add("Gather", values, graph.constant(np.array(place)), axis=1)
        for values, place in ((rising, [loss.middle]), (ends, [0]), (ends, [1]))
    )
    low, high = graph.add("Min", low, middle), graph.add("Max", high, middle)
    both = graph.add("Concat", low, high, axis=1)
    number = graph.add("Squeeze", middle, graph.constant(np.array([1])))
    for name, value, width in zip(NUMBER_OUTPUTS, (number, both), (None, 2), strict=True):
        restored = graph.add("Add", graph.add("Mul", value, spread), center)
        graph.output(name, restored, np.float64, width=width)


def describe_inputs(clf: QuiltClassifier | QuiltRegressor, missing: str) -> list[dict[str, str]]:
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


def _nets(clf: QuiltClassifier | QuiltRegressor) -> list[MLPModel | RegressionModel]:
    nets: list[MLPModel | RegressionModel] = [
        net for net in clf.model_.models if isinstance(net, MLPModel | RegressionModel)
    ]
    if len(nets) < len(clf.model_.models):
        raise LearnerError(
            f"the model was trained by a {type(clf.learner_).__name__}, and only nets of the "
            "default learner can be written as ONNX; encode rows with clf.encoder_, and write "
            "your net with the exporter of its library, such as torch.onnx.export"
        )
    return nets


def _reach(net: MLPModel | RegressionModel) -> float:
    """How far from 0 a feature may be for no sum in the net to overflow."""
    first, bias, head, offset = (np.abs(values).astype(np.float64) for values in net.layers())
    hidden = 1 + float((first.sum(axis=0) + bias).max())
    return FLOAT32_MAX / (2 * hidden * (1 + float((head.sum(axis=1) + offset).max())))


def _inputs_of(encoder: Encoder) -> list[_Input]:
    """Return the raw table's columns, in order."""
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
    """Return the matrix (n, d) float32, and which of the encoder's features each of its columns is.

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
    scaled = _scale(graph, raw, absent, encoder, which, far)
    parts, order = [scaled], encoder.places[which].tolist()
    flagged = np.flatnonzero(encoder.flags[which] >= 0)
    if len(flagged):
        flags = graph.add("Gather", absent, graph.constant(flagged), axis=1)
        parts.append(graph.cast(flags, np.float32))
        order += encoder.flags[which[flagged]].tolist()
    return parts, order


def _scale(
    graph: Graph, raw: str, absent: str, encoder: Encoder, which: NDArray[np.intp], far: float
) -> str:
    """As `Encoder.encode` does: in float64, 0 where missing."""
    low, zero, high = (graph.constant(np.array(v)) for v in (-far, 0.0, far))
    scaled = graph.add("Sub", raw, graph.constant(encoder.mean[which]))
    scaled = graph.add("Div", scaled, graph.constant(encoder.deviation[which]))
    if len(encoder.ends.lowest):
        lowest, highest = (graph.constant(ends[which]) for ends in encoder.ends)
        scaled = graph.add("Max", graph.add("Min", scaled, highest), lowest)
    by_rank = [at for at, number in enumerate(which) if len(encoder.knots.column(number)[0])]
    if by_rank:
        present = graph.add("Where", absent, zero, raw)
        columns = [
            _interpolate(graph, present, at, *encoder.knots.column(which[at])) for at in by_rank
        ]
        rest = [at for at in range(len(which)) if at not in by_rank]
        if rest:
            columns.insert(0, graph.add("Gather", scaled, graph.constant(np.array(rest)), axis=1))
        back = graph.constant(np.argsort([*rest, *by_rank]))
        scaled = graph.add("Gather", graph.add("Concat", *columns, axis=1), back, axis=1)
    bounded = graph.add("Clip", scaled, low, high)
    return graph.cast(graph.add("Where", absent, zero, bounded), np.float32)


def _interpolate(
    graph: Graph,
    rows: str,
    column: int,
    knots: NDArray[np.float64],
    scores: NDArray[np.float64],
) -> str:
    """Put a column (n, 1) through its knots; after the last one it does not rise."""
    widths, rises = np.append(np.diff(knots), 1.0), np.append(np.diff(scores), 0.0)
    value = graph.add("Gather", rows, graph.constant(np.array([column])), axis=1)
    value = graph.add("Clip", value, *(graph.constant(np.array(knots[end])) for end in (0, -1)))
    passed = graph.add("GreaterOrEqual", value, graph.constant(knots[1:]))
    axis = graph.constant(np.array([1]))
    piece = graph.add("ReduceSum", graph.cast(passed, np.int32), axis, keepdims=1)
    start, width, score, rise = (
        graph.add("Gather", graph.constant(values), piece)
        for values in (knots, widths, scores, rises)
    )
    share = graph.add("Div", graph.add("Sub", value, start), width)
    return graph.add("Add", score, graph.add("Mul", share, rise))


def _add_matrix(graph: Graph, width: int, far: float) -> tuple[str, list[int]]:
    """Rows that are not encoded, and which feature of a net each of their columns is."""
    bounds = (graph.constant(np.array(bound, dtype=np.float32)) for bound in (-far, far))
    matrix = graph.add("Clip", graph.input(_MATRIX, np.float32, width=width), *bounds)
    return matrix, list(range(width))


def _add_net(
    graph: Graph, matrix: str, order: Sequence[int], net: MLPModel | RegressionModel
) -> str:
    """Its probabilities; `order` has the net's feature for each column of the matrix."""
    first, bias, head, offset = net.layers()
    weights = [graph.constant(values) for values in (first[order], bias, head, offset)]
    hidden = graph.add("Relu", graph.add("Gemm", matrix, *weights[:2]))
    outputs = graph.add("Gemm", hidden, *weights[2:], transB=1)
    return outputs if isinstance(net, RegressionModel) else graph.add("Softmax", outputs, axis=1)


def _add_mean(graph: Graph, answers: Sequence[str], shares: Sequence[float]) -> str:
    """Return the mean of the answers, by their shares if they have any."""
    if not shares:
        return graph.add("Mean", *answers)
    weighed = [
        graph.add("Mul", answer, graph.constant(np.array(share, dtype=np.float32)))
        for answer, share in zip(answers, shares, strict=True)
    ]
    return graph.add("Sum", *weighed)


def _inputs(clf: QuiltClassifier | QuiltRegressor, missing: str) -> list[_Input]:
    """Return the raw columns, if ONNX can take them under their names and with this sign."""
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
        if one.name in ("", *_outputs(clf)):
            first, second = _outputs(clf)
            raise InputError(
                f"{where} cannot be an input of an ONNX graph, whose outputs are called "
                f"{first!r} and {second!r}; rename it, and fit again"
            )
        if missing in one.categories:
            raise InputError(
                f"{where} holds the text {missing!r}, which would stand for a missing one; give "
                f"another sign, such as to_onnx(missing={free!r})"
            )
        _refuse_unwritable(where, [one.name, *(c for c in one.categories if c is not None)])
    return inputs


def _free_sign(inputs: Sequence[_Input]) -> str:
    """Return a text that is not one of the categories."""
    taken = {category for one in inputs for category in one.categories}
    return next(sign for n in count(1) if (sign := "?" * n) not in taken)


def _read_classes(classes: NDArray[Any]) -> NDArray[Any]:
    """Return the classes as ONNX knows them."""
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


class Graph:
    """Inputs, nodes, constants and outputs; `taken` are the names that the caller will use."""

    def __init__(self, taken: Collection[str]) -> None:
        self._onnx = _onnx()
        self._names = (name for number in count() if (name := f"_{number}") not in taken)
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def input(self, name: str, dtype: DTypeLike, *, width: int) -> str:
        """Return a table of so many columns that is given under this name."""
        self._inputs.append(self._describe(name, dtype, [_ROWS, width]))
        return name

    def constant(self, values: NDArray[Any]) -> str:
        """Numbers, booleans or text that never change."""
        name = next(self._names)
        values = values.astype(object) if values.dtype.kind == "U" else values
        self._constants.append(self._onnx.numpy_helper.from_array(values, name))
        return name

    def add(self, operator: str, *values: str, domain: str = "", **attributes: Any) -> str:
        """Return what an operator makes of values."""
        name = next(self._names)
        self._node(operator, values, name, domain, attributes)
        return name

    def sort(self, values: str, width: int) -> str:
        """Return each row of so many columns in rising order."""
        name, places = next(self._names), next(self._names)
        n_kept = self.constant(np.array([width], dtype=np.int64))
        make = self._onnx.helper.make_node
        self._nodes.append(make("TopK", [values, n_kept], [name, places], largest=0))
        return name

    def cast(self, value: str, dtype: DTypeLike) -> str:
        """Return the value as another type."""
        return self.add("Cast", value, to=self._kind(dtype))

    def output(self, name: str, value: str, dtype: DTypeLike, *, width: int | None = None) -> None:
        """Give a value under this name: one per row, or so many."""
        self._node("Identity", [value], name, "", {})
        shape = [_ROWS] if width is None else [_ROWS, width]
        self._outputs.append(self._describe(name, dtype, shape))

    def to_bytes(self, about: Mapping[str, str]) -> bytes:
        """Return the file's content; `about` is what a runtime shows as its metadata."""
        helper = self._onnx.helper
        graph = helper.make_graph(
            self._nodes, "driftquilt", self._inputs, self._outputs, self._constants
        )
        model = helper.make_model(
            graph,
            producer_name="driftquilt",
            producer_version=__version__,
            ir_version=_FORMAT,
            opset_imports=[helper.make_opsetid(*item) for item in _OPERATORS.items()],
        )
        helper.set_model_props(model, dict(about))
        content: bytes = model.SerializeToString(deterministic=True)
        return content

    def _node(
        self,
        operator: str,
        values: Collection[str],
        name: str,
        domain: str,
        attributes: Mapping[str, Any],
    ) -> None:
        make = self._onnx.helper.make_node
        self._nodes.append(make(operator, list(values), [name], domain=domain, **attributes))

    def _describe(self, name: str, dtype: DTypeLike, shape: list[Any]) -> onnx.ValueInfoProto:
        described: onnx.ValueInfoProto = self._onnx.helper.make_tensor_value_info(
            name, self._kind(dtype), shape
        )
        return described

    def _kind(self, dtype: DTypeLike) -> int:
        numpy_dtype = np.dtype(dtype)
        if numpy_dtype.kind == "U":
            numpy_dtype = np.dtype(object)  # which is how ONNX has text in numpy
        kind: int = self._onnx.helper.np_dtype_to_tensor_dtype(numpy_dtype)
        return kind


def date_parts(graph: Graph, micros: str) -> str:
    """Return the six parts of dates and time stamps."""
    missing, micros = _without_missing(graph, micros)
    of_day = graph.add("Mod", micros, _whole(graph, _DAY))
    days = graph.add("Div", graph.add("Sub", micros, of_day), _whole(graph, _DAY))
    since_monday = graph.add("Add", days, _whole(graph, _THURSDAY))
    of_week = graph.add("Mod", since_monday, _whole(graph, 7))
    shares = [
        _share(graph, of_day, _whole(graph, _DAY)),
        _share(graph, of_week, _whole(graph, 7)),
        _of_year(graph, days),
    ]
    return _waves(graph, shares, missing)


def clock_parts(graph: Graph, micros: str) -> str:
    """Return the two parts of times of day."""
    missing, micros = _without_missing(graph, micros)
    return _waves(graph, [_share(graph, micros, _whole(graph, _DAY))], missing)


def _without_missing(graph: Graph, micros: str) -> tuple[str, str]:
    """Where the missing ones are, and the counts with 0 in their place."""
    missing = graph.add("Equal", micros, _whole(graph, MISSING))
    return missing, graph.add("Where", missing, _whole(graph, 0), micros)


def _of_year(graph: Graph, days: str) -> str:
    """Whole days since the year began, as a share of that year's days."""
    since = graph.add("Sub", days, _whole(graph, int(_TURN[0])))
    day = graph.add("Mod", since, _whole(graph, int(_YEARS[-1])))
    years = graph.constant(_YEARS)
    guess = graph.add("Div", day, _whole(graph, 365))  # the year, or the one after
    over = graph.add("Greater", graph.add("Gather", years, guess), day)
    year = graph.add("Sub", guess, graph.cast(over, np.int64))
    gone = graph.add("Sub", day, graph.add("Gather", years, year))
    return _share(graph, gone, graph.add("Gather", graph.constant(_LENGTHS), year))


def _share(graph: Graph, part: str, whole: str) -> str:
    part, whole = (graph.cast(value, np.float64) for value in (part, whole))
    return graph.add("Div", part, whole)


def _waves(graph: Graph, shares: list[str], missing: str) -> str:
    """Sine and cosine of each share of a turn; a cosine is a sine a quarter later."""
    turns = graph.add("Concat", *(share for share in shares for _ in range(2)), axis=1)
    angles = graph.add("Mul", turns, graph.constant(np.array(2 * np.pi)))
    quarters = np.tile([0, np.pi / 2], len(shares))
    waves = graph.add("Sin", graph.add("Add", angles, graph.constant(quarters)))
    return graph.add("Where", missing, graph.constant(np.array(np.nan)), waves)


def _whole(graph: Graph, number: int) -> str:
    return graph.constant(np.array(number, dtype=np.int64))


def _onnx() -> Any:
    try:
        import onnx.helper  # noqa: PLC0415
        import onnx.numpy_helper  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError("onnx", extra="onnx") from error
    return onnx
