"""Dates that stay text are noted, and nothing else is."""

from __future__ import annotations

from pathlib import Path

import pytest

from driftquilt.data.files import open_data


def notes_of(path: Path, *values: str) -> tuple[str, ...]:
    path.write_text("\n".join(["day;n", *(f"{value};1" for value in values), ""]))
    with open_data([path]) as data:
        return tuple(data.notes)


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
