"""Measured values made up, so that their ratios are known."""

from __future__ import annotations

from benchmarks.cost.drifts import DriftCost, GrowthCost
from benchmarks.cost.measure import Machine
from benchmarks.cost.run import Bench
from benchmarks.cost.speed import KernelCost, OnlineCost, StartupCost

MACHINE = Machine("0.1.0", "3.11.7", {"numpy": "2.4.6"}, "Linux x86_64", "a | b", 2, 0.5)


def drift(
    stream: str, method: str, cpu_seconds: float, *, segment: int = 7, accuracy: float = 0.9
) -> DriftCost:
    return DriftCost(stream, segment, method, cpu_seconds, 2 * cpu_seconds, accuracy, 3)


DRIFTS = (
    drift("sine", "default", 2.0),
    drift("sine", "torch", 8.0),
    drift("sea", "default", 0.5, segment=6, accuracy=0.7),
    drift("sea", "torch", 4.0, segment=6),
    drift("sea", "default", 1.5, accuracy=0.9),
    drift("sea", "torch", 12.0),
)

BENCH = Bench(
    MACHINE,
    ("weather is left out",),
    drift=DRIFTS,
    kernels=(KernelCost(4, 2, 6e-5, 4e-5, 3e-5, 1e-5),),
    growth=(
        GrowthCost(80, 2000, 30.0, 31.0, 400_000_000, 2_000_000),
        GrowthCost(8, 2000, 2.0, 2.1, 200_000_000, 200_000),
    ),
    online=(
        OnlineCost("MLP", "sine", 4, 100, 50_000.0),
        OnlineCost("HAT", "sine", 4, 100, 5_000.0),
    ),
    startup=(StartupCost("import driftquilt", 0.125),),
)
