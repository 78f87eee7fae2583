"""Run a plan on all cores or a cluster, and go on where an earlier run stopped.

Every cell is a task of its own, but for methods that start from their model of the segment
before: all segments of one seed are then one task. Workers have BLAS on one thread; the caller
alone writes the results, a task at a time.

Results are one JSON line per finished cell, in a file that survives being killed. A line is
written and synced before the next cell counts as done. A line that a crash tore off is dropped
when the file is opened again, so no cell is lost or repeated.
"""

from __future__ import annotations

import json
import os
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, fields, replace
from functools import cache, lru_cache, partial, reduce
from itertools import groupby
from pathlib import Path
from typing import IO, Self, TypeAlias

import numpy as np
from sklearn.metrics import f1_score

from driftquilt import __version__
from driftquilt.core.segment import Segment, count_classes
from driftquilt.core.training import Time
from driftquilt.errors import DriftquiltError, InputError
from driftquilt.files import lock_file
from driftquilt.paper.baselines.best_segments import BestSegmentsModel
from driftquilt.paper.baselines.trees import ARF, HAT, OnlineModel
from driftquilt.paper.datasets.stream import Stream
from driftquilt.paper.plan import Cell, Plan
from driftquilt.paper.protocol import Evaluation, Protocol, evaluations
from driftquilt.quilt.executor import Executor, Processes, Threads, one_blas_thread
from driftquilt.quilt.method import Average, Fitted, Method, Quilt, QuiltModel, read_clock

__all__ = [
    "Result",
    "ResultFile",
    "Task",
    "effort",
    "read_results",
    "run_plan",
    "run_task",
    "split_tasks",
]

Task: TypeAlias = tuple[Cell, ...]
_Shape: TypeAlias = tuple[tuple[str, ...], int]

_FEW = 40
_rehearsed: set[tuple[str, bool]] = set()


@dataclass(frozen=True)
class Result:
    """What came out of a cell.

    Seconds count from the drift to the new model; `training_` seconds are those of the training
    that made it, as the paper reports them, and what remains is the search. `data` begins the
    stream's checksum. `selected` and `usage` are None for methods that do not choose segments;
    `equals` are all sets of segments that did as well, where every one was tried.
    """

    dataset: str
    method: str
    segment: int
    seed: int
    data: str
    protocol: str
    accuracy: float
    f1: float
    seconds: float
    cpu_seconds: float
    training_seconds: float
    training_cpu_seconds: float
    epochs: int | None
    usage: float | None
    selected: list[int] | None
    equals: list[list[int]] | None = None
    version: str = __version__

    @property
    def cell(self) -> Cell:
        return Cell(self.dataset, self.method, self.segment, self.seed)


def run_plan(
    plan: Plan, out: Path, *, jobs: int = 1, executor: Executor | None = None
) -> Generator[list[Result], None, None]:
    """Run what is missing in `out/results.jsonl`; yield the new results, task by task.

    It takes so many processes, or the executor. A file that cannot be added to is refused at
    once, before the first task.
    """
    names = {cell.dataset for cell in plan.cells}
    data = {dataset: _checksum(plan.stream(dataset)) for dataset in names}
    file = ResultFile(out / "results.jsonl", plan.protocol, data)
    return _run_missing(plan, file, jobs, executor)


def _run_missing(
    plan: Plan, file: ResultFile, jobs: int, executor: Executor | None
) -> Generator[list[Result], None, None]:
    with file:
        done = {result.cell for result in file.results}
        tasks = split_tasks(plan, done)
        if executor is None:
            executor = Threads(1) if min(jobs, len(tasks)) <= 1 else Processes(jobs)
        for _, results in executor.run(_run, replace(plan, cells=()), tasks):
            new = [result for result in results if result.cell not in done]
            file.add(new)
            yield new


def split_tasks(plan: Plan, done: set[Cell]) -> list[Task]:
    """Return what is left to do; longest first, so that no core idles at the end."""
    tasks: list[Task] = []
    lanes = sorted(plan.cells, key=lambda cell: (cell.dataset, cell.method, cell.seed))
    for (_, method, _), cells in groupby(lanes, key=lambda cell: (cell[0], cell[1], cell[3])):
        lane = sorted(cells, key=lambda cell: cell.segment)
        parts = [tuple(lane)] if method in plan.chained else [(cell,) for cell in lane]
        tasks += [part for part in parts if not done.issuperset(part)]
    return sorted(tasks, key=partial(effort, plan), reverse=True)


