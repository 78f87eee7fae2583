"""Messages of a Kafka topic (extra: kafka).

A position is the next offset of each partition: `{"0": 17, "1": 4}`. Order is kept within a
partition; between partitions it is that of arrival. So the row and the label of one id belong
into one partition: give both the id as their key. Partitions that are added are found.

No group is joined and no offset committed. Publishing is idempotent and acknowledged by all
replicas in sync. TLS by `tls=true`, users by SASL, whose mechanism is PLAIN unless given.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator, Sequence
from typing import Any

from driftquilt.errors import MissingExtraError, SourceError
from driftquilt.sources.address import Address, refuse_untrusted
from driftquilt.sources.broker import Message, Note, Position

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
_REFUSALS = {
    KafkaError._AUTHENTICATION: "the broker refuses the user or the password",
    KafkaError.SASL_AUTHENTICATION_FAILED: "the broker refuses the user or the password",
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "the user may not use the topic",
    KafkaError.UNKNOWN_TOPIC_OR_PART: "there is no such topic; make it first",
    KafkaError._UNKNOWN_TOPIC: "there is no such topic; make it first",
    KafkaError._UNKNOWN_PARTITION: "a partition that was read is not there any more",
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
        self._producer: Producer | None = None
        self._at: dict[str, int] = {}  # what is read next, of every partition
        self._asked: dict[str, int] | None = None  # after what to go on; None: to be assigned anew
        self._look_again = 0.0
        self._refusal: KafkaError | None = None

    def __repr__(self) -> str:
        return f"<KafkaSource {self.name}>"

    def read(self, after: Position | None, most: int, wait: float) -> Sequence[Message]:
        end = time.monotonic() + wait
        at = {} if after is None else after
        if at != self._asked or time.monotonic() > self._look_again:
            self._assign(at, wait)
        found = self._reader.consume(1, max(0.0, end - time.monotonic()))
        found += self._reader.consume(most - 1, 0) if found and most > 1 else []
        if self._refusal is not None:
            refusal, self._refusal = self._refusal, None
            refuse_untrusted(self.name, refusal.str())
            self._expect_mending(refusal)
        return self._messages(found)

    def publish(self, notes: Sequence[Note], wait: float) -> bool:
        failed: list[KafkaError] = []

        def confirm(error: KafkaError | None, _: Any) -> None:
            failed.extend([error] if error is not None else [])

        writer = self._writer
        for note in notes:
            writer.produce(self._topic, note.body, note.key, on_delivery=confirm)
        if writer.flush(wait):
            writer.purge()  # or they would arrive beside those that are published again
            writer.flush(wait)
        for error in failed:
            if error.code() in _REFUSALS:
                raise self._refused(error)
        self.trouble = f"the broker is away: {failed[0].str()}" if failed else None
        return not failed

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close()
        if self._producer is not None:
            self._producer.flush(0)
        self._consumer = self._producer = self._asked = None

    @property
    def _reader(self) -> Consumer:
        if self._consumer is None:
            never_joined = {"group.id": "driftquilt", "enable.auto.commit": False}
            with self._setting_up():
                self._consumer = Consumer(
                    {**self._settings, **never_joined, "auto.offset.reset": "error"}
                )
        return self._consumer

    @property
    def _writer(self) -> Producer:
        if self._producer is None:
            with self._setting_up():
                self._producer = Producer(
                    {**self._settings, "enable.idempotence": True, "acks": "all"}
                )
        return self._producer

    @contextlib.contextmanager
    def _setting_up(self) -> Iterator[None]:
        try:
            yield
        except KafkaException as error:
            said = error.args[0].str()
            raise SourceError(f"{self.name}: the client cannot be set up: {said}") from error

    def _assign(self, at: dict[str, int], wait: float) -> None:
        """Read on from a position, in all partitions that there are."""
        self._asked = None
        self._reader.unassign()
        try:
            topic = self._reader.list_topics(self._topic, max(0.1, wait)).topics[self._topic]
            if topic.error is not None:
                raise KafkaException(topic.error)
            first = {str(number): self._first(number, wait) for number in topic.partitions}
        except KafkaException as error:
            self._expect_mending(error.args[0])
            return
        if not {*at} <= {*first}:
            raise self._refused(KafkaError(KafkaError._UNKNOWN_PARTITION))
        self._at = first | at
        self._reader.assign(
            [TopicPartition(self._topic, int(part), next_) for part, next_ in self._at.items()]
        )
        self._asked, self.trouble = dict(at), None
        self._look_again = time.monotonic() + _LOOK_AGAIN

    def _first(self, partition: int, wait: float) -> int:
        """The oldest offset that is there, so that positions know every partition."""
        place = TopicPartition(self._topic, partition)
        oldest, _ = self._reader.get_watermark_offsets(place, max(0.1, wait))
        return int(oldest)

    def _messages(self, found: Sequence[Any]) -> list[Message]:
        at, messages = self._at, []
        for given in found:
            if given.error() is not None:
                self._asked = None  # whatever comes next, it is asked for anew
                self._expect_mending(given.error())
                return []
            at = {**at, str(given.partition()): given.offset() + 1}
            messages.append(Message(at, given.value() or b""))
        if messages:
            self._at, self._asked, self.trouble = at, at, None
        return messages

    def _expect_mending(self, error: KafkaError) -> None:
        if error.code() in _REFUSALS or error.fatal():
            raise self._refused(error)
        self.trouble = f"the broker is away: {error.str()}"

    def _hear(self, error: KafkaError) -> None:
        """Called by the client, in the middle of a read: it must not raise."""
        self.trouble = f"the broker is away: {error.str()}"
        if error.code() in _AT_THE_DOOR:
            self._refusal = error

    def _refused(self, error: KafkaError) -> SourceError:
        self._asked = None
        why = _REFUSALS.get(error.code(), "the broker refuses")
        return SourceError(f"{self.name}: {why} ({error.name()})")


def _settings(address: Address) -> dict[str, Any]:
    """What the client calls it."""
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
