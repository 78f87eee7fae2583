"""`driftquilt select --model`: other models than the net, and the other commands on them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pyarrow import csv

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
    assert document["sets"]
    model = document["files"]["model"]
    predicted = drive("predict", model, "shop.csv", "--label", "bought", "--json").document()
    assert predicted["n_rows"] == 600
    assert predicted["n_right"] > 350
    refused = drive("export", model, "--to", "model.onnx")
    assert refused.code == 1
    assert "lightgbm" in refused.stderr


def test_auto_says_what_it_chose(drive: Drive) -> None:
    shown = drive(*SELECT, "--model", "auto")
    assert shown.code == 0, shown.stderr
    assert "The model is " in shown.stdout


@pytest.mark.parametrize(("kind", "package"), [("catboost", "catboost"), ("auto", "skops")])
def test_a_missing_library_is_named_with_its_extra(
    drive: Drive, kind: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    refused = drive(*SELECT, "--model", kind)
    assert refused.code == 1
    assert "pip install 'driftquilt[" in refused.stderr
