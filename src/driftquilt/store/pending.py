"""Rows that wait for their label: a table of requests in the store, and ids for their rows.

A *request* is some rows under one number, with the bytes that brought them; row `i` of request
`number` is row `number + i`. A request is kept until each of its rows has its label, or until it
is released. `PendingChange` is what changes about all this in one step. A store writes it in the
same transaction as the learned rows, so that a row is either pending or learned, across crashes.

Which rows have their label is a bitmap of `PAGE_ROWS` rows a page; it outlives the request, so
that a label that comes twice is recognised. Numbers are the caller's, and never negative.

Two classes look after such rows. `KeyedRows` has one row under each key that a caller gives, for
`QuiltStream`. `PendingRows` hands out ids for requests of many rows, for the service: `add` only
queues a request and is quick, `write` makes durable what is queued, one commit for all of it. Ids
are valid once `write` has returned.

>>> from driftquilt.store import MemoryStore
>>> store = MemoryStore()
>>> pending = PendingRows(store, max_rows=100, first=16)
>>> ids = pending.add(b"[[0.5],[1.5]]", "application/json", n_rows=2, came=0.0)
>>> pending.write()
>>> ids, pending.n_rows, pending.find("11")
(['10', '11'], 2, 17)
>>> request = pending.read(17)
>>> request.content, 17 - request.number
(b'[[0.5],[1.5]]', 1)
>>> store.write_state({}, pending.label(17, request))     # or with the row, by append
>>> pending.find("11"), pending.n_rows
('labelled', 1)
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from driftquilt.data.frame import Row
from driftquilt.errors import InputError

if TYPE_CHECKING:
    from driftquilt.store.base import Store

__all__ = [
    "PAGE_ROWS",
    "Key",
    "KeyedRows",
    "LabelledRows",
    "PendingChange",
    "PendingHead",
    "PendingRequest",
    "PendingRows",
    "page_place",
    "read_id",
]

Key: TypeAlias = str | int | np.integer[Any]

PAGE_ROWS = 1 << 14
_MAX_PAGES = 1_024  # of bitmaps that are kept; rows that are older cannot wait
_MAX_ID_LENGTH = 32


class PendingRequest(NamedTuple):
    """Rows that came together, `kind` says as what; `key` is the caller's, if it has one."""

    number: int
    n_rows: int
    came: float
    kind: str
    key: str | int | None
    content: bytes


class PendingHead(NamedTuple):
    """What is known of a request without reading it."""

    number: int
    n_rows: int
    n_bytes: int
    key: str | int | None


@dataclass
class PendingChange:
    """Requests that begin to wait, rows that get their label, requests that wait no more."""

    held: list[PendingRequest] = field(default_factory=list)
    labelled: list[int] = field(default_factory=list)
    released: list[int] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.held or self.labelled or self.released)

    def add(self, other: PendingChange) -> None:
        """Let another change follow this one."""
        self.held += other.held
        self.labelled += other.labelled
        self.released += other.released


