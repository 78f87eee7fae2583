"""The file that a replay writes as it goes, and what it says when it is read back.

One JSON record per line, by rising row:

    {"record": "replay", …}     first: which rows are replayed, so that a resume can check them
    {"event": "DriftFound", …}  every event of the stream, as `Event.to_json` puts it
    {"record": "selection", …}  after a promotion: what the new model was trained on, and why
    {"record": "accuracy", …}   every so many rows, after everything else up to that row; with a
                                metric, also the stream's score by it at that row

A kill may cut off the end, between two lines or inside of one. What is left up to the last
accuracy or selection, or up to the row before the last event, is complete; the rest is removed
and written again from the stream, which lost nothing.

>>> table = pa.table({"a": [1, 2], "sold": [True, False]})
>>> header = replay_header(table, "sold", [], name="may.csv", count=200)
>>> expect_same("events.jsonl", header, header)
>>> other = replay_header(table.slice(1), "a", [], name="june.csv", count=200)
>>> expect_same("events.jsonl", header, other)
Traceback (most recent call last):
driftquilt.errors.InputError: events.jsonl belongs to other rows: it was written for may.csv (2 \
rows), and this is june.csv (1 row). The label was 'sold' and is 'a'; the first row differs. \
Give the same data and settings to continue, or another folder and a new store (--out, --store) \
to start over
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from driftquilt.decision.decision import read_bound
from driftquilt.decision.streaming import fingerprint
from driftquilt.errors import InputError, ModelFileError
from driftquilt.quilt.explanation import Selection
from driftquilt.quilt.method import TriedBound
from driftquilt.quilt.metrics import Metric
from driftquilt.stream.events import DriftFound, Event, ModelTrained, SegmentSealed, read_event
from driftquilt.text import listing, plural

#: Raised when files of the previous version can no longer be read.
FORMAT = 1
EVENTS = "events.jsonl"
COUNT = 200  # rows from one accuracy in the file to the next
WINDOW = 1_000  # rows of a rolling accuracy

_LAST_OF_ROW = ("replay", "selection", "accuracy")  # nothing more happens in a row after these

Line = dict[str, Any]


class Journal:
    """The file while it is written; the attributes say how far it had come when it was opened."""

    def __init__(self, path: Path, header: Line, n_rows: int) -> None:
        """Begin the file, or continue it after the `n_rows` rows of a stream."""
        self.path = path
        self.complete_to = 0  # row up to which nothing is missing
        self.accuracy: Line | None = None  # the last one
        self.n_drifts = 0
        end = 0
        if path.exists() and next(_read_lines(path), None) is not None:
            end = self._resume(header, n_rows)
        elif n_rows:
            raise InputError(
                f"the stream has learned {n_rows} rows, but {path} has none of them: they were not "
                "replayed to this folder; give the folder they were, or start a new stream"
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("r+b" if path.exists() else "w+b") as file:
            file.truncate(end)
        if end == 0:
            self.write([header])

    def write(self, lines: Sequence[Line]) -> None:
        """Append lines, and wait until they are on the disk."""
        if lines:
            text = "".join(f"{json.dumps(line, allow_nan=False)}\n" for line in lines)
            with self.path.open("ab") as file:
                file.write(text.encode())
                file.flush()
                os.fsync(file.fileno())

    def _resume(self, header: Line, n_rows: int) -> int:
        """Read the file up to the stream's last row, and return where to cut it off."""
        at_row: list[Line] = []  # the lines of the last row
        begin = end = 0
        for line, place, after in _read_lines(self.path):
            if place == 0:
                expect_same(self.path, line, header)
            if line["row"] > n_rows:
                self._expect_begun(n_rows, line)
                break
            if at_row and at_row[-1]["row"] != line["row"]:
                self.n_drifts += _count_drifts(at_row)
                begin, at_row = place, []
            at_row.append(line)
            end = after
            self.accuracy = line if line.get("record") == "accuracy" else self.accuracy
        self.complete_to = at_row[-1]["row"]
        if at_row[-1].get("record") in _LAST_OF_ROW:
            self.n_drifts += _count_drifts(at_row)
            return end
        self.complete_to -= 1
        return begin

    def _expect_begun(self, n_rows: int, line: Line) -> None:
        if n_rows == 0:
            raise InputError(
                f"{self.path} has come to row {line['row']}, but the stream is new; continue with "
                "the stream that wrote it, or give another folder"
            )


