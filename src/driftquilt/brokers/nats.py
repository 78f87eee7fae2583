"""Messages of a NATS JetStream stream, of one subject (extra: nats).

A position is the sequence of a message in its stream. Reading makes a consumer in the broker that
keeps nothing and is forgotten; after a lost connection there is a new one, which begins where the
reader stands. A subject shares its sequences with the others of its stream, and what JetStream
has removed is known for the stream alone: so a subject should have a stream to itself, or rows
may be reported missing when those of its neighbours are. A stream that deletes what was read
(its retention is `interest` or `workqueue`) is refused.

Publishing waits for the acknowledgement of JetStream, which knows a note by its id for as long as
the `duplicate_window` of the stream says. With `tls=true`, nothing is sent over a connection that
is not encrypted.

The client is asynchronous; its loop runs on a thread of its own, so that it answers the broker
while nobody reads.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine, Sequence
from itertools import pairwise
from typing import Any, TypeVar

from driftquilt.brokers.address import Address, refuse_untrusted
from driftquilt.brokers.broker import Message, Note, Portion, Position
from driftquilt.errors import MissingExtraError, NoteTooLargeError, SourceError

try:
    from nats.aio.client import Client
    from nats.errors import Error as NatsError
    from nats.errors import SecureConnWantedError
    from nats.js.api import (
        AckPolicy,
        ConsumerConfig,
        DeliverPolicy,
        RetentionPolicy,
        StreamInfo,
        StreamState,
    )
    from nats.js.client import JetStreamContext
    from nats.js.errors import APIError, BadRequestError, NoStreamResponseError, NotFoundError
except ModuleNotFoundError as error:
    raise MissingExtraError("nats-py", extra="nats") from error

__all__ = ["NatsSource"]

T = TypeVar("T")

_CONNECT = 2  # seconds
_CLOSE = 1.0
_FORGOTTEN = 300.0  # seconds after which the broker forgets a consumer that nobody reads
_LEAST = 0.05  # seconds to wait for messages
_REFUSED = range(400, 500)  # as in HTTP, whose codes JetStream answers with
_NOT_FOUND = 404
_HEADERS = "NATS/1.0\r\nNats-Msg-Id: \r\nNats-Expected-Stream: \r\n\r\n"
_TOO_LARGE = 10054  # JetStream's own code for a message beyond the stream's max_msg_size
_AWAY = (NatsError, OSError, asyncio.TimeoutError)


class _Encrypted(Client):
    """A client that identifies itself only over a connection that is encrypted.

    The library encrypts if the broker asks for it, and otherwise sends the password as it is.
    """

    def _connect_command(self) -> bytes:
        if not self._server_info.get("tls_required"):
            raise SecureConnWantedError
        return super()._connect_command()


class NatsSource:
    """`Source` over one subject of a stream."""

    def __init__(self, address: Address) -> None:
        self._stream, self._subject = address.path
        self.name = f"nats:{self._stream}/{self._subject}"
        self.trouble: str | None = None
        self._address = address
        self._client: Client | None = None
        self._pulled: Any = None
        self._at: int | None = None  # sequences after the last message given: the stream's
        self._n_given = 0  # and the consumer's
        self._portion = Portion()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=self.name, daemon=True)
        self._thread.start()

    def __repr__(self) -> str:
        return f"<NatsSource {self.name}>"

    def read(self, after: Position | None, most: int, wait: float) -> Sequence[Message]:
        return self._run(self._read(after or 0, most, wait))

    def publish(self, notes: Sequence[Note], wait: float) -> bool:
        return self._run(self._publish(notes, wait))

    def close(self) -> None:
        if self._loop.is_closed():
            return
        self._run(self._disconnect())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        if self._loop.is_closed():
            work.close()
            raise SourceError(f"{self.name}: it was closed; open it again")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _read(self, after: int, most: int, wait: float) -> list[Message]:
        loop = asyncio.get_running_loop()
        end = loop.time() + wait
        try:
            if self._pulled is None or after != self._at:
                await self._subscribe(after)
            messages = await self._fetch(after, most, max(_LEAST, end - loop.time()))
        except SourceError:
            raise
        except _AWAY as error:
            await self._note_trouble(error)
            await asyncio.sleep(end - loop.time())
            return []
        self.trouble = None
        return messages

    async def _publish(self, notes: Sequence[Note], wait: float) -> bool:
        loop = asyncio.get_running_loop()
        end = loop.time() + wait
        try:
            client = await self._connect()
            for note in notes:
                self._expect_size(note, client.max_payload)
            jetstream = client.jetstream()
            await asyncio.gather(*(self._send(jetstream, note, wait) for note in notes))
        except SourceError:
            raise
        except (NoStreamResponseError, BadRequestError) as error:
            await self._expect_subject()
            await self._note_trouble(error)
        except _AWAY as error:
            await self._note_trouble(error)
        else:
            self.trouble = None
            return True
        await asyncio.sleep(end - loop.time())
        return False

    async def _send(self, jetstream: JetStreamContext, note: Note, wait: float) -> None:
        headers = {"Nats-Msg-Id": note.id}
        try:
            await jetstream.publish(self._subject, note.body, wait, self._stream, headers)
        except APIError as error:
            if error.err_code == _TOO_LARGE:
                raise self._too_large(note, "the stream takes: its max_msg_size") from error
            raise

    def _expect_size(self, note: Note, most: int) -> None:
        """Refuse what the broker would close the connection for; headers count as well."""
        if len(f"{_HEADERS}{note.id}{self._stream}".encode()) + len(note.body) > most:
            raise self._too_large(note, f"the {most} bytes that the broker takes: its max_payload")

    def _too_large(self, note: Note, what: str) -> NoteTooLargeError:
        size = f"the note {note.id!r} has {len(note.body)} bytes"
        return NoteTooLargeError(
            f"{self.name}: {size}, with headers more than {what}", note_id=note.id
        )

    async def _connect(self) -> Client:
        if self._client is not None and self._client.is_connected:
            return self._client
        await self._disconnect()
        client = self._client = _Encrypted() if self._address.tls else Client()
        await client.connect(
            [f"nats://{host}" for host in self._address.hosts],
            user=self._address.user,
            password=self._address.password,
            tls=self._address.context(),
            allow_reconnect=False,  # the next read does, from where the reader stands
            max_reconnect_attempts=1,
            reconnect_time_wait=0,
            connect_timeout=_CONNECT,
            error_cb=self._hear,
        )
        return client

    async def _disconnect(self) -> None:
        client, self._client, self._pulled = self._client, None, None
        if client is not None:
            with contextlib.suppress(*_AWAY):  # a broken connection may not close in order
                await asyncio.wait_for(client.close(), _CLOSE)

    async def _subscribe(self, after: int) -> None:
        jetstream = (await self._connect()).jetstream()
        if self._pulled is not None:
            await self._pulled.unsubscribe()
        info = await self._info()
        self._expect_kept(info.config.retention)
        self._expect_place(info.state, after, after)
        config = ConsumerConfig(
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE if after else DeliverPolicy.ALL,
            opt_start_seq=after + 1 if after else None,
            ack_policy=AckPolicy.NONE,
            mem_storage=True,
            inactive_threshold=_FORGOTTEN,
        )
        self._pulled = await jetstream.pull_subscribe(
            self._subject, stream=self._stream, config=config
        )
        self._at, self._n_given = after, 0

    async def _fetch(self, after: int, most: int, wait: float) -> list[Message]:
        try:
            found = await self._pulled.fetch(self._portion.of(most), timeout=wait)
        except TimeoutError:  # the library's own is one; at the very end it raises this
            self._expect_place((await self._info()).state, after, after)
            await self._pulled.consumer_info()  # fails if the broker has forgotten it
            return []
        numbers = [given.metadata.sequence.consumer for given in found]
        if numbers != [*range(self._n_given + 1, self._n_given + 1 + len(found))]:
            raise NatsError("messages were lost on the way; they are asked for again")
        places = [after, *(given.metadata.sequence.stream for given in found)]
        gaps = [a for a, b in pairwise(places) if a and b > a + 1]
        if gaps:
            self._expect_place((await self._info()).state, gaps[0], after)
        self._at, self._n_given = places[-1], numbers[-1]
        self._portion.learn([given.data for given in found])
        return [Message(at, given.data) for at, given in zip(places[1:], found, strict=True)]

    async def _info(self) -> StreamInfo:
        try:
            return await (await self._connect()).jetstream().stream_info(self._stream)
        except NotFoundError as error:
            raise SourceError(
                f"{self.name}: there is no such stream in JetStream; make it first"
            ) from error

    def _expect_kept(self, retention: RetentionPolicy | None) -> None:
        """Refuse a stream in which reading deletes: a crash would lose what was read."""
        if retention not in (None, RetentionPolicy.LIMITS):
            raise SourceError(
                f"{self.name}: the stream deletes what was read, for its retention is "
                f"{RetentionPolicy(retention).value}; read from one whose retention is limits"
            )

    def _expect_place(self, state: StreamState, gap: int, after: int) -> None:
        """Refuse what the stream no longer has; `gap` is the last one before a gap."""
        if after > state.last_seq:
            raise self._gone(after, f"the stream ends at {state.last_seq}")
        if gap and gap + 1 < state.first_seq:
            raise self._gone(after, f"the stream now begins at {state.first_seq}")

    async def _expect_subject(self) -> None:
        """Refuse a subject that the stream does not take, and no broker that is just starting."""
        try:
            taken = (await self._info()).config.subjects or []
        except SourceError:
            raise
        except _AWAY:
            return
        if not any(_takes(pattern, self._subject) for pattern in taken):
            raise SourceError(
                f"{self.name}: the stream does not take the subject; it takes {taken}"
            )

    def _gone(self, after: int, why: str) -> SourceError:
        return SourceError(
            f"{self.name}: it was read up to sequence {after}, but {why}; rows are missing. Begin "
            "a stream in a new store to go on with what is there, and let JetStream keep more"
        )

    async def _note_trouble(self, error: BaseException) -> None:
        """Note why the broker is away, or raise if it has refused; the connection is done with."""
        await self._disconnect()
        reason = str(error) or type(error).__name__
        if "authorization" in reason.lower() or "authentication" in reason.lower():
            raise SourceError(
                f"{self.name}: the broker refuses the user or the password; give them in the URL "
                "or the environment"
            ) from None
        refuse_untrusted(self.name, reason)
        if isinstance(error, SecureConnWantedError):
            raise SourceError(
                f"{self.name}: the URL says tls=true, and the broker does not ask for TLS; nothing "
                "was sent to it. Let the broker require TLS"
            ) from None
        if isinstance(error, APIError) and error.code in _REFUSED and error.code != _NOT_FOUND:
            raise SourceError(f"{self.name}: JetStream answers {error.description}") from error
        self.trouble = f"the broker is away: {reason}"

    async def _hear(self, error: Exception) -> None:
        """Note an error of the client, which would print it."""
        self.trouble = f"the broker is away: {error}"


def _takes(pattern: str, subject: str) -> bool:
    """Whether a subject fits: `*` stands for any word, `>` for all that follow.

    >>> _takes("rows.*", "rows.new"), _takes("rows.>", "rows"), _takes(">", "rows.new")
    (True, False, True)
    """
    wanted, words = pattern.split("."), subject.split(".")
    if wanted[-1] == ">" and len(words) >= len(wanted):
        wanted, words = wanted[:-1], words[: len(wanted) - 1]
    pairs = zip(wanted, words, strict=False)
    return len(wanted) == len(words) and all(a in ("*", b) for a, b in pairs)
