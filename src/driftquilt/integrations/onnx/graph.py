"""An ONNX graph in the making: nodes are added one after the other, names take care of themselves.

A value of the graph is a name. Those of inputs and outputs are the caller's, all others are made
up here and never meet them. The format is an old one on purpose, so that runtimes of the last
years read it.

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

__all__ = ["ML", "Graph"]

ML = "ai.onnx.ml"  # the operators that know text
_FORMAT, _OPERATORS = 8, {"": 17, ML: 3}
_ROWS = "rows"  # how the graph calls their number, which is open


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


def _onnx() -> Any:
    try:
        import onnx  # noqa: PLC0415
        import onnx.helper  # noqa: PLC0415
        import onnx.numpy_helper  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError("onnx", extra="onnx") from error
    return onnx
