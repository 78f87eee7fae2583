"""What a drift costs, how good the model is, and how the cost grows with the history.

`drift`: a stream's last segment is the current one, under the paper's protocol and with seed 0;
all segments before it are the history. The published procedure is measured in the same process,
so that the ratio means something whatever else the machine is doing.

`growth`: rows are like those of sine: four concepts that come back in turn, two of them the others
with their labels flipped. The current segment has 200 labelled rows, or as many as a shorter past
one. Every size is measured once, in a fresh process, where the default method first adapts to a
few rows, so that loading and compiling do not count.

>>> choose_segments("last", 8), choose_segments("2,5", 8)
([7], [2, 5])
>>> sine_segment(5, 100).X.shape
(100, 4)
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice
from typing import cast

import numpy as np

from benchmarks.cost.measure import measure, peak_bytes, run_fresh
from driftquilt.core.segment import Segment
from driftquilt.errors import InputError
from driftquilt.paper.datasets import Stream, describe, names
from driftquilt.paper.datasets.synthetic import sine
from driftquilt.paper.plan import METHODS, load_stream
from driftquilt.paper.protocol import Evaluation, evaluations
from driftquilt.quilt.method import Method, Quilt, read_clock

__all__ = [
    "QUICK_SIZES",
    "SIZES",
    "TORCH",
    "DriftCost",
    "GrowthCost",
    "choose_segments",
    "choose_streams",
    "cost_here",
    "measure_drift",
    "measure_growth",
    "our_methods",
    "rehearse",
    "sine_segment",
]

TORCH = "torch"

#: Past segments, and rows in each; the first is what the others are compared with.
SIZES = ((8, 2_000), (80, 2_000), (800, 2_000), (8, 20_000), (8, 200_000))
QUICK_SIZES = ((2, 60), (3, 60), (2, 120))

_N_CURRENT = 200
_CODE = """
import json, sys
from benchmarks.cost.drifts import cost_here
sys.stdout.write(json.dumps(cost_here(int(sys.argv[1]), int(sys.argv[2]))))
"""

_FEW = 40


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
    """Return the default with one fold and as it is, and the paper's settings."""
    default = cast(Quilt, METHODS["quilt_default"](0, stream))
    return {
        "one fold": replace(default, n_folds=1),
        "default": default,
        "paper": METHODS["quilt"](0, stream),
    }


def measure_drift(
    stream: Stream, label: str, segment: int, method: tuple[str, Method], repeats: int
) -> DriftCost:
    """Measure a named method on one segment; what it loads at first use does not count."""
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


@dataclass(frozen=True)
class GrowthCost:
    """One drift after `n_segments` past segments of `n_rows` rows each.

    `peak_bytes` is all memory that the process ever held, `row_bytes` what the rows take of it.
    """

    n_segments: int
    n_rows: int
    cpu_seconds: float
    wall_seconds: float
    peak_bytes: int
    row_bytes: int


def measure_growth(n_segments: int, n_rows: int) -> GrowthCost:
    """Return the cost, once, in a process of its own."""
    cost = json.loads(run_fresh(_CODE, str(n_segments), str(n_rows)))
    return GrowthCost(n_segments, n_rows, **cost)


def cost_here(n_segments: int, n_rows: int) -> dict[str, float]:
    """Return the cost in this process; its peak is of use only if nothing else ran in it."""
    method = METHODS["quilt_default"](0, "sine")
    rehearse(method)
    history = [sine_segment(number, n_rows) for number in range(n_segments)]
    current = sine_segment(n_segments, min(n_rows, _N_CURRENT))
    started = read_clock()
    method.adapt(history, current)
    spent = read_clock().since(started)
    return {
        "cpu_seconds": spent.cpu,
        "wall_seconds": spent.wall,
        "peak_bytes": peak_bytes(),
        "row_bytes": sum(s.X.nbytes + s.y.nbytes + s.weight.nbytes for s in [*history, current]),
    }


def sine_segment(number: int, n_rows: int) -> Segment:
    """Scaled rows of the concept whose turn it is: one of two curves, or one with labels flipped.

    The last two features mean nothing.
    """
    unit = np.random.default_rng(number).random((n_rows, 4), dtype=np.float32)
    a, b, concept = unit[:, 0], unit[:, 1], number % 4
    curve = np.sin(b) if concept < 2 else 0.5 + 0.3 * np.sin(3 * np.pi * b)  # noqa: PLR2004
    y = (a < curve) ^ (concept % 2 == 1)
    X = (unit - np.float32(0.5)) * np.float32(np.sqrt(12))
    return Segment(number, X, y.astype(np.int64), np.ones(n_rows, np.float32))


def rehearse(method: Method) -> None:
    """Let a method load and compile what it needs when first used."""
    method.adapt([sine_segment(0, _FEW)], sine_segment(1, _FEW))
