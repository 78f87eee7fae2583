"""`driftquilt predict` and `driftquilt export` with a model of numbers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.linear_model import LinearRegression

from driftquilt import QuiltRegressor, QuiltSelector
from tests.cli.conftest import Drive
from tests.quilt.test_regressor import drifting


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A net, a selector around a regressor, and rows to predict."""
    path = tmp_path_factory.mktemp("numbers")
    X, y, month, X_test, y_test = drifting()
    table = pa.table({f"x{k}": X[:, k] for k in range(3)})
    net = QuiltRegressor(hidden_units=16, max_epochs=10, random_state=0, n_jobs=1)
    net.fit(table, y, segments=month).save(path / "net.safetensors")
    lines = table.to_pandas()
    selector = QuiltSelector(LinearRegression(), quilt=net, random_state=0)
    selector.fit(lines, y, segments=month).save(path / "lines.safetensors")
    columns = {f"x{k}": X_test[:, k] for k in range(3)}
    pq.write_table(pa.table({**columns, "price": y_test}), path / "new.parquet")
    return path


def test_numbers_and_intervals_are_those_of_the_loaded_model(drive: Drive, folder: Path) -> None:
    model, data = str(folder / "net.safetensors"), str(folder / "new.parquet")
    outcome = drive("predict", model, data, "--label", "price", "--out", "answers.parquet")
    assert outcome.code == 0, outcome.stderr
    assert "mean absolute error" in outcome.stderr
    assert "lie in the interval, which is for 80%" in outcome.stderr
    answers, rows = pq.read_table("answers.parquet"), pq.read_table(data).drop_columns(["price"])
    net = QuiltRegressor.load(model)
    assert answers.column_names == ["row", "prediction", "low", "high"]
    np.testing.assert_array_equal(answers["prediction"].to_numpy(), net.predict(rows))
    ends = np.column_stack([answers["low"].to_numpy(), answers["high"].to_numpy()])
    np.testing.assert_array_equal(ends, net.predict_interval(rows))


def test_json_has_the_errors_and_the_metric(drive: Drive, folder: Path) -> None:
    model, data = str(folder / "lines.safetensors"), str(folder / "new.parquet")
    asked = ["--label", "price", "--metric", "rmse", "--json"]
    document = drive("predict", model, data, *asked).document()
    y = pq.read_table(data)["price"].to_numpy()
    off = np.array([row["prediction"] for row in document["predictions"]]) - y
    assert document["mae"] == pytest.approx(np.abs(off).mean())
    assert document["score"]["value"] == pytest.approx(np.sqrt((off**2).mean()))
    assert document["coverage"] is None
    assert document["n_labelled"] == document["n_rows"] == len(y)


def test_rows_without_a_number_do_not_count_and_text_is_refused(drive: Drive, folder: Path) -> None:
    model, rows = str(folder / "net.safetensors"), pq.read_table(folder / "new.parquet")
    gaps = pa.array([None, *rows["price"].to_pylist()[1:]])
    pq.write_table(rows.drop_columns(["price"]).append_column("price", gaps), "gaps.parquet")
    document = drive("predict", model, "gaps.parquet", "--label", "price", "--json").document()
    assert document["n_labelled"] == document["n_rows"] - 1
    words = pa.array(["dear"] * len(rows))
    pq.write_table(rows.drop_columns(["price"]).append_column("price", words), "words.parquet")
    outcome = drive("predict", model, "words.parquet", "--label", "price")
    assert outcome.code != 0
    assert "price" in outcome.stderr


@pytest.mark.parametrize(
    "asked", [["--cost", "a,b=1", "--label", "price"], ["--metric", "mae"], ["--metric", "f1"]]
)
def test_an_option_of_the_other_task_is_refused(
    drive: Drive, folder: Path, asked: list[str]
) -> None:
    model, data = str(folder / "net.safetensors"), str(folder / "new.parquet")
    outcome = drive("predict", model, data, *asked)
    assert outcome.code != 0
    assert asked[0] in outcome.stderr


def test_a_net_of_numbers_is_written_as_onnx(drive: Drive, folder: Path) -> None:
    pytest.importorskip("onnxruntime")
    outcome = drive("export", str(folder / "net.safetensors"), "--to", "net.onnx")
    assert outcome.code == 0, outcome.stderr
    assert "prediction, interval: for 80% of the targets" in outcome.stdout
    assert [output.name for output in onnx.load("net.onnx").graph.output] == [
        "prediction",
        "interval",
    ]
