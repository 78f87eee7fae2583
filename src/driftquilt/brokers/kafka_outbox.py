"""Notes on their way to a Kafka topic: each once, however late it is confirmed (extra: kafka).

None is sent again while it is under way, or when it has arrived: the client goes on trying for
minutes, so that a confirmation that is late still comes.
"""

from __future__ import annotations

import contextlib
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from driftquilt.brokers.broker import Note
from driftquilt.errors import MissingExtraError, NoteTooLargeError

try:
    from confluent_kafka import KafkaError, KafkaException, Producer
except ModuleNotFoundError as error:
    raise MissingExtraError("confluent-kafka", extra="kafka") from error

__all__ = ["Outbox", "time_left"]

_LEAST = 0.1  # seconds for a question
_CLOSE = 1.0


class Outbox:
    """What a producer is given for one topic; `heed` is called while it waits, and with errors."""

    def __init__(
        self, name: str, topic: str, producer: Producer, heed: Callable[[KafkaError | None], None]
    ) -> None:
        self._name, self._topic, self._producer, self._heed = name, topic, producer, heed
        self._under_way: set[str] = set()
        self._arrived: set[str] = set()
        self._failed: list[tuple[str, KafkaError]] = []
        self._alone: str | None = None  # the note that was sent when no other was under way
        self._one_by_one = False

    def send(self, notes: Sequence[Note], end: float) -> bool:
        """Whether all are confirmed by then."""
        given = {note.id: note for note in notes}
        self._arrived &= given.keys()  # those of earlier calls are done with
        self._failed.clear()
        under_way = self._under_way | self._arrived
        waiting = deque(note for key, note in given.items() if key not in under_way)
        late = False
        while not given.keys() <= self._arrived:
            if late:
                return False
            while waiting and self._put(waiting[0]):
                waiting.popleft()
            self._producer.poll(time_left(end))
            self._heed(None)
            waiting += self._returned(given)
            late = time.monotonic() > end
        self._arrived.clear()
        self._one_by_one = False
        return True

    def close(self) -> None:
        """Let go of all; what is under way holds on to the client until it is told of."""
        with contextlib.suppress(KafkaException, SystemError):
            self._producer.purge()
            self._producer.flush(_CLOSE)

    def _put(self, note: Note) -> bool:
        """Hand a note to the client; False if there is no room for it yet."""
        if self._under_way and self._one_by_one:
            return False
        alone = None if self._under_way else note.id
        told = partial(self._report, note.id)
        try:
            self._producer.produce(self._topic, note.body, note.key, on_delivery=told)
        except BufferError:
            return False
        except KafkaException as error:
            if error.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE:
                raise self._too_large(note) from error
            raise
        self._alone = alone
        self._under_way.add(note.id)
        return True

    def _report(self, key: str, error: KafkaError | None, _: Any) -> None:
        self._under_way.discard(key)
        if error is None:
            self._arrived.add(key)
        else:
            self._failed.append((key, error))

    def _returned(self, given: dict[str, Note]) -> list[Note]:
        """What is to be sent again at once: notes of a batch that was too large, one by one.

        A broker refuses a batch as a whole, whichever of its notes it is that makes it so large.
        """
        failed, self._failed = [(key, e) for key, e in self._failed if key in given], []
        again = []
        for key, error in failed:
            if error.code() != KafkaError.MSG_SIZE_TOO_LARGE:
                self._heed(error)
            elif key == self._alone:
                raise self._too_large(given[key])
            else:
                self._one_by_one = True
                again.append(given[key])
        return again

    def _too_large(self, note: Note) -> NoteTooLargeError:
        said = f"{self._name}: the note {note.id!r} has {len(note.body)} bytes, more than is taken"
        return NoteTooLargeError(f"{said}: message.max.bytes", note_id=note.id)


def time_left(end: float) -> float:
    """Seconds until then, and a few if that is past."""
    return max(_LEAST, end - time.monotonic())
