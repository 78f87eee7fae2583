"""The folder of a decision is whole or as it was, and holds the rows that may be trained on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from driftquilt.decision import decision as folder_module
from driftquilt.decision.cutting import by_time
from driftquilt.decision.deciding import decide
from driftquilt.decision.decision import (
    MODEL,
    REPORT,
    ROWS,
    SELECTION,
    Decision,
    read_decision,
    unwritable_columns,
    write_decision,
)
from driftquilt.errors import InputError
from tests.decision.tables import shop_table, small

TABLE = shop_table()
MONTHS = by_time(TABLE, "when", "1mo")


@pytest.fixture(scope="module")
def decision() -> Decision:
    return decide(TABLE, "bought", MONTHS, drop=["order"], estimator=small())


def names(out: Path) -> list[str]:
    return sorted(path.name for path in out.iterdir())


def test_a_folder_holds_the_model_the_rows_and_the_reasons(
    decision: Decision, tmp_path: Path
) -> None:
    out = write_decision(decision, TABLE, tmp_path / "new" / "out")
    assert names(out) == sorted([MODEL, ROWS, SELECTION])
    again = read_decision(out)
    assert again.to_json() == decision.to_json()
    assert again.model is not None
    assert decision.model is not None
    x = TABLE.select(list(decision.model.feature_names_in_))
    assert again.model.predict(x).tolist() == decision.model.predict(x).tolist()
    assert json.loads((out / SELECTION).read_text())["sentences"] == list(decision.sentences())


def test_the_rows_are_those_of_used_segments_and_the_current_one(
    decision: Decision, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folder_module, "BLOCK", 37)
    write_decision(decision, TABLE, tmp_path)
    rows = pq.read_table(tmp_path / ROWS)
    used = {str(use.name): use.weight for use in decision.selection if use.used}
    assert 0 < len(used) < len(decision.selection)
    used |= {"2024-07": 1.0}
    month, bought = np.array(MONTHS.to_pylist()), TABLE["bought"].to_pylist()
    wanted = [k for k in range(600) if month[k] in used and bought[k] is not None]
    assert rows.select(TABLE.column_names).equals(TABLE.take(pa.array(wanted)))
    assert rows["driftquilt_segment"].to_pylist() == month[wanted].tolist()
    assert rows["driftquilt_weight"].to_pylist() == [used[month[k]] for k in wanted]
    held_out = rows["driftquilt_held_out"].to_numpy()
    assert held_out.sum() == decision.n_held_out
    assert held_out[-decision.n_held_out :].all()


def test_selected_rows_can_be_selected_from_again(decision: Decision, tmp_path: Path) -> None:
    write_decision(decision, TABLE, tmp_path / "one")
    table = pq.read_table(tmp_path / "one" / ROWS)
    months = table["driftquilt_segment"]
    again = decide(table, "bought", months, drop=["order"], estimator=small())
    write_decision(again, table, tmp_path / "two")
    found = pq.read_schema(tmp_path / "two" / ROWS).names
    assert found == pq.read_schema(tmp_path / "one" / ROWS).names


def test_other_files_are_left_alone_and_ours_replaced(decision: Decision, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / SELECTION).write_text("old")
    write_decision(decision, TABLE, tmp_path)
    assert names(tmp_path) == sorted([MODEL, ROWS, SELECTION, "notes.txt"])
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert read_decision(tmp_path).label == "bought"


def test_a_failure_half_way_leaves_what_was_there(
    decision: Decision, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_decision(decision, TABLE, tmp_path)
    before = {name: (tmp_path / name).read_bytes() for name in names(tmp_path)}

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(folder_module, "_write_rows", full)
    with pytest.raises(OSError, match="No space left"):
        write_decision(decision, TABLE, tmp_path)
    assert {name: (tmp_path / name).read_bytes() for name in names(tmp_path)} == before


def test_files_that_do_not_belong_together_are_found(decision: Decision, tmp_path: Path) -> None:
    write_decision(decision, TABLE, tmp_path)
    with (tmp_path / ROWS).open("ab") as file:
        file.write(b"more")
    with pytest.raises(InputError, match=rf"{ROWS} does not belong to {SELECTION}"):
        read_decision(tmp_path)
    (tmp_path / SELECTION).write_text("{")
    with pytest.raises(InputError, match=SELECTION):
        read_decision(tmp_path)
    with pytest.raises(InputError, match="nowhere"):
        read_decision(tmp_path / "nowhere")


def test_a_damaged_model_is_found(decision: Decision, tmp_path: Path) -> None:
    write_decision(decision, TABLE, tmp_path)
    content = bytearray((tmp_path / MODEL).read_bytes())
    content[-1] ^= 1
    (tmp_path / MODEL).write_bytes(content)
    with pytest.raises(InputError, match=MODEL):
        read_decision(tmp_path)


def test_a_folder_that_knows_lengths_alone_can_be_read(decision: Decision, tmp_path: Path) -> None:
    write_decision(decision, TABLE, tmp_path)
    record = json.loads((tmp_path / SELECTION).read_text())
    record["files"] = {name: (tmp_path / name).stat().st_size for name in record["files"]}
    for later in ("origin", "constant", "cut"):
        del record[later]
    (tmp_path / SELECTION).write_text(json.dumps(record))
    assert read_decision(tmp_path).sentences()[0] == decision.sentences()[0]


def test_a_page_of_an_earlier_decision_does_not_stay(decision: Decision, tmp_path: Path) -> None:
    write_decision(decision, TABLE, tmp_path, "<p>the first</p>")
    assert (tmp_path / REPORT).read_text() == "<p>the first</p>"
    write_decision(decision, TABLE, tmp_path)
    assert not (tmp_path / REPORT).exists()


def test_a_place_that_is_no_folder_is_refused(decision: Decision, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file is a file"):
        write_decision(decision, TABLE, tmp_path / "file")
    (tmp_path / "out" / MODEL).mkdir(parents=True)
    with pytest.raises(InputError, match=f"{MODEL} is a folder"):
        write_decision(decision, TABLE, tmp_path / "out")


def test_other_rows_than_those_decided_on_are_refused(decision: Decision, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the table has 599 rows"):
        write_decision(decision, TABLE.slice(1), tmp_path)
    again = Decision.from_json(decision.to_json())
    with pytest.raises(InputError, match="has no model"):
        write_decision(again, TABLE, tmp_path)
    assert names(tmp_path) == []


def test_columns_that_parquet_lacks_and_categories_that_differ_are_no_hindrance(
    tmp_path: Path,
) -> None:
    parts = []
    for at in range(2):
        half = TABLE.slice(at * TABLE.num_rows // 2, TABLE.num_rows // 2)
        codes = pa.array(np.arange(half.num_rows) % 100, pa.int8())
        shop = pa.DictionaryArray.from_arrays(codes, [f"{at}-{k}" for k in range(100)])
        spans = pa.array([(1, 2, 3)] * half.num_rows, pa.month_day_nano_interval())
        parts.append(half.append_column("shop", shop).append_column("span", spans))
    table = pa.concat_tables(parts)
    months = by_time(table, "when", "1mo")
    decision = decide(table, "bought", months, drop=["order"], estimator=small(max_epochs=2))
    assert unwritable_columns(table) == ["span"]
    rows = pq.read_table(write_decision(decision, table, tmp_path / "out") / ROWS)
    assert "span" not in rows.column_names
    shops = dict(zip(table["order"].to_pylist(), table["shop"].to_pylist(), strict=True))
    assert rows["shop"].to_pylist() == [shops[order] for order in rows["order"].to_pylist()]
