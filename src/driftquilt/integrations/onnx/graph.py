"""An ONNX graph in the making: nodes are added one after the other, names take care of themselves.

A value of the graph is a name. Those of inputs and outputs are the caller's, all others are made
up here and never meet them. The format is an old one on purpose, so that runtimes of the last
years read it.

Dates and times of day become the numbers that `data.calendar` makes of them. A date goes in as
whole microseconds since 1970, a time of day as microseconds since midnight, by the clock as it was
written; the lowest int64 is a missing one, as numpy has it. Whole numbers, because the last instant
of a day, as seconds in floating point, would be the next day.

    parts  (n, 6) or (n, 2)  float64, NaN where missing, in the order of `PARTS`

The calendar repeats itself every 400 years, so one table of where its years begin is enough.

>>> graph = Graph(["x"])
>>> x = graph.input("x", np.float64, width=1)
>>> graph.output("twice", graph.add("Add", x, x), np.float64, width=1)
>>> b"driftquilt" in graph.to_bytes({"made": "here"})
True
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from driftquilt import __version__
from driftquilt.errors import MissingExtraError

if TYPE_CHECKING:
    import onnx

__all__ = ["MISSING", "ML", "Graph", "clock_parts", "date_parts"]

ML = "ai.onnx.ml"  # the operators that know text
_FORMAT, _OPERATORS = 8, {"": 17, ML: 3}
_ROWS = "rows"  # the name of their number, which is open

MISSING = np.iinfo(np.int64).min
_DAY = 86_400 * 10**6  # microseconds
_THURSDAY = 3  # 1 January 1970, Mondays being 0
_TURN = np.arange("2000", "2401", dtype="M8[Y]").astype("M8[D]").astype(np.int64)
_YEARS = _TURN - _TURN[0]  # the day on which each of 400 years begins, and the one after
_LENGTHS = np.diff(_YEARS, append=_YEARS[-1] + 366)


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
        """A table of so many columns that is given under this name."""
        self._inputs.append(self._describe(name, dtype, [_ROWS, width]))
        return name

    def constant(self, values: NDArray[Any]) -> str:
        """Numbers, booleans or text that never change."""
        name = next(self._names)
        values = values.astype(object) if values.dtype.kind == "U" else values
        self._constants.append(self._onnx.numpy_helper.from_array(values, name))
        return name

    def add(self, operator: str, *values: str, domain: str = "", **attributes: Any) -> str:
        """What an operator makes of values."""
        name = next(self._names)
        self._node(operator, values, name, domain, attributes)
        return name

    def cast(self, value: str, dtype: DTypeLike) -> str:
        """The value as another type."""
        return self.add("Cast", value, to=self._kind(dtype))

    def output(self, name: str, value: str, dtype: DTypeLike, *, width: int | None = None) -> None:
        """Give a value under this name: one per row, or so many."""
        self._node("Identity", [value], name, "", {})
        shape = [_ROWS] if width is None else [_ROWS, width]
        self._outputs.append(self._describe(name, dtype, shape))

    def to_bytes(self, about: Mapping[str, str]) -> bytes:
        """The file's content; `about` is what a runtime shows as its metadata."""
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
    """The six parts of dates and time stamps."""
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
    """The two parts of times of day."""
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
