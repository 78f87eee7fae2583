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
from typing import Any

import pyarrow as pa

from driftquilt.errors import StoreError
from driftquilt.store.base import (
    Contents,
    SealedSegment,
    SegmentName,
    State,
    Store,
    StoredModel,
    find,
    name_to_json,
    record_to_json,
    state_to_json,
    tensors_to_bytes,
)
from driftquilt.store.pending import PendingChange, PendingHead, PendingRequest
from driftquilt.store.rows import OpenRows, RowBlock

__all__ = ["MemoryStore"]


class MemoryStore(Store):
    """`Store` without a disk."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._open_rows = OpenRows({})
        self._blocks: list[RowBlock] = []
        self._tables: dict[int, pa.Table] = {}
        self._tensors: dict[int, bytes] = {}
        self._pending: dict[int, PendingRequest] = {}
        self._kept = Contents()
        self._closed = False

    @property
    def n_durable(self) -> int:
        return self._kept.n_appended

    def append(
        self,
        batch: pa.RecordBatch,
        state: State | None = None,
        pending: PendingChange | None = None,
    ) -> int:
        texts = state_to_json(state)
        with self._working():
            blocks, _ = self._open_rows.take(batch, self._kept.n_appended)
            self.hold(pending or PendingChange())
            self._blocks += blocks
            self._kept.n_appended += batch.num_rows
            self._kept.state.update(texts)
            return self._kept.n_appended

    def flush(self) -> int:
        with self._working():
            return self._kept.n_appended

    def seal(self, name: SegmentName = None, state: State | None = None) -> SealedSegment:
        name_to_json(name)
        texts = state_to_json(state)
        with self._working():
            self._expect_rows()
            table = self._open_rows.table(self._blocks, self._kept.n_sealed)
            segment = SealedSegment(self.next_segment, name, table.num_rows, table.nbytes)
            self._kept.n_segments = segment.number
            self._kept.segments[segment.number], self._tables[segment.number] = segment, table
            self._open_rows, self._blocks = self._open_rows.after_seal(), []
            self._kept.n_sealed = self._kept.n_appended
            self._kept.state.update(texts)
            return segment

    def open_rows(self) -> pa.Table:
        with self._working():
            return self._open_rows.table(self._blocks, self._kept.n_sealed)

    def read(self, number: int) -> pa.Table:
        with self._working():
            find(self._kept.segments, number, "segment")
            return self._tables[number]

    def drop(self, number: int) -> None:
        with self._working():
            find(self._kept.segments, number, "segment")
            del self._kept.segments[number], self._tables[number]

    def put_model(
        self, tensors: bytes, record: Mapping[str, Any], state: State | None = None
    ) -> int:
        kept, texts = json.loads(record_to_json(record)), state_to_json(state)
        content = tensors_to_bytes(tensors)
        with self._working():
            number = self._kept.n_models = self._kept.n_models + 1
            self._tensors[number] = content
            self._kept.models[number] = StoredModel(number, len(content), kept)
            self._kept.state.update(texts)
            return number

    def model(self, number: int) -> tuple[bytes, dict[str, Any]]:
        with self._working():
            record = record_to_json(find(self._kept.models, number, "model").record)
            return self._tensors[number], json.loads(record)

    def drop_model(self, number: int) -> None:
        with self._working():
            find(self._kept.models, number, "model")
            del self._kept.models[number], self._tensors[number]

    def write_state(self, state: State, pending: PendingChange | None = None) -> None:
        texts = state_to_json(state)
        with self._working():
            self._kept.state.update(texts)
            self.hold(pending or PendingChange())

    def hold(self, pending: PendingChange) -> None:
        with self._working():
            for request in pending.held:
                self._pending[request.number] = request
            self._kept.labelled.mark(pending.labelled)
            for number in pending.released:
                self._pending.pop(number, None)

    def pending(self) -> list[PendingHead]:
        with self._working():
            return [
                PendingHead(number, request.n_rows, len(request.content), request.key)
                for number, request in sorted(self._pending.items())
            ]

    def read_pending(self, number: int) -> PendingRequest | None:
        with self._working():
            # From the newest on: most labels are for recent rows.
            for first in reversed(self._pending):
                if first <= number < first + self._pending[first].n_rows:
                    return self._pending[first]
            return None

    def close(self, *, discard: bool = False) -> None:  # noqa: ARG002 - all is lost in any case
        self._closed = True

    def _working(self, doing: str = "") -> contextlib.AbstractContextManager[bool]:  # noqa: ARG002
        if self._closed:
            raise StoreError("the store is closed; make a new one")
        return self._lock
