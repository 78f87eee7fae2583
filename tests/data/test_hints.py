"""Numbers and dates that stay text are noted, and nothing else is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from driftquilt.data import csv_files
from driftquilt.data.files import open_data
from driftquilt.data.source import TextFormat


def read(path: Path, **form: Any) -> tuple[Any, tuple[str, ...]]:
    with open_data([path], form=TextFormat(**form)) as data:
        return data.table, data.notes


def notes_of(path: Path, *values: str) -> tuple[str, ...]:
    path.write_text("\n".join(["day;n", *(f"{value};1" for value in values), ""]))
    return read(path)[1]


@pytest.mark.parametrize(
    "day",
    ["17.05.2021", "05/17/2021", "5/7/21", "17-05-2021", "2021/05/17", "2021.05.17",
     "17.05.2021 14:30", "05/17/2021 2:30:15 PM"],
)  # fmt: skip
def test_dates_that_stay_text_are_noted_with_how_to_write_them(day: str, tmp_path: Path) -> None:
    (note,) = notes_of(tmp_path / "a.csv", day, "", day)
    assert note.endswith(
        f"column 'day' is read as text, but looks like dates, such as {day!r}; write them as "
        "2021-05-17 to have them read as dates"
    )


@pytest.mark.parametrize("other", ["Oslo", "1.2.3", "10.0.0.17", "17.05.", "1/2", "555-12-3456"])
def test_one_value_that_is_no_date_keeps_a_column_from_being_noted(
    other: str, tmp_path: Path
) -> None:
    assert notes_of(tmp_path / "a.csv", "17.05.2021", other) == ()


@pytest.mark.parametrize("read", ["2021-05-17", "2021-05-17 14:30", ""])
def test_dates_that_are_read_and_columns_of_nothing_are_not_noted(
    read: str, tmp_path: Path
) -> None:
    assert notes_of(tmp_path / "a.csv", read, read) == ()


def test_numbers_that_a_decimal_comma_makes_text_are_noted_with_what_to_pass(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.csv").write_text("größe;stadt\n3,14;Köln\n;Łódź\n-2;Rom\n", encoding="utf-8")
    table, notes = read(tmp_path / "a.csv")
    assert table["größe"].to_pylist() == ["3,14", None, "-2"]
    (note,) = notes
    assert note.endswith(
        "column 'größe' is read as text, but looks like numbers with a decimal comma, such as "
        "'3,14'; read it as numbers with --decimal ,"
    )


def test_a_decimal_point_where_a_comma_was_told_is_noted_too(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x;y\n1.5;2,5\n2.5;3,5\n")
    table, notes = read(tmp_path / "a.csv", decimal=",")
    assert table["y"].to_pylist() == [2.5, 3.5]
    assert [note.partition("; ")[2] for note in notes] == ["read it as numbers with --decimal ."]


@pytest.mark.parametrize("odd", ["Oslo", "1,2,3", "3,14 EUR", "2024,5,1", "-", "12:30,5"])
def test_one_value_that_is_no_number_keeps_a_column_from_being_noted(
    odd: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_files, "_BLOCK", 256)
    rows = ["3,14;0"] * 200
    (tmp_path / "a.csv").write_text("\n".join(["x;y", *rows, f"{odd};0", *rows]))
    assert read(tmp_path / "a.csv")[1] == ()


def test_whole_numbers_and_text_alone_are_not_noted(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id,word\n1,"7"\n2,x\n')
    assert read(tmp_path / "a.csv")[1] == ()
