"""A replay that is given other rows says in words what differs."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from driftquilt.decision.journal import expect_same, replay_header
from driftquilt.decision.streaming import fingerprint
from driftquilt.errors import InputError

TABLE = pa.table({"a": [1, 2], "b": ["x", "y"], "sold": [True, False]})


def header(table: pa.Table = TABLE, **changed: Any) -> dict[str, Any]:
    given: dict[str, Any] = {"label": "sold", "drop": [], "name": "may.csv", "count": 200}
    return replay_header(table, **(given | changed))


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (header(label="b"), r"The label was 'sold' and is 'b'\."),
        (header(drop=["a"]), r"The columns dropped were none and are 'a'\."),
        (header(TABLE.drop_columns(["a"])), r"Columns gone: 'a'\."),
        (header(TABLE.append_column("c", [[1, 2]])), r"Columns new: 'c'\."),
        (header(TABLE.rename_columns(["z", "b", "sold"])), r"Columns gone: 'a'; columns new: 'z'"),
        (header(TABLE.set_column(0, "a", [[1.5, 2]])), "Column 'a' was int64 and is double"),
        (header(TABLE.select(["b", "a", "sold"])), "The columns are in another order"),
        (header(TABLE.slice(1)), "The first row differs"),
        (header(count=100), "The count was 200 and is 100"),
    ],
)
def test_what_differs_is_said(other: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        expect_same("events.jsonl", header(), other)


def test_both_tables_are_named_with_their_rows_and_no_digest() -> None:
    with pytest.raises(InputError) as refused:
        expect_same("out/events.jsonl", header(), header(TABLE.slice(1), name="june.csv"))
    said = str(refused.value)
    assert "out/events.jsonl" in said
    assert "may.csv (2 rows), and this is june.csv (1 row)" in said
    assert "--store" in said
    assert fingerprint(TABLE, 0) not in said


def test_a_table_may_grow_and_change_its_name() -> None:
    expect_same("events.jsonl", header(TABLE.slice(0, 1)), header(name="june.csv"))
