"""Counts, lists of names, suggestions and JSON values."""

from __future__ import annotations

import datetime as dt
import json
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from driftquilt.text import closest, json_safe, listing, plural, suggest


def test_only_one_thing_is_singular() -> None:
    assert [plural(n, "row") for n in (0, 1, 3000)] == ["0 rows", "1 row", "3,000 rows"]


def test_a_long_list_says_how_many_more_there_are() -> None:
    names = [f"x{j}" for j in range(20)]
    assert listing(names[:2]) == "'x0', 'x1'"
    assert listing(names).endswith("'x7' and 12 more")
    assert listing(names, limit=None).endswith("'x19'")
    assert len(listing(["x" * 1_000])) < 100


def test_the_closest_names_come_before_those_that_exist() -> None:
    assert suggest("Lable", ["age", "label"]) == "did you mean 'label'? There are 'age', 'label'"
    assert suggest("CHURN", ["age", "churn"]).startswith("did you mean 'churn'?")
    assert suggest("monht", ["month", "months"]).startswith("did you mean 'month' or 'months'?")
    assert suggest("qqq", ["age"]) == "there are 'age'"
    assert suggest("qqq", []) == "there are none"


@pytest.mark.parametrize("value", [3, None, ("a", 1)])
def test_what_is_not_text_can_be_looked_for_too(value: Any) -> None:
    assert suggest(value, ["age"]).startswith("there are")


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("outcome", "income"),
        ("x11", "x12"),
        ("2024-13", "2024-12"),
        ("june.csv", "july.csv"),
        ("day", "pay_day"),
        ("m/h", "km/s"),
    ],
)
def test_another_name_is_not_taken_for_a_misspelling(name: str, known: str) -> None:
    assert closest(name, [known]) == []


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("prcie", "price"),
        ("repayed", "repaid"),
        ("temp_1", "temp1"),
        ("jully.csv", "july.csv"),
        ("july.CSV", "july.csv"),
        ("user_id", "userid"),
        ("segments", "segment"),
    ],
)
def test_a_misspelling_is_recognised(name: str, known: str) -> None:
    others = ["age", "city", "x2", "notes.csv"]
    assert closest(name, [*others, known]) == [known]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (math.inf, None),
        (np.array([[1.0, math.nan]]), [[1.0, None]]),
        (np.datetime64("2024-06-01T00:00:00.000000001"), "2024-06-01T00:00:00.000000001"),
        (np.array(["2024-06-01"], "M8[ns]"), ["2024-06-01T00:00:00.000000000"]),
        (dt.datetime(2024, 6, 1, 12), "2024-06-01 12:00:00"),
        (Decimal("1.5"), "1.5"),
        ({("a", 1): {1}}, {"('a', 1)": [1]}),
    ],
)
def test_any_value_becomes_strict_json(value: Any, expected: Any) -> None:
    assert json_safe(value) == expected
    assert json.loads(json.dumps(json_safe(value), allow_nan=False)) == expected
