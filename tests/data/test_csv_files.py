"""A CSV file is read as it was meant, or refused with its line."""

from __future__ import annotations

import io
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from driftquilt.data import csv_files
from driftquilt.data.files import open_data
from driftquilt.data.source import TextFormat, spool
from driftquilt.errors import InputError
from tests.data.conftest import read_rows, refusal_of


def read(text: str | bytes, name: str = "a.csv") -> Any:
    data = text if isinstance(text, bytes) else text.encode()
    return read_rows(csv_files.CsvRows(spool(name, io.BytesIO(data))))


def refusal(text: str | bytes) -> str:
    return refusal_of(read, text)


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("start", ["", "\ufeff", "\n\n", "\r\n"])
def test_the_separator_is_found_from_the_header(separator: str, start: str) -> None:
    lines = ["a|b|c", '1|"x,;| y"|', "2||0.5"]
    table, _ = read(start + "\n".join(lines).replace("|", separator))
    assert table["a"].to_pylist() == [1, 2]
    assert table["c"].to_pylist() == [None, 0.5]


def test_separators_inside_quoted_names_do_not_count() -> None:
    table, _ = read('"a, b, c, d";"line\nbreak"\n1;2\n')
    assert table.to_pydict() == {"a, b, c, d": [1], "line\nbreak": [2]}


def test_tabs_win_in_a_tsv_file() -> None:
    table, _ = read("name, given, other\tage\nx\t5\n", name="a.tsv.gz")
    assert table.column_names == ["name, given, other", "age"]


def test_dates_and_time_stamps_become_what_they_are() -> None:
    table, _ = read(
        "day,at,zoned,fine\n2024-05-01,2024-05-01T10:00:00,2024-05-01 10:00:00Z,"
        "2024-05-01 10:00:00.25\n"
    )
    assert table.to_pylist() == [
        {
            "day": date(2024, 5, 1),
            "at": datetime(2024, 5, 1, 10),
            "zoned": datetime(2024, 5, 1, 10, tzinfo=UTC),
            "fine": datetime(2024, 5, 1, 10, 0, 0, 250_000),
        }
    ]


@pytest.mark.parametrize("missing", ["", "NA", "NaN", "null", "NULL", "N/A", '""', '"NA"'])
def test_missing_is_missing_in_numbers_and_text(missing: str) -> None:
    table, _ = read(f"a,b,c\n1,x,true\n{missing},{missing},{missing}\n")
    assert table.to_pylist()[1] == {"a": None, "b": None, "c": None}


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("first", "later", "kind"),
    [
        ("1", "1.5", pa.float64()),
        ("1", "9" * 20, pa.float64()),
        ("1", "many", pa.string()),
        ("1.5", "many", pa.string()),
        ("2024-05-01", "soon", pa.string()),
        ("2024-05-01", "2024-05-01 10:00:00", pa.timestamp("us")),
        ("2024-05-01 10:00:00", "2024-05-01 10:00:00.123456789", pa.timestamp("ns")),
        ("2024-05-01 10:00:00", "2024-05-01 10:00:00Z", pa.string()),
        ("true", "perhaps", pa.string()),
        ("true", "5", pa.string()),
        ("", "5", pa.int64()),
        ("", "5.5", pa.float64()),
        ("", "2024-05-01", pa.date32()),
        ("", "some", pa.string()),
        ("", 'say ""so"", \nthen', pa.string()),
    ],
)
def test_a_kind_that_was_guessed_too_narrow_is_widened(first: str, later: str, kind: Any) -> None:
    table, notes = read("a,b\n" + f"{first},0\n" * 200 + f'"{later}",0\n' + f"{first},0\n" * 200)
    assert table.schema.field("a").type == kind
    assert table.num_rows == 401
    assert table["a"].null_count == (400 if first == "" else 0)
    assert len(notes) == (first != "")
    if kind == pa.string() and first:
        assert table["a"][0].as_py() == first


@pytest.mark.parametrize(
    ("written", "decimal", "read_as"),
    [
        ('"1,234.50"', ".", 1234.5), ("$9", ".", 9.0), ("(3.20)", ".", -3.2), ("12 %", ".", 12.0),
        ("-€1e3", ".", -1000.0), ("1'000'000", ".", 1e6), ("7 EUR", ".", 7.0), ("+ 5", ".", 5.0),
        ("1.234,50", ",", 1234.5), ("1 234,5", ",", 1234.5), ("1\u202f234", ",", 1234.0),
    ],
)  # fmt: skip
def test_amounts_are_numbers(written: str, decimal: str, read_as: float) -> None:
    source = spool("a.csv", io.BytesIO(f"a;b\n3;x\n{written};y\n;z\n".encode()))
    table, notes = read_rows(csv_files.CsvRows(source, TextFormat(decimal=decimal)))
    assert table["a"].to_pylist() == [3.0, read_as, None]
    assert "read as numbers" in notes[0]


