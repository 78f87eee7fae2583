"""A store that lasts as long as its process: for tests, and for streams that need no tomorrow.

It obeys every law of `Store` but survival: `n_durable` counts rows that are as safe as they get.

>>> import pyarrow as pa
>>> store = MemoryStore()
>>> store.append(pa.record_batch({"x": [0.5, 1.5], "label": [0, 1]}), state={"position": 2})
2
>>> may = store.seal("may")
>>> may.number, may.n_rows, store.n_open, store.state
(1, 2, 0, {'position': 2})
>>> store.read(may.number)["label"].to_pylist()
[0, 1]
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

import pyarrow as pa

from driftquilt.errors import StoreError
from driftquilt.store.base import (
    SealedSegment,
    SegmentName,
    State,
    StoredModel,
    expect_rows,
    find,
    name_to_json,
    record_to_json,
    state_to_json,
    tensors_to_bytes,
)
from driftquilt.store.pending import LabelledRows, PendingChange, PendingHead, PendingRequest
from driftquilt.store.rows import OpenRows, RowBlock

__all__ = ["MemoryStore"]


class MemoryStore:
    """`Store` without a disk."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._open_rows = OpenRows({})
        self._blocks: list[RowBlock] = []
        self._segments: dict[int, SealedSegment] = {}
        self._tables: dict[int, pa.Table] = {}
        self._models: dict[int, StoredModel] = {}
        self._tensors: dict[int, bytes] = {}
        self._state: dict[str, str] = {}
        self._pending: dict[int, PendingRequest] = {}
        self._labelled = LabelledRows({})
        self._n_segments = self._n_models = 0  # ever made
        self._n_appended = self._n_sealed = 0
        self._closed = False

    @property
    def n_appended(self) -> int:
        return self._n_appended

    @property
    def n_durable(self) -> int:
        return self._n_appended

    @property
    def n_open(self) -> int:
        return self._n_appended - self._n_sealed

    @property
    def segments(self) -> tuple[SealedSegment, ...]:
        with self._open():
            return tuple(self._segments.values())

    @property
    def next_segment(self) -> int:
        return self._n_segments + 1

    @property
    def models(self) -> tuple[StoredModel, ...]:
        with self._open():
            return tuple(self._models.values())

    @property
    def state(self) -> dict[str, Any]:
        with self._open():
            return {key: json.loads(text) for key, text in self._state.items()}

    @property
    def labelled(self) -> LabelledRows:
        return self._labelled

    def append(
        self,
        batch: pa.RecordBatch,
        state: State | None = None,
        pending: PendingChange | None = None,
    ) -> int:
        texts = state_to_json(state)
        with self._open():
            blocks, _ = self._open_rows.take(batch, self._n_appended)
            self.hold(pending or PendingChange())
            self._blocks += blocks
            self._n_appended += batch.num_rows
            self._state.update(texts)
            return self._n_appended

    def flush(self) -> int:
        with self._open():
            return self._n_appended

    def seal(self, name: SegmentName = None, state: State | None = None) -> SealedSegment:
        name_to_json(name)
        texts = state_to_json(state)
        with self._open():
            expect_rows(self.n_open)
            table = self._open_rows.table(self._blocks, self._n_sealed)
            segment = SealedSegment(self.next_segment, name, table.num_rows, table.nbytes)
            self._n_segments = segment.number
            self._segments[segment.number], self._tables[segment.number] = segment, table
            self._open_rows, self._blocks = self._open_rows.after_seal(), []
            self._n_sealed = self._n_appended
            self._state.update(texts)
            return segment

    def open_rows(self) -> pa.Table:
        with self._open():
            return self._open_rows.table(self._blocks, self._n_sealed)

    def read(self, number: int) -> pa.Table:
        with self._open():
            find(self._segments, number, "segment")
            return self._tables[number]

    def drop(self, number: int) -> None:
        with self._open():
            find(self._segments, number, "segment")
            del self._segments[number], self._tables[number]

    def put_model(
        self, tensors: bytes, record: Mapping[str, Any], state: State | None = None
    ) -> int:
        kept, texts = json.loads(record_to_json(record)), state_to_json(state)
        content = tensors_to_bytes(tensors)
        with self._open():
            self._n_models += 1
            self._tensors[self._n_models] = content
            self._models[self._n_models] = StoredModel(self._n_models, len(content), kept)
            self._state.update(texts)
            return self._n_models

    def model(self, number: int) -> tuple[bytes, dict[str, Any]]:
        with self._open():
            record = record_to_json(find(self._models, number, "model").record)
            return self._tensors[number], json.loads(record)

    def drop_model(self, number: int) -> None:
        with self._open():
            find(self._models, number, "model")
            del self._models[number], self._tensors[number]

    def write_state(self, state: State, pending: PendingChange | None = None) -> None:
        texts = state_to_json(state)
        with self._open():
            self._state.update(texts)
            self.hold(pending or PendingChange())

    def hold(self, pending: PendingChange) -> None:
        with self._open():
            for request in pending.held:
                self._pending[request.number] = request
            self._labelled.mark(pending.labelled)
            for number in pending.released:
                self._pending.pop(number, None)

    def pending(self) -> list[PendingHead]:
        with self._open():
            return [
                PendingHead(number, request.n_rows, len(request.content), request.key)
                for number, request in sorted(self._pending.items())
            ]

    def read_pending(self, number: int) -> PendingRequest | None:
        with self._open():
            # From the newest on: most labels are for recent rows.
            for first in reversed(self._pending):
                if first <= number < first + self._pending[first].n_rows:
                    return self._pending[first]
            return None

    def close(self, *, discard: bool = False) -> None:  # noqa: ARG002 - all is lost in any case
        self._closed = True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _open(self) -> contextlib.AbstractContextManager[bool]:
        if self._closed:
            raise StoreError("the store is closed; make a new one")
        return self._lock
