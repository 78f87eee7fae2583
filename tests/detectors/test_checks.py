"""Settings, errors and rows are checked before anything is changed by them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from driftquilt.detectors.base import FLAG, Field, check_error, check_row, choice, count, number
from driftquilt.errors import InputError


@pytest.mark.parametrize("value", [math.nan, math.inf, "1", None, True, 10**400, [], {}, -0.1, 1.1])
def test_what_is_no_share_is_refused(value: Any) -> None:
    assert not number(0, 1, "a share").accepts(value)


@pytest.mark.parametrize("value", [math.nan, math.inf, 1.5, "1", None, True, 2**60, -1, 10**400])
def test_what_is_no_count_is_refused(value: Any) -> None:
    assert not count().accepts(value)


@pytest.mark.parametrize("value", [0, 3, 3.0, np.int64(3), np.float64(3)])
def test_a_whole_number_is_a_count_whatever_its_type(value: Any) -> None:
    assert count().accepts(value)
    assert type(count().read(value)) is int


@pytest.mark.parametrize(
    ("field", "good", "bad"),
    [
        (number(0, 1, "a number between 0 and 1", inner=True), 0.5, [0, 1]),
        (choice("up", "down"), "up", [["up"], "across"]),
        (FLAG, True, [1, None]),
    ],
)
def test_inner_numbers_words_and_flags(field: Field, good: Any, bad: list[Any]) -> None:
    assert field.accepts(good)
    assert not any(field.accepts(value) for value in bad)


@pytest.mark.parametrize("value", [1, 1.0, True, np.True_, np.int8(1), np.float32(1)])
def test_an_error_may_be_any_kind_of_one(value: Any) -> None:
    assert check_error(value) == 1.0
    assert type(check_error(value)) is float


@pytest.mark.parametrize("value", ["1", None, 0.5, -1, 2, math.nan, [1], np.array([1.0])])
def test_what_is_no_error_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match="watches errors and got"):
        check_error(value)


@pytest.mark.parametrize(
    ("row", "width", "reason"),
    [
        ([0.0, math.nan], None, "number 1 .* nan"),
        ([1e300, 0.0], None, r"number 0 .* 1e\+300"),
        ([1.0, 2.0], 3, "2 numbers.* 3"),
        (["a", "b"], None, "vector of numbers"),
        ([1.0, [2.0, 3.0]], None, "not a row of numbers"),
    ],
)
def test_a_row_that_cannot_be_used_is_refused(row: Any, width: int | None, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        check_row(row, width)
