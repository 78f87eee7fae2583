"""Messages name what was meant."""

from __future__ import annotations

import pytest

from driftquilt.data.names import check_names, natural, suggest
from driftquilt.errors import InputError


def test_the_closest_name_is_suggested_whatever_its_case() -> None:
    assert suggest("Lable", ["age", "label"]).startswith("did you mean 'label'? there are 'age'")
    assert suggest("CHURN", ["age", "churn"]).startswith("did you mean 'churn'?")


def test_nothing_is_suggested_where_nothing_is_near() -> None:
    assert suggest("qqq", ["age"]) == "there are 'age'"
    assert suggest("qqq", []) == "there are none"


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
def test_a_name_that_is_no_slip_for_another_is_not_taken_for_one(name: str, known: str) -> None:
    assert suggest(name, [known]) == f"there are {known!r}"


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
def test_a_slip_is_seen(name: str, known: str) -> None:
    others = ["age", "city", "x2", "notes.csv"]
    assert suggest(name, [*others, known]).startswith(f"did you mean {known!r}? ")


def test_numbers_in_names_sort_by_value() -> None:
    names = ["file10", "file2", "file1b", "file1", "2024-12", "2024-2", "a"]
    assert sorted(names, key=natural) == [
        "2024-2", "2024-12", "a", "file1", "file1b", "file2", "file10",
    ]  # fmt: skip


def test_a_column_without_a_name_is_called_after_its_position() -> None:
    assert check_names("a.csv", ["x", "", "y", ""]) == ["x", "column_2", "y", "column_4"]


def test_columns_of_the_same_name_are_refused() -> None:
    with pytest.raises(InputError, match=r"a.csv has several columns named 'x', 'y'; rename"):
        check_names("a.csv", ["x", "y", "x", "y", "z"])
    with pytest.raises(InputError, match="several columns named 'column_2'"):
        check_names("a.csv", ["column_2", ""])
