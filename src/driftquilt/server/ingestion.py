"""What a stream learns over HTTP: rows with labels, or labels of pending rows; each once.

Which rows have their label and how far a request under a key has come is state of the store,
committed with the very rows it is about. So a crash at any moment leaves rows and state that
agree. All of this runs on the one thread that learns.
"""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from driftquilt.data.frame import Frame, Label, Row
from driftquilt.errors import InputError
from driftquilt.quilt.model_file import REGRESSION
from driftquilt.server.bodies import IdLabels, LabelledRows, read_packed
from driftquilt.server.problems import Problem
from driftquilt.server.schemas import Learned, Refusal
from driftquilt.server.settings import ServeSettings
from driftquilt.server.view import (
    STREAM_COLUMNS,
    LabelDelays,
    MeanHistory,
    expect_stream_size,
)
from driftquilt.store import PendingChange, PendingRequest, PendingRows, State
from driftquilt.store.pending import page_place
from driftquilt.stream import QuiltStream
from driftquilt.stream.columns import LABEL_WORDS

__all__ = ["IdempotencyKeys", "Ingestion", "short_digest"]

_MAX_KEYS = 50_000
_KEY_PREFIX = "once."  # in the state
_AT_ONCE = 100  # rows learned between two looks at the stream
_MAX_FRAMES = 64  # requests of which some rows still wait and that are kept decoded


class KeyEntry(NamedTuple):
    """How far the request of a key has come; `digest` is of what it asked."""

    number: int
    digest: str
    n_done: int
    answer: dict[str, Any] | None


class IdempotencyKeys:
    """The last keys of a stream, with their short answers.

    A request that is sent again under the same key is answered again, and carried out once. How
    far it has come is state of the store, in the very step that learns its rows: after a crash in
    the middle the request goes on where it stopped. Keys are remembered by their hashes.

    >>> keys = IdempotencyKeys({})
    >>> keys.find("order-7", "sha")
    >>> note = keys.note("order-7", "sha", n_done=2, answer={"learned": 2})
    >>> note
    {'once.0': [0, 'bdbeeb7686a17a2b05e0bc0ea6c91696', 'sha', 2, {'learned': 2}]}
    >>> IdempotencyKeys(note).find("order-7", "sha")
    KeyEntry(number=0, digest='sha', n_done=2, answer={'learned': 2})
    """

    def __init__(self, state: Mapping[str, Any], limit: int = _MAX_KEYS) -> None:
        stored = [value for name, value in state.items() if name.startswith(_KEY_PREFIX)]
        self._limit = limit
        self._entries = {
            key: KeyEntry(number, digest, n_done, answer)
            for number, key, digest, n_done, answer in sorted(stored, key=lambda value: value[0])
        }
        self._n = max((entry.number + 1 for entry in self._entries.values()), default=0)

    def find(self, key: str, digest: str) -> KeyEntry | None:
        """Return what is known of a key; raise if it belongs to another request."""
        entry = self._entries.get(short_digest(key.encode()))
        if entry is not None and entry.digest != digest:
            raise Problem("key-reused", "another request came with this Idempotency-Key")
        return entry

    def note(
        self, key: str, digest: str, n_done: int, answer: dict[str, Any] | None
    ) -> dict[str, Any]:
        """Remember how far a request has come; return the state to store with it."""
        key = short_digest(key.encode())
        entry = self._entries.get(key)
        if entry is None:
            if len(self._entries) >= self._limit:
                del self._entries[next(iter(self._entries))]
            number, self._n = self._n, self._n + 1
        else:
            number = entry.number
        self._entries[key] = KeyEntry(number, digest, n_done, answer)
        return {f"{_KEY_PREFIX}{number % self._limit}": [number, key, digest, n_done, answer]}


def short_digest(content: bytes) -> str:
    """Return a short digest of content."""
    return hashlib.blake2b(content, digest_size=16).hexdigest()


class _Pending(NamedTuple):
    """A row that waits under an id of a request, and its label."""

    id: str
    row: Row
    label: Label
    number: int
    request: PendingRequest


@dataclass
class _Lookup:
    """What became of the ids of a request."""

    rows: list[_Pending] = field(default_factory=list)
    n_repeated: int = 0
    refused: list[Refusal] = field(default_factory=list)

    @property
    def plain(self) -> tuple[list[Row], list[Label]]:
        return [pending.row for pending in self.rows], [pending.label for pending in self.rows]

    def refuse(self, row_id: str, reason: str) -> None:
        self.refused.append(Refusal(row_id, reason))  # type: ignore[arg-type]

    def refuse_rows(self, unfit: Collection[int]) -> None:
        """Take out rows that do not fit the stream, by number."""
        for number in sorted(unfit):
            self.refuse(self.rows[number].id, "unfit")
        self.rows = [row for number, row in enumerate(self.rows) if number not in unfit]


