"""The manifest: everything about a store that changes, in one SQLite database.

    batches   the open segment's rows, as `rows.RowBlock`s: (last, layout, packed, crc, data)
    layouts   their schemas by number; number 0 has every column of the segments sealed before
    segments  (number, name, n_rows, n_bytes, used, sha256); `used` is of old, and 0 now
    models    (number, n_bytes, record, sha256)
    state     (key, value), JSON by key
    pending   requests that wait for labels: (number, n_rows, came, kind, key, crc, content)
    labelled  (page, bits): which of their rows have had one, `store.pending`
    counters  n_sealed (rows), n_segments, n_models: ever made, so that no number is used twice

Format 1 had no `pending` and `labelled`; it becomes format 2 when it is opened.

Every row has a CRC-32 of its values, because SQLite does not notice a bit that flips.

A batch's key is the count of the stream's rows up to its end, so rows are counted by being
there, and an append changes one page. What belongs together moves in one `transaction`.

`Manifest` is the SQL. `Journal` is the one way to write: what is written becomes durable, alone or
gathered in groups. One lock guards the one connection. Appends join the waiting group; it is
committed when `commit_rows` rows wait, when its oldest has waited for `commit_delay` seconds (a
timer's thread does that), or with whatever is written next. A transaction always begins with the
waiting group, so what was given first is never durable last.

A commit that fails is remembered: it may have failed on the timer's thread, where nobody waits for
an answer, and after a sync that failed nobody can know what the disk holds. Every later call says
so until the store is opened again.

>>> import tempfile
>>> from driftquilt.store.files import DISK
>>> path = Path(tempfile.mkdtemp()) / "store.sqlite"
>>> manifest = Manifest(DISK.connect(path), path)
>>> journal = Journal(manifest, manifest.contents(), path, CommitPolicy(100, commit_delay=math.inf))
>>> journal.add([RowBlock(3, 1, True, 0, b"three rows")], None, {"position": "7"})
>>> journal.kept.n_appended, journal.n_durable
(3, 0)
>>> journal.commit()
>>> journal.n_durable, manifest.contents().state
(3, {'position': '7'})
>>> manifest.close()
"""

from __future__ import annotations

import contextlib
import json
import math
import sqlite3
import threading
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from driftquilt.errors import InputError, StoreError
from driftquilt.store.base import (
    Contents,
    SealedSegment,
    StoredModel,
    name_to_json,
    record_to_json,
)
from driftquilt.store.files import APPLICATION, Connection, not_ours, trouble
from driftquilt.store.pending import LabelledRows, PendingChange, PendingHead, PendingRequest
from driftquilt.store.rows import BlockLayout, RowBlock

__all__ = ["FORMAT", "CommitPolicy", "Journal", "Manifest"]

#: Raised when an older driftquilt can no longer read what this one writes.
FORMAT = 2

_PENDING_TABLES = """
CREATE TABLE pending (number INTEGER PRIMARY KEY, n_rows INTEGER NOT NULL, came REAL NOT NULL,
    kind TEXT NOT NULL, key TEXT NOT NULL, crc INTEGER NOT NULL, content BLOB NOT NULL);
CREATE TABLE labelled (page INTEGER PRIMARY KEY, bits BLOB NOT NULL, crc INTEGER NOT NULL)
"""
_TABLES = """
CREATE TABLE batches (last INTEGER PRIMARY KEY, layout INTEGER NOT NULL, packed INTEGER NOT NULL,
    crc INTEGER NOT NULL, data BLOB NOT NULL);
CREATE TABLE layouts (number INTEGER PRIMARY KEY, schema BLOB NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE segments (number INTEGER PRIMARY KEY, name TEXT NOT NULL, n_rows INTEGER NOT NULL,
    n_bytes INTEGER NOT NULL, used REAL NOT NULL, sha256 TEXT NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE models (number INTEGER PRIMARY KEY, n_bytes INTEGER NOT NULL, record TEXT NOT NULL,
    sha256 TEXT NOT NULL, crc INTEGER NOT NULL);
CREATE TABLE state (key TEXT PRIMARY KEY, value TEXT NOT NULL, crc INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL, crc INTEGER NOT NULL)
    WITHOUT ROWID
"""
_COUNTERS = ("n_sealed", "n_segments", "n_models")