@pytest.mark.parametrize("value", ["555 123 456", "1.2.3", "$", "ABC 12", "12,34", "0,123", "5 m"])
def test_text_with_digits_is_not_an_amount(value: str) -> None:
    table, _ = read(f"a;b\n{value};x\n$1;y\n")
    assert table["a"].to_pylist() == [value, "$1"]


@pytest.mark.parametrize(("last", "kind"), [("$5", pa.float64()), ("n.a.", pa.string())])
def test_an_amount_is_also_found_far_below_and_a_text_makes_all_of_them_text(
    last: str, kind: Any
) -> None:
    block = '7\n"1,000"\n' * 100_000
    table, notes = read(f"a\n7\n{'5' * 9}\n{block * 2}{last}\n")
    assert table["a"].type == kind
    assert repr(last) in notes[-1] or kind == pa.float64()
    table, _ = read("a\n" + "7\n" * 700_000 + f'"1,000"\n{last}\n')
    assert table["a"].type == kind


@pytest.mark.usefixtures("small_blocks")
def test_a_note_says_which_column_was_widened_and_why() -> None:
    _, notes = read("a,b\n" + "1,0\n" * 200 + "1.5,0\n" + "x" * 99 + ",0\n")
    assert notes[0] == "a.csv: column 'a' is read as double, not int64, because it holds '1.5'"
    assert notes[1].endswith(f"is read as string, not double, because it holds '{'x' * 40}…'")


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("row", ["1", "1,2,3"])
def test_a_ragged_line_is_named(row: str) -> None:
    text = '\na,b\n"x\ny",1\n\n' + "1,2\n" * 200 + f"{row}\n"
    n_fields = len(row.split(","))
    found = refusal(text)
    assert found.startswith(f"a.csv, line 206 has {n_fields} fields, but the header has 2")
    assert found.endswith("--delimiter")


def test_the_first_line_is_not_mistaken_for_a_header() -> None:
    for first in ("1,2.5,-3e4", "1,,2", ",,"):
        assert "has no header" in refusal(f"{first}\n1,2,3\n")


def test_a_number_may_be_a_name_among_others() -> None:
    assert read("id,1,2\n1,2,3\n")[0].column_names == ["id", "1", "2"]


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("first", ["x", "1", ""])
@pytest.mark.parametrize("n_rows", [0, 300])
def test_latin_1_is_refused_with_its_line(first: str, n_rows: int) -> None:
    text = b"a,b\n" + f"{first},0\n".encode() * n_rows + b"caf\xe9,0\n"
    found = refusal(text)
    assert found.startswith(f"a.csv, line {n_rows + 2}: byte 0xe9 is not UTF-8")
    assert "--encoding latin-1" in found


def test_latin_1_in_the_header_and_utf_16_are_refused() -> None:
    assert "a.csv, line 1: byte 0xe9" in refusal(b"caf\xe9,b\n1,2\n")
    assert "--encoding utf-16" in refusal("a,b\n1,2\n".encode("utf-16"))
    assert "line 2: byte 0xc3" in refusal(b"a,b\n1,caf\xc3")


@pytest.mark.parametrize("n_below", [0, 3, 5000, 100_000])
def test_a_quote_that_is_never_closed_is_refused_with_its_line(
    n_below: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(csv_files, "_BLOCK", 2048)
    found = refusal('a,b\n1,"x\ny"\n1,"2\n' + "1,2\n" * n_below)
    assert found.startswith("a.csv, line 4: ")
    assert "never closed" in found


def test_a_file_may_end_with_text_of_several_lines() -> None:
    table, _ = read('a,b\n1,"x"\n2,"x\ny"\n')
    assert table["b"].to_pylist() == ["x", "x\ny"]


@pytest.mark.usefixtures("small_blocks")
def test_a_row_that_is_too_long_is_refused() -> None:
    assert "a row is longer than" in refusal("a,b\n1,x\n2," + "x" * 5000 + "\n3,x\n")


def test_a_file_of_blank_lines_is_empty() -> None:
    assert "a.csv is empty" in refusal("\n\n\n")


def test_columns_without_a_name_are_noted(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(",x\n0,5\n1,6\n")
    with open_data([tmp_path / "a.csv"]) as data:
        assert data.table.column_names == ["column_1", "x"]
        assert data.notes[0].endswith("the column without a name is called 'column_1'")


def test_columns_of_the_same_name_are_refused() -> None:
    assert "columns named 'x'" in refusal("x,y,x\n1,2,3\n")
    with pytest.raises(InputError, match=r"a.csv .* columns named 'x', 'y'"):
        csv_files.name_columns("a.csv", ["x", "y", "x", "y", "z"])
    with pytest.raises(InputError, match="columns named 'column_2'"):
        csv_files.name_columns("a.csv", ["column_2", ""])


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("n_threads", [1, 2])
def test_a_type_is_widened_whatever_the_number_of_threads(n_threads: int) -> None:
    before = pa.cpu_count()
    pa.set_cpu_count(n_threads)
    try:
        table, _ = read("a,b\n" + "1,0\n" * 200 + "1.5,0\n")
    finally:
        pa.set_cpu_count(before)
    assert table.schema.field("a").type == pa.float64()
