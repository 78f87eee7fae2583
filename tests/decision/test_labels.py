"""A label column is classes or numbers, as it looks or as it is said."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from driftquilt.decision.labels import Amounts, Labels, read_amount, read_target
from driftquilt.errors import InputError


def read(values: Any, task: str | None = None) -> Labels | Amounts:
    return read_target(pa.table({"y": values}), "y", task)


@pytest.mark.parametrize(
    ("values", "task"),
    [
        ([0, 1, 0], "classes"),
        ([1.0, 2.0, float("nan")], "classes"),
        (list(range(20)) * 3, "classes"),
        (list(range(21)) * 30, "numbers"),
        ([0.5, 1.0, 0.5], "numbers"),
        ([-3.5, 1e300, None], "numbers"),
        ([Decimal("1.50"), Decimal("2.00")], "numbers"),
        ([True, False, None], "classes"),
        (["yes", "no"], "classes"),
        ([f"{k}.50" for k in range(40)] + ["n/a", None], "numbers"),
        ([f"${k},000" for k in range(1, 40)], "numbers"),
        ([f"{k:02}" for k in range(1, 10)] * 9, "classes"),
        ([f"name {k % 30}" for k in range(200)], "classes"),
        (pa.array([f"{k}.5" for k in range(40)]).dictionary_encode(), "numbers"),
    ],
)
def test_a_column_is_read_as_what_it_looks_like(values: Any, task: str) -> None:
    assert read(values).task == task


def test_what_is_said_overrides_what_it_looks_like() -> None:
    assert isinstance(read([1, 2, 3, 1], "numbers"), Amounts)
    assert isinstance(read(list(range(30)) * 30, "classes"), Labels)
    with pytest.raises(InputError, match="did you mean 'numbers'"):
        read([1, 2], "number")


def test_what_is_no_number_is_no_label() -> None:
    amounts = read(["12.50", "n/a", None, "€ 3", "-1,250.25", "", "inf"], "numbers")
    assert isinstance(amounts, Amounts)
    assert amounts.known.tolist() == [True, False, False, True, True, False, False]
    assert amounts.values[amounts.known].tolist() == [12.5, 3.0, -1250.25]
    assert amounts.odd == ("n/a", "inf")
    of_floats = read([1.5, float("inf"), float("nan"), 2.5])
    assert of_floats.known.tolist() == [True, False, False, True]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["a", "b"], "no number in 2 rows, but text such as 'a'"),
        ([2.5, 2.5, None], "2.5 in every row"),
        (pa.array([1, 2], pa.date32()), "date32"),
        ([None, None], "null|no number"),
    ],
)
def test_numbers_that_are_none_say_so(values: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read(values, "numbers")


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("12", 12), (" 12.5 ", 12.5), (".5", 0.5), ("-.5", -0.5), ("1e3", 1000), ("$9.99", 9.99),
        ("-$9.99", -9.99), ("$-9.99", -9.99), ("1,234,567.5", 1234567.5), ("12 EUR", 12),
        ("0.50 €", 0.5), ("+7", 7),
        ("007", None), ("1,23", None), ("12,50", None), ("1-2", None), ("", None), ("-", None),
        (".", None), ("$", None), ("EUR", None), ("nan", None), ("2024-05-01", None),
        ("5 apples", None),
    ],
)  # fmt: skip
def test_an_amount_is_read_with_its_currency(text: str, number: float | None) -> None:
    np.testing.assert_equal(read_amount(text), np.nan if number is None else number)


@pytest.mark.parametrize(
    "kind", [pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())]
)
def test_blanks_around_a_label_are_not_part_of_it(kind: pa.DataType) -> None:
    texts = ["yes", "yes ", "\tno", "no", None, "  ", "", "new york"]
    labels = read(pa.chunked_array([texts[:3], texts[3:]]).cast(kind))
    assert isinstance(labels, Labels)
    assert labels.classes.tolist() == ["new york", "no", "yes"]
    assert labels.codes.tolist() == [2, 2, 1, 1, -1, -1, -1, 0]
    with pytest.raises(InputError, match="missing in all 2 rows"):
        read([" ", ""], "classes")
