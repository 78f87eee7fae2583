"""Consumers killed at any moment: each message of a broker counts once, and in order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from driftquilt.store.disk import DiskStore
from driftquilt.stream.runner import QuiltStream
from tests.brokers.brokers import KINDS, running
from tests.killing import Zygote
from tests.stream.streams import stored_rows

LATE = 1_000  # messages between a row and its label: more than are taken together


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


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    with Zygote("tests.brokers.consumer") as started:
        yield started


def kill_often(zygote: Zygote, kind: str, tmp_path: Path, n_messages: int, n_kills: int) -> None:
    bodies, learned = messages(n_messages)
    rng, folder, n_durable = Random(n_kills), tmp_path / "store", 0  # noqa: S311
    n_reads = n_messages // 200 // (n_kills + 1)
    with running(kind, tmp_path / "broker") as broker:
        broker.send([*bodies, b"last"])
        folder.with_suffix(".url").write_text(broker.url)
        for _ in range(n_kills):
            n_words, seconds = rng.randint(1, max(2, 2 * n_reads - 2)), rng.uniform(0, 0.03)
            said, _ = zygote.kill(folder, 0, n_words=n_words, seconds=seconds)
            with DiskStore(folder) as store:
                assert max(int(said[-1]), n_durable) <= store.n_appended
                n_durable = store.n_appended
                assert _numbers(store) == learned[:n_durable]
        _, done = zygote.kill(folder, 0, n_words=n_messages, seconds=0)
        assert done
    with QuiltStream.open(folder) as stream:
        assert _numbers(stream.store) == learned
        n_asked = sum(b'"row"' in body and b'"id"' in body for body in bodies)
        assert stream.n_waiting == n_asked - sum(number % 7 == 0 for number in learned)
    assert 0 < n_durable < len(learned)  # there was something to lose


def _numbers(store: Any) -> list[int]:
    return [int(row["number"]) for row in stored_rows(store)]


@pytest.mark.parametrize("kind", KINDS)
def test_consumers_killed_three_times_take_each_message_once(
    zygote: Zygote, kind: str, tmp_path: Path
) -> None:
    kill_often(zygote, kind, tmp_path, 6_000, 3)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("kind", KINDS)
def test_consumers_killed_twenty_times_take_each_of_100_000_messages_once(
    zygote: Zygote, kind: str, tmp_path: Path
) -> None:
    kill_often(zygote, kind, tmp_path, 100_000, 20)
