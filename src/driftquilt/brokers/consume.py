"""A stream fed by a broker: each message counts once, across crashes on either side.

`consume` reads messages and gives them to the stream one by one, each with the position after it.
The stream stores rows, position and rows that wait for their label in one transaction, for many
messages at once. After a crash it is read on from the position that was stored:

- A row with its label is stored together with its position, so it is learned once.
- A row to predict waits in the store (`store.pending`) from the step on that stores its position.
  Its label, perhaps days later, takes it out and puts it among the learned rows in one step. So
  nothing is read twice for the sake of rows that still wait, and the broker may forget them.
- Answers are published before the position of their row is stored: after a crash some are
  published again, under the same id, and none is missing.
- Events are published whatever they came of: messages, rows of others, or a training that ended.
  The number of the last one is kept in the store, so that none is missing after a crash, unless a
  thousand others came since; some are published again. Only that a row was forgotten has no number.

A message that cannot be read or does not fit the stream is counted, remembered and passed over.
One consumer feeds a stream; a second source for the same stream is refused.
"""

from __future__ import annotations

import hashlib
import json
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from driftquilt.brokers.broker import Message, Note, Position, Source
from driftquilt.brokers.messages import Asked, Labelled, LateLabel, Unreadable, decode
from driftquilt.errors import InputError, NoteTooLargeError
from driftquilt.stream.events import Event

if TYPE_CHECKING:
    from driftquilt.stream import QuiltStream

__all__ = ["Refused", "Tally", "consume"]

_REMEMBERED = 20
_PUBLISHED = "told"  # in the store: the number of the last event that was published


@dataclass(frozen=True)
class Refused:
    """A message that was passed over."""

    position: Position
    why: str


@dataclass
class Tally:
    """What came so far; may be looked at while messages are consumed."""

    n_messages: int = 0
    n_learned: int = 0
    n_asked: int = 0
    n_late: int = 0  # of those learned, rows that had waited for their label
    n_forgotten: int = 0  # rows that were let go before their label came
    n_refused: int = 0
    refused: deque[Refused] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))


def consume(
    stream: QuiltStream,
    source: Source,
    *,
    stop: threading.Event | None = None,
    to: Source | None = None,
    tally: Tally | None = None,
    most: int = 500,
    wait: float = 1.0,
    turn: Callable[[Callable[[], None]], None] = lambda take: take(),
    learned: Callable[[], None] = lambda: None,
    look: Callable[[], None] = lambda: None,
) -> Tally:
    """Feed the stream from a source until `stop` is set; without one, until it is interrupted.

    Answers to rows with an id, and events, go `to` a broker if one is given. At most `most`
    messages are taken together; `wait` is how many seconds a read may last, and so a stop. If
    something else feeds the stream too, `turn` runs what changes the stream when it is its turn,
    and `learned` is called after each row; while a broker takes its time, no turn is held. `look`
    is called before each read, also where nothing comes, and may raise to end it.
    """
    if most < 1 or not wait > 0:
        raise InputError(f"most is {most} and wait {wait}; give at least 1, and seconds above 0")
    stop = threading.Event() if stop is None else stop
    after = _begin(stream.position, source)
    work = _Work(stream, source, stop, to, Tally() if tally is None else tally, wait, turn, learned)
    while not stop.is_set():
        look()
        messages = source.read(after, most, wait)
        if messages and work.take(messages):
            after = messages[-1].position
        work.publish_events()
    return work.tally


def _begin(kept: Any, source: Source) -> Position | None:
    """Where to read on."""
    if kept is None:
        return None
    if not isinstance(kept, dict) or kept.get("source") != source.name:
        fed = kept.get("source") if isinstance(kept, dict) else kept
        raise InputError(
            f"this stream was fed from {fed}, so it cannot go on with {source.name}; begin another "
            "stream for it, or go on with the first source"
        )
    return kept["after"]


@dataclass
class _Group:
    """Rows to predict, then what is learned after they were answered."""

    asked: list[tuple[Message, Asked]] = field(default_factory=list)
    others: list[tuple[Message, Labelled | LateLabel | Unreadable]] = field(default_factory=list)

    def has(self, key: str | int) -> bool:
        return any(arrival.id == key for _, arrival in self.asked)


def _groups(messages: Sequence[Message]) -> list[_Group]:
    """Messages in order; each id is asked for once in a group."""
    groups = [_Group()]
    for message in messages:
        arrival = decode(message.body)
        if isinstance(arrival, Asked):
            if groups[-1].others or groups[-1].has(arrival.id):
                groups.append(_Group())
            groups[-1].asked.append((message, arrival))
        else:
            groups[-1].others.append((message, arrival))
    return groups


