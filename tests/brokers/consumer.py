"""A warm process that forks consumers to be killed, in the manner of `tests.store.crash.zygote`.

A consumer goes on with the stream in its folder, from the broker whose URL stands in the file
beside it, and says before every read how many rows are durable.

    python -m tests.brokers.consumer
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

from driftquilt.brokers.broker import Message, Note, Source
from driftquilt.brokers.connect import open_source
from driftquilt.brokers.consume import consume
from driftquilt.store.disk import DiskStore
from driftquilt.stream.runner import QuiltStream
from tests.store.crash import zygote

#: Segments end in the middle of batches, and there is one class, so that nothing is trained.
SETTINGS: dict[str, Any] = {
    "detector": {"kind": "every_rows", "n_rows": 701},
    "checkpoint_rows": 333,
}


class Speaking:
    """A source that says how many rows are durable before it reads on; at the last, it stops."""

    def __init__(self, source: Source, stream: QuiltStream, stop: threading.Event) -> None:
        self._source, self._stream, self._stop = source, stream, stop
        self.name, self.trouble = source.name, None

    def read(self, after: Any, most: int, wait: float) -> Sequence[Message]:
        zygote.say(self._stream.n_durable)
        messages = self._source.read(after, most, wait)
        if messages and messages[-1].body == b"last":
            self._stop.set()
        return messages

    def publish(self, notes: Sequence[Note], wait: float) -> bool:
        return self._source.publish(notes, wait)

    def close(self) -> None:
        self._source.close()


def go_on(folder: Path) -> QuiltStream:
    """The stream of the folder; a kill may have come before there was one."""
    store = DiskStore(folder)
    return QuiltStream.open(store) if store.state else QuiltStream(store=store, **SETTINGS)


def work(folder: Path, rng: Random) -> None:  # noqa: ARG001
    """Consume what is left."""
    url = folder.with_suffix(".url").read_text()
    stop = threading.Event()
    with go_on(folder) as stream:
        source = Speaking(open_source(url), stream, stop)
        consume(stream, source, stop=stop, most=200)
        source.close()
    zygote.say("done")


def main() -> None:
    warm = QuiltStream(**SETTINGS)  # all is imported and compiled
    for number in range(3):
        warm.learn_one({"number": number}, 1)
    zygote.work = work
    zygote.main()


if __name__ == "__main__":
    main()
