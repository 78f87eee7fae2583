"""What a drift costs and how good the model is: the method beside the published procedure.

A stream's last segment is the current one, under the paper's protocol and with seed 0; all
segments before it are the history. The published procedure is measured in the same process, so
that the ratio means something whatever else the machine is doing.

>>> choose_segments("last", 8), choose_segments("2,5", 8)
([7], [2, 5])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import cast

import numpy as np

from benchmarks.cost.clock import measure
from benchmarks.cost.rows import rehearse
from driftquilt.errors import InputError
from driftquilt.paper.datasets import Stream, describe, names
from driftquilt.paper.datasets.synthetic import sine
from driftquilt.paper.plan import METHODS, load_stream
from driftquilt.paper.protocol import Evaluation, evaluations
from driftquilt.quilt.method import Method, Quilt

__all__ = [
    "TORCH",
    "DriftCost",
    "choose_segments",
    "choose_streams",
    "measure_drift",
    "our_methods",
]

TORCH = "torch"


@dataclass(frozen=True)
class DriftCost:
    """One method on one drift: medians over `repeats`, and accuracy on the rest of the segment."""

    stream: str
    segment: int
    method: str
    cpu_seconds: float
    wall_seconds: float
    accuracy: float
    repeats: int


def our_methods(stream: str) -> dict[str, Method]:
    """The default with one fold and as it is, and the paper's settings."""
    default = cast(Quilt, METHODS["quilt_default"](0, stream))
    return {
        "one fold": replace(default, n_folds=1),
        "default": default,
        "paper": METHODS["quilt"](0, stream),
    }


def measure_drift(
    stream: Stream, label: str, segment: int, method: tuple[str, Method], repeats: int
) -> DriftCost:
    """A named method on one segment of a stream; what it loads at first use does not count."""
    name, way = method
    seen = _evaluation(stream, segment)
    rehearse(way)
    model, time = measure(lambda: way.adapt(seen.history, seen.current), repeats)
    right = model.predict_proba(seen.test.X).argmax(axis=1) == seen.test.y
    return DriftCost(label, segment, name, time.cpu, time.wall, float(np.mean(right)), repeats)


@lru_cache(maxsize=1)
def _evaluation(stream: Stream, segment: int) -> Evaluation:
    return next(islice(evaluations(stream, "paper"), segment, None))


def choose_streams(
    datasets: Sequence[str] | None, *, quick: bool = False
) -> tuple[dict[str, Stream], list[str]]:
    """Those asked for or all nine by name, and which of them would have to be fetched first."""
    if quick and datasets is None:
        return {"sine, 3 segments of 200": sine(3, 200)}, []
    wanted = datasets or names()
    absent = [name for name in wanted if not _is_present(name)]
    return {name: load_stream(name) for name in wanted if name not in absent}, absent


def _is_present(dataset: str) -> bool:
    name, _, _ = dataset.partition(":")
    return name not in names() or describe(name, check=False).is_present


def choose_segments(wanted: str, n_segments: int) -> list[int]:
    """Numbers from "last", "all", or numbers by comma."""
    if wanted == "all":
        return list(range(n_segments))
    if wanted == "last":
        return [n_segments - 1]
    parts = [part.strip() for part in wanted.split(",")]
    if not all(part.isdecimal() and int(part) < n_segments for part in parts):
        raise InputError(
            f"segments are 'last', 'all', or numbers from 0 to {n_segments - 1} by comma; "
            f"got {wanted!r}"
        )
    return [int(part) for part in parts]