@dataclass
class _Work:
    """One consumer at work."""

    stream: QuiltStream
    source: Source
    stop: threading.Event
    to: Source | None
    tally: Tally
    wait: float
    turn: Callable[[Callable[[], None]], None]
    learned: Callable[[], None]
    forgotten: list[Event] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._left = self.stream.position  # what nobody else may move
        if self.to is not None:
            last = max((event.number for event in self.stream.events), default=0)
            self.turn(partial(self._store_published, self.stream.store.state.get(_PUBLISHED, last)))

    def take(self, messages: Sequence[Message]) -> bool:
        """Take messages in order; False if a stop came before all were taken."""
        for group in _groups(messages):
            answered = self._answer(group.asked)
            if answered is None:
                self.turn(partial(self._flush, None))  # what was taken so far stays
                return False
            self.turn(partial(self._take_group, answered, group.others))
        self.turn(partial(self._flush, self._at(messages[-1])))
        self.tally.n_messages += len(messages)
        return True

    def _take_group(
        self,
        answered: Sequence[tuple[Message, Asked]],
        others: Sequence[tuple[Message, Labelled | LateLabel | Unreadable]],
    ) -> None:
        if self.stream.position != self._left:
            raise InputError(
                f"something else feeds this stream from {self.source.name} as well, so that "
                "messages would count twice; let one consumer feed a stream"
            )
        for message, asked in answered:
            self._try(message, partial(self._expect, message, asked))
        for message, arrival in others:
            self._try(message, partial(self._learn, message, arrival))
        self._left = self.stream.position

    def _flush(self, position: dict[str, Any] | None) -> None:
        """Make what was taken durable, with its own positions or this one."""
        self.stream.flush(position)
        self._left = self.stream.position

    def _try(self, message: Message, take: Callable[[], None]) -> None:
        try:
            take()
        except InputError as error:
            self._refuse(message, str(error))

    def _expect(self, message: Message, asked: Asked) -> None:
        forgotten = self.stream.expect_label(asked.row, asked.id, position=self._at(message))
        if forgotten is not None:
            self.tally.n_forgotten += 1
            if self.to is not None:
                self.forgotten.append(forgotten)
        self.tally.n_asked += 1

    def _learn(self, message: Message, arrival: Labelled | LateLabel | Unreadable) -> None:
        at = self._at(message)
        match arrival:
            case Labelled(row, label):
                self.stream.learn_one(row, label, position=at)
            case LateLabel(key, label):
                self.stream.learn_one(y=label, key=key, position=at)
                self.tally.n_late += 1
            case Unreadable(why):
                raise InputError(why)
        self.tally.n_learned += 1
        self.learned()

    def _answer(self, asked: Sequence[tuple[Message, Asked]]) -> list[tuple[Message, Asked]] | None:
        """Publish what rows are predicted to be; those that may wait, None if a stop came."""
        if self.to is None:
            return [*asked]
        notes: dict[str, tuple[Message, Asked, Note]] = {}
        for message, arrival in asked:
            try:
                note = self._note(message, arrival)
            except InputError as error:
                self._refuse(message, str(error))
            else:
                notes[note.id] = (message, arrival, note)
        while not self._publish([note for *_, note in notes.values()], notes):
            if self.stop.is_set():
                return None
        return [(message, arrival) for message, arrival, _ in notes.values()]

    def _note(self, message: Message, asked: Asked) -> Note:
        """Return the answer to a row, if it may wait under its id."""
        self.stream.expect_key(asked.row, asked.id)
        answer = self.stream.predict_one(asked.row)
        body = {"id": asked.id, "prediction": answer, "model": self.stream.model}
        return Note(self._name("answer", message.position), str(asked.id), _to_bytes(body))

    def _publish(self, notes: Sequence[Note], of: dict[str, tuple[Message, Asked, Note]]) -> bool:
        """Try to publish; a note that is too large is taken out, and its message refused."""
        if self.to is None or not notes:
            return True
        try:
            return self.to.publish(notes, self.wait)
        except NoteTooLargeError as error:
            message, *_ = of.pop(error.note_id)
            self._refuse(message, f"its answer is too large for the broker: {error}")
            return False

    def publish_events(self) -> None:
        """Publish what happened; an event that is too large for the broker is left out."""
        if self.to is None:
            return
        numbered = [event for event in self.stream.events if event.number > self._published]
        events, self.forgotten = [*self.forgotten, *numbered], []
        bodies = [_to_bytes(event.to_json()) for event in events]
        notes = [Note(self._name("event", _digest(body)), None, body) for body in bodies]
        while notes:
            try:
                if self.to.publish(notes, self.wait):
                    break
            except NoteTooLargeError as error:
                notes = [note for note in notes if note.id != error.note_id]
            if self.stop.is_set():
                return
        if numbered:
            self.turn(partial(self._store_published, numbered[-1].number))

    def _store_published(self, number: int) -> None:
        self._published = number
        self.stream.note({_PUBLISHED: number})
        self.stream.flush()

    def _refuse(self, message: Message, why: str) -> None:
        self.tally.n_refused += 1
        self.tally.refused.append(Refused(message.position, why))

    def _at(self, message: Message) -> dict[str, Any]:
        return {"source": self.source.name, "after": message.position}

    def _name(self, what: str, place: Any) -> str:
        return f"{what} {self.stream.id} {self.source.name} {json.dumps(place)}"


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:32]


def _to_bytes(body: dict[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False).encode()
