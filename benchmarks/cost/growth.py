"""How the cost of a drift grows with the number of past segments and with their length.

Rows are like those of sine: four concepts that come back in turn, two of them the others with
their labels flipped. The current segment has 200 labelled rows, or as many as a shorter past
one. Every size is measured once, in a fresh process, where the default method first adapts to a
few rows, so that loading and compiling do not count.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from benchmarks.cost.fresh import peak_bytes, run_fresh
from benchmarks.cost.rows import rehearse, sine_segment
from driftquilt.paper.plan import METHODS
from driftquilt.quilt.method import read_clock

__all__ = ["QUICK_SIZES", "SIZES", "GrowthCost", "cost_here", "measure_growth"]

#: Past segments, and rows in each; the first is what the others are compared with.
SIZES = ((8, 2_000), (80, 2_000), (800, 2_000), (8, 20_000), (8, 200_000))
QUICK_SIZES = ((2, 60), (3, 60), (2, 120))

_N_CURRENT = 200
_CODE = """
import json, sys
from benchmarks.cost.growth import cost_here
sys.stdout.write(json.dumps(cost_here(int(sys.argv[1]), int(sys.argv[2]))))
"""


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
    """The cost, once, in a process of its own."""
    told = json.loads(run_fresh(_CODE, str(n_segments), str(n_rows)))
    return GrowthCost(n_segments, n_rows, **told)


def cost_here(n_segments: int, n_rows: int) -> dict[str, float]:
    """The cost in this process; its peak is of use only if nothing else ran in it."""
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
