"""`driftquilt predict` and `driftquilt export` as a user types them."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from sklearn.metrics import f1_score, log_loss, roc_auc_score

from driftquilt import QuiltClassifier
from tests.cli.conftest import Drive
from tests.integrations.onnx.runtime import NEAR, feed, run
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
    assert list(lines[0]) == ["row", "prediction", "p(0)", "p(1)"]
    assert [int(line["row"]) for line in lines] == list(range(len(expected)))
    told = drive("predict", model, "sine.csv", "--out", "answers.parquet", "--json").document()
    assert told["n_rows"] == len(expected)
    assert pq.read_table("answers.parquet")["prediction"].to_pylist() == expected.tolist()


def test_with_a_label_it_says_how_many_are_right(drive: Drive, model: str) -> None:
    told = drive("predict", model, "sine.csv", "--label", "label", "--json").document()
    truth = pyarrow.csv.read_csv("sine.csv")["label"].to_pylist()
    answers = [row["prediction"] for row in told["predictions"]]
    assert told["n_right"] == sum(a == t for a, t in zip(answers, truth, strict=True))
    assert told["n_labelled"] == len(truth)


def test_blanks_around_a_label_are_not_part_of_it(drive: Drive, tmp_path: Path) -> None:
    data = Path(write_shop(tmp_path / "shop.csv"))
    asked = ["--label", "bought", "--json"]
    plain = drive("select", str(data), *asked, "--segment-by", "month", "--out", "a").document()
    n_right = drive("predict", "a/model.safetensors", str(data), *asked).document()["n_right"]
    shop = pd.read_csv(data, dtype=str)
    shop.loc[::3, "bought"] += " "
    shop.to_csv("padded.csv", index=False)
    told = drive("select", "padded.csv", *asked, "--segment-by", "month", "--out", "b").document()
    assert told["classes"] == plain["classes"]
    assert told["methods"] == plain["methods"]
    assert any("blanks around labels of 'bought'" in check["sentence"] for check in told["checks"])
    found = drive("predict", "a/model.safetensors", "padded.csv", *asked).document()
    assert found["n_right"] == n_right


def test_labels_are_compared_as_they_read_and_those_missing_or_strange_are_told(
    drive: Drive, model: str
) -> None:
    asked = ["--label", "label", "--json"]
    n_right = drive("predict", model, "sine.csv", *asked).document()["n_right"]
    table = pyarrow.csv.read_csv("sine.csv")
    labels = table["label"].to_pylist()
    place = table.column_names.index("label")
    numbers = [float(label) for label in labels]
    for values in (list(map(str, labels)), numbers):
        pq.write_table(table.set_column(place, "label", pa.array(values)), "a.parquet")
        told = drive("predict", model, "a.parquet", *asked).document()
        assert (told["n_right"], told["n_labelled"]) == (n_right, len(labels))
    gaps = pa.array([float("nan"), None, 7.0, *numbers[3:]], from_pandas=False)
    pq.write_table(table.set_column(place, "label", gaps), "a.parquet")
    outcome = drive("predict", model, "a.parquet", "--label", "label", "--out", "b.parquet")
    assert f" of {len(labels) - 2} right; 2 rows without 'label'" in outcome.stderr
    assert "Note: 1 row with a 'label' that the model does not know" in outcome.stderr


@pytest.mark.parametrize(
    ("asked", "score"),
    [
        (["--metric", "roc_auc"], lambda y, p, _: roc_auc_score(y, p)),
        (["--metric", "log_loss"], lambda y, p, _: log_loss(y, p)),
        (["--metric", "f1"], lambda y, _, a: f1_score(y, a)),
        (["--cost", "1,0=5", "--cost", "0,1=1"], lambda y, _, a: np.mean(5 * (y > a) + (y < a))),
    ],
)
def test_a_metric_stands_beside_accuracy_and_unlabelled_rows_do_not_count(
    drive: Drive, model: str, asked: list[str], score: Any
) -> None:
    table = pyarrow.csv.read_csv("sine.csv")
    y = np.array(table["label"].to_pylist())
    place = table.column_names.index("label")
    labels = pa.array([None, "strange", *map(str, y[2:].tolist())])
    pq.write_table(table.set_column(place, "label", labels), "a.parquet")
    outcome = drive("predict", model, "a.parquet", "--label", "label", *asked, "--json")
    told = outcome.document()
    assert (told["n_labelled"], told["score"]["n_rows"]) == (len(y) - 1, len(y) - 2)
    lines = told["predictions"][2:]
    p, answers = (np.array([line[name] for line in lines]) for name in ("p(1)", "prediction"))
    assert told["score"]["value"] == pytest.approx(score(y[2:], p, answers), abs=1e-6)
    assert told["score"]["lower_is_better"] == (asked[1] not in ("roc_auc", "f1"))
    shown = drive("predict", model, "a.parquet", "--label", "label", *asked, "--out", "b.csv")
    right, scored = shown.stderr.splitlines()[-2:]
    assert right.startswith(f"{told['n_right']} of {len(y) - 1} right")
    assert scored.endswith(f" of {len(y) - 2} rows: {told['score']['value']:.4f}")


def test_a_metric_of_rows_with_one_label_is_not_defined_and_accuracy_says_little(
    drive: Drive, model: str
) -> None:
    table = pyarrow.csv.read_csv("sine.csv")
    pq.write_table(table.filter(pc.equal(table["label"], 0)), "a.parquet")
    asked = ["predict", model, "a.parquet", "--label", "label"]
    for metric in ("roc_auc", "f1"):
        outcome = drive(*asked, "--metric", metric, "--out", "b.csv")
        assert "not defined, because all have the label 0" in outcome.stderr
        assert "Note: always answering 0 gets" in outcome.stderr
        told = drive(*asked, "--metric", metric, "--json").document()
        assert told["score"]["value"] is None
        assert told["constant"] == {"label": "0", "n_right": told["n_labelled"]}
    assert "--metric names one that does" in drive(*asked, "--out", "b.csv").stderr


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        (["--metric", "roc_auc"], "--label"),
        (["--label", "label", "--metric", "roc_acu"], "roc_auc"),
        (["--label", "label", "--cost", "1,2=5"], "'2'"),
        (["--label", "label", "--metric", "f1", "--cost", "1,0=5"], "--cost"),
    ],
)
def test_a_metric_that_makes_no_sense_is_refused_before_anything_is_read(
    drive: Drive, model: str, asked: list[str], named: str
) -> None:
    outcome = drive("predict", model, "nowhere.csv", *asked)
    assert outcome.code == 1
    assert named in outcome.stderr
    assert "nowhere" not in outcome.stderr


def test_columns_of_the_data_are_carried_along_after_the_number_of_the_row(
    drive: Drive, model: str
) -> None:
    asked = ["predict", model, "sine.csv", "--keep", "segment", "--keep", "label"]
    table = pyarrow.csv.read_csv("sine.csv")
    shown = list(csv.DictReader(drive(*asked).stdout.splitlines()))
    assert list(shown[0]) == ["row", "segment", "label", "prediction", "p(0)", "p(1)"]
    assert [line["segment"] for line in shown] == table["segment"].to_pylist()
    told = drive(*asked, "--label", "label", "--json").document()["predictions"]
    assert [(line["row"], line["label"]) for line in told] == list(
        enumerate(table["label"].to_pylist())
    )
    assert drive(*asked, "--keep", "label", "--out", "answers.parquet").code == 0
    assert pq.read_table("answers.parquet")["segment"].to_pylist() == table["segment"].to_pylist()


def test_rows_of_several_blocks_and_files_are_numbered_on(
    drive: Drive, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("driftquilt.cli.predict._ROWS", 50)
    Path("more.csv").write_bytes(Path("sine.csv").read_bytes())
    told = drive("predict", model, "sine.csv", "more.csv", "--keep", "segment", "--json").document()
    assert [line["row"] for line in told["predictions"]] == list(range(720))
    segments = pyarrow.csv.read_csv("sine.csv")["segment"].to_pylist()
    assert [line["segment"] for line in told["predictions"]] == segments * 2


def test_a_column_that_the_model_goes_by_is_never_suggested_for_another(
    drive: Drive, model: str
) -> None:
    table = pyarrow.csv.read_csv("sine.csv")
    first, *_ = table.column_names  # x0, which all others are like
    pq.write_table(table.drop_columns([first]), "a.parquet")
    assert "did you mean" not in drive("predict", model, "a.parquet").stderr
    pq.write_table(table.rename_columns({first: f"{first} "}), "b.parquet")
    assert (
        f"no column {first!r}; did you mean '{first} '?"
        in drive("predict", model, "b.parquet").stderr
    )
    pq.write_table(table.rename_columns({"label": "lables"}), "c.parquet")
    asked = ["--label", "lable", "--keep", "lables"]
    assert "did you mean" not in drive("predict", model, "c.parquet", *asked).stderr


def test_what_cannot_be_kept_is_refused_in_one_line(drive: Drive, model: str) -> None:
    table = pyarrow.csv.read_csv("sine.csv")
    numbers = pa.array(range(table.num_rows))
    tags = pa.array([[1]] * table.num_rows)
    pq.write_table(table.append_column("row", numbers).append_column("tags", tags), "a.parquet")
    said = {
        "segmnet": "no column 'segmnet'; did you mean 'segment'?",
        "prediction": "no column 'prediction'; there are",
        "row": "column 'row' cannot be kept: the output has a column of that name",
        "tags": "column 'tags' cannot be kept: it holds list<",
    }
    for column, words in said.items():
        outcome = drive("predict", model, "a.parquet", "--keep", column)
        assert outcome.code == 1
        assert outcome.stdout == ""
        assert outcome.stderr.startswith(f"driftquilt: {words}")
        assert len(outcome.stderr.splitlines()) == 1
    bytes_ = pa.array([b"\xff"] * table.num_rows)
    pq.write_table(table.append_column("bytes", bytes_), "b.parquet")
    outcome = drive("predict", model, "b.parquet", "--keep", "bytes")
    assert outcome.code == 1
    assert "CSV cannot hold a column of --keep" in outcome.stderr
    assert len(outcome.stderr.splitlines()) == 1


def test_columns_that_the_model_does_not_know_may_hold_anything(drive: Drive, model: str) -> None:
    table = pyarrow.csv.read_csv("sine.csv")
    tags = pa.array([["a", "b"]] * table.num_rows)
    endless = pa.array([float("inf")] * table.num_rows)
    pq.write_table(table.append_column("tags", tags).append_column("z", endless), "a.parquet")
    assert drive("predict", model, "a.parquet").stdout == drive("predict", model, "sine.csv").stdout


def test_a_column_that_the_model_predicts_from_is_no_label(drive: Drive, model: str) -> None:
    outcome = drive("predict", model, "sine.csv", "--label", "x0")
    assert outcome.code == 1
    assert "'x0' is a column that the model predicts from, not the label" in outcome.stderr


def test_a_decimal_comma_is_noted_and_can_be_told(drive: Drive, model: str) -> None:
    text = Path("sine.csv").read_text().replace(",", ";").replace(".", ",")
    Path("europe.csv").write_text(text, encoding="utf-16")
    asked = ["predict", model, "europe.csv", "--encoding", "utf-16", "--delimiter", ";"]
    outcome = drive(*asked)
    assert outcome.code == 1
    assert "Note: europe.csv: column 'x0' is read as text, but looks like" in outcome.stderr
    read = drive(*asked, "--decimal", ",")
    assert read.code == 0, read.stderr
    assert read.stdout == drive("predict", model, "sine.csv").stdout
    assert read.stderr == ""


@pytest.mark.parametrize("place", ["/proc/x.csv", "nowhere/x.csv", "sine.csv/x.csv"])
def test_a_place_that_takes_no_file_is_one_line_without_a_draft(
    place: str, drive: Drive, model: str
) -> None:
    outcome = drive("predict", model, "sine.csv", "--out", place)
    assert outcome.code == 1
    (line,) = outcome.stderr.splitlines()
    assert place in line
    assert ".tmp" not in line


def test_a_file_without_the_models_columns_is_refused(
    drive: Drive, model: str, tmp_path: Path
) -> None:
    write_shop(tmp_path / "shop.csv")
    outcome = drive("predict", model, "shop.csv", "--out", "answers.csv")
    assert outcome.code == 1
    assert outcome.stderr.startswith("driftquilt: no column 'x0'; there are 'price'")
    assert len(outcome.stderr.splitlines()) <= 2
    assert not Path("answers.csv").exists()


def test_what_is_no_model_is_refused(drive: Drive, tmp_path: Path) -> None:
    data = write_sine(tmp_path / "sine.csv")
    outcome = drive("predict", data, data)
    assert outcome.code == 1
    assert "sine.csv" in outcome.stderr
    folder = drive("predict", str(tmp_path), data)
    assert folder.code == 1
    assert (
        folder.stderr == f"driftquilt: {tmp_path} is a folder; name a model file; it holds none\n"
    )


@pytest.fixture
def shop_model(drive: Drive, tmp_path: Path) -> str:
    data = str(write_shop(tmp_path / "shop.csv"))
    asked = ["--label", "bought", "--segment-by", "month", "--out", "out"]
    assert drive("select", data, *asked).code == 0
    return "out/model.safetensors"


def test_the_file_answers_as_the_model_does_on_the_rows_of_a_csv(
    drive: Drive, shop_model: str
) -> None:
    told = drive("export", shop_model, "--to", "model.onnx", "--json").document()
    table = pd.read_csv("shop.csv", parse_dates=["since"])
    columns = [one["name"] for one in told["inputs"]]
    label, probabilities = run(Path("model.onnx").read_bytes(), feed(table[columns]))
    expected = QuiltClassifier.load(shop_model).predict_proba(table[columns])
    np.testing.assert_allclose(probabilities, expected, rtol=0, atol=NEAR)
    assert set(label) <= set(told["classes"])
    assert told["n_bytes"] == Path("model.onnx").stat().st_size


def test_the_screen_says_what_goes_in_and_what_comes_out(drive: Drive, shop_model: str) -> None:
    shown = drive("export", shop_model, "--to", "model.onnx", "--missing", "?")
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
    drive: Drive, shop_model: str, to: str, why: str
) -> None:
    Path("folder.onnx").mkdir()
    outcome = drive("export", shop_model, "--to", to)
    assert outcome.code == 1
    assert why in outcome.stderr
    assert len(outcome.stderr.splitlines()) == 1


def test_what_is_no_model_is_refused_and_nothing_written(drive: Drive, shop_model: str) -> None:
    outcome = drive("export", "shop.csv", "--to", "model.onnx")
    assert outcome.code == 1
    assert "shop.csv" in outcome.stderr
    assert not Path("model.onnx").exists()
    assert Path(shop_model).exists()


def test_a_place_to_write_to_has_to_be_named(drive: Drive, shop_model: str) -> None:
    assert drive("export", shop_model).code == 2
