"""Names of columns and files."""

from __future__ import annotations

import pytest

from driftquilt.data.names import check_names, natural
from driftquilt.errors import InputError


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
