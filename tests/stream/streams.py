"""Short streams with drifts for the tests, and everything that a closed stream has left.

The concept turns round every `TURN` rows. One column in four rows is missing, one is text, and
one comes late. Nets are tiny and trainings short, so that a stream of some hundred rows with its
drifts takes well under a second.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

from numpy.typing import NDArray

from driftquilt.learners.mlp import MLP, MLPModel
from driftquilt.quilt.classifier import QuiltClassifier
from driftquilt.quilt.regressor import QuiltRegressor
from driftquilt.store.base import Store
from driftquilt.store.disk import DiskStore
from driftquilt.stream import QuiltStream
from driftquilt.stream.persistence import first_row, read_checkpoint, versions
from driftquilt.stream.settings import Guard
from tests.crash.disk import UnsyncedDisk

TURN = 150
LATE = 100  # the row in which a column comes
ADWIN = {"kind": "adwin", "clock": 1, "delta": 0.05}

LabelledRow = tuple[dict[str, Any], Any]


class Gated:
    """The two-layer net, whose trainings do not begin before a gate is opened."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self._net = MLP(hidden_units=8)

    def __deepcopy__(self, memo: Any) -> Gated:
        return self  # scikit-learn's clone is to wait at the same gate

    def start(self, X: NDArray[Any], n_classes: int, seed: int) -> MLPModel:
        assert self.gate.wait(60)
        return self._net.start(X, n_classes, seed)

    def restore(self, tensors: Mapping[str, NDArray[Any]], n_classes: int) -> MLPModel:
        return self._net.restore(tensors, n_classes)

    def settings(self) -> dict[str, Any]:
        return {"kind": "gated"}


def rows(n_rows: int, seed: int = 0) -> list[LabelledRow]:
    """Rows whose label says whether a > b, then the opposite, by turns."""
    rng = Random(seed)  # noqa: S311
    made = []
    for number in range(n_rows):
        x: dict[str, Any] = {"a": rng.random(), "b": rng.random()}
        x["city"] = rng.choice(["Oslo", "Rome"])
        y = "yes" if (x["a"] > x["b"]) == (number // TURN % 2 == 0) else "no"
        if number % 4 == 0:
            x["c"] = None if number % 8 else float(number % 3)
        if number >= LATE:
            x["late"] = rng.gauss(3, 2)
        made.append((x, y))
    return made


def number_rows(n_rows: int, seed: int = 0) -> list[LabelledRow]:
    """The same rows, whose label is a number: a - b, then the opposite, around 100."""
    made = []
    for number, (x, _) in enumerate(rows(n_rows, seed)):
        sign = 1 if number // TURN % 2 == 0 else -1
        made.append((x, 100.0 + 10 * sign * (x["a"] - x["b"])))
    return made


_TINY = {"hidden_units": 8, "n_folds": 2, "max_epochs": 15, "n_jobs": 1, "random_state": 0}


def estimator(**settings: Any) -> QuiltClassifier:
    return QuiltClassifier(**(_TINY | settings))


def regressor(**settings: Any) -> QuiltRegressor:
    return QuiltRegressor(**(_TINY | settings))


def start(store: Any = None, **settings: Any) -> QuiltStream:
    given: dict[str, Any] = {"detector": ADWIN, "n_wait": 30, "wait": True}
    given["guard"], given["estimator"] = Guard(min_rows=30), estimator()
    return QuiltStream(store=store, **(given | settings))


def learn(stream: QuiltStream, some: list[LabelledRow]) -> QuiltStream:
    for x, y in some:
        stream.learn_one(x, y)
    return stream


def hasty(path: Path, **pace: Any) -> DiskStore:
    """A store on the disk that does not wait for it."""
    return DiskStore(path, disk=UnsyncedDisk(), **pace)


def left_in(store: Store) -> dict[str, Any]:
    """Everything a stream has left in its store; how long things took is left out."""
    found = read_checkpoint(store)
    assert found is not None
    tensors, record = found
    for event in record["events"]:
        event.pop("seconds", None)
    return {
        "weights": {name: tensor.tobytes() for name, tensor in tensors.items()},
        "record": record,
        "rows": stored_rows(store),
        "segments": [(s.number, s.name, s.n_rows) for s in store.segments],
        "models": {v: store.model(number) for v, number in sorted(versions(store).items())},
        "counts": (store.n_appended, store.n_durable, store.n_open),
    }


def left(stream: QuiltStream) -> dict[str, Any]:
    """What `left_in` gives for a stream that is still open, as it is now."""
    stream._engine.checkpoint()
    return left_in(stream.store)


def stored_rows(store: Store) -> list[dict[str, Any]]:
    """All rows in order, without what is missing; of dropped segments there are none."""
    tables = [store.read(segment.number) for segment in store.segments]
    for segment, table in zip(store.segments, tables, strict=True):
        assert table.num_rows == segment.n_rows
        assert first_row(segment) + segment.n_rows <= store.n_appended - store.n_open
    found = [row for table in [*tables, store.open_rows()] for row in table.to_pylist()]
    return [{name: v for name, v in row.items() if v is not None} for row in found]


def as_stored(some: list[LabelledRow]) -> list[dict[str, Any]]:
    """What `stored_rows` has to give for rows."""
    return [{n: v for n, v in {**x, "label": y}.items() if v is not None} for x, y in some]
