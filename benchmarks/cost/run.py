"""What is measured, as a list of steps, and what has been measured so far.

Nothing runs until a step's `work` is called, so that whoever drives the steps can say what is
being measured and keep what is done.

>>> steps, notes = plan_steps(Scope(parts=("online", "startup"), quick=True))
>>> steps[0].label, len(steps), notes
('online: MLP, sine', 10, [])
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeAlias

from benchmarks.cost.drifts import (
    QUICK_SIZES,
    SIZES,
    TORCH,
    DriftCost,
    GrowthCost,
    choose_segments,
    choose_streams,
    measure_drift,
    measure_growth,
    our_methods,
)
from benchmarks.cost.measure import Machine
from benchmarks.cost.speed import (
    ONLINE_MODELS,
    SHAPES,
    STARTS,
    WIDTHS,
    KernelCost,
    OnlineCost,
    StartupCost,
    measure_kernels,
    measure_online,
    measure_startup,
)
from benchmarks.torch_quilt import TorchQuilt
from driftquilt.errors import InputError

__all__ = ["PARTS", "Bench", "Scope", "Step", "plan_steps"]

Cost: TypeAlias = DriftCost | KernelCost | GrowthCost | OnlineCost | StartupCost

_N_STARTS = 5


@dataclass(frozen=True)
class Scope:
    """What to measure, and how often.

    `parts` are names of `PARTS`, None for all. `datasets` and `segments` say which drifts;
    `quick` is a smoke run on small sizes, whose figures mean little.
    """

    parts: Sequence[str] | None = None
    datasets: Sequence[str] | None = None
    segments: str = "last"
    repeats: int = 3
    torch_repeats: int = 1
    quick: bool = False


@dataclass(frozen=True)
class Step:
    """One figure or a few that belong together, still to be measured."""

    part: str
    label: str
    work: Callable[[], Cost]


@dataclass(frozen=True)
class Bench:
    """What has been measured so far; `notes` say what was left out, and why."""

    machine: Machine
    notes: tuple[str, ...] = ()
    drift: tuple[DriftCost, ...] = ()
    kernels: tuple[KernelCost, ...] = ()
    growth: tuple[GrowthCost, ...] = ()
    online: tuple[OnlineCost, ...] = ()
    startup: tuple[StartupCost, ...] = ()

    def plus(self, step: Step) -> Bench:
        """Run a step, and return the same with what it measured."""
        more: dict[str, Any] = {step.part: (*getattr(self, step.part), step.work())}
        return replace(self, **more)


def plan_steps(scope: Scope) -> tuple[list[Step], list[str]]:
    """Return the steps in the order of `PARTS`, and a line for each thing that is left out."""
    wanted = list(PARTS) if scope.parts is None else scope.parts
    for part in wanted:
        if part not in PARTS:
            raise InputError(f"there is no part {part!r}; there are {', '.join(PARTS)}")
    if scope.quick:
        scope = replace(scope, repeats=1, torch_repeats=1)
    notes = list[str]()
    steps = [
        Step(part, f"{part}: {label}", work)
        for part in PARTS
        if part in wanted
        for label, work in PARTS[part](scope, notes)
    ]
    return steps, notes


Works: TypeAlias = Iterator[tuple[str, Callable[[], Cost]]]


def _drifts(scope: Scope, notes: list[str]) -> Works:
    streams, absent = choose_streams(scope.datasets, quick=scope.quick)
    if absent:
        notes.append(
            f"left out, as they are not on this machine: {', '.join(absent)}; set DRIFTQUILT_DATA "
            "to the folder that holds them"
        )
    for label, stream in streams.items():
        for segment in choose_segments(scope.segments, stream.n_segments):
            for name, method in (our_methods(stream.name) | {TORCH: TorchQuilt()}).items():
                repeats = scope.torch_repeats if name == TORCH else scope.repeats
                work = partial(measure_drift, stream, label, segment, (name, method), repeats)
                yield f"{label}, segment {segment}, {name}", work


def _kernels(scope: Scope, _: list[str]) -> Works:
    for n_features, n_classes in SHAPES[:2] if scope.quick else SHAPES:
        work = partial(measure_kernels, n_features, n_classes, scope.repeats)
        yield f"{n_features} features, {n_classes} classes", work


def _growth(scope: Scope, _: list[str]) -> Works:
    for n_segments, n_rows in QUICK_SIZES if scope.quick else SIZES:
        yield (
            f"{n_segments} segments of {n_rows:,} rows",
            partial(measure_growth, n_segments, n_rows),
        )


def _online(scope: Scope, _: list[str]) -> Works:
    n_rows = 100 if scope.quick else 2000
    for rows in WIDTHS:
        for model in ONLINE_MODELS:
            work = partial(measure_online, model, rows, n_rows, scope.repeats)
            yield f"{model}, {rows}", work


def _startup(scope: Scope, _: list[str]) -> Works:
    for what in STARTS:
        yield what, partial(measure_startup, what, 1 if scope.quick else _N_STARTS)


#: The parts by name, in the order in which they are run.
PARTS: dict[str, Callable[[Scope, list[str]], Works]] = {
    "drift": _drifts,
    "kernels": _kernels,
    "growth": _growth,
    "online": _online,
    "startup": _startup,
}
