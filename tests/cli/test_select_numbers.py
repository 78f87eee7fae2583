"""`driftquilt select` where the label is a number."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from driftquilt import QuiltRegressor
from tests.cli.conftest import Drive
from tests.decision.tables import price_table

ASKED = ("select", "prices.csv", "--label", "price", "--segment-by", "month")


@pytest.fixture(autouse=True)
def prices(tmp_path: Path) -> None:  # `drive` makes this the working folder
    pyarrow.csv.write_csv(price_table(), tmp_path / "prices.csv")


def test_a_label_of_amounts_is_a_regression_on_screen_in_files_and_in_the_report(
    drive: Drive,
) -> None:
    outcome = drive(*ASKED, "--out", "out")
    assert outcome.code == 0, outcome.stderr
    first, *_ = outcome.stdout.splitlines()
    assert first.startswith("Task: numbers. 'price' holds numbers from")
    assert first.endswith("--task classes if they are classes.")
    assert "Mean absolute error on 60 held-out rows" in outcome.stdout
    assert "Advice: promote." in outcome.stdout
    model = QuiltRegressor.load("out/model.safetensors")
    rows = pq.read_table("out/selected.parquet")
    assert "driftquilt_weight" in rows.column_names
    answers = model.predict(rows.select(["size", "floor"]))
    assert abs(answers - rows["price"].to_numpy()).mean() < 60
    report = Path("out/report.html").read_text()
    assert "Errors on held-out rows" in report
    assert "Error on it" in report
    assert "ccuracy" not in report[report.index("<body") : report.index("<script")]
    assert drive("report", "out").code == 0
    assert Path("out/report.html").read_text() == report


def test_json_says_the_task_and_the_errors(drive: Drive) -> None:
    told = drive(*ASKED, "--metric", "rmse", "--json", "--holdout", "0.4").document()
    assert (told["task"], told["classes"]) == ("numbers", [])
    assert told["metric"] == "neg_root_mean_squared_error"
    assert told["methods"][0]["quality"]["rmse"] == pytest.approx(
        told["methods"][0]["score"]["value"]
    )
    assert [line["correct"] for line in told["past"]] == [None, None]
    assert told["past"][0]["error"] > told["past"][1]["error"]


def test_the_task_can_be_said(drive: Drive) -> None:
    lines = ["size,rooms,month", *(f"{k % 9},{k % 9 // 3},{k // 100}" for k in range(300))]
    Path("rooms.csv").write_text("\n".join(lines))
    asked = ("select", "rooms.csv", "--label", "rooms", "--segment-by", "month", "--json")
    assert drive(*asked).document()["task"] == "classes"
    told = drive(*asked, "--task", "numbers", "--overwrite").document()
    assert told["task"] == "numbers"
    assert drive(*ASKED, "--task", "classes").code == 1


def test_nothing_held_out_shows_the_validation_error(drive: Drive) -> None:
    outcome = drive(*ASKED, "--holdout", "0")
    assert outcome.code == 0, outcome.stderr
    words = " ".join(outcome.stdout.split())
    assert "No rows were held out: mean absolute error on validation rows only" in words


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (["--class-weight", "balanced"], "class weights are for classes"),
        (["--cost", "a,b=1"], "costs"),
        (["--metric", "roc_auc"], "roc_auc is a metric of classes"),
        (["--metric", "accurcy"], "unknown metric 'accurcy'"),
        (["--metric", "pinball", "--model", "hgb"], "scores intervals"),
    ],
)
def test_what_has_no_meaning_is_refused(drive: Drive, asked: list[str], message: str) -> None:
    outcome = drive(*ASKED, *asked)
    assert outcome.code == 1
    assert message in outcome.stderr
    assert not Path("select-out").exists()


def test_the_advice_is_the_exit_code_also_beside_the_model_in_use(drive: Drive) -> None:
    table = price_table()
    table = table.append_column("today", table["price"])
    pq.write_table(table, "today.parquet")
    asked = ("select", "today.parquet", *ASKED[2:], "--incumbent", "today", "--exit-code")
    assert drive(*asked).code == 10
    record = json.loads(Path("select-out/selection.json").read_text())
    assert record["advice"]["action"] == "keep-incumbent"