class LabelledRows:
    """Which rows have their label; the oldest pages are forgotten."""

    def __init__(self, pages: Mapping[int, bytes]) -> None:
        self.pages = {page: bytearray(bits) for page, bits in pages.items()}

    def __contains__(self, number: int) -> bool:
        bits = self.pages.get(number // PAGE_ROWS)
        at = number % PAGE_ROWS
        return bits is not None and bool(bits[at // 8] >> at % 8 & 1)

    @property
    def first(self) -> int:
        """The first row that is still known of, if older ones are forgotten."""
        return min(self.pages, default=0) * PAGE_ROWS if len(self.pages) >= _MAX_PAGES else 0

    @property
    def last(self) -> int:
        """The last row of the last page; -1 before the first."""
        return (max(self.pages) + 1) * PAGE_ROWS - 1 if self.pages else -1

    def mark(self, numbers: Iterable[int]) -> tuple[set[int], list[int]]:
        """Note labels; the pages that changed, and those that are forgotten."""
        changed = set()
        for number in numbers:
            page, at = divmod(number, PAGE_ROWS)
            bits = self.pages.setdefault(page, bytearray(PAGE_ROWS // 8))
            bits[at // 8] |= 1 << at % 8
            changed.add(page)
        gone = sorted(self.pages)[:-_MAX_PAGES] if len(self.pages) > _MAX_PAGES else []
        for page in gone:
            del self.pages[page]
        return changed - {*gone}, gone


class KeyedRows:
    """Rows by the caller's key, in order of arrival.

    A key is one row's: the same row may come under it again, as after a lost answer, and another
    may not. At most `limit` rows wait; when there are more, the oldest is forgotten. Each change
    is returned, and has to be stored.

    >>> from driftquilt.store import MemoryStore
    >>> rows = KeyedRows(MemoryStore(), limit=1)
    >>> first, forgotten = rows.add("order 7", {"sum": 12.0})
    >>> first.held[0].key, first.held[0].content
    ('order 7', b'{"sum": 12.0}')
    >>> second, forgotten = rows.add("order 8", {"sum": 30.0})
    >>> forgotten, second.released == [first.held[0].number]
    ('order 7', True)
    >>> rows.find("order 8")
    {'sum': 30.0}
    """

    def __init__(self, store: Store, limit: int) -> None:
        self._limit = limit
        self._rows: dict[str | int, tuple[int, Row]] = {}
        self._last = 0
        for head in store.pending():
            if head.key is not None:
                request = store.read_pending(head.number)
                if request is not None:
                    self._rows[head.key] = (head.number, json.loads(request.content))
                    self._last = head.number

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, key: Any) -> bool:
        key = _plain_key(key)
        return type(key) in (str, int) and key in self._rows

    def expect(self, key: Any, row: Row) -> None:
        """Refuse what is not a key, or the key of another row."""
        key = _plain_key(key)
        if type(key) not in (str, int):
            raise InputError(f"the key {key!r} is a {type(key).__name__}; give a string or an int")
        if key in self._rows and _values(self._rows[key][1]) != _values(row):
            raise InputError(
                f"the key {key!r} waits for its label already, with another row; give each row "
                "its own"
            )

    def add(self, key: Any, row: Row) -> tuple[PendingChange, str | int | None]:
        """Let a row wait; return the change and the key of the row that was forgotten for it."""
        self.expect(key, row)
        key = _plain_key(key)
        if key in self._rows:
            return PendingChange(), None
        self._last += 1
        self._rows[key] = (self._last, row)
        content = json.dumps(row).encode()
        change = PendingChange(held=[PendingRequest(self._last, 1, 0.0, "row", key, content)])
        if len(self._rows) <= self._limit:
            return change, None
        oldest = next(iter(self._rows))
        change.add(self.remove(oldest))
        return change, oldest

    def find(self, key: Any) -> Row:
        """Return the row of a key."""
        if key not in self:
            raise InputError(
                f"no row waits under the key {key!r}: it was never predicted, has its label "
                f"already, was removed by forget, or was forgotten behind {self._limit} others; "
                "give the row itself, learn_one(x, y)"
            )
        return self._rows[_plain_key(key)][1]

    def remove(self, key: Any) -> PendingChange:
        """Let a row go whose label has come, or never will."""
        if key not in self:
            raise InputError(
                f"no row waits under the key {key!r}, so none can be forgotten: it was never "
                "predicted, has its label already, or is forgotten"
            )
        number, _ = self._rows.pop(_plain_key(key))
        return PendingChange(released=[number])


def _plain_key(key: Any) -> Any:
    """Return an integer or a string of numpy as Python's own; anything else as it is."""
    integer = isinstance(key, np.integer) and not isinstance(key, np.timedelta64)
    return key.item() if integer or isinstance(key, np.str_) else key


def _values(row: Row) -> Row:
    return {name: value for name, value in row.items() if value is not None}


class PendingRows:
    """Rows with ids, for any thread; one `write` at a time.

    `first` is the number of the first row in a store that never had one, and `born` the lowest
    that may have been given out. A row waits, or it is "labelled", "forgotten" because too many
    waited, or "unknown".
    """

    def __init__(
        self,
        store: Store,
        max_rows: int,
        max_bytes: int = 1 << 28,
        first: int = 0,
        born: int | None = None,
    ) -> None:
        self._store, self._max_rows, self._max_bytes = store, max_rows, max_bytes
        self._lock = threading.Lock()  # of all but the disk
        self._labelled = store.labelled
        self._unsaved: set[int] = set()  # rows that have their label, but not in the store yet
        self._queue: list[PendingRequest] = []
        self._released: list[int] = []  # forgotten, but still in the store
        # By number, rows that still wait and bytes. There may be many: in plain tuples of numbers
        # the garbage collector, which stops every thread, has nothing to look through.
        self._requests: OrderedDict[int, tuple[int, int]] = OrderedDict()
        last = self._labelled.last
        for head in store.pending():
            if head.key is None:
                rows = range(head.number, head.number + head.n_rows)
                n_rows = sum(row not in self._labelled for row in rows)
                self._requests[head.number] = (n_rows, head.n_bytes)
                last = max(last, rows[-1])
        self._n_rows = sum(n_rows for n_rows, _ in self._requests.values())
        self._n_bytes = sum(n_bytes for _, n_bytes in self._requests.values())
        self._next = first if last < 0 else last + 1
        self._born = min(first, self._oldest) if born is None else born
        self.n_forgotten = 0

    @property
    def n_rows(self) -> int:
        """Rows that wait."""
        return self._n_rows

    def add(self, content: bytes, kind: str, n_rows: int, came: float) -> list[str]:
        """Queue rows; return their ids."""
        with self._lock:
            number, self._next = self._next, self._next + n_rows
            self._queue.append(PendingRequest(number, n_rows, came, kind, None, content))
            self._requests[number] = (n_rows, len(content))
            self._n_rows += n_rows
            self._n_bytes += len(content)
        return [f"{row:x}" for row in range(number, number + n_rows)]

    def write(self) -> None:
        """Make everything that was queued durable, and forget the oldest rows beyond the limits."""
        with self._lock:
            queue, self._queue = self._queue, []
        try:
            if queue:
                released, self._released = self._released, []
                self._store.write_state({}, PendingChange(held=queue, released=released))
        except BaseException:
            with self._lock:
                for request in queue:
                    self._release(request.number)
            raise
        self._released += self._forget_oldest()  # they leave the store with the next write

    def find(self, row_id: str) -> int | Literal["labelled", "forgotten", "unknown"]:
        """Return the number of a row that waits; or, in a word, why it does not."""
        number = read_id(row_id)
        with self._lock:
            if number is None or not self._born <= number < self._next:
                return "unknown"
            if number in self._unsaved or number in self._labelled:
                return "labelled"
            return "forgotten" if number < self._oldest else number

    def read(self, number: int) -> PendingRequest | None:
        """Return the request that brought a row; None if it is gone, `StoreError` for damage."""
        return self._store.read_pending(number)

    def label(self, number: int, request: PendingRequest) -> PendingChange:
        """Note that a row of a request has its label; the change is to be stored with the row."""
        with self._lock:
            self._unsaved.add(number)
            if request.number not in self._requests:  # forgotten since it was found
                return PendingChange(labelled=[number])
            n_rows, n_bytes = self._requests[request.number]
            self._requests[request.number] = (n_rows - 1, n_bytes)
            self._n_rows -= 1
            if n_rows > 1:
                return PendingChange(labelled=[number])
            self._release(request.number)
            return PendingChange(labelled=[number], released=[request.number])

    @property
    def _oldest(self) -> int:
        return next(iter(self._requests), self._next)

    def _release(self, number: int) -> int:
        """Let a request go; return how many of its rows waited."""
        n_rows, n_bytes = self._requests.pop(number, (0, 0))
        self._n_rows -= n_rows
        self._n_bytes -= n_bytes
        return n_rows

    def _forget_oldest(self) -> list[int]:
        """Let requests go until the rest is within the limits; none that is still queued."""
        released = []
        with self._lock:
            self._unsaved = {row for row in self._unsaved if row not in self._labelled}
            stop = self._queue[0].number if self._queue else self._next
            while (oldest := self._oldest) < stop and (
                self._n_rows > self._max_rows
                or self._n_bytes > self._max_bytes
                or oldest < self._labelled.first
            ):
                self.n_forgotten += self._release(oldest)
                released.append(oldest)
        return released


def read_id(row_id: str) -> int | None:
    """Return the number of a row; None if this is not an id. Each id is written in one way only.

    Ids of early stores have two parts, page and place; `page_place` has their numbers.

    >>> read_id("1f"), read_id("1F"), read_id("-1"), read_id("1-f")
    (31, None, None, 1048591)
    """
    page, dash, place = row_id.rpartition("-")
    try:
        number = int(place, 16) if len(row_id) <= _MAX_ID_LENGTH else -1
        first = int(page, 16) if dash else 0
    except ValueError:
        return None
    if number < 0 or first < 0 or row_id != (f"{first:x}-{number:x}" if dash else f"{number:x}"):
        return None
    return page_place(first, number)


def page_place(page: int, place: int) -> int:
    """Return the number of a row that an early store kept at a place of a page."""
    return (page << 20) + place
