"""The ratios that count, from measured values.

>>> round(geometric_mean([2.0, 8.0]), 9)
4.0
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.cost.drift import TORCH, DriftCost
from benchmarks.cost.growth import GrowthCost
from benchmarks.cost.kernels import KernelCost
from benchmarks.cost.online import OnlineCost

__all__ = [
    "DriftMean",
    "drift_means",
    "geometric_mean",
    "growth_ratios",
    "kernel_ratios",
    "online_ratios",
    "torch_ratios",
]


@dataclass(frozen=True)
class DriftMean:
    """One method on one stream, the mean over the segments that were measured."""

    cpu_seconds: float
    wall_seconds: float
    accuracy: float


def drift_means(costs: Iterable[DriftCost]) -> dict[str, dict[str, DriftMean]]:
    """By stream, then by method."""
    groups: dict[str, dict[str, list[DriftCost]]] = {}
    for cost in costs:
        groups.setdefault(cost.stream, {}).setdefault(cost.method, []).append(cost)
    return {
        stream: {method: _mean(group) for method, group in methods.items()}
        for stream, methods in groups.items()
    }


def _mean(costs: Sequence[DriftCost]) -> DriftMean:
    return DriftMean(
        statistics.fmean(cost.cpu_seconds for cost in costs),
        statistics.fmean(cost.wall_seconds for cost in costs),
        statistics.fmean(cost.accuracy for cost in costs),
    )


def torch_ratios(costs: Iterable[DriftCost]) -> dict[str, dict[str, float]]:
    """How many times our CPU seconds the published procedure takes: by method, then by stream.

    Without figures of the published procedure there are none.
    """
    ratios: dict[str, dict[str, float]] = {}
    for stream, means in drift_means(costs).items():
        if TORCH not in means:
            continue
        for method, mean in means.items():
            if method != TORCH:
                ratio = means[TORCH].cpu_seconds / mean.cpu_seconds
                ratios.setdefault(method, {})[stream] = ratio
    return ratios


def geometric_mean(values: Iterable[float]) -> float:
    """The mean that suits ratios: half as fast and twice as fast make 1."""
    return statistics.geometric_mean(values)


def kernel_ratios(cost: KernelCost) -> tuple[float, float]:
    """How many times its products a training and a scoring kernel takes."""
    return cost.training / cost.training_products, cost.scoring / cost.scoring_products


def growth_ratios(costs: Sequence[GrowthCost]) -> list[tuple[float, float]]:
    """CPU seconds and peak memory of each size, as multiples of the smallest size's."""
    if not costs:
        return []
    least = min(costs, key=lambda cost: cost.n_segments * cost.n_rows)
    return [
        (cost.cpu_seconds / least.cpu_seconds, cost.peak_bytes / least.peak_bytes) for cost in costs
    ]


def online_ratios(costs: Iterable[OnlineCost]) -> dict[str, dict[str, float]]:
    """How many times a tree's rows per second the net reaches: by kind of rows, then by tree."""
    rates: dict[str, dict[str, float]] = {}
    for cost in costs:
        rates.setdefault(cost.rows, {})[cost.model] = cost.rows_per_second
    return {
        rows: {model: of["MLP"] / rate for model, rate in of.items() if model != "MLP"}
        for rows, of in rates.items()
        if "MLP" in of
    }
