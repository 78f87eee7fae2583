"""`driftquilt select --model`: other models than the net, and the other commands on them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pyarrow import csv

from driftquilt import QuiltClassifier, QuiltSelector
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


def test_parameters_reach_the_estimator(drive: Drive) -> None:
    settings = ["--param", "num_leaves=7", "--param", "n_estimators=5", "--param", "reg_alpha=0.5"]
    found = drive(*SELECT, "--model", "lightgbm", *settings, "--json").document()
    booster = QuiltSelector.load(found["files"]["model"]).estimator
    assert (booster.num_leaves, booster.n_estimators, booster.reg_alpha) == (7, 5, 0.5)
    net = ["--param", "hidden_units=8", "--param", "encode=standard", "--param", "blend=false"]
    found = drive(*SELECT, *net, "--overwrite", "--json").document()
    model = QuiltClassifier.load(found["files"]["model"])
    assert (model.hidden_units, model.encode, model.blend) == (8, "standard", False)


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (
            ["--param", "max_epoch=5"],
            "'net' has no parameter 'max_epoch'; did you mean 'max_epochs'",
        ),
        (["--param", "max_epochs=0"], "max_epochs must be a whole number of at least 1"),
        (["--param", "max_epochs"], "--param is 'max_epochs'; it takes NAME=VALUE"),
        (["--param", "patience=2", "--param", "patience=3"], "gives 'patience' twice"),
        (["--param", "random_state=1"], "use --seed"),
        (["--param", "class_weight=balanced"], "use --class-weight"),
        (["--model", "lightgbm", "--param", "num_leafs=5"], "did you mean 'num_leaves'"),
        (["--model", "hgb", "--param", "max_iters=5"], "did you mean 'max_iter'"),
        (["--model", "catboost", "--param", "iteratons=5"], "did you mean 'iterations'"),
        (["--model", "auto", "--param", "max_iter=5"], "'auto' chooses between two"),
    ],
)
def test_parameters_that_make_no_sense_are_refused_before_a_file_is_read(
    drive: Drive, asked: list[str], message: str
) -> None:
    Path("shop.csv").unlink()
    refused = drive(*SELECT, *asked)
    assert refused.code == 1
    assert message in refused.stderr
    assert len(refused.stderr.splitlines()) <= 2


@pytest.mark.parametrize(
    ("model", "param"),
    [("hgb", "max_iter=-1"), ("lightgbm", "num_leaves=-5"), ("catboost", "depth=100")],
)
def test_values_that_a_library_refuses_are_told_before_any_training(
    drive: Drive, model: str, param: str
) -> None:
    Path("shop.csv").unlink()
    refused = drive(*SELECT, "--task", "classes", "--model", model, "--param", param)
    assert refused.code == 1
    assert f"the model '{model}' does not take" in refused.stderr


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