def _count_drifts(lines: Sequence[Line]) -> int:
    return sum(line.get("event") == "DriftFound" for line in lines)


def _read_lines(path: Path) -> Iterator[tuple[Line, int, int]]:
    """Yield whole lines, each with where in the file it begins and ends."""
    with path.open("rb") as file:
        place = 0
        for number, line in enumerate(file, start=1):
            if not line.endswith(b"\n"):
                return
            yield _parse(line, path, number), place, place + len(line)
            place += len(line)


def _parse(line: bytes, path: Path, number: int) -> Line:
    try:
        record = json.loads(line)
        if not isinstance(record, dict) or type(record["row"]) is not int:
            raise ValueError("not a record with a row")
    except (ValueError, KeyError) as error:
        raise InputError(
            f"{path}, line {number} is damaged ({error!r}); move the file away and replay again"
        ) from error
    return record


def replay_header(
    table: pa.Table,
    label: str,
    drop: Sequence[str],
    *,
    name: str,
    count: int,
    metric: Metric | None = None,
) -> Line:
    """Return the first line of a file; the table may grow and be renamed later."""
    return {
        "record": "replay", "row": 0, "format": FORMAT, "label": label, "drop": list(drop),
        "count": count, "name": name, "n_rows": table.num_rows,
        "columns": {field.name: str(field.type) for field in table.schema},
        "first": fingerprint(table, 0),
        **({} if metric is None else {"metric": metric.name, "lower_is_better": metric.is_loss}),
    }  # fmt: skip


def expect_same(
    path: str | os.PathLike[str], known: Mapping[str, Any], given: Mapping[str, Any]
) -> None:
    """Refuse a table or settings that a file was not written for; the message says what differs."""
    differences = "; ".join(_differences(known, given))
    if differences:
        raise InputError(
            f"{path} belongs to other rows: it was written for {_describe(known)}, and this is "
            f"{_describe(given)}. {differences[0].upper()}{differences[1:]}. Give the same data "
            "and settings to continue, or another folder and a new store (--out, --store) to start "
            "over"
        )


def _describe(header: Mapping[str, Any]) -> str:
    return f"{header.get('name', 'a table')} ({plural(header.get('n_rows', 0), 'row')})"


def _differences(known: Mapping[str, Any], given: Mapping[str, Any]) -> Iterator[str]:
    for key in ("format", "label", "count"):
        if known.get(key) != given[key]:
            yield f"the {key} was {known.get(key)!r} and is {given[key]!r}"
    if known.get("drop") != given["drop"]:
        before, now = (listing(header.get("drop", [])) or "none" for header in (known, given))
        yield f"the columns dropped were {before} and are {now}"
    before, now = known.get("columns", {}), given["columns"]
    yield from _column_differences(before, now)
    if before == now and known.get("first") != given["first"]:
        yield "the first row differs"


