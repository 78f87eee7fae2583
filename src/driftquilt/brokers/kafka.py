"""Messages of a Kafka topic (extra: kafka).

A position is the next offset of each partition: `{"0": 17, "1": 4}`. Order is kept within a
partition; between partitions it is that of arrival. So the row and the label of one id belong
into one partition: give both the id as their key. Partitions that are added are found; one whose
broker is away is waited for while the others are read.

No group is joined and no offset committed. Publishing is idempotent and acknowledged by all
replicas in sync. A note is not sent again while it is under way, or when it has arrived: the client
goes on trying for minutes, so that a confirmation that is late still comes. TLS by `tls=true`,
users by SASL, whose mechanism is PLAIN unless given.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence, Set
from functools import partial
from typing import Any

from driftquilt.brokers.address import Address, refuse_untrusted
from driftquilt.brokers.broker import AT_ONCE, Message, Note, Position
from driftquilt.errors import MissingExtraError, NoteTooLargeError, SourceError

try:
    from confluent_kafka import (
        Consumer,
        KafkaError,
        KafkaException,
        Producer,
        TopicPartition,
    )
except ModuleNotFoundError as error:
    raise MissingExtraError("confluent-kafka", extra="kafka") from error

__all__ = ["KafkaSource"]

_LOG = logging.getLogger(__name__)  # where the client's own words go; without it, to stderr
_LOG.addHandler(logging.NullHandler())
_LOOK_AGAIN = 60.0  # seconds between two looks for new partitions
_LOOK_SOON = 5.0  # the same while something is away
_MOST = 1_000_000  # messages that the client can be asked for
_TIME_MIN = 0.1  # seconds for a question
_CLOSE_WITHIN = 1.0
_NO_TOPIC = "there is no such topic; make it first"
_NO_USER = "the broker refuses the user or the password"
_REFUSALS = {
    KafkaError._AUTHENTICATION: _NO_USER,
    KafkaError.SASL_AUTHENTICATION_FAILED: _NO_USER,
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "the user may not use the topic",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "the user may not write to the cluster",
    KafkaError.UNKNOWN_TOPIC_OR_PART: _NO_TOPIC,
    KafkaError._UNKNOWN_TOPIC: _NO_TOPIC,
    KafkaError.INVALID_RECORD: "the topic does not take such messages",
    KafkaError.POLICY_VIOLATION: "the topic does not take such messages",
    KafkaError._FATAL: "the client has given up; a later call restarts it",
    KafkaError._AUTO_OFFSET_RESET: (
        "the broker no longer has the position up to which it was read; rows are missing. Begin a "
        "stream in a new store to go on with what is there, and let Kafka keep messages longer"
    ),
}

_AT_THE_DOOR = (KafkaError._AUTHENTICATION, KafkaError.SASL_AUTHENTICATION_FAILED, KafkaError._SSL)


class KafkaSource:
    """`Source` over all partitions of one topic."""

    def __init__(self, address: Address) -> None:
        (self._topic,) = address.path
        self.name = f"kafka:{self._topic}"
        self.trouble: str | None = None
        self._settings = _settings(address) | {"error_cb": self._hear, "logger": _LOG}
        self._consumer: Consumer | None = None
        self._outbox: _Outbox | None = None
        self._at: dict[str, int] = {}  # what is read next, of every partition
        self._asked: dict[str, int] | None = None  # after what to go on; None: to be assigned again
        self._broken: set[str] = set()  # partitions to be assigned again after an error
        self._away: set[str] = set()  # partitions that did not say where they begin
        self._looked = 0.0
        self._refusal: KafkaError | None = None

    def __repr__(self) -> str:
        return f"<KafkaSource {self.name}>"

    def read(self, after: Position | None, most: int, wait: float) -> Sequence[Message]:
        end = time.monotonic() + wait
        at = {} if after is None else after
        try:
            if self._must_look(at):
                self._look(at, end)
            messages = self._take(min(most, _MOST), end)
        except (KafkaException, SystemError) as error:
            self._expect_mending(_kafka_error(error))
            time.sleep(max(0.0, end - time.monotonic()))
            return []
        self._expect_entry()
        return messages

    def publish(self, notes: Sequence[Note], wait: float) -> bool:
        end = time.monotonic() + wait
        try:
            done = self._writer.send(notes, end)
        except NoteTooLargeError:
            raise
        except SourceError:
            self._drop_writer()
            raise
        except (KafkaException, SystemError) as error:
            self._drop_writer()
            self._expect_mending(_kafka_error(error))
            return False
        self.trouble = None if done else self.trouble or "the broker has not confirmed all yet"
        return done

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
        self._drop_writer()
        self._consumer = self._asked = None

    @property
    def _reader(self) -> Consumer:
        if self._consumer is None:
            own = {"group.id": "driftquilt", "enable.auto.commit": False}  # it is never joined
            own |= {"auto.offset.reset": "error"}
            own |= {"queued.max.messages.kbytes": AT_ONCE // 1024, "fetch.max.bytes": AT_ONCE}
            with self._setting_up():
                self._consumer = Consumer({**self._settings, **own})
        return self._consumer

    @property
    def _writer(self) -> _Outbox:
        if self._outbox is None:
            own = {"enable.idempotence": True, "acks": "all"}
            with self._setting_up():
                producer = Producer({**self._settings, **own})
            self._outbox = _Outbox(self.name, self._topic, producer, self._heed)
        return self._outbox

    def _drop_writer(self) -> None:
        outbox, self._outbox = self._outbox, None
        if outbox is not None:
            outbox.close()

    @contextlib.contextmanager
    def _setting_up(self) -> Iterator[None]:
        try:
            yield
        except KafkaException as error:
            why = error.args[0].str()
            raise SourceError(f"{self.name}: the client cannot be set up: {why}") from error

    def _must_look(self, at: dict[str, int]) -> bool:
        pause = _LOOK_SOON if self._away or self.trouble else _LOOK_AGAIN
        is_time = time.monotonic() > self._looked + pause
        return at != self._asked or bool(self._broken) or is_time

    def _look(self, at: dict[str, int], end: float) -> None:
        """See which partitions there are, and read on in all of them from a position."""
        goes_on = at == self._asked
        self._looked = time.monotonic()
        try:
            there = self._partitions(end)
        except KafkaException as error:
            if not goes_on:
                self._asked = None
                self._reader.unassign()  # what comes of it is not what was asked for
            self._expect_mending(error.args[0])
            return
        known = self._at if goes_on else at
        if not known.keys() <= there:
            gone = ", ".join(sorted(known.keys() - there))
            self._asked = None
            raise SourceError(f"{self.name}: partition {gone} was read and is not there any more")
        first = self._first(there - known.keys(), end)
        if first or self._broken or not goes_on:
            self._at = first | known
            self._reader.assign(
                [TopicPartition(self._topic, int(part), next_) for part, next_ in self._at.items()]
            )
            self._asked, self._broken = dict(at), set()
        if not self._away:
            self.trouble = None

    def _partitions(self, end: float) -> set[str]:
        topic = self._reader.list_topics(self._topic, _time_left(end)).topics[self._topic]
        if topic.error is not None:
            raise KafkaException(topic.error)
        return {str(number) for number in topic.partitions}

    def _first(self, parts: Set[str], end: float) -> dict[str, int]:
        """Return the oldest offsets of partitions, so that positions know every one that answers.

        Those that did not answer the last time are asked last, so that they do not use up the
        time of the others.
        """
        found: dict[str, int] = {}
        self._away &= parts
        for part in sorted(parts, key=lambda part: (part in self._away, int(part))):
            place = TopicPartition(self._topic, int(part))
            try:
                found[part], _ = self._reader.get_watermark_offsets(place, _time_left(end))
                self._away.discard(part)
            except KafkaException as error:
                self._away.add(part)
                self._expect_mending(error.args[0])
                if time.monotonic() > end:
                    break
        return found

    def _take(self, most: int, end: float) -> list[Message]:
        """Return the next messages; an error of one partition leaves time for the others."""
        while True:
            found = self._reader.consume(1, max(0.0, end - time.monotonic()))
            found += self._reader.consume(most - 1, 0) if found and most > 1 else []
            messages = self._messages(found)
            if messages or not found or time.monotonic() > end:
                return messages

    def _messages(self, found: Sequence[Any]) -> list[Message]:
        at, messages = self._at, []
        for given in found:
            part = str(given.partition())
            if given.error() is not None:
                self._broken.add(part)  # whatever comes of it next is asked for again
                self._expect_mending(given.error())
            elif part not in self._broken:
                at = {**at, part: given.offset() + 1}
                messages.append(Message(at, given.value() or b""))
        if messages:
            self._at, self._asked, self.trouble = at, at, None
        return messages

    def _hear(self, error: KafkaError) -> None:
        """Note an error, which the client reports in the middle of a read: it must not raise."""
        self.trouble = f"the broker is away: {error.str()}"
        if error.code() in _AT_THE_DOOR:
            self._refusal = error

    def _heed(self, error: KafkaError | None) -> None:
        """Raise if the broker refused the user, or for the error of a note; the outbox calls it."""
        self._expect_entry()
        if error is not None:
            self._expect_mending(error)

    def _expect_entry(self) -> None:
        """Raise if the broker has refused the user, or shown no certificate that is trusted."""
        refusal, self._refusal = self._refusal, None
        if refusal is not None:
            refuse_untrusted(self.name, refusal.str())
            self._expect_mending(refusal)

    def _expect_mending(self, error: KafkaError) -> None:
        """Note what waiting will mend, and raise what it will not."""
        if error.code() in _REFUSALS or error.fatal():
            self._asked = None
            why = _REFUSALS.get(error.code(), "the broker refuses")
            raise SourceError(f"{self.name}: {why} ({error.name()})")
        self.trouble = f"the broker is away: {error.str()}"


def _kafka_error(error: KafkaException | SystemError) -> KafkaError:
    """Return what the client says; one that was raised while it called back comes wrapped."""
    reason = error if isinstance(error, KafkaException) else error.__cause__
    if not isinstance(reason, KafkaException):
        raise error
    kafka_error: KafkaError = reason.args[0]
    return kafka_error


def _settings(address: Address) -> dict[str, Any]:
    """Return what the client calls it."""
    settings: dict[str, Any] = {"bootstrap.servers": ",".join(address.hosts)}
    protocol = "SSL" if address.tls else "PLAINTEXT"
    if address.user is not None:
        protocol = f"SASL_{protocol}"
        settings["sasl.mechanism"] = address.options.get("mechanism", "PLAIN")
        settings["sasl.username"] = address.user
        settings["sasl.password"] = address.password or ""
    if "ca" in address.options:
        settings["ssl.ca.location"] = address.options["ca"]
    return settings | {"security.protocol": protocol}


class _Outbox:
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
            self._producer.poll(_time_left(end))
            self._heed(None)
            waiting += self._returned(given)
            late = time.monotonic() > end
        self._arrived.clear()
        self._one_by_one = False
        return True

    def close(self) -> None:
        """Let go of all; what is under way holds on to the client until it is reported."""
        with contextlib.suppress(KafkaException, SystemError):
            self._producer.purge()
            self._producer.flush(_CLOSE_WITHIN)

    def _put(self, note: Note) -> bool:
        """Hand a note to the client; False if there is no room for it yet."""
        if self._under_way and self._one_by_one:
            return False
        alone = None if self._under_way else note.id
        try:
            report = partial(self._report, note.id)
            self._producer.produce(self._topic, note.body, note.key, on_delivery=report)
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
        """Return what is to be sent again at once: notes of a batch that was too large, one by one.

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
        size = f"the note {note.id!r} has {len(note.body)} bytes"
        return NoteTooLargeError(
            f"{self._name}: {size}, more than is taken: message.max.bytes", note_id=note.id
        )


def _time_left(end: float) -> float:
    """Seconds until then, and a few if that is past."""
    return max(_TIME_MIN, end - time.monotonic())
