"""Run a labelled table through a stream: predict each row, then learn it, and write what happens.

`Replay.run` yields a `Progress` now and then, for a live view, and writes `events.jsonl`
(`journal` says what is in it). A stream whose store is a folder can be replayed in parts: open
the stream again, and the replay goes on behind its last row. After a kill the file ends as it
would have without, but for seconds, if the stream waits for its trainings (`wait=True`): no two
models come of the rows learned at a time, so each is told of before the next may push it out
(`max_models`).

>>> import tempfile
>>> table = pa.table({"a": [0.1, 0.9] * 150, "sold": [False, True] * 150})
>>> replay = Replay(QuiltStream(n_wait=50, wait=True), tempfile.mkdtemp())
>>> [progress.rows for progress in replay.run(table, "sold", report_every=100)]
[100, 200, 300]
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from driftquilt.decision.columns import check_table
from driftquilt.decision.journal import Journal, JournalFile
from driftquilt.decision.labelled import LabelledPlaces, labelled_rows
from driftquilt.decision.replay_header import Line, replay_header
from driftquilt.decision.tidy import remove_if_empty
from driftquilt.errors import InputError
from driftquilt.stream import QuiltStream
from driftquilt.stream.events import DriftFound, Event, ModelPromoted
from driftquilt.text import json_safe

__all__ = ["COUNT", "EVENTS", "WINDOW", "Progress", "Replay"]

EVENTS = "events.jsonl"
COUNT = 200  # rows from one accuracy in the file to the next
WINDOW = 1_000  # rows that a rolling accuracy is of

_STEP = 100  # most rows learned at a time; COUNT and WINDOW are multiples of it
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

    def __init__(
        self, stream: QuiltStream, out: str | os.PathLike[str], *, anew: bool = False
    ) -> None:
        """With `anew` the file of an earlier replay is replaced, when this one has ended."""
        self._stream, self._path = stream, Path(out) / EVENTS
        self._draft = self._path.with_name(f".{EVENTS}.tmp") if anew else self._path
        self._makes_folder = False

    def run(
        self,
        table: pa.Table,
        label: str,
        *,
        drop: Iterable[str] = (),
        report_every: int = WINDOW,
        name: str = "a table",
    ) -> Iterator[Progress]:
        """Learn every row that the stream has not learned yet; the stream stays open.

        Rows that it cannot go on with are refused by the call, before the first step. `name` is
        what messages call the table.
        """
        check_table(table)
        drop, stream = sorted(set(drop)), self._stream
        labelled = LabelledPlaces(table, label)
        header = replay_header(table, label, drop, name=name, count=COUNT)
        if self._draft != self._path:
            self._draft.unlink(missing_ok=True)  # which a kill has left
        self._makes_folder = not self._path.parent.exists()
        try:
            work = _Work(stream, JournalFile(self._draft, header, stream.n_rows), labelled)
            work.catch_up()
        except BaseException:
            self._tidy()
            raise
        rows = labelled_rows(table, label, drop, first=labelled.place(stream.n_rows))
        return self._steps(work, rows, report_every)

    def _steps(
        self, work: _Work, rows: Iterator[tuple[int, Any, Any]], report_every: int
    ) -> Iterator[Progress]:
        stream = self._stream
        try:
            while batch := list(islice(rows, min(_STEP - stream.n_rows % _STEP, stream.n_at_once))):
                work.learn(batch)
                if stream.n_rows // report_every > (stream.n_rows - len(batch)) // report_every:
                    yield work.progress()
            work.finish()
            self._draft.replace(self._path)
        finally:
            self._tidy()
        if stream.n_rows % report_every:
            yield work.progress()

    def _tidy(self) -> None:
        """Leave no draft behind, and no folder for its sake."""
        if self._draft != self._path:
            self._draft.unlink(missing_ok=True)
            if self._makes_folder:
                remove_if_empty(self._path.parent)


class _Work:
    """What a replay does with the rows, and what it remembers of them."""

    def __init__(self, stream: QuiltStream, journal: JournalFile, labelled: LabelledPlaces) -> None:
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
            self._labelled.expect(begun.accuracy)
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
        if (count or at[0] % _STEP == 0) and at != self._recent[-1]:
            self._recent.append(at)
        if (count or at[0] % COUNT == 0) and at[0] > self._counted[0]:
            lines.append(self._count(*at))
        self._journal.write(lines)

    def _count(self, row: int, n_right: int) -> Line:
        before, right_before = self._counted
        self._counted = row, n_right
        accuracy = (n_right - right_before) / (row - before)
        return {
            "record": "accuracy", "row": row, "n_right": n_right, "n_rows": row - before,
            "accuracy": accuracy, **self._labelled.learned(row),
        }  # fmt: skip


def _last_count(begun: Journal) -> tuple[int, int]:
    return (0, 0) if begun.accuracy is None else (begun.accuracy["row"], begun.accuracy["n_right"])


def _lines(stream: QuiltStream, event: Event) -> list[Line]:
    """The event, and the selection behind a promotion; None where its model is gone already."""
    told = [json_safe(event.to_json())]
    if isinstance(event, ModelPromoted):
        clf = stream.classifier(event.model) if event.model in stream.models else None
        told.append(
            {
                "record": "selection",
                "row": event.row,
                "model": event.model,
                "selection": clf and json_safe(clf.selection_.to_json(), _DIGITS),
                "bounds": clf and json_safe([line._asdict() for line in clf.search_], _DIGITS),
            }
        )
    return told
