"""What the service shows of a stream, made after every turn, so that readers need no lock."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from driftquilt.data.calendar import source
from driftquilt.data.frame import Frame
from driftquilt.errors import InputError
from driftquilt.server.limits import expect_stream_size
from driftquilt.server.problems import Problem
from driftquilt.stream import QuiltStream
from driftquilt.stream.columns import LABEL, expect_no_date_among
from driftquilt.stream.events import Event
from driftquilt.stream.snapshot import Snapshot
from driftquilt.stream.status import StreamStatus

__all__ = ["About", "View", "look"]


@dataclass(frozen=True)
class About:
    """What a stream was made with, beside what its store knows."""

    name: str
    created: str
    schema: dict[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, eq=False)
class View:
    """A stream at one moment: what predicts, its status, its events."""

    answers: Snapshot
    numbers: frozenset[str]  # names of columns
    texts: frozenset[str]
    status: StreamStatus
    recent_accuracy: float | None
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


def look(stream: QuiltStream, previous: View | None, recent_accuracy: float | None) -> View:
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
    return View(stream.snapshot(), numbers, texts, status, recent_accuracy, events)


def _short(name: str) -> str:
    return repr(name if len(name) <= _LETTERS else f"{name[:_LETTERS]}...")


def _expect_declared(frame: Frame, declared: dict[str, str]) -> None:
    for name in (*frame.names, *frame.texts):
        kind, known = "text" if name in frame.texts else "number", declared.get(source(name))
        if known is None or (source(name) != name and known not in _MOMENTS):
            raise Problem("rows-invalid", _UNDECLARED)
        if source(name) == name and known != kind:
            raise Problem(
                "rows-invalid", f"the column {_short(name)} is declared as {_PLURALS[known]}"
            )


_MOMENTS = ("date", "time")
_PLURALS = {"number": "numbers", "text": "text", "date": "dates", "time": "times of day"}
_LETTERS = 40  # of a name in a sentence
_UNDECLARED = "there is a column that the stream's schema does not have"
