"""The executor on a Ray cluster, and the only door of Ray Core.

Every task is a Ray task, every placed value an object in the memory of the node that made it.
Ray runs a task again when its worker or its node dies, and makes placed values again from the task
that made them, so makers read files and never rely on what came before. Values that do not fit
into the cluster's memory lie on its disks meanwhile. Tasks that look at a value go to the node
that has it, if that has a free worker; what travels is what all tasks share, once per node, and
the answers.

Whoever reaches a Ray port without a token can run code there. So token authentication is
required: a cluster without it is refused, and one that is started here, because none was given,
has it. Usage statistics and the dashboard are off. Everything that travels between Ray's own
processes is pickled; that is why they need the token, and why no file or request of a stranger
may get there.

>>> Ray("ray.example.com:6379")
Ray(address='ray.example.com:6379')
"""

from __future__ import annotations

import logging
import os
import secrets
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from pickle import PicklingError
from typing import Any, TypeVar

from driftquilt.errors import DriftquiltError, InputError, MissingExtraError
from driftquilt.quilt.executor import Placed, cannot_travel

try:
    import ray
    from ray.exceptions import RayError, RayTaskError
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
except ModuleNotFoundError as error:
    raise MissingExtraError("ray", extra="ray") from error

__all__ = ["Ray", "connect", "get", "ray", "submit"]

A = TypeVar("A")
S = TypeVar("S")
T = TypeVar("T")
V = TypeVar("V")

_TRIES = 5  # of one task, if its worker or node dies each time


def connect(address: str | None = None) -> None:
    """Join the cluster at that address, or at RAY_ADDRESS; with neither, start one here."""
    if os.environ.get("RAY_AUTH_MODE", "token") != "token":
        raise _no_token("RAY_AUTH_MODE is set to something else")
    joined = not ray.is_initialized()
    if joined:
        _join(address or os.environ.get("RAY_ADDRESS"))
    else:
        _expect_same(address)
    here = ray.get_runtime_context().get_node_id()
    if here in _checked:
        return
    if {"token"} != _modes():
        if joined:
            ray.shutdown()
        raise _no_token("some of its nodes, or all, were started without it")
    _checked.add(here)


_checked: set[str] = set()  # nodes that drivers were on; no two clusters have one of the same id


def _modes() -> set[str | None]:
    """How the nodes of the cluster were started, each asked itself."""
    nodes = [node["NodeID"] for node in ray.nodes() if node["Alive"]]  # type: ignore[no-untyped-call]
    asked = [
        _mode.options(scheduling_strategy=NodeAffinitySchedulingStrategy(node, soft=False)).remote()
        for node in nodes
    ]
    return {get(mode) for mode in asked}


def _expect_same(address: str | None) -> None:
    """Refuse another address than that of the cluster which this process has joined."""
    port = (address or "").rpartition(":")[2]
    joined = ray.get_runtime_context().gcs_address
    if port.isdigit() and port != joined.rpartition(":")[2]:
        raise InputError(
            f"this process has joined the Ray cluster at {joined}, so it cannot work at {address}; "
            "call ray.shutdown() first"
        )


def _join(address: str | None) -> None:
    new: dict[str, Any] = {}
    if address in (None, "local"):
        new = {"include_dashboard": False}
        _expect_token()
    else:
        _expect_listener(address)
    try:
        ray.init(
            address=address or "local",
            namespace="driftquilt",
            log_to_driver=False,
            logging_level=logging.ERROR,
            **new,
        )
    except (ConnectionError, RuntimeError, ValueError, RayError) as error:
        raise _unreachable(address or "this machine", error) from error


def _expect_token() -> None:
    """Make a token for a cluster of this process's own, if there is none.

    Ray itself would leave one in the home folder, and other clusters of the user would have it.
    """
    named = {"RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH"} & os.environ.keys()
    if not named and not (Path.home() / ".ray" / "auth_token").exists():
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)


