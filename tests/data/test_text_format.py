"""Text files of other habits are read as they were meant, if that is told; else it is noted."""

from __future__ import annotations

import gzip
import io
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet as pq

from driftquilt.data import source
from driftquilt.data.files import open_data
from driftquilt.data.source import TextFormat
from driftquilt.errors import InputError
from tests.data.conftest import refusal_of

EUROPEAN = "größe;stadt\n3,14;Köln\n;Łódź\n-2;Rom\n"


def read(path: Path | str, **form: Any) -> tuple[Any, tuple[str, ...]]:
    with open_data([path], form=TextFormat(**form)) as data:
        return data.table, data.notes


def refusal(path: Path, **form: Any) -> str:
    return refusal_of(read, path, **form)


@pytest.fixture
def european(tmp_path: Path) -> Path:
    path = tmp_path / "a.csv"
    path.write_text(EUROPEAN, encoding="utf-8")
    return path


def test_a_decimal_comma_is_a_number_if_it_is_told(european: Path) -> None:
    table, notes = read(european, decimal=",")
    assert table["größe"].to_pylist() == [3.14, None, -2.0]
    assert notes == ()


@pytest.mark.usefixtures("small_blocks")
def test_a_column_is_noted_once_even_if_another_file_is_begun_again(tmp_path: Path) -> None:
    (tmp_path / "1.csv").write_text("x;y\n3,5;1\n")
    (tmp_path / "2.csv").write_text("x;y\n" + "3,5;1\n" * 200 + "3,5;1.5\n")
    with open_data([tmp_path / "1.csv", tmp_path / "2.csv"]) as data:
        noted = [note for note in data.notes if "decimal comma" in note]
    assert len(noted) == 2


def test_quoted_decimal_commas_may_stand_between_commas(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('x,y\n"3,14",1\n"2,5",2\n')
    assert read(tmp_path / "a.csv", decimal=",")[0]["x"].to_pylist() == [3.14, 2.5]


@pytest.mark.usefixtures("small_blocks")
def test_a_kind_is_widened_by_the_decimal_mark_that_was_told(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x;y\n" + "1;0\n" * 200 + "1,5;0\n")
    table, notes = read(tmp_path / "a.csv", decimal=",")
    assert table.schema.field("x").type == pa.float64()
    assert "is read as double, not int64, because it holds '1,5'" in notes[0]


@pytest.mark.parametrize(
    ("told", "between"), [("^", "^"), ("tab", "\t"), ("\\t", "\t"), (" ", " ")]
)
def test_any_delimiter_can_be_told(told: str, between: str, tmp_path: Path) -> None:
    text = "a, b, c|y\n1|2\n".replace(" b, c", "bc").replace("|", between)
    (tmp_path / "a.csv").write_text(text)
    table, _ = read(tmp_path / "a.csv", delimiter=told)
    assert table.to_pydict() == {"a,bc": [1], "y": [2]}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "cp1250"])
@pytest.mark.parametrize("suffix", ["csv", "csv.gz"])
@pytest.mark.parametrize("block", [3, 1 << 20])
def test_any_encoding_can_be_told(
    encoding: str, suffix: str, block: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "_DECODED", block)
    data = EUROPEAN.encode(encoding)
    path = tmp_path / f"a.{suffix}"
    path.write_bytes(gzip.compress(data) if suffix.endswith("gz") else data)
    table, _ = read(path, encoding=encoding, decimal=",")
    assert table.to_pydict() == {"größe": [3.14, None, -2.0], "stadt": ["Köln", "Łódź", "Rom"]}


def test_json_lines_may_have_another_encoding_too(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes('{"stadt": "Köln"}\n'.encode("latin-1"))
    assert read(tmp_path / "a.jsonl", encoding="latin-1")[0].to_pydict() == {"stadt": ["Köln"]}


def test_a_pipe_may_have_another_encoding_too(monkeypatch: pytest.MonkeyPatch) -> None:
    for text, column in ((EUROPEAN, "stadt"), ('{"stadt": "Köln"}\n', "stadt")):
        data = io.BytesIO(text.encode("utf-16"))
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=data))
        assert read("-", encoding="utf-16")[0][column][0].as_py() == "Köln"


@pytest.mark.parametrize("suffix", ["parquet", "parquet.gz"])
def test_the_encoding_of_text_does_not_touch_other_formats(suffix: str, tmp_path: Path) -> None:
    sink = io.BytesIO()
    pq.write_table(table := pa.table({"x": ["Köln", "ÿ"]}), sink)
    data = sink.getvalue()
    path = tmp_path / f"a.{suffix}"
    path.write_bytes(gzip.compress(data) if suffix.endswith("gz") else data)
    assert read(path, encoding="latin-1")[0] == table


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("n_rows", [0, 300])
@pytest.mark.parametrize("suffix", ["csv", "jsonl"])
def test_a_byte_that_is_not_of_the_encoding_is_named_with_its_line(
    suffix: str, n_rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "_DECODED", 100)
    header, row = ("a,b\n", "x,0\n") if suffix == "csv" else ('{"a": "x"}\n', '{"a": "x"}\n')
    text = header + row * n_rows + row.replace("x", "é")
    (tmp_path / f"a.{suffix}").write_bytes(text.encode("latin-1"))
    found = refusal(tmp_path / f"a.{suffix}", encoding="ascii")
    assert f"a.{suffix}, line {n_rows + 2}: byte 0xe9 is not ascii" in found
    assert found.endswith("with --encoding")


def test_text_without_its_mark_is_not_utf_16(european: Path) -> None:
    assert "a.csv is not utf-16" in refusal(european, encoding="utf-16")


@pytest.mark.parametrize("delimiter", ["", ";;", "a", "5", '"', "\n", "é"])
def test_a_delimiter_is_one_character_that_is_no_letter(delimiter: str) -> None:
    with pytest.raises(InputError, match=r"^got --delimiter"):
        TextFormat(delimiter=delimiter)


def test_a_decimal_mark_is_a_comma_or_a_point() -> None:
    with pytest.raises(InputError, match=r"^got --decimal ';'; give ',' or '.'$"):
        TextFormat(decimal=";")


@pytest.mark.parametrize("encoding", ["", "klingon", "hex", "rot13", "a\0b"])
def test_an_encoding_is_one_of_text(encoding: str) -> None:
    with pytest.raises(InputError, match=r"^unknown --encoding .* latin-1"):
        TextFormat(encoding=encoding)


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
        f"column 'day' is read as text, but looks like dates, such as {day!r}; --time may "
        "take them so, but to have them read as dates, write them as 2021-05-17"
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
    european: Path,
) -> None:
    table, notes = read(european)
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


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("odd", ["Oslo", "1,2,3", "3,14 EUR", "2024,5,1", "-", "12:30,5"])
def test_one_value_that_is_no_number_keeps_a_column_from_being_noted(
    odd: str, tmp_path: Path
) -> None:
    rows = ["3,14;0"] * 200
    (tmp_path / "a.csv").write_text("\n".join(["x;y", *rows, f"{odd};0", *rows]))
    assert read(tmp_path / "a.csv")[1] == ()


def test_whole_numbers_and_text_alone_are_not_noted(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text('id,word\n1,"7"\n2,x\n')
    assert read(tmp_path / "a.csv")[1] == ()
