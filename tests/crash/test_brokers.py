"""Consumers killed at any moment: each message of a broker counts once, and in order."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from driftquilt.brokers import Message, Note, Source, consume, open_source
from driftquilt.store import DiskStore
from driftquilt.stream import QuiltStream
from tests.brokers.brokers import KINDS, running
from tests.crash.killing import Workers, report
from tests.stream.streams import stored_rows

LATE = 1_000  # messages between a row and its label: more than are taken together

#: Segments end in the middle of batches, and there is one class, so that nothing is trained.
SETTINGS: dict[str, Any] = {
    "detector": {"kind": "every_rows", "n_rows": 701},
    "checkpoint_rows": 333,
}


class Reporting:
    """A source that reports how many rows are durable before it reads; at the last, it stops."""

    def __init__(self, source: Source, stream: QuiltStream, stop: threading.Event) -> None:
        self._source, self._stream, self._stop = source, stream, stop
        self.name, self.trouble = source.name, None

    def read(self, after: Any, most: int, wait: float) -> Sequence[Message]:
        report(self._stream.n_durable)
        messages = self._source.read(after, most, wait)
        if messages and messages[-1].body == b"last":
            self._stop.set()
        return messages

    def publish(self, notes: Sequence[Note], wait: float) -> bool:
        return self._source.publish(notes, wait)

    def close(self) -> None:
        self._source.close()


def warm_up() -> None:
    stream = QuiltStream(**SETTINGS)
    for number in range(3):
        stream.learn_one({"number": number}, 1)


def work(folder: Path, rng: Random) -> None:  # noqa: ARG001
    """Consume what is left, from the broker whose URL stands beside the folder."""
    store, stop = DiskStore(folder), threading.Event()
    with QuiltStream.open(store) if store.state else QuiltStream(store=store, **SETTINGS) as stream:
        source = Reporting(open_source(folder.with_suffix(".url").read_text()), stream, stop)
        consume(stream, source, stop=stop, most=200)
        source.close()


def messages(n_messages: int) -> tuple[list[bytes], list[int]]:
    """Rows with labels, rows whose labels come late, and what cannot be read; rows as learned."""
    bodies: list[Any] = []
    learned, waiting = [], list[int]()
    while len(bodies) < n_messages:
        number = len(bodies)
        row = {"number": number}
        if number % 7 == 0:
            bodies.append({"id": f"order {number}", "row": row})
            waiting.append(number)
        elif number % 101 == 0:
            bodies.append({"row": {"number": "poison"}})
        elif waiting and number - waiting[0] > LATE:
            learned.append(waiting.pop(0))
            bodies.append({"id": f"order {learned[-1]}", "label": 1})
        else:
            learned.append(number)
            bodies.append({"row": row, "label": 1})
    return [json.dumps(body).encode() for body in bodies], learned


def kill_often(workers: Workers, kind: str, tmp_path: Path, n_messages: int, n_kills: int) -> None:
    bodies, learned = messages(n_messages)
    n_reads = n_messages // 200 // (n_kills + 1)
    with running(kind, tmp_path / "broker") as broker:
        broker.send([*bodies, b"last"])
        (tmp_path / "0.url").write_text(broker.url)
        n_durable = 0
        for killed in workers.kills(
            tmp_path, n_kills, seed=n_kills, reports=(1, max(2, 2 * n_reads - 2)), seconds=0.03
        ):
            with DiskStore(killed.folder) as store:
                assert max(int(killed.reports[-1]), n_durable) <= store.n_appended
                n_durable = store.n_appended
                assert _numbers(store) == learned[:n_durable]
        assert workers.kill(killed.folder, seed=0, n_reports=n_messages).done
    with QuiltStream.open(killed.folder) as stream:
        assert _numbers(stream.store) == learned
        n_asked = sum(b'"row"' in body and b'"id"' in body for body in bodies)
        assert stream.n_waiting == n_asked - sum(number % 7 == 0 for number in learned)
    assert 0 < n_durable < len(learned)  # there was something to lose


def _numbers(store: Any) -> list[int]:
    return [int(row["number"]) for row in stored_rows(store)]


@pytest.mark.parametrize("kind", KINDS)
def test_consumers_killed_three_times_take_each_message_once(
    workers: Workers, kind: str, tmp_path: Path
) -> None:
    kill_often(workers, kind, tmp_path, 6_000, 3)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", KINDS)
def test_consumers_killed_twenty_times_take_each_of_100_000_messages_once(
    workers: Workers, kind: str, tmp_path: Path
) -> None:
    kill_often(workers, kind, tmp_path, 100_000, 20)