def _expect_listener(address: str) -> None:
    """Refuse an address where nothing listens, for which Ray itself would wait some minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not port.isdigit():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=5).close()
    except (OSError, UnicodeError) as error:
        raise _unreachable(address, error) from error


def _unreachable(address: str, reason: object) -> DriftquiltError:
    return DriftquiltError(
        f"Ray at {address} cannot be reached: {_first(reason)}; check that the cluster runs, and "
        "that RAY_AUTH_TOKEN, or ~/.ray/auth_token, has the token of that cluster; "
        "RAY_AUTH_MODE=token has to be set before Ray is imported"
    )


def _first(message: object) -> str:
    """Return the first line of a message of Ray's; the others are for its developers."""
    return str(message).strip().partition("\n")[0]


def _no_token(reason: str) -> InputError:
    return InputError(
        f"this Ray cluster has no token authentication ({reason}), so whoever reaches it can run "
        "code on it; start its nodes, and this process, with RAY_AUTH_MODE=token and one token"
    )


@dataclass(frozen=True)
class Ray:
    """Tasks on the cluster at `address`; None is RAY_ADDRESS, or one started here.

    When no more is asked for, the few tasks that were handed out run to their end, and their
    results are dropped: a task that Ray is asked to cancel while it ends can take the whole driver
    down (Ray 2.60).
    """

    address: str | None = None

    @property
    def n_workers(self) -> int:
        connect(self.address)
        resources: dict[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
        return max(int(resources.get("CPU", 1)), 1)

    def run(
        self, task: Callable[[S, A], Iterable[T]], shared: S, items: Iterable[A]
    ) -> Iterator[tuple[int, T]]:
        at_once = 2 * self.n_workers
        common, waiting = _put((task, shared)), enumerate(items)
        running: dict[Any, int] = {}
        while True:
            for number, item in islice(waiting, at_once - len(running)):
                running[submit(_run_task, common, item)] = number
            if not running:
                return
            for ref in ray.wait(list(running), num_returns=1)[0]:
                number = running.pop(ref)
                yield from ((number, piece) for piece in get(ref))

    def place(self, make: Callable[[S, A], V], shared: S, items: Iterable[A]) -> Placed:
        connect(self.address)
        common, make_there = _put((make, shared)), _call.options(scheduling_strategy="SPREAD")
        return _PlacedThere([submit(make_there, common, item) for item in items])


@dataclass(frozen=True, eq=False)
class _PlacedThere:
    """Values in the memory, or on the disks, of the cluster."""

    values: Sequence[Any]

    def map(self, task: Callable[[S, Any], T], shared: S) -> list[T]:
        common = _put((task, shared))
        answers = [submit(_call, common, value) for value in self.values]
        return [get(answer) for answer in answers]


@ray.remote(num_cpus=0)
def _mode() -> str | None:
    """How the node was started."""
    return os.environ.get("RAY_AUTH_MODE")


@ray.remote(max_retries=_TRIES, num_cpus=1)
def _run_task(common: tuple[Callable[[Any, Any], Iterable[Any]], Any], item: Any) -> list[Any]:
    task, shared = common
    return list(task(shared, item))


@ray.remote(max_retries=_TRIES, num_cpus=1)
def _call(common: tuple[Callable[[Any, Any], Any], Any], value: Any) -> Any:
    task, shared = common
    return task(shared, value)


def _put(value: Any) -> Any:
    try:
        return ray.put(value)
    except (TypeError, ValueError, RuntimeError, PicklingError) as error:
        raise cannot_travel(_first(error)) from error


def submit(task: Any, *arguments: Any) -> Any:
    """Begin a task or an actor; InputError if an argument cannot travel."""
    try:
        return task.remote(*arguments)
    except (TypeError, ValueError, RuntimeError, PicklingError) as error:
        raise cannot_travel(_first(error)) from error


def get(ref: Any) -> Any:
    """Return what a task gave; an exception of the task as it was raised there."""
    try:
        return ray.get(ref)
    except RayError as error:
        cause: BaseException = error
        while isinstance(cause, RayTaskError):  # of a placed value that could not be made
            cause = cause.cause
        if isinstance(cause, RayError):
            raise DriftquiltError(
                f"the cluster gave up on a task: {_first(cause)}; see that its machines have "
                "memory, and the versions of driftquilt and Python that this one has"
            ) from error
        raise cause from error
