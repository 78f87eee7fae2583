"""Rows on the wire."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import polars as pl
import pyarrow as pa
import pytest

from driftquilt.client.rows import ARROW, as_body, as_json
from driftquilt.errors import InputError

COLUMNS = {"age": [31, None], "city": ["Rome", "Ōsaka\u2028"]}


@pytest.mark.parametrize(
    "table", [pd.DataFrame(COLUMNS, index=[7, 9]), pl.DataFrame(COLUMNS), pa.table(COLUMNS)],
    ids=["pandas", "polars", "arrow"],
)  # fmt: skip
def test_a_table_travels_as_arrow_with_its_columns_alone(table: Any) -> None:
    body = as_body(table, keep=True)
    assert body.kind == ARROW
    read = pa.ipc.open_stream(body.content).read_all()
    assert read.column_names == ["age", "city"]
    assert read["city"].to_pylist() == COLUMNS["city"]
    assert read["age"].to_pylist() == [31, None]


def test_labels_of_a_table_are_a_column_of_it() -> None:
    body = as_body(pd.DataFrame(COLUMNS), labels=[np.str_("no"), "yes"])
    read = pa.ipc.open_stream(body.content).read_all()
    assert read.column_names == ["age", "city", "label"]
    assert read["label"].to_pylist() == ["no", "yes"]


@pytest.mark.parametrize("besides", [{"keep": False}, {"labels": [1, 0]}])
def test_what_arrow_has_no_place_for_travels_as_names_and_values(besides: dict[str, Any]) -> None:
    body = as_body(pd.DataFrame({"label": [1.5, None]}), **besides)
    assert json.loads(body.content) == {"columns": ["label"], "rows": [[1.5], [None]], **besides}


@pytest.mark.parametrize("labels", [["yes"], ["yes", 1]])
def test_labels_that_do_not_go_with_a_table_are_refused(labels: list[Any]) -> None:
    with pytest.raises(InputError, match="labels"):
        as_body(pd.DataFrame(COLUMNS), labels=labels)


def test_one_dict_is_one_row() -> None:
    assert json.loads(as_body({"a": 1}, keep=True).content)["rows"] == [{"a": 1}]


@pytest.mark.parametrize(
    ("value", "sent"),
    [
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        (float("nan"), None),
        (np.nan, None),
        (None, None),
    ],
)
def test_values_of_any_kind_are_said_in_json(value: Any, sent: Any) -> None:
    assert json.loads(as_json({"x": value}).content) == {"x": sent}


@pytest.mark.parametrize("value", [object(), b"raw", Decimal("0.1"), {1, 2}])
def test_a_value_that_has_no_word_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match="rows are numbers, text"):
        as_body([{"x": value}])


@pytest.mark.parametrize("value", [date(2024, 2, 1), datetime(2024, 2, 1, 9, tzinfo=UTC), time(9)])
def test_rows_with_dates_travel_as_arrow(value: Any) -> None:
    body = as_body([{"x": value, "new": True}, {"x": None, "y": "a"}], keep=False)
    read = pa.ipc.open_stream(body.content).read_all()
    assert read.to_pydict() == {"x": [value, None], "new": [1, None], "y": [None, "a"]}
    assert read.schema.metadata == {b"keep": b"false"}
    with pytest.raises(InputError, match="all dates or all times"):
        as_body([{"x": value}, {"x": "text"}])


@pytest.mark.parametrize("yes", [True, np.bool_(True)])
def test_booleans_of_rows_are_numbers_and_those_of_labels_stay(yes: Any) -> None:
    sent = json.loads(as_body([{"new": yes}], labels=[yes]).content)
    assert sent == {"rows": [{"new": 1}], "labels": [True]}
    assert type(sent["rows"][0]["new"]) is int
    assert sent["labels"][0] is True
    table = pa.table({"new": [True, None], "label": [1, 2]})
    assert b'"rows":[[1,1],[null,2]]' in as_body(table, keep=False).content


def test_infinity_is_refused() -> None:
    with pytest.raises(InputError, match="JSON has no inf"):
        as_body([{"x": float("inf")}])


@pytest.mark.parametrize("rows", [3, "text", [1, 2], np.zeros((2, 2)), None])
def test_what_are_no_rows_is_refused(rows: Any) -> None:
    with pytest.raises(InputError, match="a list of dicts, or a table"):
        as_body(rows, keep=True)
