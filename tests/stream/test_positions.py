"""Positions of a source and rows that wait: stored in one step with the rows, or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from driftquilt.errors import InputError
from driftquilt.store import DiskStore, MemoryStore
from driftquilt.stream import QuiltStream
from driftquilt.stream.events import RowForgotten
from tests.stream.streams import as_stored, hasty, rows, start, stored_rows

ROWS = rows(400)
NO_TRAINING: dict[str, Any] = {"detector": "never", "n_wait": 1000}


def crash(stream: QuiltStream) -> None:
    """Leave the store as a kill would."""
    stream.store.close()


def test_a_row_with_a_position_is_safe_after_a_flush_and_both_are_lost_before_it(
    tmp_path: Path,
) -> None:
    stream = start(hasty(tmp_path / "s"), **NO_TRAINING)
    for number, (x, y) in enumerate(ROWS[:20], start=1):
        stream.learn_one(x, y, position=number)
        if number == 12:
            assert stream.flush() == 12
    assert (stream.n_rows, stream.n_durable, stream.position) == (20, 12, 20)
    crash(stream)
    with QuiltStream.open(hasty(tmp_path / "s")) as again:
        assert (again.n_rows, again.position) == (12, 12)
        assert stored_rows(again.store) == as_stored(ROWS[:12])


def test_a_segment_that_ends_between_two_flushes_takes_its_position_along(tmp_path: Path) -> None:
    settings = {**NO_TRAINING, "detector": {"kind": "every_rows", "n_rows": 35}}
    stream = start(hasty(tmp_path / "s"), **settings)
    for number, (x, y) in enumerate(ROWS[:50], start=1):
        stream.learn_one(x, y, position={"at": number})
    crash(stream)
    with QuiltStream.open(hasty(tmp_path / "s")) as again:
        assert (again.n_rows, again.position) == (again.store.n_appended, {"at": again.n_rows})
        assert 0 < again.n_rows < 50


def test_a_row_without_a_position_takes_those_before_it_along(tmp_path: Path) -> None:
    stream = start(hasty(tmp_path / "s"), **NO_TRAINING)
    stream.learn_one(*ROWS[0], position=1)
    stream.learn_one(*ROWS[1])
    crash(stream)
    with QuiltStream.open(hasty(tmp_path / "s")) as again:
        assert (again.n_rows, again.position) == (2, 1)


def test_a_flush_may_move_the_position_alone() -> None:
    stream = start(**NO_TRAINING)
    stream.flush(position=7)
    assert (stream.position, stream.store.state["position"]) == (7, 7)


def test_a_position_that_is_no_json_changes_nothing() -> None:
    stream = start(**NO_TRAINING)
    with pytest.raises(InputError, match="'position'"):
        stream.learn_one(*ROWS[0], position={1, 2})
    with pytest.raises(InputError, match="'position'"):
        stream.expect_label(ROWS[0][0], "one", position={1, 2})
    assert (stream.n_rows, stream.n_waiting, stream.position) == (0, 0, None)


def test_a_row_that_is_expected_survives_a_crash_until_its_label_comes(tmp_path: Path) -> None:
    stream = start(hasty(tmp_path / "s"), **NO_TRAINING)
    for number, (x, _) in enumerate(ROWS[:5]):
        stream.expect_label(x, number)
    stream.learn_one(y=ROWS[3][1], key=3)
    crash(stream)
    again = QuiltStream.open(hasty(tmp_path / "s"))
    assert (again.n_rows, again.n_waiting) == (1, 4)
    again.learn_one(y=ROWS[0][1], key=0)
    again.forget(1)
    crash(again)
    with QuiltStream.open(hasty(tmp_path / "s")) as third:
        assert third.n_waiting == 2
        for number in (2, 4):
            third.learn_one(y=ROWS[number][1], key=number)
        assert stored_rows(third.store) == as_stored([ROWS[n] for n in (3, 0, 2, 4)])


def test_a_label_and_its_row_go_together_or_not_at_all(tmp_path: Path) -> None:
    stream = start(hasty(tmp_path / "s"), **NO_TRAINING)
    stream.expect_label(ROWS[0][0], "one", position=1)
    stream.flush()
    stream.learn_one(y="yes", key="one", position=2)
    assert stream.n_waiting == 0
    crash(stream)
    with QuiltStream.open(hasty(tmp_path / "s")) as again:
        assert (again.n_rows, again.n_waiting, again.position) == (0, 1, 1)


def test_a_predicted_row_survives_a_crash_too(tmp_path: Path) -> None:
    stream = start(DiskStore(tmp_path / "s"), **NO_TRAINING)
    stream.predict_one(ROWS[0][0], key="one")
    stream.predict_one(ROWS[1][0], key="two")
    stream.learn_one(y="yes", key="two")
    crash(stream)
    with QuiltStream.open(hasty(tmp_path / "s")) as again:
        assert (again.n_rows, again.n_waiting) == (1, 1)
        again.learn_one(y="yes", key="one")


def test_no_more_is_kept_for_rows_that_wait_than_waited_at_once() -> None:
    stream = start(store := MemoryStore(), max_waiting=3, **NO_TRAINING)
    for number, (x, y) in enumerate(ROWS[:50]):
        stream.expect_label(x, number)
        if number % 2:
            stream.learn_one(y=y, key=number)
    assert stream.n_waiting == 2
    assert len(store.pending()) == 2
    assert sum(isinstance(event, RowForgotten) for event in stream.events) == 23