class Manifest:
    """All SQL of the store; a database without tables gets them."""

    def __init__(self, connection: Connection, path: Path) -> None:
        self._connection = connection
        self._path = path
        try:
            self._prepare()
        except BaseException:
            connection.close()
            raise

    @contextlib.contextmanager
    def transaction(self) -> Iterator[None]:
        """All that the block writes becomes durable together, or nothing of it."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            with contextlib.suppress(sqlite3.Error):  # SQLite may have rolled back by itself
                self._connection.execute("ROLLBACK")
            raise

    def add_block(self, block: RowBlock) -> None:
        self._connection.execute("INSERT INTO batches VALUES (?, ?, ?, ?, ?)", block)

    def add_layout(self, layout: BlockLayout) -> None:
        self._put("layouts", layout.number, layout.schema.serialize().to_pybytes())

    def set_state(self, texts: Mapping[str, str]) -> None:
        for key, text in texts.items():
            self._put("state", key, text)

    def seal(self, segment: SealedSegment, columns: pa.Schema, n_sealed: int) -> None:
        """Put a segment in the place of the open rows."""
        for table in ("batches", "layouts"):
            self._connection.execute(f"DELETE FROM {table}")  # noqa: S608
        self.add_layout(BlockLayout(0, columns))
        name, n_rows, n_bytes = name_to_json(segment.name), segment.n_rows, segment.n_bytes
        self._put("segments", segment.number, name, n_rows, n_bytes, 0.0, segment.sha256)
        self._put("counters", "n_sealed", n_sealed)
        self._put("counters", "n_segments", segment.number)

    def drop_segment(self, number: int) -> None:
        self._connection.execute("DELETE FROM segments WHERE number = ?", (number,))

    def add_model(self, model: StoredModel) -> None:
        text = record_to_json(model.record)
        self._put("models", model.number, model.n_bytes, text, model.sha256)
        self._put("counters", "n_models", model.number)

    def drop_model(self, number: int) -> None:
        self._connection.execute("DELETE FROM models WHERE number = ?", (number,))

    def change_pending(self, change: PendingChange, labelled: LabelledRows) -> None:
        """Write a change of pending rows; `labelled` is brought up to date with it."""
        for number, n_rows, came, kind, key, content in change.held:
            text = "null" if key is None else json.dumps(key)
            crc = _crc_pending(number, n_rows, came, kind, text, content)
            self._connection.execute(
                "REPLACE INTO pending VALUES (?, ?, ?, ?, ?, ?, ?)",
                (number, n_rows, came, kind, text, crc, content),
            )
        changed, gone = labelled.mark(change.labelled)
        for page in changed:
            self._put("labelled", page, bytes(labelled.pages[page]))
        for page in gone:
            self._connection.execute("DELETE FROM labelled WHERE page = ?", (page,))
        for number in change.released:
            self._connection.execute("DELETE FROM pending WHERE number = ?", (number,))

    def pending(self) -> Iterator[PendingHead]:
        """Yield the pending requests without their content, in order."""
        for number, n_rows, n_bytes, key in self._connection.execute(
            "SELECT number, n_rows, length(content), key FROM pending ORDER BY number"
        ):
            yield PendingHead(number, n_rows, n_bytes, json.loads(key))

    def read_pending(self, number: int) -> PendingRequest | None:
        """Return the request that has this row; `ValueError` if it is damaged."""
        for first, n_rows, came, kind, key, crc, content in self._connection.execute(
            "SELECT * FROM pending WHERE number <= ? ORDER BY number DESC LIMIT 1", (number,)
        ):
            if _crc_pending(first, n_rows, came, kind, key, content) != crc:
                raise ValueError(f"the pending rows from {first} on fail their checksum")
            if number < first + n_rows:
                return PendingRequest(first, n_rows, came, kind, json.loads(key), content)
        return None

    def blocks(self) -> Iterator[RowBlock]:
        """Yield the open rows, oldest first."""
        for row in self._connection.execute("SELECT * FROM batches ORDER BY last"):
            yield RowBlock(*row)

    def layouts(self) -> dict[int, BlockLayout]:
        """Return the layouts of the open rows by number; `ValueError` if one is damaged."""
        schemas = ((n, pa.ipc.read_schema(pa.py_buffer(data))) for n, data in self._get("layouts"))
        return {number: BlockLayout(number, schema) for number, schema in schemas}

    def contents(self) -> Contents:
        """Everything but the open rows; `ValueError` if some of it is damaged."""
        counters = dict(self._get("counters"))
        ((last,),) = self._connection.execute("SELECT max(last) FROM batches")
        models, segments = self._get("models"), self._get("segments")
        return Contents(
            {
                n: SealedSegment(n, json.loads(name), n_rows, size, sha)
                for n, name, n_rows, size, _, sha in segments
            },
            {n: StoredModel(n, size, json.loads(text), sha) for n, size, text, sha in models},
            dict(self._get("state")),
            LabelledRows(dict(self._get("labelled"))),
            n_appended=counters["n_sealed"] if last is None else last,
            **counters,
        )

    def close(self) -> None:
        self._connection.close()

    def _put(self, table: str, *values: Any) -> None:
        """Write a row over the one with the same key."""
        marks = ", ".join("?" * (len(values) + 1))
        row = (*values, _crc(values))
        self._connection.execute(f"REPLACE INTO {table} VALUES ({marks})", row)  # noqa: S608

    def _get(self, table: str) -> Iterator[tuple[Any, ...]]:
        """All rows by key."""
        for *values, crc in self._connection.execute(f"SELECT * FROM {table} ORDER BY 1"):  # noqa: S608
            if _crc(values) != crc:
                raise ValueError(f"{table} {values[0]!r} does not have its checksum")
            yield tuple(values)

    def _prepare(self) -> None:
        """Make the tables, or see whether they are sound and of a format that can be read."""
        ((application,),) = self._connection.execute("PRAGMA application_id")
        ((found,),) = self._connection.execute("PRAGMA user_version")
        if not application:
            self._create()
        elif application != APPLICATION:
            raise not_ours(self._path, "another program's")
        elif found > FORMAT:
            raise StoreError(
                f"{self._path} has format {found}, this version reads up to {FORMAT}; install "
                "a newer driftquilt"
            )
        ((answer,),) = self._connection.execute("PRAGMA quick_check(1)")
        if answer != "ok":
            raise sqlite3.DatabaseError(f"database disk image is malformed: {answer}")
        if application and found < FORMAT:
            self._upgrade()

    def _create(self) -> None:
        with self.transaction():
            for statement in (_TABLES + ";" + _PENDING_TABLES).split(";"):
                self._connection.execute(statement)
            for name in _COUNTERS:
                self._put("counters", name, 0)
            self._connection.execute(f"PRAGMA user_version={FORMAT}")
            self._connection.execute(f"PRAGMA application_id={APPLICATION}")

    def _upgrade(self) -> None:
        """Make a store of format 1 one of this format."""
        with self.transaction():
            for statement in _PENDING_TABLES.split(";"):
                self._connection.execute(statement)
            self._connection.execute(f"PRAGMA user_version={FORMAT}")


def _crc_pending(number: int, n_rows: int, came: float, kind: str, key: str, content: bytes) -> int:
    return zlib.crc32(content, zlib.crc32(f"{number} {n_rows} {came} {kind} {key}".encode()))


def _crc(values: Iterable[Any]) -> int:
    return zlib.crc32(repr(tuple(values)).encode())


@dataclass(frozen=True)
class CommitPolicy:
    """How long rows may wait.

    >>> CommitPolicy(commit_rows=100)
    Traceback (most recent call last):
    driftquilt.errors.InputError: commit_rows is 100 and commit_delay 0.0, so rows would wait \