def effort(plan: Plan, task: Task) -> int:
    """About how long a task takes: rows that are trained on, once per subset of Best Segments."""
    n_rows = len(plan.stream(task[0].dataset).labels)
    weights = [2**cell.segment if cell.method == "best_segments" else 1 for cell in task]
    return n_rows * sum((cell.segment + 1) * w for cell, w in zip(task, weights, strict=True))


def _run(plan: Plan, task: Task) -> Iterator[list[Result]]:
    yield run_task(plan, task)


def run_task(plan: Plan, task: Task) -> list[Result]:
    """Run all cells of a task, in order of segments."""
    results, before = list[Result](), None
    shape: _Shape | None = None
    for cell in task:
        try:
            evaluation = _evaluations(plan.stream(cell.dataset), plan.protocol)[cell.segment]
            before_it, shape = shape, _shape(evaluation)
            method = _go_on(plan.make(cell), before, resized=shape != before_it)
            _rehearse(plan, cell, evaluation)
            with one_blas_thread():
                result, before = run_cell(plan, cell, method, evaluation)
        except DriftquiltError as error:
            raise InputError(f"{_say(cell)}: {error}") from error
        except Exception as error:
            error.add_note(f"in {_say(cell)}")
            raise
        if isinstance(before, OnlineModel) and results:
            result = _with_time_of(results[-1], result)
        results.append(result)
    return results


def _shape(evaluation: Evaluation) -> _Shape:
    """Return the inputs and the outputs that a net for these rows has."""
    return evaluation.columns, count_classes(evaluation.history, evaluation.current)


def _go_on(method: Method, before: Fitted | None, *, resized: bool) -> Method:
    """Hand the method its model of the segment before; a net cannot go on in another shape."""
    if isinstance(method, Quilt) and isinstance(before, QuiltModel) and not resized:
        return replace(method, previous=before.models)
    if isinstance(method, HAT | ARF) and isinstance(before, OnlineModel):
        return replace(method, previous=before)
    return method


def _with_time_of(before: Result, result: Result) -> Result:
    """Add the time of the result before: without it, the model would have had to learn that."""
    times = ("seconds", "cpu_seconds", "training_seconds", "training_cpu_seconds")
    return replace(result, **{n: getattr(before, n) + getattr(result, n) for n in times})


def _rehearse(plan: Plan, cell: Cell, evaluation: Evaluation) -> None:
    """Let a method load and compile, on a few rows, what it needs when first used; untimed."""
    kind = (cell.method, bool(evaluation.history))
    if kind in _rehearsed:
        return
    _rehearsed.add(kind)
    history = [segment.take(slice(_FEW)) for segment in evaluation.history[-1:]]
    with suppress(Exception):
        plan.make(cell).adapt(history, evaluation.current.take(slice(_FEW)))


def _say(cell: Cell) -> str:
    return f"{cell.method} on {cell.dataset}, segment {cell.segment}, seed {cell.seed}"


def run_cell(
    plan: Plan, cell: Cell, method: Method, evaluation: Evaluation
) -> tuple[Result, Fitted]:
    """Adapt, time it, and ask the test rows."""
    started = read_clock()
    model = method.adapt(evaluation.history, evaluation.current)
    whole = read_clock().since(started)
    trainings = model.trainings if isinstance(model, Average) else ()
    times = [epoch.time for training in trainings for epoch in training]
    training = reduce(Time.plus, times) if trainings else whole
    stream = plan.stream(cell.dataset)
    accuracy, f1 = _score(model, evaluation.test, len(stream.class_names))
    result = Result(
        *cell,
        data=_checksum(stream),
        protocol=plan.protocol,
        accuracy=accuracy,
        f1=f1,
        seconds=whole.wall,
        cpu_seconds=whole.cpu,
        training_seconds=training.wall,
        training_cpu_seconds=training.cpu,
        epochs=sum(map(len, trainings)) if trainings else None,
        usage=_usage(model, evaluation),
        selected=_selected(model),
        equals=_equals(model),
    )
    return result, model


