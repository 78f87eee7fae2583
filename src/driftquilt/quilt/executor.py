"""Independent tasks, side by side: in place, on threads, in processes, or on a cluster.

A task is a function of what all tasks share and of an item of its own; it yields results. An
`Executor` runs one task per item and hands over each result with the item's number. What is too
large to travel is placed: one value per item is made where its tasks will run, and stays there.
Promises:

- The results of a task come in its order; tasks come in any order, as they finish.
- Results of placed values come in the order of items.
- An exception of a task is raised as it is, and nothing is started after it.
- When no more results are asked for, nothing more is started.

Trainings go on threads, because the kernels release the GIL; what cannot be done on threads goes
to processes. `integrations.ray` obeys the same contract on many machines. The products in
one training are so small that a second BLAS thread costs more than it brings, and its rounding
would depend on the machine's load: `one_blas_thread` keeps them on one core.

>>> list(Threads(1).run(lambda base, n: [base + n, base * n], 10, [1, 2]))
[(0, 11), (0, 10), (1, 12), (1, 20)]
>>> squares = Threads(1).place(lambda _, n: n * n, None, [1, 2, 3])
>>> squares.map(lambda more, square: square + more, 100)
[101, 104, 109]
"""

from __future__ import annotations

import importlib
import math
import multiprocessing
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent import futures
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from multiprocessing.connection import Connection
from operator import itemgetter
from typing import Any, Protocol, TypeVar

from threadpoolctl import ThreadpoolController

from driftquilt.errors import DriftquiltError, InputError

__all__ = ["ENGINES", "Executor", "Placed", "Processes", "Threads", "cannot_travel",
           "find_executor", "has_joined_ray", "no_interrupt", "one_blas_thread"]  # fmt: skip

A = TypeVar("A")
S = TypeVar("S")
T = TypeVar("T")
V = TypeVar("V")

#: The names of engines; "auto" is Ray where there is a cluster and the effort is worth it.
ENGINES = ("local", "processes", "ray", "auto")


# Below it, what is sent to a cluster costs more than the cluster saves (docs/scale.md).
_WORTH_A_CLUSTER = 1e8

# Ctrl-C may reach any thread, and a lock wakes the main thread only for its own (after SIGSTOP and
# SIGCONT it is most often another's): it looks up so often, in seconds.
_LOOK_UP = 0.5


class Executor(Protocol):
    """The contract; the module says what it promises."""

    @property
    def n_workers(self) -> int:
        """How many tasks run at a time."""

    def run(
        self, task: Callable[[S, A], Iterable[T]], shared: S, items: Iterable[A]
    ) -> Iterator[tuple[int, T]]:
        """Every result of `task(shared, item)`, with the item's number counted from 0."""

    def place(self, make: Callable[[S, A], V], shared: S, items: Iterable[A]) -> Placed:
        """`make(shared, item)` of each item, left where it was made."""


class Placed(Protocol):
    """Values that stay where they were made."""

    def map(self, task: Callable[[S, Any], T], shared: S) -> list[T]:
        """`task(shared, value)` of each value."""


def find_executor(engine: str | Executor, n_workers: int, effort: float = math.inf) -> Executor:
    """Return the executor of that name, with so many workers if it is on this machine.

    `effort`, the numbers to be looked at, decides where "auto" may.
    """
    if not isinstance(engine, str):
        return engine
    if engine == "processes":
        return Processes(n_workers)
    if engine == "ray" or (engine == "auto" and effort >= _WORTH_A_CLUSTER and _has_cluster()):
        # By name, because it knows everything that is scaled, and is known by nothing.
        ray: Executor = importlib.import_module("driftquilt.integrations.ray.executor").Ray()
        return ray
    return Threads(n_workers)


def _has_cluster() -> bool:
    """Return whether this process has joined a Ray cluster, or RAY_ADDRESS names one."""
    return "RAY_ADDRESS" in os.environ or has_joined_ray()


def has_joined_ray() -> bool:
    """Return whether this process has joined a Ray cluster, or started its own."""
    ray = sys.modules.get("ray")
    return ray is not None and bool(ray.is_initialized())


@dataclass(frozen=True)
class Threads:
    """Tasks on threads of this process; with one worker, or one task, on the caller's own."""

    n_workers: int = 1

    def run(
        self, task: Callable[[S, A], Iterable[T]], shared: S, items: Iterable[A]
    ) -> Iterator[tuple[int, T]]:
        tasks = list(items)
        if min(self.n_workers, len(tasks)) <= 1:
            for number, item in enumerate(tasks):
                yield from ((number, result) for result in task(shared, item))
            return
        pool = futures.ThreadPoolExecutor(self.n_workers)
        try:
            yield from _as_they_come(
                pool, _run_task, [(task, shared, item) for item in tasks], self
            )
        finally:
            pool.shutdown(cancel_futures=True)

    def place(self, make: Callable[[S, A], V], shared: S, items: Iterable[A]) -> Placed:
        return _PlacedHere(self._in_order(make, shared, items), self)

    def _in_order(self, task: Callable[[S, A], V], shared: S, items: Iterable[A]) -> list[V]:
        results = self.run(lambda of, item: [task(of, item)], shared, items)
        return [value for _, value in sorted(results, key=itemgetter(0))]