class Ingestion:
    """The learning side of a stream; `on_progress` is called now and then in a long request."""

    def __init__(
        self,
        stream: QuiltStream,
        state: Mapping[str, Any],
        settings: ServeSettings,
        on_progress: Callable[[], None],
    ) -> None:
        self._settings, self._on_progress = settings, on_progress
        self.delays, self.n_labels, self._n_forgotten = LabelDelays(), 0, 0
        self._schema: dict[str, Any] | None = state["service"]["schema"]
        self._born = int(datetime.fromisoformat(state["service"]["created"]).timestamp()) * 1000
        self._begin(stream, state)

    def reopen(self, stream: QuiltStream, state: Mapping[str, Any]) -> None:
        """Go on with the stream as its store has it; what is not there never was."""
        self._n_forgotten = self.n_forgotten
        self._begin(stream, state)

    def _begin(self, stream: QuiltStream, state: Mapping[str, Any]) -> None:
        self.stream, self.keys = stream, IdempotencyKeys(state)
        self._is_numbers = stream.task == REGRESSION
        self.history = MeanHistory(state.get("curve"), n_unanswered=int(self._is_numbers))
        self.history.add(stream.n_rows, self._total)
        # By the clock, so that a stream of the same name as one that is gone has other ids.
        first, born = page_place(time.time_ns() // 1_000_000, 0), page_place(self._born, 0)
        limits = self._settings.max_waiting, self._settings.max_waiting_bytes
        self.pending = PendingRows(stream.store, *limits, max(first, born), born)
        self._frames: OrderedDict[int, Frame] = OrderedDict()  # by number of the request
        self._unsettled: list[float] = []  # delays of labels that may not be durable yet

    @property
    def n_forgotten(self) -> int:
        """Pending rows that were dropped because too many waited."""
        return self._n_forgotten + self.pending.n_forgotten

    def learn_rows(self, given: LabelledRows, key: str | None, digest: str) -> tuple[Learned, bool]:
        """Learn rows with their labels; return the answer, and whether it is an earlier one."""
        entry = self.keys.find(key, digest) if key else None
        if entry is not None and entry.answer is not None:
            return Learned(**entry.answer), True
        labels = given.labels
        self._expect_labels(labels)
        names = {*given.frame.names, *given.frame.texts}
        expect_stream_size(n_columns=len(names | self.stream.columns.keys()))
        rows = [given.frame.row(at) for at in range(len(given.frame))]
        self.stream.expect(rows, labels)
        n_done = entry.n_done if entry is not None else 0
        answer = self._answer(len(rows), len(rows) - n_done)

        def note(at: int) -> State:
            at += n_done + 1
            return self._once_note(key, digest, at, answer if at == len(rows) else None)

        self._learn(rows[n_done:], labels[n_done:], note)
        return Learned(**answer), False

    def learn_ids(self, given: IdLabels, key: str | None, digest: str) -> tuple[Learned, bool]:
        """Learn labels of pending rows; ids that are labelled or unknown are counted or refused."""
        entry = self.keys.find(key, digest) if key else None
        lookup = self._find_all(given)
        if entry is not None and entry.answer is not None:
            lookup.refuse_rows(range(len(lookup.rows)))  # as it was, or they would not wait
            return Learned(**entry.answer, refused=lookup.refused), True
        if not lookup.rows and not lookup.n_repeated:
            raise Problem("ids-unknown", "no row waits under any of these ids")
        self._expect_labels(lookup.plain[1])
        lookup.refuse_rows(self._unfit(*lookup.plain))
        n_done = entry.n_done if entry is not None else 0  # and have their label by now
        n_rows = len(lookup.rows)
        answer = self._answer(n_done + n_rows, n_rows, max(0, lookup.n_repeated - n_done))

        def note(at: int) -> State:
            last = answer if at + 1 == n_rows else None
            return self._once_note(key, digest, n_done + at + 1, last)

        if not lookup.rows:
            self.stream.note(self._once_note(key, digest, n_done, answer))
        self._learn(*lookup.plain, note, lambda at: self._label(lookup.rows[at]))
        self._unsettled += [time.time() - pending.request.came for pending in lookup.rows]
        return Learned(**answer, refused=lookup.refused), False

    def settle(self) -> None:
        """Count labels whose rows are durable now."""
        delays, self._unsettled = self._unsettled, []
        self.delays.add(delays)
        self.n_labels += len(delays)

    def _find_all(self, given: IdLabels) -> _Lookup:
        lookup = _Lookup()
        numbers = {row_id: self.pending.find(row_id) for row_id, _ in given.pairs}
        rows = self._read_rows(n for n in numbers.values() if isinstance(n, int))
        seen: set[str] = set()
        for row_id, label in given.pairs:
            number = numbers[row_id]
            if number == "labelled" or row_id in seen:
                lookup.n_repeated += 1
            elif isinstance(number, str):
                lookup.refuse(row_id, number)
            elif number not in rows:
                lookup.refuse(row_id, "forgotten")
            else:
                seen.add(row_id)
                request, row = rows[number]
                lookup.rows.append(_Pending(row_id, row, label, number, request))
        return lookup

    def _read_rows(self, numbers: Iterable[int]) -> dict[int, tuple[PendingRequest, Row]]:
        """Return pending rows with their requests; a request of several rows is read once."""
        rows = {}
        request = None
        for number in sorted(numbers):
            if request is None or number >= request.number + request.n_rows:
                request = self.pending.read(number)
            if request is not None:
                rows[number] = request, self._frame(request).row(number - request.number)
        return rows

    def _frame(self, request: PendingRequest) -> Frame:
        """Decode a request; those of several rows are kept until all of them have their label."""
        frame = self._frames.get(request.number)
        if frame is None:
            frame = read_packed(request.content, request.kind, request.n_rows, self._schema)
            if request.n_rows > 1:
                self._frames[request.number] = frame
                if len(self._frames) > _MAX_FRAMES:
                    self._frames.popitem(last=False)
        return frame

    def _label(self, pending: _Pending) -> PendingChange:
        """Note that a pending row gets its label; return what is stored with the row."""
        change = self.pending.label(pending.number, pending.request)
        for number in change.released:
            self._frames.pop(number, None)
        return change

    def _unfit(self, rows: Sequence[Row], labels: Sequence[Label]) -> set[int]:
        """Return rows that the stream cannot learn, by number: it has changed since they came."""
        try:
            self.stream.expect(rows, labels)
            unfit = set[int]()
        except InputError:
            unfit = set(self.stream.unfit(rows, labels))
        known = {*self.stream.columns}
        for number, row in enumerate(rows):
            if number not in unfit:
                wider = known | {name for name, value in row.items() if value is not None}
                if len(wider) <= STREAM_COLUMNS:
                    known = wider
                else:
                    unfit.add(number)
        return unfit

    def _answer(self, n_rows: int, n_new: int, n_repeated: int = 0) -> dict[str, Any]:
        """Return the answer as it is kept: what was refused may be long, and is found again."""
        n_all = self.stream.n_rows + n_new
        return {"learned": n_rows, "repeated": n_repeated, "n_rows": n_all}

    def _once_note(
        self, key: str | None, digest: str, n_done: int, answer: dict[str, Any] | None
    ) -> dict[str, Any]:
        return self.keys.note(key, digest, n_done, answer) if key else {}

    def do_once(
        self,
        key: str | None,
        digest: str,
        decide: Callable[[], dict[str, Any]],
        carry_out: Callable[[dict[str, Any], State], None] | None = None,
    ) -> tuple[dict[str, Any], bool]:
        """Do something other than learning, unless it was done under this key; in a turn.

        `decide` returns the answer. `carry_out` gets it together with the state that remembers
        it, and stores that state in the very step that does what was decided. Returns the answer,
        and whether it is an earlier one.
        """
        entry = self.keys.find(key, digest) if key else None
        if entry is not None and entry.answer is not None:
            return entry.answer, True
        answer = decide()
        note = self._once_note(key, digest, 0, answer)
        if carry_out is not None:
            carry_out(answer, note)
        else:
            self.stream.note(note)
        return answer, False

    def _learn(
        self,
        rows: Sequence[Row],
        labels: Sequence[Label],
        note: Callable[[int], State],
        label: Callable[[int], PendingChange] | None = None,
    ) -> None:
        """Learn rows; `note` and `label` make what is stored with each, just before it is."""
        done = 0
        while done < len(rows):
            n_more = min(_AT_ONCE, self.history.n_to_end(self.stream.n_rows), len(rows) - done)
            some = slice(done, done + n_more)
            notes = [note(at) for at in range(done, done + n_more)]
            changes = None if label is None else [label(at) for at in range(done, done + n_more)]
            self.stream.learn_many(rows[some], labels[some], notes=notes, pending=changes)
            self.count()
            done += n_more
            if done < len(rows):
                self._on_progress()

    def count(self) -> None:
        """Count the rows that were learned, before a bucket of the curve ends unnoticed."""
        if self.history.add(self.stream.n_rows, self._total):
            self.stream.note({"curve": self.history.state()})

    @property
    def _total(self) -> float:
        """Return right answers, or distances of numbers to their labels, of all rows together."""
        return self.stream.absolute_error if self._is_numbers else self.stream.n_right

    def _expect_labels(self, labels: Sequence[Label]) -> None:
        """Refuse labels of another kind than those so far, or that were not declared."""
        if self._is_numbers:  # which were read as such
            return
        known = self.stream.classes[:1] or labels[:1]
        if any(type(label) is not type(known[0]) for label in labels):
            raise Problem("rows-invalid", f"labels have been {LABEL_WORDS[type(known[0])]} so far")
        expect_stream_size(n_classes=len({*self.stream.classes, *labels}))
        declared = (self._schema or {}).get("labels")
        if declared is None:
            return
        allowed = {(type(label), label) for label in declared}  # True is 1, but not the same label
        if not all((type(label), label) in allowed for label in labels):
            raise Problem("rows-invalid", "there is a label that the stream's schema does not have")
