"""The ratios that count, from measured values, and everything as Markdown and JSON.

>>> round(geometric_mean([2.0, 8.0]), 9)
4.0
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.cost.drifts import TORCH, DriftCost, GrowthCost
from benchmarks.cost.measure import Machine
from benchmarks.cost.run import Bench
from benchmarks.cost.speed import KernelCost, OnlineCost

__all__ = [
    "DriftMean",
    "drift_means",
    "geometric_mean",
    "growth_ratios",
    "kernel_ratios",
    "online_ratios",
    "to_document",
    "to_markdown",
    "torch_ratios",
    "write_bench",
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
    """Return the mean that suits ratios: half as fast and twice as fast make 1."""
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


def write_bench(bench: Bench, out: Path) -> None:
    """`bench.json` and `bench.md` in a folder that is there."""
    text = json.dumps(to_document(bench), indent=2, ensure_ascii=False) + "\n"
    (out / "bench.json").write_text(text, encoding="utf-8")
    (out / "bench.md").write_text(to_markdown(bench), encoding="utf-8")


def to_document(bench: Bench) -> dict[str, Any]:
    """All values as they were measured, and the ratios beside them."""
    ratios = torch_ratios(bench.drift)
    whole = asdict(bench)
    whole["ratios"] = {
        "drift": {
            method: {"streams": of, "geometric_mean": geometric_mean(of.values())}
            for method, of in ratios.items()
        },
        "kernels": [
            dict(zip(("training", "scoring"), kernel_ratios(cost), strict=True))
            for cost in bench.kernels
        ],
        "growth": [
            dict(zip(("cpu_seconds", "peak_bytes"), pair, strict=True))
            for pair in growth_ratios(bench.growth)
        ],
        "online": online_ratios(bench.online),
    }
    return whole


def to_markdown(bench: Bench) -> str:
    """Return a table per part that was measured."""
    lines = ["# What it costs", "", _say(bench.machine), ""]
    lines += [f"- {note}" for note in bench.notes]
    lines += [""] if bench.notes else []
    parts = (_drift, _accuracy, _kernels, _growth, _online, _startup)
    return "\n".join(lines + [line for part in parts for line in part(bench)])


def _say(machine: Machine) -> str:
    packages = ", ".join(f"{name} {version}" for name, version in machine.packages.items())
    load = "" if machine.load is None else f", load {machine.load:.2f} at the start"
    return (
        f"driftquilt {machine.driftquilt}, Python {machine.python}, {packages}; {machine.system}, "
        f"{machine.cpu}, {machine.cores} core(s){load}. CPU time unless said otherwise."
    )


def _table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a GitHub table under its title; nothing if there are no rows."""
    body = [f"| {' | '.join(row)} |" for row in rows]
    if not body:
        return []
    head = [f"| {' | '.join(columns)} |", f"| --- |{' ---: |' * (len(columns) - 1)}"]
    return [f"## {title}", "", *head, *body, ""]


def _drift(bench: Bench) -> list[str]:
    means, ratios = drift_means(bench.drift), torch_ratios(bench.drift)
    methods = list(dict.fromkeys(cost.method for cost in bench.drift))
    rows = [
        [
            stream,
            *(
                f"{of[m].cpu_seconds:.2f} ({of[m].wall_seconds:.2f})" if m in of else ""
                for m in methods
            ),
            *(_times(ratio.get(stream)) for ratio in ratios.values()),
        ]
        for stream, of in means.items()
    ]
    if ratios:
        overall = [_times(geometric_mean(ratio.values())) for ratio in ratios.values()]
        rows.append(["geometric mean", *("" for _ in methods), *overall])
    columns = ["stream", *methods, *(f"{TORCH} / {method}" for method in ratios)]
    return _table("A drift: CPU seconds (wall seconds)", columns, rows)


def _accuracy(bench: Bench) -> list[str]:
    methods = list(dict.fromkeys(cost.method for cost in bench.drift))
    rows = [
        [stream, *(f"{of[m].accuracy:.3f}" if m in of else "" for m in methods)]
        for stream, of in drift_means(bench.drift).items()
    ]
    return _table("A drift: accuracy on the rest of the segment", ["stream", *methods], rows)


def _kernels(bench: Bench) -> list[str]:
    rows = []
    for cost in bench.kernels:
        training, scoring = kernel_ratios(cost)
        rows.append(
            [
                f"{cost.n_features}, {cost.n_classes}",
                *map(_micros, (cost.training, cost.training_products)),
                _times(training),
                *map(_micros, (cost.scoring, cost.scoring_products)),
                _times(scoring),
            ]
        )
    columns = ["features, classes", "training, µs", "its products, µs", "ratio"]
    columns += ["scoring, µs", "its products, µs", "ratio"]
    return _table("Kernels, per batch of 128 rows", columns, rows)


def _growth(bench: Bench) -> list[str]:
    rows = [
        [
            f"{cost.n_segments} of {cost.n_rows:,} rows",
            f"{cost.cpu_seconds:.2f}",
            _times(cpu),
            _mega(cost.peak_bytes),
            _times(memory),
            _mega(cost.row_bytes),
        ]
        for cost, (cpu, memory) in zip(bench.growth, growth_ratios(bench.growth), strict=True)
    ]
    columns = ["past segments", "CPU s", "ratio", "peak MB", "ratio", "of it rows, MB"]
    return _table("Growth of the default method", columns, rows)


def _online(bench: Bench) -> list[str]:
    ratios = online_ratios(bench.online)
    rates: dict[tuple[str, int], dict[str, float]] = {}
    for cost in bench.online:
        rates.setdefault((cost.rows, cost.n_features), {})[cost.model] = cost.rows_per_second
    models = list(dict.fromkeys(cost.model for cost in bench.online))
    trees = [model for model in models if any(model in of for of in ratios.values())]
    rows = [
        [
            f"{kind}, {n_features} features",
            *(f"{of[model]:,.0f}" if model in of else "" for model in models),
            *(_times(ratios.get(kind, {}).get(tree)) for tree in trees),
        ]
        for (kind, n_features), of in rates.items()
    ]
    columns = ["rows like", *models, *(f"MLP / {tree}" for tree in trees)]
    return _table("Online: rows per second, predict one and learn one", columns, rows)


def _startup(bench: Bench) -> list[str]:
    rows = [[f"`{cost.what}`", f"{cost.wall_seconds:.2f}"] for cost in bench.startup]
    return _table("Start-up of a fresh process", ["what", "wall s"], rows)


def _times(ratio: float | None) -> str:
    return "" if ratio is None else f"{ratio:.1f}"


def _micros(seconds: float) -> str:
    return f"{seconds * 1e6:.0f}"


def _mega(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:.0f}"