def _column_differences(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    gone, new = [n for n in before if n not in now], [n for n in now if n not in before]
    if gone:
        yield f"columns gone: {listing(gone)}"
    if new:
        yield f"columns new: {listing(new)}"
    for name, kind in before.items():
        if now.get(name, kind) != kind:
            yield f"column {name!r} was {kind} and is {now[name]}"
    if list(before) != list(now) and sorted(before) == sorted(now):
        yield "the columns are in another order"


@dataclass(frozen=True, eq=False)
class PromotedModel:
    """The last model promoted in a segment, after `row` rows; the first was after `since`."""

    row: int
    since: int
    model: int
    selection: Selection
    bounds: tuple[TriedBound, ...]


@dataclass(frozen=True)
class Accuracy:
    """Accuracy over the `n_rows` rows before `row`, each predicted before it was learned."""

    row: int
    n_rows: int
    value: float
    score: float | None = None  # by the stream's metric, over its last rows


@dataclass(frozen=True)
class TrainedAt:
    """A training that ended after `row` rows; its `n_current` current rows begin at `first`."""

    row: int
    first: int
    n_current: int


@dataclass(frozen=True, eq=False)
class Replayed:
    """A replay so far: `n_right` of `n_rows` rows were predicted correctly before being learned.

    `drifts` has one model for each segment in which a model was promoted. `metric` is the one that
    the stream was watched by, if there was one.
    """

    count: ClassVar[int] = COUNT
    window: ClassVar[int] = WINDOW

    label: str
    n_rows: int
    n_right: int
    n_skipped: int
    drifts: tuple[PromotedModel, ...]
    accuracy: tuple[Accuracy, ...]
    events: tuple[Event, ...]
    metric: str | None = None
    lower_is_better: bool = False

    @property
    def scores(self) -> dict[int, float | None]:
        """The score by the metric, by row; None where it is not defined."""
        return {} if self.metric is None else {count.row: count.score for count in self.accuracy}

    @property
    def drift_rows(self) -> tuple[int, ...]:
        """After how many rows each drift was found."""
        return tuple(event.row for event in self.events if isinstance(event, DriftFound))

    @property
    def n_drifts(self) -> int:
        """Number of drifts found."""
        return len(self.drift_rows)

    @property
    def seals(self) -> tuple[int, ...]:
        """After how many rows each segment was sealed."""
        return tuple(event.row for event in self.events if isinstance(event, SegmentSealed))

    def begin_of(self, drift: PromotedModel) -> int:
        """Return the row at which the segment of a model begins."""
        return max((row for row in self.seals if row <= drift.since), default=0)

    @property
    def trainings(self) -> tuple[TrainedAt, ...]:
        """Every training that produced a model, for `baselines`."""
        begins = [0, *self.seals]
        return tuple(
            TrainedAt(event.row, max(b for b in begins if b <= started), event.n_current)
            for event in self.events
            if isinstance(event, ModelTrained)
            for started in [event.row - event.n_current]
        )


def read_replay(out: str | os.PathLike[str]) -> Replayed:
    """Read `events.jsonl` in a folder; a last line that a kill cut off is left out."""
    path = Path(out) / EVENTS
    if not path.exists():
        raise InputError(f"there is no replay in {out}: it has no {EVENTS}")
    lines = [line for line, _, _ in _read_lines(path)]
    if not lines or lines[0].get("record") != "replay" or lines[0].get("format") != FORMAT:
        raise InputError(f"{path} is not a replay that this version of driftquilt can read")
    try:
        return _replayed(lines[0], lines)
    except (LookupError, TypeError, ValueError, ModelFileError) as error:
        raise InputError(f"{path} is damaged: {error!r}; replay again") from error


def _replayed(header: Line, lines: Iterable[Line]) -> Replayed:
    events, counts = [], []
    drifts: list[PromotedModel] = []
    segment_is_new = True
    for line in lines:
        if "event" in line:
            events.append(read_event(line))
            segment_is_new |= isinstance(events[-1], SegmentSealed)
        elif line["record"] == "accuracy":
            counts.append(line)
        elif line["record"] == "selection" and line["selection"] is not None:
            since = line["row"] if segment_is_new else drifts.pop().since
            drifts.append(_promoted(line, since))
            segment_is_new = False
    last = counts[-1] if counts else {"row": 0, "n_right": 0, "skipped": 0}
    accuracy = tuple(Accuracy(c["row"], c["n_rows"], c["accuracy"], c.get("score")) for c in counts)
    return Replayed(
        header["label"],
        last["row"],
        last["n_right"],
        last["skipped"],
        tuple(drifts),
        accuracy,
        tuple(events),
        header.get("metric"),
        header.get("lower_is_better", False),
    )


def _promoted(line: Line, since: int) -> PromotedModel:
    bounds = tuple(map(read_bound, line["bounds"]))
    selection = Selection.from_json(line["selection"])
    return PromotedModel(line["row"], since, line["model"], selection, bounds)
