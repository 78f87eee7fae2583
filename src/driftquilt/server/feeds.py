"""Streams of the service that a broker feeds, beside rows that come over HTTP.

Each feed reads and publishes on a thread of its own, and learns in the stream's turns, so that
rows from both sides are learned one after the other and stored with the position they came from. A
feed whose stream is not made yet waits for it; one that a broker refuses tries again after a
while, and says why meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Callable

from driftquilt.brokers import Source, Tally, consume, open_source
from driftquilt.errors import DriftquiltError
from driftquilt.server.problems import Problem
from driftquilt.server.registry import StreamRegistry
from driftquilt.server.schemas import Feed
from driftquilt.server.settings import ServeSettings
from driftquilt.server.worker import StreamWorker

__all__ = ["Feeds"]

_log = logging.getLogger("driftquilt.server")
_SOON, _LATER = 1.0, 15.0  # seconds


class Feeds:
    """All feeds of a service."""

    def __init__(self, registry: StreamRegistry, settings: ServeSettings) -> None:
        self._registry, self._settings = registry, settings
        self._feeds: list[_FeedThread] = []
        self._watching: asyncio.Task[None] | None = None

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Begin to read."""
        for name, url in self._settings.feeds.items():
            urls = (url, self._settings.answers.get(name))
            self._feeds.append(_FeedThread(self._registry, name, urls, loop))
            self._feeds[-1].start()
        self._watching = loop.create_task(self._watch())

    async def stop(self) -> None:
        """Let every feed finish its batch."""
        for feed in self._feeds:
            feed.stopping.set()
        for feed in self._feeds:
            await asyncio.get_running_loop().run_in_executor(None, feed.join)
        if self._watching is not None:
            self._watching.cancel()

    async def _watch(self) -> None:
        while self._feeds:
            for feed in self._feeds:
                feed.log_trouble()
            await asyncio.sleep(_SOON)


class _FeedThread(threading.Thread):
    """One stream's feed."""

    def __init__(
        self,
        registry: StreamRegistry,
        name: str,
        urls: tuple[str, str | None],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        super().__init__(name=f"driftquilt-feed-{name}", daemon=True)
        self._registry, self._stream, self._loop = registry, name, loop
        self._url, self._to = urls
        self.stopping = threading.Event()
        self._tally, self._counted = Tally(), ""  # the id of the stream that it counts for
        self._source: Source | None = None
        self._sink: Source | None = None  # where answers go
        self._why: str | None = None
        self._logged: str | None = None  # what was in the way when it was last looked at

    def run(self) -> None:
        while not self.stopping.is_set():
            try:
                worker = self._registry[self._stream]
                worker.feed = self.status
                self._consume(worker)
            except Problem as problem:  # no such stream yet, or it cannot learn at the moment
                self._wait(problem, _SOON)
            except DriftquiltError as error:
                self._wait(error, _LATER)
            except Exception as error:  # of a broker's client: the feed goes on nevertheless
                _log.exception("the feed failed", extra={"stream": self._stream})
                self._wait(error, _LATER)

    def status(self) -> Feed:
        """Return what came so far, and what is in the way."""
        source, tally = self._source, self._tally
        troubles = [one.trouble for one in (source, self._sink) if one is not None]
        return Feed(
            source=source.name if source else None,
            n_messages=tally.n_messages,
            n_late=tally.n_late,
            n_forgotten=tally.n_forgotten,
            n_refused=tally.n_refused,
            last_refused=tally.refused[-1].why if tally.refused else None,
            trouble=next(filter(None, [self._why, *troubles]), None),
        )

    def _consume(self, worker: StreamWorker) -> None:
        with contextlib.ExitStack() as opened:
            self._source = opened.enter_context(contextlib.closing(open_source(self._url)))
            if self._to is not None:
                self._sink = opened.enter_context(contextlib.closing(open_source(self._to)))
            self._why = None
            stream = worker.stream
            if stream.id != self._counted:
                self._tally, self._counted = Tally(), stream.id

            def look() -> None:
                if worker.closed or worker.stream is not stream:
                    raise Problem("stream-failed", "the stream was closed, or opened again")

            def turn(take: Callable[[], None]) -> None:
                def run() -> None:
                    look()
                    take()

                asyncio.run_coroutine_threadsafe(worker.turn(run), self._loop).result()

            consume(
                stream, self._source, stop=self.stopping, to=self._sink, tally=self._tally,
                turn=turn, learned=worker.ingestion.count, look=look,
            )  # fmt: skip

    def _wait(self, error: Exception, seconds: float) -> None:
        self._why = str(error)
        self.stopping.wait(seconds)

    def log_trouble(self) -> None:
        """Log what is in the way, when that has changed."""
        before, self._logged = self._logged, self.status().trouble
        if self._logged == before:
            return
        if self._logged is None:
            _log.info("the feed goes on", extra={"stream": self._stream})
        else:
            _log.warning("the feed waits: %s", self._logged, extra={"stream": self._stream})