and nothing says how long; give commit_delay in seconds, or math.inf for until the next flush
    """

    commit_rows: int = 1
    commit_delay: float = 0.0

    def __post_init__(self) -> None:
        rows, delay = self.commit_rows, self.commit_delay
        if isinstance(rows, bool) or not isinstance(rows, int) or rows < 1:
            raise InputError(f"commit_rows is {rows!r}; it takes an int of at least 1")
        if not delay >= 0:
            raise InputError(f"commit_delay is {delay!r}; it takes seconds, at least 0")
        if rows > 1 and not delay:
            raise InputError(
                f"commit_rows is {rows} and commit_delay {delay}, so rows would wait and nothing "
                "says how long; give commit_delay in seconds, or math.inf for until the next flush"
            )


@dataclass
class _Group:
    """What waits for a commit."""

    blocks: list[RowBlock] = field(default_factory=list)
    layouts: list[BlockLayout] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    pending: PendingChange | None = None

    def __bool__(self) -> bool:
        return bool(self.blocks or self.layouts or self.texts) or self.pending is not None

    @property
    def is_one_block(self) -> bool:
        return len(self.blocks) == 1 and not (self.layouts or self.texts) and self.pending is None

    def write(self, manifest: Manifest, labelled: LabelledRows) -> None:
        for layout in self.layouts:
            manifest.add_layout(layout)
        for block in self.blocks:
            manifest.add_block(block)
        manifest.set_state(self.texts)
        if self.pending is not None:
            manifest.change_pending(self.pending, labelled)


class Journal:
    """The one way to write to a manifest; `lock` has to be held around every call.

    `kept` is what the store holds, with what waits; `n_durable` is without.
    """

    def __init__(
        self, manifest: Manifest, kept: Contents, path: Path, policy: CommitPolicy
    ) -> None:
        self.lock = threading.RLock()
        self.kept = kept
        self.n_durable = kept.n_appended
        self._manifest = manifest
        self._path = path
        self._policy = policy
        self._group = _Group()
        self._timer: threading.Timer | None = None
        self._failure: StoreError | None = None
        self._is_reported = False

    def add(
        self,
        blocks: Sequence[RowBlock] = (),
        layout: BlockLayout | None = None,
        texts: Mapping[str, str] | None = None,
        pending: PendingChange | None = None,
        *,
        now: bool = False,
    ) -> None:
        """Take rows, state and pending rows; durable `now`, or when the group is."""
        self._group.blocks += blocks
        self._group.layouts += [layout] if layout else []
        if texts:
            self._group.texts |= texts
            self.kept.state |= texts
        if pending is not None:
            self._group.pending = self._group.pending or PendingChange()
            self._group.pending.add(pending)
        n_held = 0 if self._group.pending is None else len(self._group.pending.held)
        self.kept.n_appended = blocks[-1].last if blocks else self.kept.n_appended
        n_waiting = self.kept.n_appended - self.n_durable + n_held
        if now or n_waiting >= self._policy.commit_rows or not n_waiting:
            self.commit()
        elif self._timer is None and self._policy.commit_delay < math.inf:
            self._timer = threading.Timer(
                self._policy.commit_delay, self._commit_late, [self._group]
            )
            self._timer.daemon = True
            self._timer.start()

    def commit(self) -> None:
        """Make durable what waits."""
        if self._group.is_one_block:
            self._commit_block(self._take_group().blocks[0])
        elif self._group:
            with self.transaction({}):
                pass

    @contextlib.contextmanager
    def transaction(self, texts: Mapping[str, str]) -> Iterator[None]:
        """One transaction of what waits, what the block writes, and this state."""
        group = self._take_group()
        try:
            with self._manifest.transaction():
                group.write(self._manifest, self.kept.labelled)
                yield
                self._manifest.set_state(texts)
        except Exception as error:
            raise self.fail(trouble(self._path, "a commit", error)) from error
        self.kept.state |= texts
        self.n_durable = self.kept.n_appended

    def fail(self, failure: StoreError) -> StoreError:
        """Remember a failure, which the caller is about to raise."""
        self._failure, self._is_reported = failure, True
        return failure

    def expect_sound(self) -> None:
        """Refuse to go on after a commit that failed."""
        if self._failure is not None:
            self._is_reported = True
            raise StoreError(
                f"the store {self._path} is read-only after a failed commit; open it again, it "
                f"then has the {self.n_durable} rows that were durable, and perhaps more "
                f"({self._failure})"
            ) from self._failure

    def close(self, *, discard: bool = False) -> None:
        """Commit what waits, or discard it; raises a failure that was not reported yet."""
        if discard:
            self._take_group()
        elif self._failure is None:
            self.commit()
        elif not self._is_reported:
            self.expect_sound()

    def _take_group(self) -> _Group:
        group, self._group = self._group, _Group()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        return group

    def _commit_block(self, block: RowBlock) -> None:
        """One statement is a transaction by itself, and faster."""
        try:
            self._manifest.add_block(block)
        except Exception as error:
            raise self.fail(trouble(self._path, "a commit", error)) from error
        self.n_durable = self.kept.n_appended

    def _commit_late(self, group: _Group) -> None:
        with self.lock:
            # After Ctrl-C a group may be half of what was given.
            if group is self._group and self._failure is None:
                with contextlib.suppress(StoreError):  # remembered, and raised by the next call
                    self.commit()
                self._is_reported = self._failure is None
