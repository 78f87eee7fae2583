"""`driftquilt select --model`: other models than the net, and the other commands on them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pyarrow import csv

from driftquilt.decision import read_decision
from tests.cli.conftest import Drive
from tests.decision.tables import shop_table

SELECT = [
    "select", "shop.csv", "--label", "bought", "--time", "when", "--every", "1mo",
    "--drop", "order",
]  # fmt: skip


@pytest.fixture(autouse=True)
def shop(tmp_path: Path) -> None:
    csv.write_csv(shop_table(), tmp_path / "shop.csv")


def test_a_booster_is_selected_and_predicts_but_is_not_exported(drive: Drive) -> None:
    document = drive(*SELECT, "--model", "lightgbm", "--json").document()
    assert document["kind"] == "lightgbm"
    assert document["choice"] == {}
    assert [one["words"] for one in document["sets"]][:2] == ["all data", "the current rows alone"]
    model = document["files"]["model"]
    predicted = drive("predict", model, "shop.csv", "--label", "bought", "--json").document()
    assert predicted["n_rows"] == 600
    assert predicted["n_right"] > 350
    refused = drive("export", model, "--to", "model.onnx")
    assert refused.code == 1
    assert "lightgbm" in refused.stderr


def test_the_training_sets_are_named_with_their_scores_everywhere(
    drive: Drive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    shown = drive(*SELECT, "--model", "lightgbm").stdout
    decision = read_decision("select-out")
    report = Path("select-out/report.html").read_text()
    for one in decision.sets:
        words, score = decision.selection.name_set(one), f"{-one.score:.3f}"
        line = next(line for line in shown.splitlines() if line.startswith(f"│ {words} "))
        assert f" {score} │" in line
        row = next(row for row in report.split("<tr") if f">{words}</th>" in row)
        assert f">{score}</td>" in row
        assert (words in decision.sentences()[0]) == (one.share > 0)
    # Scores of the net that ranked the segments are not shown as what made the choice.
    assert "disparity" not in shown
    assert not any(fate in shown for fate in ("dropped: differs", "dropped: no"))
    assert "Disparity, median" not in report


def test_auto_says_what_it_chose(drive: Drive) -> None:
    shown = drive(*SELECT, "--model", "auto")
    assert shown.code == 0, shown.stderr
    assert "The model is " in shown.stdout


@pytest.mark.parametrize(
    ("kind", "package"), [("catboost", "catboost"), ("catboost", "pandas"), ("auto", "skops")]
)
def test_a_missing_library_is_named_with_its_extra(
    drive: Drive, kind: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    Path("shop.csv").unlink()  # before a file is read
    refused = drive(*SELECT, "--model", kind)
    assert refused.code == 1
    assert "pip install 'driftquilt[" in refused.stderr
