"""Run a labelled table through a stream: predict each row, then learn it, and write what happens.

`Replay.run` yields a `Progress` now and then, for a live view, and writes `events.jsonl`
(`journal` says what is in it). A stream whose store is a folder can be replayed in parts: open
the stream again, and the replay goes on behind its last row. After a kill the file ends as it
would have without, but for seconds, if the stream waits for its trainings (`wait=True`). Only
the selection of a model that the stream has dropped by then (`max_models`) is missing.

>>> import tempfile
>>> table = pa.table({"a": [0.1, 0.9] * 150, "sold": [False, True] * 150})
>>> replay = Replay(QuiltStream(n_wait=50, wait=True), tempfile.mkdtemp())
>>> [progress.rows for progress in replay.run(table, "sold", report_every=100)]
[100, 200, 300]
"""

from __future__ import annotations

import hashlib
import os
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from driftquilt.decision.columns import check_table, present
from driftquilt.decision.journal import FORMAT, Journal, JournalFile, Line
from driftquilt.decision.labelled import labelled_rows
from driftquilt.decision.labels import clean_labels
from driftquilt.decision.plain import plain
from driftquilt.errors import InputError
from driftquilt.stream.events import DriftFound, Event, ModelPromoted
from driftquilt.stream.runner import QuiltStream

__all__ = ["COUNT", "EVENTS", "WINDOW", "Progress", "Replay"]

EVENTS = "events.jsonl"
COUNT = 200  # rows from one accuracy in the file to the next
WINDOW = 1_000  # rows that a rolling accuracy is of

_STEP = 100  # rows learned at a time; COUNT and WINDOW are multiples of it
_DIGITS = 6  # of the scores in a selection, which has some for every epoch and segment


@dataclass(frozen=True)
class Progress:
    """How far a replay has come; `accuracy` is that of the last rows, at most `WINDOW`.

    `rows` are those learned, `skipped` those that had no label, `n_rows` all of the table.
    """

    rows: int
    skipped: int
    n_rows: int
    rows_per_second: float
    accuracy: float
    n_drifts: int
    last_event: str


class Replay:
    """A stream that a table is run through, and the folder that it is written to."""

    def __init__(self, stream: QuiltStream, out: str | os.PathLike[str]) -> None:
        self._stream, self._path = stream, Path(out) / EVENTS

    def run(
        self, table: pa.Table, label: str, *, drop: Iterable[str] = (), report_every: int = WINDOW
    ) -> Iterator[Progress]:
        """Learn every row that the stream has not learned yet; the stream stays open."""
        check_table(table)
        drop, stream = sorted(set(drop)), self._stream
        labelled = _Labelled(table, label)
        journal = JournalFile(self._path, _header(table, label, drop), stream.n_rows)
        try:
            work = _Work(stream, journal, labelled)
            work.catch_up()
            rows = labelled_rows(table, label, drop, first=labelled.place(stream.n_rows))
            while batch := list(islice(rows, _STEP - stream.n_rows % _STEP)):
                work.learn(batch)
                if stream.n_rows // report_every > (stream.n_rows - len(batch)) // report_every:
                    yield work.progress()
            work.finish()
            if stream.n_rows % report_every:
                yield work.progress()
        finally:
            journal.close()


class _Labelled:
    """Where in a table the rows with a label stand."""

    def __init__(self, table: pa.Table, label: str) -> None:
        valid = present(clean_labels(table, label))
        self.n_rows = table.num_rows
        # All labelled is the rule, and needs no list.
        self._places = range(len(valid)) if valid.all() else np.flatnonzero(valid)

    def place(self, number: int) -> int:
        """The first row of the table that comes after so many labelled ones."""
        if number > len(self._places):
            raise InputError(
                f"the stream has learned {number} rows, but the table has {len(self._places)} with "
                "a label; give the table that it learned"
            )
        return int(self._places[number - 1]) + 1 if number else 0

    def skipped(self, number: int) -> int:
        """Rows without a label before so many labelled ones."""
        return self.place(number) - number


