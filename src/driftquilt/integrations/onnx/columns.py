"""The columns of an encoder in a graph: raw values go in, the matrix that a net takes comes out.

    numbers       float64  NaN where missing; booleans are 0 and 1, time spans seconds
    text          string   a sign of the caller's choice where missing
    dates         int64    microseconds since 1970, by the clock as written; lowest if missing
    times of day  int64    microseconds since midnight; lowest if missing

Each is an input (n, 1) under the column's name. The matrix has the encoder's features in an order
of its own, which comes with it: numbers first, then what was missing, then text.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from driftquilt.data.encoder import Encoder
from driftquilt.data.features import Numbers, Text
from driftquilt.data.header import group
from driftquilt.data.moments import CLOCK_PARTS, PARTS
from driftquilt.integrations.onnx.graph import ML, Graph
from driftquilt.integrations.onnx.moments import clock_parts, date_parts

__all__ = ["Input", "add_columns", "inputs_of"]

_DTYPES: dict[str, np.dtype[Any]] = {
    "numbers": np.dtype(np.float64),
    "text": np.dtype(np.str_),
    "dates": np.dtype(np.int64),
    "times of day": np.dtype(np.int64),
}


@dataclass(frozen=True)
class Input:
    """A column of the raw table, what it holds, and what the encoder made of it.

    `features` are the places of that among the encoder's features.
    """

    name: str
    kind: str  # one of those above
    columns: tuple[Numbers | Text, ...]
    features: tuple[int, ...]

    @property
    def dtype(self) -> np.dtype[Any]:
        """How it is given."""
        return _DTYPES[self.kind]

    @property
    def categories(self) -> tuple[str | None, ...]:
        """Those of text; of all others none."""
        return tuple(c for text in self.columns if isinstance(text, Text) for c in text.categories)


def inputs_of(encoder: Encoder) -> list[Input]:
    """The raw table's columns, in order."""
    sizes = [len(column.features) for column in encoder.columns]
    starts = np.cumsum([0, *sizes]).tolist()
    inputs = []
    for name, places in group([column.name for column in encoder.columns]).items():
        columns = tuple(encoder.columns[place] for place in places)
        features = [at for place in places for at in range(starts[place], starts[place + 1])]
        inputs.append(Input(name, _kind(columns), columns, tuple(features)))
    return inputs


def add_columns(
    graph: Graph, inputs: Sequence[Input], missing: str, far: float
) -> tuple[str, list[int]]:
    """The matrix (n, d) float32, and which of the encoder's features each of its columns is.

    No value of it is farther from 0 than `far`.
    """
    given = {one: graph.input(one.name, one.dtype, width=1) for one in inputs}
    numbers = [one for one in inputs if one.kind != "text"]
    parts, order = _add_numbers(graph, numbers, given, far) if numbers else ([], [])
    for one in inputs:
        if one.kind == "text":
            signs = [missing if category is None else category for category in one.categories]
            # Zeros for what is none of them, which is what the encoder does.
            hot = graph.add("OneHotEncoder", given[one], domain=ML, cats_strings=signs, zeros=1)
            parts.append(graph.add("Flatten", hot, axis=1))
            order += one.features
    return graph.add("Concat", *parts, axis=1), order


def _kind(columns: Sequence[Numbers | Text]) -> str:
    if len(columns) > 1:
        return {len(PARTS): "dates", len(CLOCK_PARTS): "times of day"}[len(columns)]
    return "text" if isinstance(columns[0], Text) else "numbers"


def _add_numbers(
    graph: Graph, inputs: Sequence[Input], given: dict[Input, str], far: float
) -> tuple[list[str], list[int]]:
    """All columns of numbers at once: scaled, and 1 where one is missing that was so at fit."""
    made = {"numbers": lambda _, value: value, "dates": date_parts, "times of day": clock_parts}
    raw = graph.add("Concat", *(made[one.kind](graph, given[one]) for one in inputs), axis=1)
    columns = [column for one in inputs for column in one.columns if isinstance(column, Numbers)]
    sizes = [len(column.features) for column in columns]
    starts = np.cumsum([0, *sizes[:-1]])
    flagged = np.flatnonzero([column.missing for column in columns])
    features = np.array([place for one in inputs for place in one.features])
    absent = graph.add("IsNaN", raw)
    parts, order = [_scale(graph, raw, absent, columns, far)], features[starts].tolist()
    if len(flagged):
        flags = graph.add("Gather", absent, graph.constant(flagged), axis=1)
        parts.append(graph.cast(flags, np.float32))
        order += features[starts[flagged] + 1].tolist()
    return parts, order


def _scale(graph: Graph, raw: str, absent: str, columns: Sequence[Numbers], far: float) -> str:
    """As `data.features.scale` does: in float64, 0 where missing."""
    mean = graph.constant(np.array([column.mean for column in columns]))
    std = graph.constant(np.array([column.std for column in columns]))
    scaled = graph.add("Div", graph.add("Sub", raw, mean), std)
    low, zero, high = (graph.constant(np.array(v)) for v in (-far, 0.0, far))
    clipped = graph.add("Clip", scaled, low, high)
    return graph.cast(graph.add("Where", absent, zero, clipped), np.float32)
