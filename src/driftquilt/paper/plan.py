"""What is to be run: streams × methods × seeds, for each table and figure of the paper.

Methods are named as in the paper's results. One of your own goes into `extra`, under a name of
its own, and then appears in every table.

>>> plan = make_plan(["accuracy"], datasets=["sine:3"], methods=["quilt", "hat"], n_seeds=2)
>>> len(plan.cells), plan.cells[0]
(12, Cell(dataset='sine:3', method='hat', segment=0, seed=0))
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from driftquilt.core.training import Rule
from driftquilt.errors import InputError
from driftquilt.paper.baselines.best_segments import BestSegments
from driftquilt.paper.baselines.cvdte import CVDTE
from driftquilt.paper.baselines.glister import Glister
from driftquilt.paper.baselines.grad_match import GradMatch
from driftquilt.paper.baselines.learn_nse import LearnNSE
from driftquilt.paper.baselines.naive import CurrentSegment, FullData
from driftquilt.paper.baselines.sega import SEGA
from driftquilt.paper.baselines.trees import ARF, HAT
from driftquilt.paper.datasets import Stream, load, names, read_stream
from driftquilt.paper.datasets.stream import check_count
from driftquilt.paper.protocol import Protocol
from driftquilt.quilt.method import DEFAULT, PAPER, Method
from driftquilt.text import suggest

__all__ = [
    "EXPERIMENTS",
    "METHODS",
    "Cell",
    "Experiment",
    "Maker",
    "Plan",
    "has_length",
    "is_file",
    "load_stream",
    "make_plan",
]


class Cell(NamedTuple):
    """One method on one segment of one stream, with one seed."""

    dataset: str
    method: str
    segment: int
    seed: int


#: Makes a method from a seed and the name of the stream.
Maker = Callable[[int, str], Method]


def _seeded(kind: Callable[..., Method], seed: int, _: str) -> Method:
    return kind(seed=seed)


def _quilt(seed: int, _: str, *, use_disparity: bool = True, use_gain: bool = True) -> Method:
    return replace(PAPER, seed=seed, rule=Rule(use_disparity, use_gain))


def _quilt_default(seed: int, _: str) -> Method:
    return replace(DEFAULT, seed=seed)


def _naive_default(kind: type[FullData | CurrentSegment], seed: int, _: str) -> Method:
    """Return a naive method that trains as the default does, so that only the choice differs."""
    return kind(
        learner=DEFAULT.learner,
        n_folds=DEFAULT.n_folds,
        patience=DEFAULT.patience,
        sampling=DEFAULT.sampling,
        seed=seed,
    )


def _sega(_: int, dataset: str) -> Method:
    return SEGA(n_windows=5 if dataset in ("spam", "usenet1", "usenet2") else 10)


def _grad_match(seed: int, dataset: str) -> Method:
    return GradMatch(seed=seed, tolerance=0.5 if dataset == "sine" else 0.01)


METHODS: dict[str, Maker] = {
    "full_data": partial(_seeded, FullData),
    "current_segment": partial(_seeded, CurrentSegment),
    "hat": partial(_seeded, HAT),
    "arf": partial(_seeded, ARF),
    "learn_nse": partial(_seeded, LearnNSE),
    "sega": _sega,
    "cvdte": partial(_seeded, CVDTE),
    "glister": partial(_seeded, Glister),
    "grad_match": _grad_match,
    "quilt": _quilt,
    "quilt_default": _quilt_default,
    "full_data_default": partial(_naive_default, FullData),
    "current_segment_default": partial(_naive_default, CurrentSegment),
    "quilt_without_disparity": partial(_quilt, use_disparity=False),
    "quilt_without_gain": partial(_quilt, use_gain=False),
    "quilt_without_both": partial(_quilt, use_disparity=False, use_gain=False),
    "quilt_init_previous": _quilt,
    "best_segments": partial(_seeded, BestSegments),
}

#: Trying every subset takes hours; so many seeds of it are enough for a gold standard.
GOLD_SEEDS = 2

_ALL_STREAMS = tuple(names())
_TEN = tuple(METHODS)[:10]
_LONG = "random_rbf:20"


@dataclass(frozen=True)
class Experiment:
    """One table or figure: what it compares, and on which streams.

    Methods in `on_request` are run where they are asked for by name.
    """

    methods: tuple[str, ...]
    datasets: tuple[str, ...] = _ALL_STREAMS
    on_request: tuple[str, ...] = ()

    @property
    def all_methods(self) -> tuple[str, ...]:
        return (*self.methods, *self.on_request)

    def covers(self, dataset: str) -> bool:
        """Whether it is run on a stream: on its own, and on any that no experiment has."""
        return dataset in self.datasets or dataset not in (*_ALL_STREAMS, _LONG)


EXPERIMENTS: dict[str, Experiment] = {
    "accuracy": Experiment(
        (*_TEN, "quilt_default"), on_request=("full_data_default", "current_segment_default")
    ),
    "selection": Experiment(("full_data", "current_segment", "quilt", "best_segments")),
    "ablation": Experiment(
        ("quilt_without_both", "quilt_without_disparity", "quilt_without_gain", "quilt")
    ),
    "initialization": Experiment(
        ("quilt", "quilt_init_previous"),
        ("sea", "random_rbf", "sine", "electricity", "weather", "spam"),
    ),
    "scalability": Experiment((*_TEN, "quilt_default"), (_LONG,)),
    "case-study": Experiment((), ()),
}


@dataclass(frozen=True)
class Plan:
    """Cells to run, each once, and what it takes to run them.

    `label` and `segment` are the names of two columns in the files among the data sets.
    """

    cells: tuple[Cell, ...]
    protocol: Protocol
    extra: Mapping[str, Maker]
    label: str = "label"
    segment: str = "segment"

    @property
    def chained(self) -> frozenset[str]:
        """Methods that start from their own model of the segment before.

        Under "paper" rows keep their scale, so that trees which learn row by row need not learn
        the past again; under "honest" it is scaled again for every segment.
        """
        trees = {"hat", "arf"} if self.protocol == "paper" else ()
        return frozenset({"quilt_init_previous", *trees})

    def make(self, cell: Cell) -> Method:
        maker = self.extra.get(cell.method) or METHODS[cell.method]
        return maker(cell.seed, cell.dataset)

    def stream(self, dataset: str) -> Stream:
        return load_stream(dataset, self.label, self.segment)


def make_plan(
    experiments: Iterable[str] = ("accuracy",),
    *,
    datasets: Sequence[str] | None = None,
    methods: Sequence[str] | None = None,
    n_seeds: int = 5,
    protocol: Protocol = "honest",
    extra: Mapping[str, Maker] | None = None,
    label: str = "label",
    segment: str = "segment",
) -> Plan:
    """Return the cells that the experiments need; `datasets` and `methods` narrow them down.

    A data set is one of the nine names, a name with a number of segments ("random_rbf:20"), or
    the path of a data file with the columns `label` and `segment`.
    """
    experiments, extra = list(experiments), extra or {}
    _check_names("experiment", experiments, EXPERIMENTS)
    _check_names("method", methods or (), [*METHODS, *extra])
    _check_extra(extra)
    check_count("n_seeds", n_seeds)
    _check_columns(label, segment, datasets or ())
    plan, cells = Plan((), protocol, extra, label, segment), dict[Cell, None]()
    for name in experiments:
        wanted = [*EXPERIMENTS[name].methods, *extra]
        if methods is not None:
            known = (*EXPERIMENTS[name].all_methods, *extra)
            wanted = [method for method in known if method in methods]
        for dataset in _choose_datasets(name, datasets):
            for method in wanted:
                seeds = min(n_seeds, GOLD_SEEDS) if method == "best_segments" else n_seeds
                cells |= dict.fromkeys(
                    Cell(dataset, method, number, seed)
                    for seed in range(seeds)
                    for number in range(plan.stream(dataset).n_segments)
                )
    if not cells and any(EXPERIMENTS[name].methods for name in experiments):
        raise InputError(_say_empty(experiments))
    return replace(plan, cells=tuple(cells))


@cache
def load_stream(dataset: str, label: str = "label", segment: str = "segment") -> Stream:
    """Return a stream by what the command line calls it; the columns are those of a file."""
    name, _, n_segments = dataset.partition(":")
    if is_file(dataset):
        stream = read_stream(Path(dataset), label, segment)
        _check_sizes(dataset, stream)
        return stream
    if n_segments and not n_segments.isdecimal():
        raise InputError(f"{dataset!r} asks for {n_segments!r} segments; give a number: {name}:20")
    return load(name, n_segments=int(n_segments) if n_segments else None)


def _choose_datasets(name: str, datasets: Sequence[str] | None) -> Sequence[str]:
    """Those asked for, as far as the experiment covers them."""
    experiment = EXPERIMENTS[name]
    if not experiment.methods or datasets is None:
        return experiment.datasets
    if name == "scalability":
        return [dataset for dataset in datasets if has_length(dataset)]
    return [dataset for dataset in datasets if experiment.covers(dataset)]


def has_length(dataset: str) -> bool:
    """Whether a stream of the paper is asked for with a number of segments."""
    name, mark, _ = dataset.partition(":")
    return bool(mark) and name in names()


def is_file(dataset: str) -> bool:
    """Whether a data set is the path of a file of the user's."""
    return dataset.partition(":")[0] not in names() and bool(Path(dataset).suffix)


