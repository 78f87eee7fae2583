"""Begin a stream in a store, or go on with the one that it holds.

A store that was opened here is let go of when that fails; one that the caller opened stays open.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from driftquilt.errors import StoreError
from driftquilt.learners.base import Learner
from driftquilt.store.base import Store
from driftquilt.store.disk import DiskStore
from driftquilt.store.memory import MemoryStore
from driftquilt.stream.engine import Engine
from driftquilt.stream.setup import Setup
from driftquilt.stream.training import Trainer
from driftquilt.stream.workers import Workers

__all__ = ["Place", "begin", "resume"]

Place: TypeAlias = Store | str | os.PathLike[str]


def begin(place: Place | None, setup: Setup, trainer: Trainer) -> Engine:
    """A new stream in a store that holds nothing."""
    with _opened(MemoryStore() if place is None else place) as store:
        if store.n_appended or store.state or store.models:
            raise StoreError(
                "there is a stream in this store already; go on with it: QuiltStream.open(path)"
            )
        _expect_trainer(trainer, setup)
        store.write_state({"stream": setup.to_json(), "id": secrets.token_hex(8)})
        return Engine(setup, store, trainer)


def resume(
    place: Place,
    learner: Learner | None,
    detector: Any,
    wait: bool | None,
    trainer: Trainer,
    engine: str | None = None,
    max_waiting: int | None = None,
) -> tuple[Engine, Any]:
    """The stream of a store as it was after its last row, and what was waiting when it closed.

    Another `wait` than before is kept for the next time.
    """
    if isinstance(place, str | os.PathLike) and not Path(place).is_dir():
        raise StoreError(f"there is no folder {place}; begin a stream: QuiltStream(store=path)")
    with _opened(place) as store:
        kept: Any = store.state.get("stream")
        setup = Setup.from_json(
            kept, learner, detector, wait=wait, engine=engine, max_waiting=max_waiting
        )
        _expect_trainer(trainer, setup)
        if setup.wait != kept.get("wait", False):
            store.write_state({"stream": {**kept, "wait": setup.wait}})
        opened = Engine(setup, store, trainer)
        return opened, opened.restore()


def _expect_trainer(trainer: Trainer, setup: Setup) -> None:
    if isinstance(trainer, Workers):
        trainer.expect(setup.estimator)


@contextlib.contextmanager
def _opened(place: Place) -> Iterator[Store]:
    store = DiskStore(place) if isinstance(place, str | os.PathLike) else place
    try:
        yield store
    except BaseException:
        if store is not place:
            store.close()
        raise
