"""A label may come after its prediction, by a key; what cannot be learned waits or is told."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driftquilt.errors import InputError
from driftquilt.store.pending import Key
from driftquilt.stream import QuiltStream
from driftquilt.stream.events import DriftFound, RowForgotten
from tests.stream.streams import as_stored, hasty, learn, left, rows, start, stored_rows

ROWS = rows(60)


def begun(store: Any = None, **settings: Any) -> QuiltStream:
    return learn(start(store, **settings), ROWS[:10])


def test_late_labels_teach_what_timely_ones_do() -> None:
    timely, late = start(), start()
    learn(timely, ROWS)
    for number, (x, _) in enumerate(ROWS):
        late.predict_one(x, key=number)
    assert late.n_waiting == len(ROWS)
    for number, (_, y) in enumerate(ROWS):
        late.learn_one(y=y, key=number)
    assert late.n_waiting == 0
    assert left(late) == left(timely)


def test_labels_come_in_any_order() -> None:
    stream = begun()
    for number, (x, _) in enumerate(ROWS[10:20]):
        stream.predict_proba_one(x, key=f"row {number}")
    for number in reversed(range(10)):
        stream.learn_one(y=ROWS[10 + number][1], key=f"row {number}")
    expected = [*ROWS[:10], *reversed(ROWS[10:20])]
    assert stored_rows(stream.store) == as_stored(expected)


@pytest.mark.parametrize("key", ["never", 5, None])
def test_a_key_that_was_never_predicted_is_refused(key: Any) -> None:
    stream = begun()
    wrong = "no row waits under the key" if key is not None else "neither a row nor a key"
    with pytest.raises(InputError, match=wrong):
        stream.learn_one(y="yes", key=key)
    assert stream.n_rows == 10


def test_a_row_has_one_label() -> None:
    stream = begun()
    stream.predict_one(ROWS[10][0], key=1)
    stream.learn_one(y="yes", key=1)
    with pytest.raises(InputError, match="has its label already"):
        stream.learn_one(y="no", key=1)
    assert stream.n_rows == 11


def test_a_row_waits_under_one_key_and_a_refused_key_leaves_nothing() -> None:
    stream = begun()
    stream.predict_one(ROWS[10][0], key=1)
    with pytest.raises(InputError, match="waits for its label already"):
        stream.predict_one(ROWS[11][0], key=1)
    with pytest.raises(InputError, match="give a string or an int"):
        stream.predict_one(ROWS[11][0], key=1.5)  # type: ignore[arg-type]
    assert stream.n_waiting == 1
    with pytest.raises(InputError, match="a row and the key 1"):
        stream.learn_one(ROWS[10][0], "yes", key=1)
    stream.learn_one(y=ROWS[10][1], key=1)
    assert stored_rows(stream.store) == as_stored(ROWS[:11])


@pytest.mark.parametrize("bad", [None, math.nan, 1.5, 3, b"yes", "\ud800"])
def test_a_bad_label_leaves_the_row_waiting(bad: Any) -> None:
    stream = begun()
    stream.predict_one(ROWS[10][0], key=1)
    with pytest.raises(InputError, match="label"):
        stream.learn_one(y=bad, key=1)
    assert (stream.n_waiting, stream.n_rows) == (1, 10)
    stream.learn_one(y="no", key=1)
    assert (stream.n_waiting, stream.n_rows) == (0, 11)


def test_the_oldest_is_forgotten_behind_too_many_others_and_that_is_said() -> None:
    stream = begun(max_waiting=3)
    for number in range(5):
        stream.predict_one(ROWS[10 + number][0], key=number)
    assert stream.n_waiting == 3
    forgotten = [event for event in stream.events if isinstance(event, RowForgotten)]
    assert forgotten == [RowForgotten(10, 0), RowForgotten(10, 1)]
    with pytest.raises(InputError, match="was forgotten behind 3 others"):
        stream.learn_one(y="yes", key=0)
    assert stream.learn_one(y="yes", key=2) == forgotten


def test_forgotten_rows_neither_pile_up_nor_push_out_drifts() -> None:
    stream = begun(max_waiting=0)
    stream._engine.tell(DriftFound(10))
    for number in range(1_500):
        stream.predict_one(ROWS[10][0], key=number)
    assert len(stream.events) == 201
    assert stream.events[0] == DriftFound(10)
    assert len(stream.learn_one(*ROWS[10])) == 201


def test_numbers_of_events_do_not_depend_on_what_was_forgotten() -> None:
    stream = begun(max_waiting=0)
    first = stream._engine.counters.n_events
    stream.predict_one(ROWS[10][0], key=1)
    stream._engine.tell(DriftFound(10))
    forgotten, drift = stream.events[-2:]
    assert (forgotten.number, drift.number) == (0, first + 1)


def test_rows_that_waited_through_a_close_are_learned_once_whatever_comes_then(
    tmp_path: Path,
) -> None:
    with begun(store=tmp_path / "state") as stream:
        for key in ("a", "b", "c"):
            stream.predict_one(ROWS[10][0], key=key)
    opened = QuiltStream.open(tmp_path / "state")
    opened.learn_one(y=ROWS[10][1], key="a")
    opened.forget("b")
    opened.close(discard=True)  # as a crash would
    with QuiltStream.open(tmp_path / "state") as again:
        assert again.n_waiting == 1
        for key in ("a", "b"):
            with pytest.raises(InputError, match="no row waits"):
                again.learn_one(y=ROWS[10][1], key=key)
        again.learn_one(y=ROWS[10][1], key="c")
        assert again.n_rows == 12


def test_the_same_row_may_be_predicted_again_under_its_key() -> None:
    stream = begun()
    first = stream.predict_one(ROWS[10][0], key=1)
    assert stream.predict_one(dict(ROWS[10][0]), key=1) == first
    assert stream.n_waiting == 1
    stream.learn_one(y=ROWS[10][1], key=1)
    assert stored_rows(stream.store) == as_stored(ROWS[:11])


def test_a_row_whose_label_never_comes_can_be_forgotten() -> None:
    stream = begun()
    for number in range(3):
        stream.predict_one(ROWS[10 + number][0], key=number)
    stream.forget(np.int64(1))
    assert (stream.n_waiting, stream.n_rows, stream.events) == (2, 10, ())
    for wrong in (1, "0", None, 2.0):
        with pytest.raises(InputError, match="no row waits under the key"):
            stream.forget(wrong)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="was removed by forget"):
        stream.learn_one(y="yes", key=1)
    stream.learn_one(y=ROWS[12][1], key=2)
    assert stored_rows(stream.store) == as_stored([*ROWS[:10], ROWS[12]])


def test_waiting_rows_survive_closing_and_opening(tmp_path: Path) -> None:
    keys: list[Key] = [7, "7", "order", -1]
    stream = begun(hasty(tmp_path))
    for number, key in enumerate(keys):
        stream.predict_one(ROWS[10 + number][0], key=key)
    stream.close()
    with QuiltStream.open(hasty(tmp_path), wait=True) as again:
        assert again.n_waiting == 4
        for number, key in enumerate(keys):
            again.learn_one(y=ROWS[10 + number][1], key=key)
        assert stored_rows(again.store) == as_stored(ROWS[:14])
    with QuiltStream.open(hasty(tmp_path), wait=True) as last:
        assert last.n_waiting == 0


def test_a_prediction_without_a_label_teaches_nothing() -> None:
    asked, quiet = begun(), begun()
    for number in range(10, 30):
        asked.predict_one({**ROWS[number][0], "new": 5.0}, key=number)
    for x, y in ROWS[10:40]:
        asked.learn_one(x, y)
        quiet.learn_one(x, y)
    assert asked.predict_proba_one(ROWS[50][0]) == quiet.predict_proba_one(ROWS[50][0])
