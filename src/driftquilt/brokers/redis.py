"""Messages of a Redis stream (extra: redis).

An entry has its message in the field `body`; what is published has its key beside it. A position
is the id of an entry and its number since the stream began: `["1526919030474-55", 812]`. Redis
does not say what it has trimmed, but it counts what was ever added; so entries that were trimmed
before they were read are noticed: the last one read is gone, and more have gone than were read. If
fewer have gone than were read, or were ever added, it is not the stream that was read: that one
was lost and recreated. All this takes Redis 7.

Publishing adds all notes in one transaction. Redis does not look at ids: what is published again
after a lost answer may be there twice.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from typing import Any

from driftquilt.brokers.address import Address, refuse_untrusted
from driftquilt.brokers.broker import Message, Note, Portion, Position
from driftquilt.errors import MissingExtraError, SourceError

try:
    import redis
    from redis.backoff import NoBackoff
    from redis.retry import Retry
except ModuleNotFoundError as error:
    raise MissingExtraError("redis", extra="redis") from error

__all__ = ["RedisSource"]

_TIMEOUT = 10.0  # seconds for an answer, on top of what a read waits for
_LONGEST = 5.0  # seconds to wait at a time
_FIRST = "0-0"
_RECREATED = "the stream has been lost and recreated since"


class RedisSource:
    """`Source` over one stream."""

    def __init__(self, address: Address) -> None:
        self._stream, database = address.options["stream"], address.path[0]
        self.name = f"redis:{database}/{self._stream}"
        self.trouble: str | None = None
        self._portion = Portion()
        host, _, port = address.hosts[0].rpartition(":")
        tls: dict[str, Any] = {"ssl_ca_certs": address.options.get("ca")} if address.tls else {}
        self._client = redis.Redis(
            host=host.strip("[]"),
            port=int(port),
            db=int(database),
            username=address.user,
            password=address.password,
            ssl=address.tls,
            protocol=2,  # a later one gives other shapes
            socket_timeout=_LONGEST + _TIMEOUT,
            socket_connect_timeout=_LONGEST,
            retry=Retry(NoBackoff(), 0),  # the caller comes again
            **tls,
        )

    def __repr__(self) -> str:
        return f"<RedisSource {self.name}>"

    def read(self, after: Position | None, most: int, wait: float) -> Sequence[Message]:
        last, n_before = (_FIRST, None) if after is None else after
        end = time.monotonic() + wait
        with self._waiting(end):
            found = self._after(last, n_before, self._portion.of(most))
            left = min(end - time.monotonic(), _LONGEST)
            if not found and left > 0:
                self._client.xread({self._stream: last}, count=1, block=max(1, int(left * 1000)))
                found = self._after(last, n_before, self._portion.of(most))
            self._portion.learn([message.body for message in found])
            return found
        return []

    def publish(self, notes: Sequence[Note], wait: float) -> bool:
        with self._waiting(time.monotonic() + wait), self._client.pipeline() as pipe:
            for note in notes:
                fields: dict[Any, Any] = {"body": note.body}
                pipe.xadd(self._stream, fields if note.key is None else fields | {"key": note.key})
            pipe.execute()
            self.trouble = None
            return True
        return False

    def close(self) -> None:
        self._client.close()

    def _after(self, last: str, n_before: int | None, most: int) -> list[Message]:
        """Return what stands after an entry now, having seen that nothing between them is gone."""
        with self._client.pipeline() as pipe:
            pipe.xinfo_stream(self._stream)
            pipe.xrange(self._stream, last, last)
            pipe.xread({self._stream: last}, count=most)
            info, same, read = pipe.execute(raise_on_error=False)
        if isinstance(info, redis.ResponseError) and "no such key" in str(info):
            info = None
        for answer in (info, same, read):
            if isinstance(answer, Exception):
                raise answer
        n_before = self._expect_place(info, last, n_before, still_there=bool(same))
        self.trouble = None if info else f"there is no stream {self._stream!r} yet"
        entries: Any = read[0][1] if read else []
        return [
            Message([entry.decode(), n_before + number], fields.get(b"body", b""))
            for number, (entry, fields) in enumerate(entries, start=1)
        ]

    def _expect_place(
        self, info: Any, last: str, n_before: int | None, *, still_there: bool
    ) -> int:
        """How many entries came up to the last one read; refuses a place that is gone."""
        if info is None:
            if n_before is None:
                return 0
            raise self._gone(last, "the stream is not there any more")
        if "entries-added" not in info:
            raise SourceError(f"{self.name}: this Redis is older than 7; use a newer one")
        if n_before is None:
            return int(info["entries-added"] - info["length"])
        why = _loss(info, last, n_before, still_there=still_there)
        if why is not None:
            raise self._gone(last, why)
        return n_before

    def _gone(self, last: str, why: str) -> SourceError:
        return SourceError(
            f"{self.name}: it was read up to entry {last}, but {why}; rows are missing. Begin a "
            "stream in a new store to go on with what is there, and let Redis keep more entries"
        )

    @contextlib.contextmanager
    def _waiting(self, end: float) -> Iterator[None]:
        """Wait until the end if the broker is away, and note why."""
        try:
            yield
        except (redis.AuthenticationError, redis.exceptions.NoPermissionError) as error:
            raise SourceError(
                f"{self.name}: the broker refuses the user or the password "
                f"({type(error).__name__}); give them in the URL or the environment"
            ) from None
        except (redis.ConnectionError, redis.TimeoutError, redis.ReadOnlyError) as error:
            refuse_untrusted(self.name, str(error))
            self.trouble = f"the broker is away: {error}"
            time.sleep(max(0.0, end - time.monotonic()))
        except redis.InvalidResponse as error:
            raise SourceError(f"{self.name}: the server is not Redis: {error}") from error
        except redis.RedisError as error:
            raise SourceError(f"{self.name}: the broker answers {error}") from error


def _loss(info: Any, last: str, n_before: int, *, still_there: bool) -> str | None:
    """Why entries behind the last one read are missing; None if they are all there."""
    at = _number(last)
    n_gone = info["entries-added"] - info["length"]
    if _number(info["last-generated-id"]) < at:
        return "the stream ends before it, as after a loss of data"
    if info["entries-added"] < n_before:
        return _RECREATED
    if still_there:
        return None
    if n_gone > n_before:
        return f"{n_gone - n_before} entries behind it have been trimmed"
    first = info["first-entry"]
    if first is None or _number(first[0]) > at:
        is_same = n_gone == n_before  # all that were read are gone, and no more
    else:
        is_same = _number(info["max-deleted-entry-id"]) >= at  # it was deleted by itself
    return None if is_same else _RECREATED


def _number(entry: str | bytes) -> tuple[int, int]:
    time_part, _, turn = (entry if isinstance(entry, str) else entry.decode()).partition("-")
    return int(time_part), int(turn)
