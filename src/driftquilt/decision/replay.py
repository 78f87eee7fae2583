"""Run a labelled table through a stream: predict each row, then learn it, and record it all.

`Replay.run` yields a `Progress` now and then, for a live view, and writes `events.jsonl`
(`journal` says what is in it). A stream whose store is a folder can be replayed in parts: open
the stream again, and the replay continues after its last row. After a kill the file ends as it
would have otherwise, but for seconds, if the stream waits for its trainings (`wait=True`): no
two models come of the rows learned at a time, so each is recorded before the next may replace it
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

from driftquilt.data.column_types import check_table
from driftquilt.decision.decision import remove_if_empty
from driftquilt.decision.journal import COUNT, EVENTS, WINDOW, Journal, Line, replay_header
from driftquilt.decision.streaming import LabelledPositions, labelled_rows
from driftquilt.errors import InputError
from driftquilt.stream import QuiltStream
from driftquilt.stream.events import DriftFound, Event, ModelPromoted
from driftquilt.text import json_safe

_STEP = 100  # rows learned at a time at most; COUNT and WINDOW are multiples of it
_DIGITS = 6  # of the scores in a selection, which has some for every epoch and segment


@dataclass(frozen=True)
class Progress:
    """How far a replay has come; `accuracy` is that of the last `WINDOW` rows at most.

    `score` is the score by the stream's metric, if it has one. `rows` were learned, `skipped` had
    no label, `n_rows` are all rows of the table.
    """

    rows: int
    skipped: int
    n_rows: int
    rows_per_second: float
    accuracy: float
    n_drifts: int
    last_event: str
    metric: str | None = None
    score: float | None = None


class Replay:
    """A replay of a table through a stream, written to a folder."""

    def __init__(
        self, stream: QuiltStream, out: str | os.PathLike[str], *, overwrite: bool = False
    ) -> None:
        """With `overwrite` the file of an earlier replay is replaced when this one has ended."""
        self._stream, self._path = stream, Path(out) / EVENTS
        self._draft = self._path.with_name(f".{EVENTS}.tmp") if overwrite else self._path
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

        Rows that do not continue the stream are refused by the call, before the first step.
        `name` is what messages call the table.
        """
        check_table(table)
        drop, stream = sorted(set(drop)), self._stream
        positions = LabelledPositions(table, label)
        metric = stream.status().metric
        header = replay_header(table, label, drop, name=name, count=COUNT, metric=metric)
        if self._draft != self._path:
            self._draft.unlink(missing_ok=True)  # left by a kill
        self._makes_folder = not self._path.parent.exists()
        try:
            recorder = _Recorder(stream, Journal(self._draft, header, stream.n_rows), positions)
            recorder.catch_up()
        except BaseException:
            self._clean_up()
            raise
        rows = labelled_rows(table, label, drop, first=positions.after(stream.n_rows))
        return self._steps(recorder, rows, report_every)

    def _steps(
        self, recorder: _Recorder, rows: Iterator[tuple[int, Any, Any]], report_every: int
    ) -> Iterator[Progress]:
        stream = self._stream
        try:
            while batch := list(islice(rows, min(_STEP - stream.n_rows % _STEP, stream.n_at_once))):
                recorder.learn(batch)
                if stream.n_rows // report_every > (stream.n_rows - len(batch)) // report_every:
                    yield recorder.progress()
            recorder.finish()
            self._draft.replace(self._path)
        finally:
            self._clean_up()
        if stream.n_rows % report_every:
            yield recorder.progress()

    def _clean_up(self) -> None:
        """Leave no draft behind, and no folder that was made for it."""
        if self._draft != self._path:
            self._draft.unlink(missing_ok=True)
            if self._makes_folder:
                remove_if_empty(self._path.parent)


class _Recorder:
    """Learns rows, and writes to the journal what happens."""

    def __init__(self, stream: QuiltStream, journal: Journal, positions: LabelledPositions) -> None:
        self._stream, self._journal, self._positions = stream, journal, positions
        self._n_drifts, self._last_event = journal.n_drifts, ""
        last = journal.accuracy
        self._last_count = (0, 0) if last is None else (last["row"], last["n_right"])
        self._recent = deque([self._last_count], maxlen=WINDOW // _STEP + 1)
        self._began = time.perf_counter(), stream.n_rows

    def catch_up(self) -> None:
        """Write what the stream has done since the end of the file."""
        stream, journal = self._stream, self._journal
        stream.finish_training()  # its events are among those below
        if journal.accuracy is not None:
            self._positions.expect(journal.accuracy)
        n_recorded = self._last_count[0]
        if stream.n_rows - n_recorded > COUNT:
            raise InputError(
                f"the stream has learned {stream.n_rows} rows, but {journal.path} has only "
                f"{n_recorded}: the rest was not replayed; start over in another folder"
            )
        self._record([event for event in stream.events if event.row > journal.complete_to])

    def learn(self, batch: Sequence[tuple[int, Any, Any]]) -> None:
        """Learn some rows and record what came of it."""
        stream = self._stream
        events = stream.learn_many([x for _, x, _ in batch], [y for _, _, y in batch])
        stream.flush()  # the file must not have rows that a crash would lose
        self._record(events)

    def finish(self) -> None:
        """Wait for a training, and count the rows since the last count."""
        self._record(self._stream.finish_training(), count=True)

    def progress(self) -> Progress:
        stream, (began, from_row) = self._stream, self._began
        status = stream.status()
        (row, n_right), (last, n_right_at_last) = self._recent[0], self._recent[-1]
        seconds = time.perf_counter() - began
        return Progress(
            stream.n_rows,
            self._positions.skipped(stream.n_rows),
            self._positions.n_rows,
            (stream.n_rows - from_row) / max(seconds, 1e-9),
            (n_right_at_last - n_right) / max(last - row, 1),
            self._n_drifts,
            self._last_event,
            None if status.metric is None else status.metric.name,
            status.score,
        )

    def _record(self, events: Sequence[Event], *, count: bool = False) -> None:
        stream = self._stream
        lines = [line for event in events for line in _lines(stream, event)]
        self._n_drifts += sum(isinstance(event, DriftFound) for event in events)
        self._last_event = str(events[-1]) if events else self._last_event
        now = stream.n_rows, round(stream.accuracy * stream.n_rows)
        if (count or now[0] % _STEP == 0) and now != self._recent[-1]:
            self._recent.append(now)
        if (count or now[0] % COUNT == 0) and now[0] > self._last_count[0]:
            lines.append(self._count(*now))
        self._journal.write(lines)

    def _count(self, row: int, n_right: int) -> Line:
        row_before, n_right_before = self._last_count
        self._last_count = row, n_right
        n_rows, status = row - row_before, self._stream.status()
        return {
            "record": "accuracy", "row": row, "n_right": n_right, "n_rows": n_rows,
            "accuracy": (n_right - n_right_before) / n_rows, **self._positions.learned(row),
            **({} if status.metric is None else {"score": json_safe(status.score)}),
        }  # fmt: skip


def _lines(stream: QuiltStream, event: Event) -> list[Line]:
    """Return the event, and the selection behind a promotion; None if its model is gone already."""
    lines = [json_safe(event.to_json())]
    if isinstance(event, ModelPromoted):
        clf = stream.classifier(event.model) if event.model in stream.models else None
        lines.append(
            {
                "record": "selection",
                "row": event.row,
                "model": event.model,
                "selection": clf and json_safe(clf.selection_.to_json(), _DIGITS),
                "bounds": clf and json_safe([bound._asdict() for bound in clf.search_], _DIGITS),
            }
        )
    return lines
