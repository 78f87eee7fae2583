"""What the service shows of a stream: a `View` at one moment, and counts over its life.

A view is made after every turn and never changes, so that readers need no lock.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import accumulate
from typing import Any

from driftquilt.data.calendar import source
from driftquilt.data.frame import Frame
from driftquilt.errors import InputError
from driftquilt.server.problems import Problem
from driftquilt.server.schemas import Delays
from driftquilt.stream import QuiltStream
from driftquilt.stream.columns import LABEL, expect_no_date_among
from driftquilt.stream.events import Event
from driftquilt.stream.snapshot import Snapshot
from driftquilt.stream.status import StreamStatus

__all__ = [
    "BUCKET",
    "MAX_BUCKETS",
    "STREAM_COLUMNS",
    "About",
    "LabelDelays",
    "MeanHistory",
    "View",
    "expect_stream_size",
    "look",
    "rounded",
]

#: What a stream may come to have in its life: nets grow with both.
STREAM_COLUMNS, _STREAM_CLASSES = 4_000, 1_000
#: Rows of a bucket of the history at first, and how many buckets it may have.
BUCKET, MAX_BUCKETS = 100, 400
_RECENT = 1_000  # rows, and delays of labels
_DELAY_BOUNDS = (1, 10, 60, 600, 3_600, 21_600, 86_400, 604_800, 2_592_000)  # seconds
_MOMENTS = ("date", "time")
_PLURALS = {"number": "numbers", "text": "text", "date": "dates", "time": "times of day"}
_LETTERS = 40  # of a name in a sentence


@dataclass(frozen=True)
class About:
    """What a stream was made with, beside what its store knows."""

    name: str
    created: str
    schema: dict[str, Any] | None = None
    coverage: float | None = None  # of the intervals of numbers

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, eq=False)
class View:
    """A stream at one moment: what predicts, its status, its events."""

    answers: Snapshot
    numbers: frozenset[str]  # names of columns
    texts: frozenset[str]
    status: StreamStatus
    recent: float | None  # accuracy or mean absolute error
    events: tuple[Event, ...] = field(repr=False)

    def events_after(self, number: int) -> tuple[Event, ...]:
        """Return events with a higher number."""
        if not self.events or self.events[-1].number <= number:
            return ()
        return tuple(event for event in self.events if event.number > number)

    def _expect_no_date(self, new: list[str]) -> None:
        try:
            expect_no_date_among([*self.numbers, *self.texts], new)
        except InputError as error:
            raise Problem(
                "rows-invalid",
                "a column holds a date or a time where it has held none so far, or none where it "
                "has held these",
            ) from error

    def expect(self, frame: Frame, schema: dict[str, Any] | None) -> None:
        """Refuse rows whose columns are of another kind, or of another feed."""
        wrong = next((n for n in frame.names if n in self.texts), None)
        if wrong is not None:
            raise Problem(
                "rows-invalid", f"the column {_short(wrong)} has held text so far, not numbers"
            )
        wrong = next((n for n in frame.texts if n in self.numbers), None)
        if wrong is not None:
            raise Problem(
                "rows-invalid", f"the column {_short(wrong)} has held numbers so far, not text"
            )
        if LABEL in frame.names or LABEL in frame.texts:
            raise Problem("rows-invalid", f"a column of a row cannot be called {LABEL!r}")
        if schema is not None:
            _expect_declared(frame, schema["columns"])
        new = [name for name in frame.names if name not in self.numbers]
        new += [name for name in frame.texts if name not in self.texts]
        if new:
            expect_stream_size(n_columns=len(self.numbers) + len(self.texts) + len(new))
            self._expect_no_date(new)
        known = self.numbers or self.texts
        if known and self.numbers.isdisjoint(frame.names) and self.texts.isdisjoint(frame.texts):
            raise Problem("rows-invalid", "the rows share no column with those learned so far")


def look(stream: QuiltStream, previous: View | None, recent: float | None) -> View:
    """Return the stream as it is now; on the thread that learns."""
    status = stream.status()
    columns = stream.columns
    if previous is not None and len(columns) == len(previous.numbers) + len(previous.texts):
        numbers, texts = previous.numbers, previous.texts  # a column never changes its kind
    else:
        numbers = frozenset(name for name, kind in columns.items() if kind == "number")
        texts = frozenset(columns.keys() - numbers)
    if previous is not None and status.last_event == previous.status.last_event:
        events = previous.events
    else:
        events = tuple(event for event in stream.events if event.number)  # which pages go by
    return View(stream.snapshot(), numbers, texts, status, recent, events)


def expect_stream_size(n_columns: int = 0, n_classes: int = 0) -> None:
    """Refuse what would make a stream wider than it may be."""
    if n_columns > STREAM_COLUMNS:
        raise Problem("rows-invalid", f"a stream has at most {STREAM_COLUMNS} columns")
    if n_classes > _STREAM_CLASSES:
        raise Problem("rows-invalid", f"a stream has at most {_STREAM_CLASSES} classes")


class MeanHistory:
    """A mean over the life of a stream, in so few numbers that a page can draw them.

    It is the accuracy, of right answers, or the mean absolute error, of distances to the label.
    Rows are counted in buckets; when there are too many buckets, neighbours are merged. So the
    history always covers everything, and never has more than `MAX_BUCKETS` numbers. The last
    thousand rows are counted apart. A stream of numbers has no answer to its first row, which is
    one of `n_unanswered`.

    >>> history = MeanHistory()
    >>> for number in range(1, 251):
    ...     _ = history.add(number, total=number // 2)
    >>> history.buckets(), round(history.recent, 3)
    ((100, 0, [0.5, 0.5]), 0.5)
    """

    def __init__(self, data: dict[str, Any] | None = None, n_unanswered: int = 0) -> None:
        self._n_unanswered = n_unanswered
        self._size: int = data["size"] if data else BUCKET
        self._totals: list[float] = list(data["right"]) if data else []
        self._before: tuple[int, float] = tuple(data["before"]) if data else (0, 0)
        # Rows and the total of all, at the ends of the last small buckets.
        self._ends: deque[tuple[int, float]] = deque(maxlen=_RECENT // BUCKET + 1)
        self._ends.extend(tuple(end) for end in data["ends"]) if data else None
        self._now = self._before
        self._lock = threading.Lock()  # a page looks on while rows are counted

    def n_to_end(self, n_rows: int) -> int:
        """Return how many more rows end a bucket."""
        return BUCKET - n_rows % BUCKET

    def add(self, n_rows: int, total: float) -> bool:
        """Set the number of rows, and the total over them; return whether a bucket ended."""
        with self._lock:
            return self._add(n_rows, total)

    def _add(self, n_rows: int, total: float) -> bool:
        self._now = (n_rows, total)
        if n_rows % BUCKET or (self._ends and n_rows == self._ends[-1][0]):
            return False
        self._ends.append(self._now)
        while (n_new := n_rows - self._before[0]) >= self._size:
            # More rows than a bucket has if a crash forgot its end: each gets an equal share.
            share = (total - self._before[1]) * self._size
            share = share // n_new if isinstance(share, int) else share / n_new
            self._totals.append(share)
            self._before = (self._before[0] + self._size, self._before[1] + share)
            if len(self._totals) > MAX_BUCKETS:
                self._merge()
        return True

    @property
    def recent(self) -> float | None:
        """Mean of about the last thousand rows."""
        start = (self._n_unanswered, 0)
        first = self._ends[0] if len(self._ends) == self._ends.maxlen else start
        n_rows = self._now[0] - first[0]
        return (self._now[1] - first[1]) / n_rows if n_rows > 0 else None

    def buckets(self) -> tuple[int, int, list[float]]:
        """Return rows per bucket, the first row, and the mean of each bucket."""
        with self._lock:
            size, end, totals = self._size, self._before[0], [*self._totals]
        first = end - size * len(totals)
        means = [total / size for total in totals]
        if means and not first:
            means[0] = totals[0] / (size - self._n_unanswered)
        return size, first, means

    def state(self) -> dict[str, Any]:
        """Return what `MeanHistory` restores; "right" is what totals were called at first."""
        return {
            "size": self._size, "right": [*self._totals], "before": self._before,
            "ends": list(self._ends),
        }  # fmt: skip

    def _merge(self) -> None:
        odd = len(self._totals) % 2
        pairs = zip(self._totals[0:-1:2], self._totals[1::2], strict=False)
        last = self._totals[-1] if odd else 0
        self._totals = [first + second for first, second in pairs]
        if odd:  # its half begins the next bucket
            self._before = (self._before[0] - self._size, self._before[1] - last)
        self._size *= 2


class LabelDelays:
    """Seconds from a prediction to its label: the last of them for people, all for Prometheus.

    >>> delays = LabelDelays()
    >>> delays.add([0.5, 5.0, 30.0])
    >>> delays.recent(), delays.buckets()[:2]
    (Delays(n=3, median=5.0, p90=5.0), [('1', 1), ('10', 2)])
    """

    def __init__(self) -> None:
        self._last: deque[float] = deque(maxlen=_RECENT)
        self._counts = [0] * (len(_DELAY_BOUNDS) + 1)
        self.total = 0.0

    def add(self, seconds: Sequence[float]) -> None:
        """Count some; a clock that was set back makes none negative."""
        for delay in seconds:
            self._last.append(max(delay, 0.0))
            self._counts[bisect_left(_DELAY_BOUNDS, delay)] += 1
            self.total += max(delay, 0.0)

    def recent(self) -> Delays | None:
        """Return the last thousand in three numbers; None before the first."""
        last = sorted([*self._last])
        if not last:
            return None
        median, p90 = (last[int(share * (len(last) - 1))] for share in (0.5, 0.9))
        return Delays(len(last), round(median, 3), round(p90, 3))

    def buckets(self) -> list[tuple[str, float]]:
        """Return how many were at most so long, by bound."""
        bounds = [*map(str, _DELAY_BOUNDS), "+Inf"]
        return list(zip(bounds, accumulate(self._counts), strict=True))


def rounded(number: float) -> float:
    """Return a number of any size to six digits.

    >>> rounded(123456.789), rounded(0.000123456789)
    (123457.0, 0.000123457)
    """
    return float(f"{number:.6g}")


def _short(name: str) -> str:
    return repr(name if len(name) <= _LETTERS else f"{name[:_LETTERS]}...")


def _expect_declared(frame: Frame, declared: dict[str, str]) -> None:
    for name in (*frame.names, *frame.texts):
        kind, known = "text" if name in frame.texts else "number", declared.get(source(name))
        if known is None or (source(name) != name and known not in _MOMENTS):
            raise Problem(
                "rows-invalid", "there is a column that the stream's schema does not have"
            )
        if source(name) == name and known != kind:
            raise Problem(
                "rows-invalid", f"the column {_short(name)} is declared as {_PLURALS[known]}"
            )
