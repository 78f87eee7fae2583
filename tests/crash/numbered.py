"""Random work on a store, and what has to be there after a crash.

Rows are numbered: the n-th row of the stream holds n, so that a row that is lost, doubled or
moved shows. A segment is named by the number of its first row, and a model's bytes follow from
its own number. The oldest are dropped first, so that numbers in use are always a range. One
request waits for its label at any time: each append releases the one before in the same step.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from driftquilt.store import PendingChange, PendingRequest, Store


class Contents(NamedTuple):
    """What a store has acknowledged, or what is in it."""

    n_rows: int = 0
    first_segment: int = 1
    last_segment: int = 0
    first_model: int = 1
    last_model: int = 0


def contents(store: Store) -> Contents:
    """What is durable now; ranges of numbers are empty as long as nothing was made."""
    segments = [segment.number for segment in store.segments] or [1, 0]
    models = [model.number for model in store.models] or [1, 0]
    return Contents(store.n_durable, segments[0], segments[-1], models[0], models[-1])


def rows(first: int, n_rows: int) -> pa.RecordBatch:
    """Numbers alone, or with text beside them, by turns of 40 rows."""
    numbers = np.arange(first, first + n_rows)
    columns = {"id": pa.array(numbers), "x": pa.array((numbers / 2).astype(np.float32))}
    if first // 40 % 2:
        columns["word"] = pa.array([f"row {n}" for n in numbers])
    return pa.record_batch(columns)


def tensors(number: int) -> bytes:
    return f"model {number} ".encode() * 70


def request(number: int) -> PendingRequest:
    return PendingRequest(number, 1, 0.5, "text/plain", None, f"request {number}".encode())


def append(store: Store, n_rows: int) -> None:
    n = store.n_appended
    pending = PendingChange(held=[request(n + n_rows)], released=[n])
    store.append(rows(n, n_rows), {"next": n + n_rows}, pending)


def change(store: Store, rng: Random) -> None:
    """One random call that writes."""
    dice, segments, models = rng.random(), store.segments, store.models
    if dice < 0.1 and store.n_open:
        first = store.n_appended - store.n_open
        store.seal(first, {"sealed": store.n_appended})
    elif dice < 0.16:
        number = models[-1].number + 1 if models else 1
        store.put_model(tensors(number), {"number": number}, {"model": number})
    elif dice < 0.19 and len(segments) > 3:
        store.drop(segments[0].number)
    elif dice < 0.22 and len(models) > 2:
        store.drop_model(models[0].number)
    else:
        append(store, rng.choice([1, 1, 1, 7, 30]))


def expect_all(store: Store, folder: Path, acknowledged: Contents) -> Contents:
    """Everything acknowledged is there once, in order and whole; returns what was present."""
    present = contents(store)
    ids = [store.read(segment.number)["id"].to_numpy() for segment in store.segments]
    for segment, part in zip(store.segments, ids, strict=True):
        assert part[0] == segment.name
        assert len(part) == segment.n_rows
    ids.append(store.open_rows()["id"].to_numpy() if store.n_open else np.zeros(0, np.int64))
    everything = np.concatenate(ids)
    first = int(everything[0]) if len(everything) else store.n_appended
    np.testing.assert_array_equal(everything, np.arange(first, store.n_appended))
    assert acknowledged.n_rows <= store.n_appended
    assert store.state.get("next", 0) == store.n_appended
    assert store.state.get("sealed", 0) == store.n_appended - store.n_open
    _expect_numbers(present, acknowledged)
    waiting = [store.read_pending(head.number) for head in store.pending()]
    assert waiting == ([request(store.n_appended)] if store.n_appended else [])
    for model in store.models:
        assert store.model(model.number) == (tensors(model.number), {"number": model.number})
    assert store.state.get("model", 0) == present.last_model
    _expect_no_leftovers(store, folder)
    return present


def _expect_numbers(present: Contents, acknowledged: Contents) -> None:
    """At most the call that was cut short has done more than was acknowledged."""
    for name in Contents._fields[1:]:
        before = getattr(acknowledged, name)
        assert before <= getattr(present, name) <= before + 1, name


def _expect_no_leftovers(store: Store, folder: Path) -> None:
    files = sorted(path.name for path in folder.glob("*/*"))
    numbers = [f"{model.number:06}.safetensors" for model in store.models]
    numbers += [f"{segment.number:06}.arrow" for segment in store.segments]
    assert files == sorted(numbers)
