"""Columns that come and go and classes that come late are told, and a crash changes nothing."""

from __future__ import annotations

import shutil
from pathlib import Path
from random import Random
from typing import Any

import pytest

from driftquilt.stream import QuiltStream
from driftquilt.stream.events import (
    ClassAppeared,
    ColumnAppeared,
    ColumnVanished,
    Event,
    ModelPromoted,
    SegmentSealed,
)
from driftquilt.stream.settings import LET_ALL_THROUGH
from tests.stream.streams import LabelledRow, hasty, learn, left, left_in, start

SETTINGS: dict[str, Any] = {
    "detector": {"kind": "every_rows", "n_rows": 60},
    "guard": LET_ALL_THROUGH,
    "n_wait": 20,
    "refresh": None,
}
N_ROWS = 250
#: First and last row that has a column, counted from 0.
SPANS = {"a": (0, 249), "early": (0, 80), "soon": (10, 249), "z": (70, 130), "late": (70, 249)}
TOLD: list[Event] = [
    ColumnAppeared(71, "late"),
    ColumnAppeared(71, "z"),
    ClassAppeared(101, "maybe"),
    ColumnVanished(180, "early"),
    ColumnVanished(240, "z"),
]


def made() -> list[LabelledRow]:
    rng = Random(3)  # noqa: S311
    some = []
    for row in range(N_ROWS):
        x: dict[str, Any] = {
            name: rng.random() if first <= row <= last else None
            for name, (first, last) in SPANS.items()
        }
        y = "maybe" if row >= 100 and row % 9 == 1 else ["no", "yes"][x["a"] > 0.5]
        some.append((x, "maybe" if row == 100 else y))
    return some


ROWS = made()


def news(events: Any) -> list[Event]:
    return [e for e in events if isinstance(e, ColumnAppeared | ColumnVanished | ClassAppeared)]


def test_what_comes_and_goes_is_told_where_it_does() -> None:
    stream = start(**SETTINGS)
    happened = [event for x, y in ROWS for event in stream.learn_one(x, y)]
    assert tuple(happened) == stream.events
    assert news(happened) == TOLD


def test_before_the_first_model_nothing_appears() -> None:
    stream = start(**SETTINGS)
    first = next(row for row, (x, y) in enumerate(ROWS, 1) for e in stream.learn_one(x, y))
    assert isinstance(stream.events[-1], ModelPromoted)
    assert first == SETTINGS["n_wait"]
    assert news(stream.events) == []


def test_a_vanished_column_is_told_right_after_the_segment() -> None:
    kinds = [type(event) for event in learn(start(**SETTINGS), ROWS).events]
    for at, kind in enumerate(kinds):
        assert kind is not ColumnVanished or kinds[at - 1] is SegmentSealed


@pytest.mark.parametrize("size", [7, 64, 250])
def test_batches_bring_the_same_news(size: int) -> None:
    stream = start(**SETTINGS)
    for first in range(0, N_ROWS, size):
        batch = ROWS[first : first + size]
        stream.learn_many([x for x, _ in batch], [y for _, y in batch])
    assert news(stream.events) == TOLD


@pytest.mark.parametrize("checkpoint_rows", [10, 5_000])
def test_crashes_around_every_event_bring_the_same_news(
    tmp_path: Path, checkpoint_rows: int
) -> None:
    whole = learn(start(**SETTINGS), ROWS)
    folder, cuts = tmp_path / "0", sorted({e.row + d for e in whole.events for d in (-1, 0)})
    stream = start(hasty(folder), checkpoint_rows=checkpoint_rows, **SETTINGS)
    for number, row in enumerate([cut for cut in cuts if cut < N_ROWS], 1):
        learn(stream, ROWS[stream.n_rows : row])
        told, copied = stream.events, tmp_path / str(number)
        shutil.copytree(folder, copied)  # what a kill leaves
        stream.store.close()
        folder, stream = copied, QuiltStream.open(hasty(copied))
        assert stream.events == told
    learn(stream, ROWS[stream.n_rows :]).close()
    with hasty(folder) as store:
        assert left_in(store) == left(whole)


def test_a_prediction_brings_no_news() -> None:
    stream = learn(start(**SETTINGS), ROWS[:40])
    stream.predict_one({"a": 0.5, "never": 1.0})
    stream.predict_many([{"a": 0.5, "never": 1.0}])
    assert stream.learn_one({"a": 0.5, "never": None}, "yes") == []
    assert stream.learn_one({"a": 0.5, "never": 1.0}, "yes") == [ColumnAppeared(42, "never")]
    assert stream.learn_one({"a": 0.5, "never": 1.0}, "yes") == []