@dataclass(frozen=True, eq=False)
class _PlacedHere:
    """Values in this process."""

    values: list[Any]
    threads: Threads

    def map(self, task: Callable[[S, Any], T], shared: S) -> list[T]:
        return self.threads._in_order(task, shared, self.values)


@dataclass(frozen=True)
class Processes:
    """Tasks in processes that are started for them; what is shared travels once to each.

    A process lives as long as the caller holds the other end of a pipe. When the caller lets go
    of it, by an error, by Ctrl-C or by being killed, it ends in the middle of what it does. What
    is placed stays with the caller, and tasks on it run there: processes end with their tasks.
    """

    n_workers: int = 1

    def run(
        self, task: Callable[[S, A], Iterable[T]], shared: S, items: Iterable[A]
    ) -> Iterator[tuple[int, T]]:
        context = multiprocessing.get_context("spawn")
        leash, hand = context.Pipe(duplex=False)
        pool = futures.ProcessPoolExecutor(self.n_workers, context, _prepare, (leash, task, shared))
        with leash, hand, pool:
            try:
                yield from _as_they_come(pool, _run_task_there, ((item,) for item in items), self)
            except BrokenProcessPool as error:
                raise DriftquiltError(
                    "a worker process died. If memory ran out, take fewer jobs; if a method is "
                    "your own, define it in a module or a script with `if __name__ == "
                    "'__main__':`, or work in this process alone (jobs=1). Results so far are kept"
                ) from error
            except BaseException:
                hand.close()
                raise

    def place(self, make: Callable[[S, A], V], shared: S, items: Iterable[A]) -> Placed:
        return Threads(1).place(make, shared, items)


def _as_they_come(
    pool: futures.Executor,
    call: Callable[..., list[T]],
    calls: Iterable[tuple[Any, ...]],
    executor: Executor,
) -> Iterator[tuple[int, T]]:
    """Yield results as they come; few calls are handed out ahead, and each only once."""
    waiting = enumerate(calls)
    running: dict[futures.Future[list[T]], int] = {}
    while True:
        with no_interrupt():
            for number, arguments in islice(waiting, 2 * executor.n_workers - len(running)):
                running[_submit(pool, call, arguments)] = number
        if not running:
            return
        finished, _ = futures.wait(running, _LOOK_UP, return_when=futures.FIRST_COMPLETED)
        for future in sorted(finished, key=running.__getitem__):
            number = running.pop(future)
            yield from ((number, result) for result in future.result())


def _submit(
    pool: futures.Executor, call: Callable[..., list[T]], arguments: tuple[Any, ...]
) -> futures.Future[list[T]]:
    try:
        return pool.submit(call, *arguments)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise cannot_travel(error) from error


def cannot_travel(why: object) -> InputError:
    """Return the error for a task with something that cannot be sent to other processes."""
    return InputError(
        f"this task cannot be sent to other processes ({why}); define what is your own at the top "
        "of a module, or work in this process alone (jobs=1)"
    )


def _run_task(task: Callable[[S, A], Iterable[T]], shared: S, item: A) -> list[T]:
    return list(task(shared, item))


_there: tuple[Callable[[Any, Any], Iterable[Any]], Any]  # in a process, what it was started for


def _run_task_there(item: Any) -> list[Any]:
    task, shared = _there
    return list(task(shared, item))


def _prepare(leash: Connection, task: Callable[[Any, Any], Iterable[Any]], shared: Any) -> None:
    """End a worker when the leash is let go, and not at Ctrl-C, which is the parent's affair."""
    global _there  # noqa: PLW0603 - a process has one life

    def watch() -> None:
        try:
            leash.poll(None)
        finally:
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _there = (task, shared)


@contextmanager
def no_interrupt() -> Iterator[None]:
    """Ctrl-C waits until the block is left; processes started in it never hear of it."""
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or not hasattr(signal, "pthread_sigmask"):
        yield
        return
    heard = list[int]()
    handler = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, handler)
        if heard:
            signal.raise_signal(signal.SIGINT)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Inside the block, BLAS runs on the calling thread alone; blocks of threads may overlap."""
    global _n_inside  # noqa: PLW0603 - BLAS has one setting for the process
    with _limiting:
        libraries = _libraries(len(sys.modules))
        if not _limits or _limits[-1][0] is not libraries:  # an import brought one
            _limits.append((libraries, libraries.limit(limits=1, user_api="blas")))
        _n_inside += 1
    try:
        yield
    finally:
        with _limiting:
            _n_inside -= 1
            while not _n_inside and _limits:
                _limits.pop()[1].restore_original_limits()


_limiting, _n_inside = threading.Lock(), 0
_limits: list[tuple[ThreadpoolController, Any]] = []  # what is undone when the last block is left


@lru_cache(maxsize=1)
def _libraries(n_modules: int) -> ThreadpoolController:  # noqa: ARG001 - an import may bring one
    # Looking for them takes milliseconds, longer than many a prediction.
    return ThreadpoolController()