def _check_columns(label: str, segment: str, datasets: Iterable[str]) -> None:
    if (label, segment) != ("label", "segment") and not any(map(is_file, datasets)):
        raise InputError(
            f"label {label!r} and segment {segment!r} name columns of a file, but none of the "
            "data sets is one; add the path of a data file"
        )


def _check_sizes(dataset: str, stream: Stream) -> None:
    sizes = np.bincount(stream.segments)
    n_current, least = int(sizes.mean() * stream.current_share), int(sizes.argmin())
    if n_current < 2:  # noqa: PLR2004  # one to train, one to validate
        raise InputError(
            f"{dataset} has {sizes.mean():.0f} rows per segment, of which "
            f"{stream.current_share:.0%} are labelled; it takes at least 2: use longer segments"
        )
    if sizes[least] <= n_current:
        raise InputError(
            f"{dataset}: segment {stream.segment_names[least]!r} has {sizes[least]} row(s), but "
            f"{n_current} are labelled in each segment and the rest is the test; join it to another"
        )


def _check_extra(extra: Mapping[str, Maker]) -> None:
    for name in extra:
        if name in METHODS:
            raise InputError(f"{name!r} is a method of the paper's; name your own differently")


def _check_names(kind: str, given: Iterable[str], known: Iterable[str]) -> None:
    known = list(known)
    for name in given:
        if name not in known:
            hint = suggest(name, known, limit=None)
            raise InputError(f"there is no {kind} called {name!r}; {hint}")


def _say_empty(experiments: Iterable[str]) -> str:
    parts = [
        f"{name} compares {', '.join(EXPERIMENTS[name].methods)} on "
        f"{', '.join(EXPERIMENTS[name].datasets)}"
        for name in experiments
    ]
    return f"there is nothing to run: {'; '.join(parts)}"
