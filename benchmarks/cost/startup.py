"""How long one waits for a new process: wall seconds from its start to its end.

The numeric kernels have been compiled before, as on any machine that has run a fit. The fit is
of noisy labels, on which training stops early: it shows the wait for libraries, not for epochs.
"""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.cost.clock import measure
from benchmarks.cost.fresh import run_fresh

__all__ = ["STARTS", "StartupCost", "measure_startup"]

_FIT = """
import numpy as np
from driftquilt import QuiltClassifier
X = np.random.default_rng(0).normal(size=(120, 6))
y = X[:, 4] + 2 * X[:, 5] > 0
QuiltClassifier(random_state=0).fit(X[:, :5], y, segments=np.repeat([0, 1, 2], 40))
"""

#: What is started: Python code, and its arguments.
STARTS: dict[str, tuple[str, ...]] = {
    "python alone": ("pass",),
    "import driftquilt": ("import driftquilt",),
    "driftquilt --help": ("from driftquilt.cli.app import main; main()", "--help"),
    "first fit, 120 rows": (_FIT,),
}


@dataclass(frozen=True)
class StartupCost:
    """Median over fresh processes."""

    what: str
    wall_seconds: float


def measure_startup(what: str, repeats: int) -> StartupCost:
    """One of `STARTS`; a first process fills the caches and does not count."""
    run_fresh(*STARTS[what])
    _, time = measure(lambda: run_fresh(*STARTS[what]), repeats)
    return StartupCost(what, time.wall)
