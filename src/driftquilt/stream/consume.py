"""A stream fed by a broker: each message counts once, whatever dies and when.

`consume` reads messages and gives them to the stream one by one, each with the position after it.
The stream stores rows, position and rows that wait for their label in one transaction, for many
messages at once. After a crash it is read on from the position that was stored:

- A row with its label is stored together with its position, so it is learned once.
- A row to predict waits in the store (`stream.late`) from the step on that stores its position.
  Its label, perhaps days later, takes it out and puts it among the learned rows in one step. So
  nothing is read twice for the sake of rows that still wait, and the broker may forget them.
- Answers are published before the position of their row is stored: after a crash some are
  published again, under the same id, and none is missing.
- Events are published after the batch in which they happened; a crash may lose or repeat them.
  `stream.events` has them all.

A message that cannot be read or does not fit the stream is counted, remembered and passed over.
One consumer feeds a stream; a second source for the same stream is refused.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from driftquilt.errors import InputError
from driftquilt.sources.broker import Message, Note, Position, Source
from driftquilt.sources.messages import Asked, Labelled, LateLabel, Unreadable, decode
from driftquilt.stream.events import Event
from driftquilt.stream.runner import QuiltStream

__all__ = ["Refused", "Tally", "consume"]

_REMEMBERED = 20


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
    n_refused: int = 0
    refused: deque[Refused] = field(default_factory=lambda: deque(maxlen=_REMEMBERED))


def consume(
    stream: QuiltStream,
    source: Source,
    *,
    stop: threading.Event,
    to: Source | None = None,
    tally: Tally | None = None,
    most: int = 500,
    wait: float = 1.0,
    turn: Callable[[Callable[[], bool]], bool] = lambda take: take(),
    learned: Callable[[], None] = lambda: None,
) -> Tally:
    """Feed the stream from a source until `stop` is set.

    Answers to rows with an id, and events, go `to` a broker if one is given. At most `most`
    messages are taken together; `wait` is how many seconds a read may last, and so a stop. If
    something else feeds the stream too, `turn` runs each batch when it is its turn, and `learned`
    is called after each row.
    """
    if most < 1 or not wait > 0:
        raise InputError(f"most is {most} and wait {wait}; give at least 1, and seconds above 0")
    work = _Work(stream, source, stop, to, Tally() if tally is None else tally, wait, learned)
    after = _begin(stream.position, source)
    while not stop.is_set():
        messages = source.read(after, most, wait)
        if messages and turn(partial(work.take, messages)):
            after = messages[-1].position
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
class _Work:
    """One consumer at work."""

    stream: QuiltStream
    source: Source
    stop: threading.Event
    to: Source | None
    tally: Tally
    wait: float
    learned: Callable[[], None]
    asked: list[tuple[Message, Asked]] = field(default_factory=list)  # and not yet answered
    news: list[Event] = field(default_factory=list)

    def take(self, messages: Sequence[Message]) -> bool:
        """Take messages in order; False if a stop came before all were taken."""
        done = all(self._take_one(message) for message in messages) and self._answer()
        self.stream.flush(self._at(messages[-1]) if done else None)
        if done:
            self.tally.n_messages += len(messages)
            self._tell()
        return done

    def _take_one(self, message: Message) -> bool:
        arrival = decode(message.body)
        if isinstance(arrival, Asked):
            self.asked.append((message, arrival))
            return True
        if not self._answer():
            return False
        try:
            self._learn(message, arrival)
        except InputError as error:
            self._refuse(message, str(error))
        return True

    def _learn(self, message: Message, arrival: Labelled | LateLabel | Unreadable) -> None:
        at = self._at(message)
        match arrival:
            case Labelled(row, label):
                self.news += self.stream.learn_one(row, label, position=at)
            case LateLabel(key, label):
                self.news += self.stream.learn_one(y=label, key=key, position=at)
            case Unreadable(why):
                raise InputError(why)
        self.tally.n_learned += 1
        self.learned()

    def _answer(self) -> bool:
        """Publish what the rows so far are predicted to be, then let them wait for their label."""
        asked, self.asked = self.asked, []
        fitting = []
        for message, arrival in asked:
            try:
                fitting.append((message, arrival, self._predict(arrival)))
            except InputError as error:
                self._refuse(message, str(error))
        notes = [self._note(message, arrival.id, answer) for message, arrival, answer in fitting]
        if not self._publish(notes):
            return False
        for message, arrival, _ in fitting:
            try:
                self.stream.expect_label(arrival.row, arrival.id, position=self._at(message))
                self.tally.n_asked += 1
            except InputError as error:
                self._refuse(message, str(error))
        return True

    def _predict(self, arrival: Asked) -> Any:
        return None if self.to is None else self.stream.predict_one(arrival.row)

    def _note(self, message: Message, key: str | int, answer: Any) -> Note:
        body = {"id": key, "prediction": answer, "model": self.stream.model}
        return Note(self._name("answer", message.position), str(key), _to_bytes(body))

    def _tell(self) -> None:
        """Publish what happened."""
        events, self.news = self.news, []
        self._publish(
            [
                Note(self._name("event", [event.row, number]), None, _to_bytes(event.to_json()))
                for number, event in enumerate(events)
            ]
        )

    def _publish(self, notes: Sequence[Note]) -> bool:
        """Publish until it is confirmed; False if a stop came before."""
        if self.to is None or not notes:
            return True
        while not self.to.publish(notes, self.wait):
            if self.stop.is_set():
                return False
        return True

    def _refuse(self, message: Message, why: str) -> None:
        self.tally.n_refused += 1
        self.tally.refused.append(Refused(message.position, why))

    def _at(self, message: Message) -> dict[str, Any]:
        return {"source": self.source.name, "after": message.position}

    def _name(self, what: str, place: Any) -> str:
        return f"{what} {self.source.name} {json.dumps(place)}"


def _to_bytes(body: dict[str, Any]) -> bytes:
    return json.dumps(body).encode()