@cache
def _checksum(stream: Stream) -> str:
    return stream.checksum()[:12]


@lru_cache(maxsize=2)
def _evaluations(stream: Stream, protocol: Protocol) -> list[Evaluation]:
    return list(evaluations(stream, protocol))


def _score(model: Fitted, test: Segment, n_classes: int) -> tuple[float, float]:
    """Accuracy, and F1 of class 1; with more than two classes its mean weighted by rows."""
    predicted = model.predict_proba(test.X).argmax(axis=1)
    kind = "binary" if n_classes == 2 else "weighted"  # noqa: PLR2004
    f1 = f1_score(test.y, predicted, average=kind, zero_division=0.0)
    return float(np.mean(predicted == test.y)), float(f1)


def _usage(model: Fitted, evaluation: Evaluation) -> float | None:
    """Share of the rows at hand that an epoch trained on, averaged over epochs."""
    if not isinstance(model, QuiltModel):
        return None
    sizes = np.array([len(segment) for segment in evaluation.history], dtype=np.int64)
    epochs = [epoch for training in model.trainings for epoch in training]
    shares = [e.n_rows / (e.n_rows + sizes[~e.selected].sum()) for e in epochs]
    return float(np.mean(shares))


def _equals(model: Fitted) -> list[list[int]] | None:
    if not isinstance(model, BestSegmentsModel):
        return None
    return [[int(str(name)) for name in subset] for subset in model.equals]


def _selected(model: Fitted) -> list[int] | None:
    """Return the past segments trained on, of any model that has them in `selected`."""
    if isinstance(model, QuiltModel):
        return [int(str(name)) for name in model.selection.ever_used()]
    if isinstance(model, BestSegmentsModel):
        return [int(str(name)) for name in model.gold]
    names = getattr(model, "selected", None)
    return None if names is None else [int(str(name)) for name in names]


def read_results(path: Path) -> list[Result]:
    """All whole lines of a results file; none if there is no file."""
    if not path.exists():
        return []
    lines = path.read_bytes().split(b"\n")
    return [_parse(line, path, number) for number, line in enumerate(lines[:-1], start=1)]


class ResultFile:
    """A results file that is being added to, by one run at a time."""

    def __init__(self, path: Path, protocol: str, data: Mapping[str, str]) -> None:
        self.path = path
        self._file = _open(path)
        try:
            self.results = read_results(path)
            self._expect(protocol, data)
        except InputError:
            self._file.close()
            raise

    def add(self, results: Iterable[Result]) -> None:
        """Append lines and wait until they are on the disk."""
        for result in results:
            self._file.write((json.dumps(asdict(result)) + "\n").encode())
            self.results.append(result)
        self._file.flush()
        os.fsync(self._file.fileno())

    def _expect(self, protocol: str, data: Mapping[str, str]) -> None:
        for result in self.results:
            found, wanted = (result.protocol, result.version), (protocol, __version__)
            if found != wanted:
                raise InputError(
                    f"{self.path} holds results of protocol and version {found}, but this run has "
                    f"{wanted}; choose another folder"
                )
            if result.data != data.get(result.dataset, result.data):
                raise InputError(
                    f"{self.path} holds results of {result.dataset} as it was before its rows "
                    "changed; choose another folder"
                )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()


def _open(path: Path) -> IO[bytes]:
    """Open the file at its end, without a torn last line, and locked until it is closed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.open("a+b")
    try:
        lock_file(file.fileno())
    except BlockingIOError as error:
        file.close()
        raise InputError(
            f"{path} is being written by another run; wait for its end or choose another folder"
        ) from error
    except OSError:  # the file system has no locks
        pass
    file.seek(0)
    file.truncate(file.read().rfind(b"\n") + 1)
    return file


def _parse(line: bytes, path: Path, number: int) -> Result:
    try:
        record = json.loads(line)
        return Result(**{field.name: record[field.name] for field in fields(Result)})
    except (ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{path}, line {number} is not a result ({type(error).__name__}: {error}); take the "
            "line out, or move the file away to start again"
        ) from error
