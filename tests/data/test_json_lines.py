"""JSON lines are read as they were meant, or refused with their line."""

from __future__ import annotations

import io
from datetime import date
from typing import Any

import pyarrow as pa
import pytest

from driftquilt.data import json_lines
from driftquilt.data.source import spool
from tests.data.conftest import read_rows, refusal_of


def read(text: str | bytes) -> Any:
    data = text if isinstance(text, bytes) else text.encode()
    return read_rows(json_lines.JsonRows(spool("a.jsonl", io.BytesIO(data))))


def refusal(text: str | bytes) -> str:
    return refusal_of(read, text)


@pytest.fixture(params=[64, 8 << 20])
def block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines, "BLOCK", request.param)


@pytest.mark.usefixtures("block")
@pytest.mark.parametrize(
    ("first", "later", "kind"),
    [
        ("1", "1.5", pa.float64()),
        ("1.5", "1", pa.float64()),
        ("null", "5", pa.int64()),
        ("null", '"x"', pa.string()),
        ("null", "true", pa.bool_()),
        ('"2024-05-01"', "null", pa.date32()),
        ('"2024-05-01"', '"2024-05-01 10:00:00.5"', pa.timestamp("us")),
        ('"2024-05-01T10:00:00Z"', "null", pa.timestamp("us", "UTC")),
        ('"2024-05-01"', '"soon"', pa.string()),
        ('"x"', '"2024-05-01"', pa.string()),
        ('"1"', '"NA"', pa.string()),
    ],
)
def test_kinds_are_found_wherever_their_values_stand(first: str, later: str, kind: Any) -> None:
    line = '{{"a": {}, "b": 0}}\n'
    table, _ = read(line.format(first) * 30 + "\n" + line.format(later) + line.format(first) * 30)
    assert table.schema.field("a").type == kind
    assert table.num_rows == 61
    expected = {"null": None}.get(later, later.strip('"'))
    if kind == pa.string():
        assert table["a"][30].as_py() == expected
    if later == "null":
        assert table["a"].null_count == 1


@pytest.mark.usefixtures("block")
def test_keys_may_come_late_and_be_missing() -> None:
    table, _ = read('{"a": 1}\n' * 40 + '{"b": "2024-05-01"}\n' + "{}\n" + '{"a": 2}')
    assert table.num_rows == 43
    assert table["a"].null_count == 2
    assert table.slice(40, 1).to_pylist() == [{"a": None, "b": date(2024, 5, 1)}]


@pytest.mark.usefixtures("block")
@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"a": {"c": 1}}', "column 'a' is nested (dict)"),
        ('{"a": [1]}', "column 'a' is nested (list)"),
        ('{"a": [1]}', "or remove it, as jq -c 'del(.[\"a\"])' does"),
        ('{"a": 1', "is not valid JSON: "),
        ("a,b", "is not valid JSON: "),
        ("[1, 2]", "is not an object"),
        ('{"a": "x"}', "column 'a' is text, but a number in line 1"),
        ('{"a": true}', "column 'a' is a boolean, but a number in line 1"),
    ],
)
def test_a_bad_line_is_named(line: str, said: str) -> None:
    found = refusal('{"a": 1}\n' * 2 + "\n" + f"{line}\n" + '{"a": 3}\n' * 2)
    assert found.startswith("a.jsonl, line 4")
    assert said in found


def test_a_mixture_across_blocks_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_lines, "BLOCK", 64)
    found = refusal('{"a": 1}\n' * 7 + "\n" * 80 + '{"a": "x"}\n')
    assert found == (
        "a.jsonl: column 'a' holds int64 first and string later; make it the same in every line"
    )


@pytest.mark.usefixtures("block")
def test_latin_1_is_refused_with_its_line() -> None:
    found = refusal(b'{"a": "x"}\n' * 20 + b'{"a": "caf\xe9"}\n')
    assert found.startswith("a.jsonl, line 21: byte 0xe9 is not UTF-8")


@pytest.mark.parametrize("text", ['[{"a": 1}]', '[\n {"a": 1}\n]', "\ufeff [1]"])
def test_an_array_is_no_json_lines_and_says_how_to_make_them(text: str) -> None:
    assert refusal(text) == (
        "a.jsonl is a JSON array, not JSON lines; write one object such as {...} per line, as "
        "jq -c '.[]' does"
    )


def test_an_object_over_several_lines_is_told_from_a_broken_one() -> None:
    assert "line 1 is not valid JSON: it ends inside an object" in refusal('{\n "a": [1]\n}\n')
    assert refusal('{"a": 1 2}\n').endswith("correct or drop it")


def test_a_key_that_stands_twice_is_refused() -> None:
    assert "was specified twice" in refusal('{"a": 1, "a": 2}\n')


def test_a_byte_order_mark_is_no_part_of_the_first_key() -> None:
    assert read('\ufeff{"a": 1}\n')[0].to_pydict() == {"a": [1]}
