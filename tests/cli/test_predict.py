"""`driftquilt predict` as a user types it."""

from __future__ import annotations

import csv
from pathlib import Path

import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from driftquilt import QuiltClassifier
from tests.cli.conftest import Drive
from tests.small_streams import write_shop, write_sine


@pytest.fixture
def model(drive: Drive, tmp_path: Path) -> str:
    data = write_sine(tmp_path / "sine.csv")
    asked = ["--label", "label", "--segment-by", "segment", "--out", "out"]
    assert drive("select", data, *asked).code == 0
    return "out/model.safetensors"


def test_answers_are_those_of_the_loaded_model_on_the_screen_and_in_files(
    drive: Drive, model: str
) -> None:
    table = pyarrow.csv.read_csv("sine.csv")
    expected = QuiltClassifier.load(model).predict(table.drop_columns(["label", "segment"]))
    shown = drive("predict", model, "sine.csv")
    assert shown.code == 0, shown.stderr
    lines = list(csv.DictReader(shown.stdout.splitlines()))
    assert [int(line["prediction"]) for line in lines] == expected.tolist()
    assert list(lines[0]) == ["prediction", "p(0)", "p(1)"]
    told = drive("predict", model, "sine.csv", "--out", "answers.parquet", "--json").document()
    assert told["n_rows"] == len(expected)
    assert pq.read_table("answers.parquet")["prediction"].to_pylist() == expected.tolist()


def test_with_a_label_it_says_how_many_are_right(drive: Drive, model: str) -> None:
    told = drive("predict", model, "sine.csv", "--label", "label", "--json").document()
    truth = pyarrow.csv.read_csv("sine.csv")["label"].to_pylist()
    answers = [row["prediction"] for row in told["predictions"]]
    assert told["n_right"] == sum(a == t for a, t in zip(answers, truth, strict=True))
    assert told["n_labelled"] == len(truth)


def test_a_file_without_the_models_columns_is_refused(
    drive: Drive, model: str, tmp_path: Path
) -> None:
    write_shop(tmp_path / "shop.csv")
    outcome = drive("predict", model, "shop.csv", "--out", "answers.csv")
    assert outcome.code == 1
    assert len(outcome.stderr.splitlines()) <= 2
    assert not Path("answers.csv").exists()


def test_what_is_no_model_is_refused(drive: Drive, tmp_path: Path) -> None:
    data = write_sine(tmp_path / "sine.csv")
    outcome = drive("predict", data, data)
    assert outcome.code == 1
    assert "sine.csv" in outcome.stderr