class _Work:
    """What a replay does with the rows, and what it remembers of them."""

    def __init__(self, stream: QuiltStream, journal: JournalFile, labelled: _Labelled) -> None:
        self._stream, self._journal, self._labelled = stream, journal, labelled
        self._n_drifts, self._last_event = journal.begun.n_drifts, ""
        self._counted = _last_count(journal.begun)
        self._recent = deque([self._counted], maxlen=WINDOW // _STEP + 1)
        self._began = time.perf_counter(), stream.n_rows

    def catch_up(self) -> None:
        """Tell what the stream has done since the file ends."""
        stream, begun = self._stream, self._journal.begun
        stream.finish_training()  # what it tells is among the events below
        if begun.accuracy is not None:
            _expect_skipped(begun.accuracy, self._labelled)
        if stream.n_rows - self._counted[0] > COUNT:
            raise InputError(
                f"the stream has learned {stream.n_rows} rows, but {self._journal.path} tells of "
                f"{self._counted[0]}: the rest was not replayed; replay to another folder, anew"
            )
        self._tell([event for event in stream.events if event.row > begun.complete_to])

    def learn(self, batch: Sequence[tuple[int, Any, Any]]) -> None:
        """Learn some rows and write down what came of it."""
        stream = self._stream
        events = stream.learn_many([x for _, x, _ in batch], [y for _, _, y in batch])
        stream.flush()  # the file must not tell of rows that a crash would lose
        self._tell(events)

    def finish(self) -> None:
        """Wait for a training, and count the rows since the last count."""
        self._tell(self._stream.finish_training(), count=True)

    def progress(self) -> Progress:
        stream, (began, from_row) = self._stream, self._began
        (row, right), (last, right_at_last) = self._recent[0], self._recent[-1]
        seconds = time.perf_counter() - began
        return Progress(
            stream.n_rows,
            self._labelled.skipped(stream.n_rows),
            self._labelled.n_rows,
            (stream.n_rows - from_row) / max(seconds, 1e-9),
            (right_at_last - right) / max(last - row, 1),
            self._n_drifts,
            self._last_event,
        )

    def _tell(self, events: Sequence[Event], *, count: bool = False) -> None:
        stream = self._stream
        lines = [line for event in events for line in _lines(stream, event)]
        self._n_drifts += sum(isinstance(event, DriftFound) for event in events)
        self._last_event = str(events[-1]) if events else self._last_event
        at = stream.n_rows, round(stream.accuracy * stream.n_rows)
        if at != self._recent[-1]:
            self._recent.append(at)
        if (count or at[0] % COUNT == 0) and at[0] > self._counted[0]:
            lines.append(self._count(*at))
        self._journal.write(lines)

    def _count(self, row: int, n_right: int) -> Line:
        before, right_before = self._counted
        self._counted = row, n_right
        accuracy = (n_right - right_before) / (row - before)
        skipped = self._labelled.skipped(row)
        return {
            "record": "accuracy", "row": row, "n_right": n_right, "n_rows": row - before,
            "accuracy": accuracy, "skipped": skipped,
        }  # fmt: skip


def _header(table: pa.Table, label: str, drop: Sequence[str]) -> Line:
    schema = [[field.name, str(field.type)] for field in table.schema]
    digest = hashlib.sha256(repr((schema, table.slice(0, 1).to_pylist())).encode())
    return {
        "record": "replay", "row": 0, "format": FORMAT, "label": label, "drop": list(drop),
        "data": digest.hexdigest()[:16], "count": COUNT,
    }  # fmt: skip


def _last_count(begun: Journal) -> tuple[int, int]:
    return (0, 0) if begun.accuracy is None else (begun.accuracy["row"], begun.accuracy["n_right"])


def _expect_skipped(accuracy: Line, labelled: _Labelled) -> None:
    found = labelled.skipped(accuracy["row"])
    if found != accuracy["skipped"]:
        raise InputError(
            f"before row {accuracy['row']} of the stream the table has {found} rows without a "
            f"label, but {accuracy['skipped']} were skipped; give the same table"
        )


def _lines(stream: QuiltStream, event: Event) -> list[Line]:
    """The event, and the selection behind a promotion; None where its model is gone already."""
    told = [plain(event.to_json())]
    if isinstance(event, ModelPromoted):
        clf = stream.classifier(event.model) if event.model in stream.models else None
        told.append(
            {
                "record": "selection",
                "row": event.row,
                "model": event.model,
                "selection": clf and plain(clf.selection_.to_json(), _DIGITS),
                "bounds": clf and plain([line._asdict() for line in clf.search_], _DIGITS),
            }
        )
    return told
