"""`driftquilt export` as a user types it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pytest

from driftquilt import QuiltClassifier
from tests.cli.conftest import Drive
from tests.integrations.onnx.runtime import NEAR, feed, run
from tests.small_streams import write_shop


@pytest.fixture
def model(drive: Drive, tmp_path: Path) -> str:
    data = str(write_shop(tmp_path / "shop.csv"))
    asked = ["--label", "bought", "--segment-by", "month", "--out", "out"]
    assert drive("select", data, *asked).code == 0
    return "out/model.safetensors"


def test_the_file_answers_as_the_model_does_on_the_rows_of_a_csv(drive: Drive, model: str) -> None:
    told = drive("export", model, "--to", "model.onnx", "--json").document()
    table = pd.read_csv("shop.csv", parse_dates=["since"])
    columns = [one["name"] for one in told["inputs"]]
    label, probabilities = run(Path("model.onnx").read_bytes(), feed(table[columns]))
    expected = QuiltClassifier.load(model).predict_proba(table[columns])
    np.testing.assert_allclose(probabilities, expected, rtol=0, atol=NEAR)
    assert set(label) <= set(told["classes"])
    assert told["n_bytes"] == Path("model.onnx").stat().st_size


def test_the_screen_says_what_goes_in_and_what_comes_out(drive: Drive, model: str) -> None:
    shown = drive("export", model, "--to", "model.onnx", "--missing", "?")
    assert shown.code == 0, shown.stderr
    lines = shown.stdout.splitlines()
    assert lines[0].startswith("model.onnx: ")
    assert "  in   price: float64, numbers; NaN where missing" in lines
    assert "  in   channel: string, text; '?' where missing" in lines
    assert lines[-1] == "  out  label, probabilities: of later, no, yes"


@pytest.mark.parametrize(
    ("to", "why"),
    [
        ("model.pt", "its name must end in .onnx"),
        ("nowhere/model.onnx", "nowhere/model.onnx: No such file or folder"),
        ("folder.onnx", "is a folder"),
    ],
)
def test_a_place_that_cannot_be_written_is_one_line(
    drive: Drive, model: str, to: str, why: str
) -> None:
    Path("folder.onnx").mkdir()
    outcome = drive("export", model, "--to", to)
    assert outcome.code == 1
    assert why in outcome.stderr
    assert len(outcome.stderr.splitlines()) == 1


def test_what_is_no_model_is_refused_and_nothing_written(drive: Drive, model: str) -> None:
    outcome = drive("export", "shop.csv", "--to", "model.onnx")
    assert outcome.code == 1
    assert "shop.csv" in outcome.stderr
    assert not Path("model.onnx").exists()
    assert Path(model).exists()


def test_a_place_to_write_to_has_to_be_named(drive: Drive, model: str) -> None:
    assert drive("export", model).code == 2
