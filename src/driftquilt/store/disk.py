"""A store in a folder, which a kill or a power cut at any moment does not harm.

What is open lives in a SQLite database and becomes durable by its commits; what is sealed lives
in Arrow files that are complete before the database speaks of them (`manifest` and `files`
say how). A crash leaves at most a file that nobody knows, and opening removes it.

A commit waits for the disk. With `commit_rows` above 1 appends are gathered and committed
together, when so many rows wait or the oldest has waited for `commit_delay` seconds; until then
they are taken (`n_appended`) but not safe (`n_durable`). `flush`, `seal` and everything else that
writes commits them first.

After a commit that failed nothing is acknowledged any more: every call raises `StoreError`
until the store is opened again, with all that was durable. The database keeps the size of the
largest open segment so far; sealing frees its pages for the next one.

>>> import pyarrow as pa, tempfile
>>> folder = Path(tempfile.mkdtemp()) / "state"
>>> with DiskStore(folder) as store:
...     store.append(pa.record_batch({"x": [0.5, 1.5], "label": [0, 1]}), {"position": 2})
2
>>> with DiskStore(folder) as store:                      # after a crash it is the same
...     store.n_open, store.state, store.seal("may").n_rows
(2, {'position': 2}, 2)
"""

from __future__ import annotations

import contextlib
import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from driftquilt.errors import InputError, StoreError
from driftquilt.store.base import (
    SealedSegment,
    SegmentName,
    State,
    Store,
    StoredModel,
    find,
    name_to_json,
    reading,
    record_to_json,
    state_to_json,
    tensors_to_bytes,
)
from driftquilt.store.files import (
    DISK,
    MANIFEST,
    Disk,
    Sink,
    make_folders,
    model_path,
    read_model_file,
    read_segment_file,
    remove_leftovers,
    segment_path,
    take_hold,
    translated,
    trouble,
    write_file,
)
from driftquilt.store.manifest import CommitPolicy, Journal, Manifest
from driftquilt.store.pending import PendingChange, PendingHead, PendingRequest
from driftquilt.store.rows import OpenRows

__all__ = ["DiskStore"]


