"""A broker as a source: messages after a position, in order, and messages that go back.

    read(after, most, wait)  the next messages after a position; [] if none came within `wait`
    publish(notes, wait)     True when the broker has confirmed all of them
    close()                  let go of the connection

Promises of every source:

- A position is a small JSON value, which a message carries: reading after it gives what comes
  next. The reader keeps it; nothing is sent to the broker, no group, no commit, no acknowledgement.
  Whoever keeps the position in one step with what the messages led to has counted each once.
- A broker that is away is waited for: `read` gives [], `publish` False, `trouble` says why, and
  the next call tries again.
- What waiting will not mend is a `SourceError`: an unknown topic, a refused password, a position
  that the broker no longer has. Nothing is skipped in silence. A later call tries again.
- A note that the broker will never take, because of its size, is a `NoteTooLargeError` with the
  id of the note. Whoever leaves it out can publish the others.
- No message and no repr shows a password.

A source knows nothing of rows; `messages` reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

__all__ = ["AT_ONCE", "Message", "Note", "Portion", "Position", "Source"]

Position: TypeAlias = Any  # JSON

AT_ONCE = 16 * 2**20  # bytes that a source takes from its broker at a time, about


@dataclass(frozen=True)
class Message:
    """What a broker gave: the position after it, and its bytes."""

    position: Position
    body: bytes


@dataclass(frozen=True)
class Note:
    """What goes to a broker.

    The id identifies a note: where the broker looks at ids, one that is published twice appears
    once. The key, if there is one, is the broker's own: Kafka places notes by it.
    """

    id: str
    key: str | None
    body: bytes


class Portion:
    """How many messages to ask for at once, where a broker counts messages and not their bytes.

    Few at first, then twice as many each time, and fewer when they are large.

    >>> portion = Portion()
    >>> portion.of(500)
    16
    >>> portion.learn([b"small"])
    >>> portion.of(500)
    32
    >>> portion.learn([b"large" * 1_000_000])
    >>> portion.of(500)
    3
    """

    def __init__(self) -> None:
        self._n_messages = 16

    def of(self, most: int) -> int:
        """So many, and at most `most`."""
        return min(most, self._n_messages)

    def learn(self, bodies: Sequence[bytes]) -> None:
        """Look at how large those were that came."""
        if bodies:
            fitting = AT_ONCE // max(1, *map(len, bodies))
            self._n_messages = max(1, min(2 * self._n_messages, fitting))


class Source(Protocol):
    """The contract; the module says what it promises. One thread at a time may use a source."""

    @property
    def name(self) -> str:
        """Which messages these are, without hosts or passwords: positions belong to it."""

    @property
    def trouble(self) -> str | None:
        """Why the last call came back with nothing; None if the broker answered."""

    def read(self, after: Position | None, most: int, wait: float) -> Sequence[Message]:
        """At most so many messages after a position, None for the oldest there is.

        Waits so many seconds for the first of them.
        """

    def publish(self, notes: Sequence[Note], wait: float) -> bool:
        """Send notes to where the source reads; False if not all were confirmed in time.

        Those may have arrived nevertheless, or arrive later: publish the same notes again, until
        it is True. `NoteTooLargeError` for one that the broker will never take; of the others,
        some may have been sent.
        """

    def close(self) -> None:
        """Let go of the connection; closing twice is fine."""
