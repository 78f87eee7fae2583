"""`driftquilt select` as a user types it."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from driftquilt import QuiltClassifier
from driftquilt.quilt import Selection
from tests.cli.conftest import Drive
from tests.small_streams import write_shop, write_sine

WRITTEN = {"model.safetensors", "report.html", "selected.parquet", "selection.json"}


def test_a_file_becomes_a_table_a_model_rows_reasons_and_a_report(
    drive: Drive, tmp_path: Path
) -> None:
    data = write_sine(tmp_path / "sine.csv", 5, 400)
    outcome = drive("select", data, "--label", "label", "--segment-by", "segment", "--out", "out")
    assert outcome.code == 0, outcome.stderr
    assert {path.name for path in Path("out").iterdir()} == WRITTEN
    # Sine's fifth segment is the first concept again; the third is its opposite.
    lines = {line.split()[2]: line for line in outcome.stdout.splitlines() if "month" in line[:9]}
    assert " used " in lines["0"]
    assert "dropped" in lines["2"]
    assert "Quilt gets" in outcome.stdout
    assert outcome.stdout.splitlines()[-1] == "out/report.html"
    model = QuiltClassifier.load("out/model.safetensors")
    assert model.selection_["month 0"].used
    rows = pq.read_table("out/selected.parquet")
    assert {"month 0", "month 4"} <= set(rows["driftquilt_segment"].to_pylist())
    assert "month 2" not in rows["driftquilt_segment"].to_pylist()


def test_json_is_one_document_of_the_published_schema(drive: Drive, tmp_path: Path) -> None:
    data = str(write_shop(tmp_path / "shop.csv"))
    asked = ["select", data, "--label", "bought", "--segment-by", "month", "--json"]
    told = drive(*asked).document()
    assert [line["segment"] for line in told["past"]] == ["may", "june"]
    assert [method["name"] for method in told["methods"]] == ["Quilt", "all data", "current only"]
    assert set(told["files"]) == {"model", "rows", "reasons", "report"}
    assert told["n_held_out"] == 36
    written = json.loads(Path(told["files"]["reasons"]).read_text())
    assert (written["sentences"], written["blend"]) == (told["sentences"], told["blend"])
    assert sum(told["blend"].values()) == pytest.approx(1)
    made = Selection.from_json(written["selection"])
    assert told["sentences"][0].endswith(f"; {made.composition()}.")


def test_time_spans_cut_a_file_that_need_not_be_sorted(drive: Drive, tmp_path: Path) -> None:
    data = str(write_shop(tmp_path / "shop.csv"))
    asked = ["--label", "bought", "--time", "since", "--every", "1mo", "--drop", "month"]
    told = drive("select", data, *asked, "--json").document()
    assert [line["segment"] for line in told["past"]] == ["2023-05", "2023-06"]
    assert told["current"] == "2023-07"
    assert any("sorted" in note for note in told["warnings"])


def test_a_column_that_tells_the_segment_is_told_everywhere(drive: Drive, tmp_path: Path) -> None:
    data = Path(write_sine(tmp_path / "sine.csv"))
    head, *lines = data.read_text().splitlines()
    numbered = [f"id,{head}", *(f"{k},{line}" for k, line in enumerate(lines))]
    data.write_text("\n".join(numbered) + "\n")
    asked = ["select", str(data), "--label", "label", "--segment-by", "segment"]
    advice = "leave it out with --drop id"
    printed = " ".join(drive(*asked).stdout.split())
    assert "Data check: - column 'id' reveals the segment: hardly any value" in printed
    assert advice in printed
    told = drive(*asked, "--overwrite", "--json").document()
    assert told["checks"][0]["sentence"].endswith(advice)
    assert told["warnings"] == []
    assert advice in Path("select-out/report.html").read_text()
    asked += ["--drop", "id", "--overwrite"]
    assert drive(*asked, "--json").document()["checks"] == []
    assert "Data check: nothing found." in drive(*asked).stdout
    assert "Nothing was found." in Path("select-out/report.html").read_text()


def test_the_table_says_which_bound_and_which_scores_it_shows(drive: Drive, tmp_path: Path) -> None:
    data = write_sine(tmp_path / "sine.csv")
    asked = ["select", data, "--label", "label", "--segment-by", "segment"]
    bound = drive(*asked, "--json").document()["disparity_max"]
    printed = " ".join(drive(*asked, "--overwrite").stdout.split())
    assert "medians over epochs" in printed
    assert f"disparity is below {bound:.2f}" in printed
    model = QuiltClassifier.load("select-out/model.safetensors")
    assert model.disparity_max_ == bound
    report = Path("select-out/report.html").read_text()
    assert f"the bound is {bound:.3f}" in report
    assert f"bound {bound:.2f}," in model.selection_.explain()


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        (["--segment-by", "month"], "the values of the column 'month'"),
        (["--time", "since", "--every", "1mo"], "spans of 1mo of the column 'since'"),
        (["--detector", "hddm_a"], "the rows from drift to drift, as hddm_a finds them"),
    ],
)
def test_the_report_says_what_the_segments_are(
    drive: Drive, tmp_path: Path, asked: list[str], words: str
) -> None:
    data = tmp_path / "shop.csv"
    if "--detector" in asked:
        write_sine(data, 3, 1500)
        asked = [*asked, "--label", "label", "--drop", "segment"]
    else:
        write_shop(data)
        asked = [*asked, "--label", "bought"]
    assert drive("select", str(data), *asked, "--json").document()["cut"] == words
    page = html.unescape(Path("select-out/report.html").read_text())
    text = re.sub(r"<(script|style).*?</\1>", "", page, flags=re.DOTALL)
    assert f"Segments are {words}." in text
    if "--detector" not in asked:
        assert not re.search(r"\bdrifts?\b", re.sub(r"<[^>]*>", "", text))


def test_without_a_column_a_detector_cuts(drive: Drive, tmp_path: Path) -> None:
    data = write_sine(tmp_path / "sine.csv", 4, 1500)
    asked = ["--label", "label", "--drop", "segment", "--detector", "hddm_a"]
    told = drive("select", data, *asked, "--json").document()
    assert told["past"][0]["segment"].startswith("rows 0-")
    assert len(told["past"]) >= 2


def test_rows_may_come_through_a_pipe(drive: Drive, tmp_path: Path) -> None:
    data = Path(write_sine(tmp_path / "sine.csv", 3, 100)).read_bytes()
    asked = ["select", "-", "--label", "label", "--segment-by", "segment", "--json"]
    assert drive(*asked, stdin=data).document()["n_rows"] == 300


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (["--label", "labl", "--segment-by", "segment"], "no column 'labl'; did you mean 'label'?"),
        (["--label", "label", "--segment-by", "months"], "no column 'months'"),
        (["--label", "x0"], "--segment-by"),
        (["--label", "label", "--segment-by", "segment", "--metric", "rmse"], "of numbers"),
        (["--label", "label", "--segment-by", "label"], "'label' is the label"),
        (["--label", "label", "--segment-by", "segment", "--time", "x0"], "give one of them"),
        (["--label", "label", "--time", "x0"], "--time and --every belong together"),
        (["--label", "label", "--time", "x0", "--every", "1d"], "neither dates nor timestamps"),
        (["--label", "label", "--segment-by", "segment", "--current", "month 9"], "month 9"),
        (["--label", "label", "--detector", "adwine"], "adwine"),
        (["--label", "label", "--detector", "experts"], "`driftquilt run` does"),
        (["--label", "label", "--detector", "known"], "only Python can give; name one of"),
        (["--label", "label", "--segment-by", "segment", "--holdout", "0.99"], "holdout is 0.99"),
        (["--label", "label", "--segment-by", "segment", "--drop", "x9"], "no column 'x9'"),
    ],
)
def test_what_cannot_be_done_is_a_line_or_two_and_nothing_is_written(
    drive: Drive, tmp_path: Path, asked: list[str], message: str
) -> None:
    data = write_sine(tmp_path / "sine.csv")
    outcome = drive("select", data, *asked)
    assert outcome.code == 1
    assert outcome.stdout == ""
    assert message in outcome.stderr
    assert outcome.stderr.startswith("driftquilt: ")
    assert len(outcome.stderr.splitlines()) <= 2
    assert not Path("select-out").exists()


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "empty"), ("x,label,segment\n", "no rows"), ("x,label\n1,2,3\n", "line 2")],
)
def test_a_file_that_is_no_table_is_named(drive: Drive, text: str, message: str) -> None:
    Path("bad.csv").write_text(text)
    outcome = drive("select", "bad.csv", "--label", "label", "--segment-by", "segment")
    assert outcome.code == 1
    assert "bad.csv" in outcome.stderr
    assert message in outcome.stderr


def test_a_file_that_is_not_there_is_named_with_the_closest(drive: Drive, tmp_path: Path) -> None:
    write_sine(tmp_path / "sine.csv")
    outcome = drive("select", "sin.csv", "--label", "label", "--segment-by", "segment")
    assert outcome.code == 1
    assert "sine.csv" in outcome.stderr


def test_the_screen_has_the_digits_of_the_report(drive: Drive, tmp_path: Path) -> None:
    data = write_sine(tmp_path / "sine.csv")
    shown = drive("select", data, "--label", "label", "--segment-by", "segment", "--out", "out")
    for line in json.loads(Path("out/selection.json").read_text())["past"]:
        assert f"{line['gain']:+.4f}" in shown.stdout
        assert f"{line['correct']:.3f}" in shown.stdout


def test_the_report_can_be_written_anew_from_the_folder(drive: Drive, tmp_path: Path) -> None:
    data = write_sine(tmp_path / "sine.csv")
    asked = ["--label", "label", "--segment-by", "segment", "--out", "out"]
    assert drive("select", data, *asked).code == 0
    Path("out/report.html").unlink()
    told = drive("report", "out", "--json").document()
    assert told["files"] == {"report": "out/report.html"}
    assert "Retraining for month 2" in Path("out/report.html").read_text()


def test_a_folder_without_results_has_no_report(drive: Drive, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    outcome = drive("report", "mine")
    assert outcome.code == 1
    assert "neither selection.json nor events.jsonl" in outcome.stderr
