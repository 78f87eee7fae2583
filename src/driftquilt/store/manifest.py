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

>>> import tempfile
>>> from driftquilt.store.files import DISK
>>> path = Path(tempfile.mkdtemp()) / "store.sqlite"
>>> manifest = Manifest(DISK.connect(path), path)
>>> with manifest.transaction():
...     manifest.set_state({"position": "7"})
>>> manifest.contents().state
{'position': '7'}
>>> manifest.close()
"""

from __future__ import annotations

import contextlib
import json
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from driftquilt.errors import StoreError
from driftquilt.store.base import SealedSegment, StoredModel, name_to_json, record_to_json
from driftquilt.store.files import Connection
from driftquilt.store.folder import APPLICATION, not_ours
from driftquilt.store.pending import LabelledRows, PendingChange, PendingHead, PendingRequest
from driftquilt.store.rows import BlockLayout, RowBlock

__all__ = ["FORMAT", "Contents", "Manifest"]

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


@dataclass
class Contents:
    """What a store knows without reading rows."""

    segments: dict[int, SealedSegment] = field(default_factory=dict)
    models: dict[int, StoredModel] = field(default_factory=dict)
    state: dict[str, str] = field(default_factory=dict)
    layouts: dict[int, BlockLayout] = field(default_factory=dict)
    n_appended: int = 0
    n_sealed: int = 0
    n_segments: int = 0
    n_models: int = 0
    labelled: LabelledRows = field(default_factory=lambda: LabelledRows({}))


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
        """The pending requests without their content, in order."""
        for number, n_rows, n_bytes, key in self._connection.execute(
            "SELECT number, n_rows, length(content), key FROM pending ORDER BY number"
        ):
            yield PendingHead(number, n_rows, n_bytes, json.loads(key))

    def read_pending(self, number: int) -> PendingRequest | None:
        """The request that has this row; `ValueError` if it is damaged."""
        for first, n_rows, came, kind, key, crc, content in self._connection.execute(
            "SELECT * FROM pending WHERE number <= ? ORDER BY number DESC LIMIT 1", (number,)
        ):
            if _crc_pending(first, n_rows, came, kind, key, content) != crc:
                raise ValueError(f"the pending rows from {first} on fail their checksum")
            if number < first + n_rows:
                return PendingRequest(first, n_rows, came, kind, json.loads(key), content)
        return None

    def blocks(self) -> Iterator[RowBlock]:
        """The open rows, oldest first."""
        for row in self._connection.execute("SELECT * FROM batches ORDER BY last"):
            yield RowBlock(*row)

    def contents(self) -> Contents:
        """Everything but the open rows; `ValueError` if some of it is damaged."""
        counters = dict(self._get("counters"))
        ((last,),) = self._connection.execute("SELECT max(last) FROM batches")
        layouts = ((n, pa.ipc.read_schema(pa.py_buffer(s))) for n, s in self._get("layouts"))
        models, segments = self._get("models"), self._get("segments")
        return Contents(
            {
                n: SealedSegment(n, json.loads(name), n_rows, size, sha)
                for n, name, n_rows, size, _, sha in segments
            },
            {n: StoredModel(n, size, json.loads(text), sha) for n, size, text, sha in models},
            dict(self._get("state")),
            {n: BlockLayout(n, schema) for n, schema in layouts},
            n_appended=counters["n_sealed"] if last is None else last,
            labelled=LabelledRows(dict(self._get("labelled"))),
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
