"""A row of another feed is refused, wherever it comes in, and the stream goes on unharmed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from driftquilt import RiverQuilt
from driftquilt.data.frame import Row
from driftquilt.errors import InputError
from driftquilt.stream import QuiltStream
from driftquilt.stream.columns import refuse_stranger
from tests.stream.streams import hasty, learn, left, rows, start

ROWS = rows(80)
STRANGERS: list[dict[str, Any]] = [{"A": 1.0, "Town": "Rome"}, {"x": 1.0}, {"x": None}, {}]

WAYS: dict[str, Callable[[QuiltStream, dict[str, Any]], Any]] = {
    "learn_one": lambda stream, x: stream.learn_one(x, "yes"),
    "learn_many": lambda stream, x: stream.learn_many([x], ["yes"]),
    "predict_one": lambda stream, x: stream.predict_one(x, key=1),
    "predict_proba_one": lambda stream, x: stream.predict_proba_one(x),
    "predict_many": lambda stream, x: stream.predict_many([x]),
    "run": lambda stream, x: list(stream.run([(x, "yes")])),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_stranger_is_refused_and_leaves_the_stream_as_it_was(way: str) -> None:
    stream = learn(start(), ROWS[:40])
    before = left(stream)
    for stranger in STRANGERS:
        with pytest.raises(InputError, match="the rows so far had"):
            WAYS[way](stream, stranger)
    assert (left(stream), stream.n_waiting) == (before, 0)
    assert left(learn(stream, ROWS[40:])) == left(learn(start(), ROWS))


def test_one_column_in_common_is_enough_even_if_it_is_missing() -> None:
    stream = learn(start(), ROWS[:5])
    stream.learn_one({"city": None, "other": 1.0}, "yes")
    stream.learn_one({"other": 2.0}, "yes")
    assert stream.n_rows == 7


def test_before_the_first_column_anything_goes() -> None:
    stream = start()
    assert stream.predict_one({"anything": 1.0}) is None
    stream.learn_one({}, "yes")
    stream.learn_one({"a": None}, "no")
    stream.learn_one({"b": 1.0}, "no")
    with pytest.raises(InputError, match=r"the row is empty, .* 'b'; "):
        stream.learn_one({}, "yes")


def test_in_a_batch_a_row_may_go_with_the_rows_before_it() -> None:
    stream = start()
    stream.learn_many([{}, {"a": 1.0}, {"a": None, "b": 2.0}, {"b": 3.0}], list("yyny"))
    with pytest.raises(InputError, match="row 1: the row has the columns 'd'"):
        stream.learn_many([{"a": 1.0, "c": 2.0, "e": None}, {"d": 1.0}], ["y", "n"])
    with pytest.raises(InputError, match="row 1: the row has the columns 'e'"):
        stream.learn_many([{"a": 1.0, "c": 2.0, "e": None}, {"e": 1.0}], ["y", "n"])
    stream.learn_many([{"a": 1.0, "c": 2.0}, {"c": 1.0}], ["y", "n"])
    assert stream.n_rows == 6


def test_rows_that_are_predicted_do_not_go_with_each_other() -> None:
    stream = learn(start(), ROWS[:5])
    with pytest.raises(InputError, match="row 1: "):
        stream.predict_many([{"a": 1.0, "new": 1.0}, {"new": 1.0}])


def test_what_is_a_stranger_is_the_same_after_a_restart(tmp_path: Path) -> None:
    learn(start(hasty(tmp_path)), ROWS[:40]).close()
    with QuiltStream.open(hasty(tmp_path)) as stream:
        for stranger in STRANGERS:
            with pytest.raises(InputError, match="the rows so far had"):
                stream.learn_one(stranger, "yes")


def test_the_message_has_some_of_both_names_and_the_closest() -> None:
    known = {"Price", "visits", *(f"sensor {n}" for n in range(50))}
    names = ["price ", "VISITS", "q", *(f"zz{n}" for n in range(9))]
    row: Row = dict.fromkeys(names, 1.0)
    with pytest.raises(InputError) as caught:
        refuse_stranger(row, known)
    said = str(caught.value)
    assert "has the columns 'VISITS', 'price ', 'q', 'zz0' and 8 more" in said
    assert "they had 'Price', 'sensor 0', 'sensor 1', 'sensor 10' and 48 more" in said
    assert "(close: 'VISITS' and 'visits', 'price ' and 'Price')" in said
    with pytest.raises(InputError) as caught:
        refuse_stranger({"w" * 1000: 1.0}, {f"{n}" * 500 for n in range(9)})
    assert len(str(caught.value)) < 600
    assert "close" not in str(caught.value)


def test_rows_of_words_may_be_all_new_or_empty_under_river() -> None:
    model = RiverQuilt("never", n_wait=20, hidden_units=16, seed=0)
    texts = ["good film", "bad film", "", "excellent", "boring plot", "good", "never before"]
    for turn in range(60):
        words = dict.fromkeys(texts[turn % 7].split(), 1)
        model.predict_one(words)
        model.learn_one(words, turn % 7 in (0, 3, 5))
    assert model.predict_one({"good": 1}) is True
    assert model.predict_one({"unheard": 1}) in (True, False)
    assert model.stream.n_rows == 60