class DiskStore(Store):
    """`Store` in a folder; one that is missing or empty becomes a new store."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        commit_rows: int = 1,
        commit_delay: float = 0.0,
        disk: Disk = DISK,
    ) -> None:
        policy = CommitPolicy(commit_rows, commit_delay)
        self.path = Path(path)
        self._disk = disk
        self._pid = os.getpid()
        self._closed = False
        self._checked: set[int] = set()  # segments whose checksum was right
        with translated(self.path, "opening"), contextlib.ExitStack() as undo:
            self._hold = take_hold(disk, self.path)
            undo.callback(self._hold.release)
            make_folders(disk, self.path)
            database = self.path / MANIFEST
            with reading(database):
                self._manifest = Manifest(disk.connect(database), database)
                undo.callback(self._manifest.close)
                self._hold.guards = self._manifest
                self._kept = self._manifest.contents()
                self._open_rows = OpenRows(self._manifest.layouts())
            remove_leftovers(disk, self.path, self._kept.segments, self._kept.models)
            undo.pop_all()
        self._journal = Journal(self._manifest, self._kept, self.path, policy)

    @property
    def n_durable(self) -> int:
        return self._journal.n_durable

    def append(
        self,
        batch: pa.RecordBatch,
        state: State | None = None,
        pending: PendingChange | None = None,
    ) -> int:
        texts = state_to_json(state) if state else {}
        with self._working("appending"):
            blocks, layout = self._open_rows.take(batch, self.n_appended)
            self._journal.add(blocks, layout, texts, pending)
            return self.n_appended

    def flush(self) -> int:
        with self._working("committing"):
            self._journal.commit()
            return self.n_durable

    def seal(self, name: SegmentName = None, state: State | None = None) -> SealedSegment:
        name_to_json(name)
        texts = state_to_json(state)
        with self._working("sealing a segment"):
            self._expect_rows()
            self._journal.commit()
            number = self.next_segment
            path = segment_path(self.path, number)
            n_bytes, sha256 = write_file(self._disk, path, self._write_open_rows)
            segment = SealedSegment(number, name, self.n_open, n_bytes, sha256=sha256)
            with self._journal.transaction(texts):
                self._manifest.seal(segment, self._open_rows.columns, self.n_appended)
            self._kept.segments[number] = segment
            self._open_rows = self._open_rows.after_seal()
            self._kept.n_segments, self._kept.n_sealed = number, self.n_appended
            return segment

    def open_rows(self) -> pa.Table:
        with self._working("reading the open rows"):
            self._journal.commit()
            with reading(self.path / MANIFEST):
                return self._open_rows.table(self._manifest.blocks(), self._kept.n_sealed)

    def read(self, number: int) -> pa.Table:
        """Return the rows, mapped from the file; its checksum is looked at once."""
        with self._working("reading a segment"):
            segment = find(self._kept.segments, number, "segment")
            checked = segment.number in self._checked
        path = segment_path(self.path, segment.number)
        with translated(self.path, "reading a segment"):
            table = read_segment_file(path, segment, check=not checked)
        self._checked.add(segment.number)
        return table

    def drop(self, number: int) -> None:
        with self._working("dropping a segment"):
            number = find(self._kept.segments, number, "segment").number
            with self._journal.transaction({}):
                self._manifest.drop_segment(number)
            del self._kept.segments[number]
            self._checked.discard(number)
            self._disk.remove(segment_path(self.path, number))

    def put_model(
        self, tensors: bytes, record: Mapping[str, Any], state: State | None = None
    ) -> int:
        kept, texts = json.loads(record_to_json(record)), state_to_json(state)
        content = tensors_to_bytes(tensors)
        with self._working("keeping a model"):
            number = self._kept.n_models + 1
            path = model_path(self.path, number)
            n_bytes, sha256 = write_file(self._disk, path, lambda sink: sink.write(content))
            model = StoredModel(number, n_bytes, kept, sha256)
            with self._journal.transaction(texts):
                self._manifest.add_model(model)
            self._kept.models[number], self._kept.n_models = model, number
            return number

    def model(self, number: int) -> tuple[bytes, dict[str, Any]]:
        with self._working("reading a model"):
            model = find(self._kept.models, number, "model")
            tensors = read_model_file(model_path(self.path, model.number), model)
            return tensors, json.loads(record_to_json(model.record))

    def drop_model(self, number: int) -> None:
        with self._working("dropping a model"):
            number = find(self._kept.models, number, "model").number
            with self._journal.transaction({}):
                self._manifest.drop_model(number)
            del self._kept.models[number]
            self._disk.remove(model_path(self.path, number))

    def write_state(self, state: State, pending: PendingChange | None = None) -> None:
        texts = state_to_json(state)
        with self._working("writing the state"):
            self._journal.add(texts=texts, pending=pending, now=True)

    def hold(self, pending: PendingChange) -> None:
        with self._working("keeping pending rows"):
            self._journal.add(pending=pending)

    def pending(self) -> list[PendingHead]:
        with self._working("listing pending rows"):
            self._journal.commit()
            with reading(self.path / MANIFEST):
                return list(self._manifest.pending())

    def read_pending(self, number: int) -> PendingRequest | None:
        with self._working("reading pending rows"):
            self._journal.commit()
            with reading(self.path / MANIFEST):
                return self._manifest.read_pending(number)

    def close(self, *, discard: bool = False) -> None:
        """Commit what waits, or discard it, and let the folder go, even if the commit fails."""
        if os.getpid() != self._pid:  # forked: nothing of it is ours
            return
        with self._journal.lock, translated(self.path, "closing"):
            if self._closed:
                return
            self._closed = True
            try:
                self._journal.close(discard=discard)
            finally:
                try:
                    self._manifest.close()
                finally:
                    self._hold.release()

    def _write_open_rows(self, sink: Sink) -> None:
        schema = self._open_rows.schema
        with reading(self.path / MANIFEST), pa.ipc.new_file(sink, schema) as writer:
            for batch in self._open_rows.rows(self._manifest.blocks(), self._kept.n_sealed):
                writer.write_batch(batch)

    @contextlib.contextmanager
    def _working(self, doing: str = "") -> Iterator[None]:
        """Alone, on a store that is open and sound, with errors that say what failed."""
        if os.getpid() != self._pid:
            raise StoreError(
                f"the store {self.path} was opened by process {self._pid}; one that was forked "
                "from it cannot use it, so open it there after it is closed here"
            )
        with self._journal.lock:
            if self._closed:
                raise StoreError(f"the store {self.path} is closed; open it again")
            self._journal.expect_sound()
            try:
                yield
            except (StoreError, InputError):
                raise
            except (sqlite3.Error, OSError) as error:
                raise trouble(self.path, doing, error) from error
            except BaseException as error:  # Ctrl-C: memory and disk may be out of step
                self._journal.fail(trouble(self.path, doing, error))
                raise
