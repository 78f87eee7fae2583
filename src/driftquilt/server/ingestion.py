"""What a stream learns over HTTP: rows with labels, or labels of pending rows; each once.

Which rows have their label and how far a request under a key has come is state of the store,
committed with the very rows it is about. So a crash at any moment leaves rows and state that
agree. All of this runs on the one thread that learns.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from driftquilt.data.frame import Frame, Row
from driftquilt.data.labels import Label
from driftquilt.errors import InputError
from driftquilt.server.accuracy_history import AccuracyHistory
from driftquilt.server.bodies import IdLabels, LabelledRows, read_packed
from driftquilt.server.idempotency import IdempotencyKeys
from driftquilt.server.limits import STREAM_COLUMNS, expect_stream_size
from driftquilt.server.metrics import LabelDelays
from driftquilt.server.problems import Problem
from driftquilt.server.schemas import Learned, Refusal
from driftquilt.server.settings import ServeSettings
from driftquilt.server.waiting import WaitingRows
from driftquilt.server.waiting_file import Spot, WaitingFile
from driftquilt.store.base import State
from driftquilt.stream import QuiltStream
from driftquilt.stream.columns import LABEL_WORDS

__all__ = ["Ingestion"]

_AT_ONCE = 100  # rows learned between two looks at the stream
_FRAME_BYTES = 1 << 24  # of requests whose rows are kept decoded


class _Pending(NamedTuple):
    """A row that waits under an id of a request, and its label."""

    id: str
    row: Row
    label: Label
    place: tuple[WaitingFile, int]
    came: float


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


def _by_request(located: tuple[Spot, Any]) -> tuple[int, int]:
    return located[0].number, located[0].offset


class Ingestion:
    """The learning side of a stream; `on_progress` is called now and then in a long request."""

    def __init__(
        self,
        stream: QuiltStream,
        folder: Path,
        state: Mapping[str, Any],
        settings: ServeSettings,
        on_progress: Callable[[], None],
    ) -> None:
        self._on_progress, self.delays, self.n_labels = on_progress, LabelDelays(), 0
        self._schema: dict[str, Any] | None = state["service"]["schema"]
        # By the clock, so that a stream of the same name as one that is gone has other ids.
        first = time.time_ns() // 1_000_000
        born = int(datetime.fromisoformat(state["service"]["created"]).timestamp()) * 1000
        self.waiting = WaitingRows(
            folder, settings.max_waiting, state, first, born, settings.max_waiting_bytes
        )
        self._frames: OrderedDict[tuple[int, int], tuple[Frame, int]] = OrderedDict()
        self._frame_bytes = 0
        self._unsettled: list[float] = []  # delays of labels that the store may not have yet
        self.go_on(stream, state)

    def go_on(self, stream: QuiltStream, state: Mapping[str, Any]) -> None:
        """With the stream as its store has it; what was noted, but is not there, never was."""
        self.stream, self.keys = stream, IdempotencyKeys(state)
        self.accuracy = AccuracyHistory(state.get("curve"))
        self.waiting.restore(state)
        self._unsettled = []
        self.accuracy.add(stream.n_rows, stream.n_right)

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
            once = self._once_note(key, digest, n_done + at + 1, last)
            return self.waiting.mark(*lookup.rows[at].place) | once

        if not lookup.rows:
            self.stream.note(self._once_note(key, digest, n_done, answer))
        self._learn(*lookup.plain, note)
        self._unsettled += [time.time() - pending.came for pending in lookup.rows]
        return Learned(**answer, refused=lookup.refused), False

    def settle(self) -> None:
        """The store has everything that was learned so far."""
        self.waiting.settle()
        delays, self._unsettled = self._unsettled, []
        self.delays.add(delays)
        self.n_labels += len(delays)

    def _find_all(self, given: IdLabels) -> _Lookup:
        lookup = _Lookup()
        places = {row_id: self.waiting.find(row_id) for row_id, _ in given.pairs}
        waiting = self._read_all([place for place in places.values() if not isinstance(place, str)])
        seen: set[str] = set()
        for row_id, label in given.pairs:
            place = places[row_id]
            if place == "labelled" or row_id in seen:
                lookup.n_repeated += 1
                continue
            kept = None if isinstance(place, str) else waiting[place]
            if isinstance(place, str) or kept is None:
                lookup.refuse(row_id, place if isinstance(place, str) else "forgotten")
                continue
            seen.add(row_id)
            lookup.rows.append(_Pending(row_id, kept[0], label, place, kept[1]))
        return lookup

    def _unfit(self, rows: Sequence[Row], labels: Sequence[Label]) -> set[int]:
        """Rows that the stream cannot learn, by number: it has changed since they came."""
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
        """The answer as it is remembered: what was refused may be long, and is found again."""
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
        self, rows: Sequence[Row], labels: Sequence[Label], note: Callable[[int], State]
    ) -> None:
        """Learn rows; `note` makes what is stored with each, just before it is learned."""
        done = 0
        while done < len(rows):
            n_more = min(_AT_ONCE, self.accuracy.n_to_end(self.stream.n_rows), len(rows) - done)
            some = slice(done, done + n_more)
            notes = [note(at) for at in range(done, done + n_more)]
            self.stream.learn_many(rows[some], labels[some], notes=notes)
            self.count()
            done += n_more
            if done < len(rows):
                self._on_progress()

    def count(self) -> None:
        """Count the rows that were learned, before a bucket of the curve ends unnoticed."""
        if self.accuracy.add(self.stream.n_rows, self.stream.n_right):
            self.stream.note({"curve": self.accuracy.state()})

    def _read_all(
        self, places: Sequence[tuple[WaitingFile, int]]
    ) -> dict[tuple[WaitingFile, int], tuple[Row, float] | None]:
        """Rows that wait, and when they came; each request that brought some is read once."""
        spots = [(self.waiting.locate(*place), place) for place in places]
        return {place: self._waiting_row(spot) for spot, place in sorted(spots, key=_by_request)}

    def _waiting_row(self, spot: Spot) -> tuple[Row, float] | None:
        key = (spot.number, spot.offset)
        frame, _ = self._frames.get(key, (None, 0))
        if frame is None:
            body = self.waiting.read(spot)
            if body is None:
                return None
            frame = read_packed(body.content, body.kind, body.n_rows, self._schema)
            self._frames[key] = (frame, len(body.content))
            self._frame_bytes += len(body.content)
            while self._frame_bytes > _FRAME_BYTES and len(self._frames) > 1:
                _, (_, n_bytes) = self._frames.popitem(last=False)
                self._frame_bytes -= n_bytes
        self._frames.move_to_end(key)
        return frame.row(spot.at), spot.came

    def _expect_labels(self, labels: Sequence[Label]) -> None:
        """Refuse labels of another kind than those so far, or that were not declared."""
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
