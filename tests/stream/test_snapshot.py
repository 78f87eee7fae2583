"""What answers at one moment says what the stream would, and does not move when it learns on."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest

from driftquilt import InputError
from driftquilt.data.frame import Frame, read_row
from tests.stream.streams import learn, rows, start

Rows = list[tuple[dict[str, Any], str]]


def numbers(n_rows: int, seed: int = 0) -> Rows:
    rng = Random(seed)  # noqa: S311
    made: Rows = []
    for _ in range(n_rows):
        x: dict[str, Any] = {"a": rng.random(), "b": rng.random()}
        made.append((x, "yes" if x["a"] > x["b"] else "no"))
    return made


def expect_same(stream: Any, asked: list[dict[str, Any]]) -> None:
    snapshot = stream.snapshot()
    found = snapshot.predict(Frame.of_rows([read_row(x) for x in asked]))
    for x, row in zip(asked, found, strict=True):
        truth = stream.predict_proba_one(x)
        assert list(truth) == list(snapshot.classes)
        assert row.tolist() == list(truth.values())  # to the bit


@pytest.mark.parametrize("n_asked", [1, 5, 1_500])  # one by one, and as a matrix
@pytest.mark.parametrize("make", [numbers, rows])
def test_snapshot_answers_are_the_streams(make: Any, n_asked: int) -> None:
    for n_learned in (1, 20, 200):  # before the first model, and with one
        expect_same(learn(start(), make(n_learned)), [x for x, _ in make(n_asked, seed=1)])


@pytest.mark.parametrize(
    "asked",
    [
        {"b": 0.3, "a": 0.1},
        {"a": None, "b": 0.4},
        {"b": 0.9},
        {"a": 1e30, "b": -1e30},
        {"a": 0.1, "b": 0.2, "new": 7.0},
        {"a": 0.1, "b": 0.2, "new": "text"},
    ],
)
def test_snapshot_answers_are_the_streams_for_odd_rows(asked: dict[str, Any]) -> None:
    expect_same(learn(start(), numbers(100)), [asked])


def test_class_that_the_model_does_not_know_is_told_as_the_stream_does() -> None:
    stream = learn(start(), numbers(100))
    stream.learn_one({"a": 0.5, "b": 0.5}, "maybe")
    expect_same(stream, [x for x, _ in numbers(3, seed=1)])


def test_snapshot_answers_stay_while_the_stream_learns() -> None:
    stream = learn(start(), numbers(100))
    snapshot, frame = stream.snapshot(), Frame.of_rows([{"a": 0.5, "b": 0.4}])
    before = snapshot.predict(frame).copy()
    learn(stream, [(x, "no") for x, _ in numbers(50, seed=2)])
    np.testing.assert_array_equal(snapshot.predict(frame), before)
    assert not np.allclose(stream.snapshot().predict(frame), before)


def test_frame_keeps_rows_as_they_are() -> None:
    given = [read_row(x) for x, _ in rows(60)]
    frame = Frame.of_rows(given)
    for at, row in enumerate(given):
        present = {name: value for name, value in frame.row(at).items() if value is not None}
        assert present == {name: value for name, value in row.items() if value is not None}


@pytest.mark.parametrize(
    "lists", [[[1.0, 2.0], [3.0, 4.0]], [[1.0, None], [None, 4.0]], [[1.0, "x"], [2.0, None]]]
)
def test_lists_and_dictionaries_make_the_same_frame(lists: list[list[Any]]) -> None:
    one = Frame.of_matrix(["a", "b"], lists)
    two = Frame.of_rows([dict(zip(["a", "b"], row, strict=True)) for row in lists])
    assert [one.row(at) for at in range(2)] == [two.row(at) for at in range(2)]


def test_text_that_looks_like_a_number_stays_text() -> None:
    assert Frame.of_matrix(["a"], [["3"], ["4"]]).texts == {"a": ["3", "4"]}


def test_numbers_and_text_in_one_column_are_refused() -> None:
    with pytest.raises(InputError, match="numbers and text"):
        Frame.of_matrix(["a"], [[3.0], ["x"]])
