"""`driftquilt run` as a user types it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pytest

from driftquilt.cli.run import Timer, print_progress
from driftquilt.decision.backtest import baselines, params_of
from driftquilt.decision.journal import read_replay
from driftquilt.decision.replay import Replay
from driftquilt.stream import QuiltStream
from tests.cli.conftest import Drive
from tests.decision.tables import sine_table
from tests.processes import wait_for
from tests.small_streams import write_sine
from tests.stream.streams import start


def ask(data: str, out: str) -> list[str]:
    return ["run", data, "--label", "label", "--drop", "segment", "--detector", "hddm_a",
            "--out", out]  # fmt: skip


def test_a_file_is_replayed_and_told_of_in_events_and_a_report(
    drive: Drive, tmp_path: Path
) -> None:
    data = write_sine(tmp_path / "sine.csv", 3, 600)
    told = drive(*ask(data, "out"), "--json").document()
    assert told["n_rows"] == 1800
    assert told["n_drifts"] >= 1
    last = told["models"][-1]
    assert len(last["weights"]) == 2
    assert set(last["used"]) <= set(last["weights"])
    assert sum(last["blend"].values()) == pytest.approx(1)
    lines = [json.loads(line) for line in Path("out/events.jsonl").read_text().splitlines()]
    assert any(line.get("event") == "DriftFound" for line in lines)
    page = Path(told["files"]["report"]).read_text()
    assert "all data" in page
    assert "current only" in page


def test_a_metric_is_reported_over_time_and_stays_that_of_the_stream(
    drive: Drive, tmp_path: Path
) -> None:
    data = write_sine(tmp_path / "sine.csv", 3, 600)
    asked = [*ask(data, "out"), "--no-baselines", "--store", "state"]
    told = drive(*asked, "--metric", "roc_auc", "--json").document()
    score = told["score"]
    assert (score["metric"], score["lower_is_better"], score["window"]) == ("roc_auc", False, 1000)
    assert [line["row"] for line in score["over_time"]] == list(range(200, 1801, 200))
    with QuiltStream.open("state") as stream:
        assert stream.status().score == score["value"] == score["over_time"][-1]["value"]
    again = drive(*asked, "--cost", "1,0=5")
    assert f"The AUC of the last 1,000 rows is {score['value']:.3f}." in again.stdout
    assert "--metric stays roc_auc; for cost start a new one" in again.stderr
    page = Path("out/report.html").read_text()
    assert "AUC over time" in page
    plain = drive(*ask(data, "plain"), "--no-baselines", "--json").document()
    assert plain["score"] is None
    assert plain["n_right"] == told["n_right"]
    assert "AUC over time" not in Path("plain/report.html").read_text()


def test_a_metric_is_the_same_after_a_kill(tmp_path: Path) -> None:
    table = sine_table(2, 350)
    for name in ("whole", "parts"):
        with start(tmp_path / name / "store", scoring="log_loss") as stream:
            end = 700 if name == "whole" else 330
            steps = Replay(stream, tmp_path / name).run(table[:end], "label", drop=["segment"])
            list(steps)
            stream.close(discard=True)
    with QuiltStream.open(tmp_path / "parts" / "store", wait=True) as stream:
        list(Replay(stream, tmp_path / "parts").run(table, "label", drop=["segment"]))
    whole, parts = (read_replay(tmp_path / name).scores for name in ("whole", "parts"))
    del parts[330]  # the end of the first part
    assert parts == whole
    assert whole[700] is not None


def test_where_most_labels_are_the_same_accuracy_does_not_stand_alone(
    drive: Drive, tmp_path: Path
) -> None:
    lines = ["a,b,label"]
    rng = Random(0)  # noqa: S311
    lines += [f"{rng.random()},{rng.random()},{'no' if k % 20 else 'yes'}" for k in range(400)]
    (tmp_path / "rare.csv").write_text("\n".join(lines) + "\n")
    asked = ["run", "rare.csv", "--label", "label", "--no-baselines"]
    told = drive(*asked, "--json").document()
    assert told["score"]["metric"] == "balanced_accuracy"
    assert any("always answering no gets 380 of 400 rows right" in w for w in told["warnings"])
    shown = drive(*asked)
    assert "The balanced accuracy of the last 400 rows is" in shown.stdout
    assert "always answering no" in Path("run-out/report.html").read_text()
    chosen = drive(*asked, "--metric", "average_precision", "--json").document()
    assert chosen["score"]["metric"] == "average_precision"


def test_without_baselines_the_report_has_ours_alone(drive: Drive, tmp_path: Path) -> None:
    data = write_sine(tmp_path / "sine.csv", 2, 300)
    outcome = drive(*ask(data, "out"), "--no-baselines")
    assert outcome.code == 0, outcome.stderr
    assert outcome.stdout.splitlines()[-1] == "out/report.html"
    about = json.loads(Path("out/run.json").read_text())
    assert about["baselines"] == {}
    assert about["origin"]["command"].endswith("--no-baselines")
    digest = hashlib.sha256(Path(data).read_bytes()).hexdigest()
    assert [file["sha256"] for file in about["origin"]["data"]] == [digest]


def test_rows_without_a_label_are_counted_also_at_the_end(drive: Drive, tmp_path: Path) -> None:
    lines = Path(write_sine(tmp_path / "sine.csv", 2, 100)).read_text().splitlines()
    place = lines[0].split(",").index("label")
    for number in (20, 21, -3, -2, -1):
        cells = lines[number].split(",")
        cells[place] = ""
        lines[number] = ",".join(cells)
    Path("late.csv").write_text("\n".join(lines) + "\n")
    told = drive(*ask("late.csv", "out"), "--json").document()
    assert (told["n_rows"], told["n_skipped"]) == (195, 2)
    assert "no 'label' in the last 3 of 200 rows, not replayed" in told["warnings"]
    assert "the last 3 of 200 rows" in Path("out/report.html").read_text()


def test_columns_that_are_not_learned_from_are_told_and_in_the_report(
    drive: Drive, tmp_path: Path
) -> None:
    table = pacsv.read_csv(write_sine(tmp_path / "sine.csv", 2, 100))
    ids = pa.array([f"user {row}" for row in range(table.num_rows)])
    pacsv.write_csv(table.append_column("id", ids), "ids.csv")
    told = drive(*ask("ids.csv", "out"), "--json").document()
    assert told["warnings"] == ["columns that cannot be learned from are left out: 'id'"]
    page = Path("out/report.html").read_text()
    assert 'id="columns"' in page
    assert "nearly every row has a text of its own" in page
    Path("out/report.html").unlink()
    assert drive("report", "out").code == 0
    assert Path("out/report.html").read_text() == page


def test_without_a_store_a_replay_starts_over(drive: Drive, tmp_path: Path) -> None:
    data = write_sine(tmp_path / "sine.csv", 2, 300)
    whole, half = ask(data, "out"), tmp_path / "half.csv"
    assert drive(*whole, "--no-baselines").code == 0
    before = events("out")
    lines = Path(data).read_text().splitlines(keepends=True)
    half.write_text("".join([*lines[:400], lines[400].replace(lines[400].split(",")[0], "inf")]))
    refused = drive(*ask(str(half), "out"), "--no-baselines")
    assert refused.code == 1, refused.stdout
    assert events("out") == before  # what was there stays until there is another
    assert drive(*whole, "--no-baselines").code == 0
    assert events("out") == before
    assert sorted(path.name for path in Path("out").iterdir()) == [
        "events.jsonl", "report.html", "run.json",
    ]  # fmt: skip


def test_killed_and_called_again_it_ends_as_if_nothing_had_been(
    drive: Drive, tmp_path: Path
) -> None:
    data = write_sine(tmp_path / "sine.csv", 3, 600)
    whole = drive(*ask(data, "whole"), "--store", "whole-state", "--json").document()
    again = [*ask(data, "parts"), "--store", "state", "--json"]
    code = "from driftquilt.cli.app import main; main()"
    child = subprocess.Popen(
        [sys.executable, "-c", code, *again], cwd=tmp_path, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    events_file = tmp_path / "parts" / "events.jsonl"
    wait_for(lambda: events_file.exists() and "accuracy" in events_file.read_text())
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    told = drive(*again).document()
    assert told | {"files": None} == whole | {"files": None}
    assert events("parts") == events("whole")


def test_of_a_finished_store_nothing_is_run_again(drive: Drive, tmp_path: Path) -> None:
    data = write_sine(tmp_path / "sine.csv", 2, 200)
    asked = [*ask(data, "out"), "--store", "state", "--no-baselines"]
    first = drive(*asked)
    before = Path("out/events.jsonl").read_text()
    again = drive(*asked)
    assert again.code == 0
    assert again.stdout == first.stdout
    assert "Continuing the stream in state" in again.stderr
    assert Path("out/events.jsonl").read_text() == before


def test_a_store_that_is_not_ours_is_refused_and_unharmed(drive: Drive, tmp_path: Path) -> None:
    data = write_sine(tmp_path / "sine.csv", 2, 100)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    outcome = drive(*ask(data, "out"), "--store", "mine")
    assert outcome.code == 1
    assert "mine" in outcome.stderr
    assert (tmp_path / "mine" / "letter.txt").read_text() == "dear"


def test_by_time_a_shuffled_file_is_replayed_as_the_ordered_one(
    drive: Drive, tmp_path: Path
) -> None:
    table = timed(tmp_path, 2, 400)
    pacsv.write_csv(table, "ordered.csv")
    pacsv.write_csv(shuffled(table), "shuffled.csv")
    asked = ["--time", "when", "--no-baselines", "--json"]
    told = drive(*ask("ordered.csv", "ordered"), *asked)
    again = drive(*ask("shuffled.csv", "sorted"), *asked)
    apart = {"files": None, "warnings": None}
    assert told.document() | apart == again.document() | apart
    assert events("ordered")[1:] == events("sorted")[1:]
    assert "have been sorted" not in told.stderr
    note = "the rows were not in order of 'when' and have been sorted"
    assert f"Note: {note}" in again.stderr
    assert note in again.document()["warnings"]
    assert note.replace("'", "&#39;") in Path("sorted/report.html").read_text()


def test_by_time_a_store_goes_on_if_the_new_rows_are_later(drive: Drive, tmp_path: Path) -> None:
    table = timed(tmp_path, 2, 400)
    on_time = table.filter(pc.field("when") != table["when"][100])
    pacsv.write_csv(on_time.slice(0, 500), "begun.csv")
    pacsv.write_csv(table, "late.csv")
    pacsv.write_csv(shuffled(on_time), "grown.csv")
    asked = ["--time", "when", "--no-baselines", "--store", "state"]
    assert drive(*ask("begun.csv", "out"), *asked).code == 0
    late = drive(*ask("late.csv", "out"), *asked)
    assert late.code == 1
    assert "row 500 of the stream differs" in late.stderr
    grown = drive(*ask("grown.csv", "out"), *asked, "--json").document()
    assert grown["n_rows"] == 799


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (["--label", "labl"], "no column 'labl'; did you mean 'label'?"),
        (["--label", "x0"], "the label 'x0' holds numbers"),
        (["--label", "label", "--detector", "every_rows"], "--detector every_rows needs settings"),
    ],
)
def test_a_replay_that_is_refused_leaves_no_folder_behind(
    drive: Drive, tmp_path: Path, asked: list[str], message: str
) -> None:
    outcome = drive("run", write_sine(tmp_path / "sine.csv", 2, 100), *asked, "--out", "out")
    assert outcome.code == 1
    assert message in outcome.stderr
    assert not Path("out").exists()


def test_ctrl_c_leaves_no_folder_that_was_not_there(tmp_path: Path) -> None:
    data = write_sine(tmp_path / "sine.csv", 4, 20_000)
    code = "from driftquilt.cli.app import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", code, *ask(data, "out")], cwd=tmp_path, stderr=subprocess.PIPE
    ) as child:
        assert child.stderr is not None
        draft = tmp_path / "out" / ".events.jsonl.tmp"
        while not (draft.exists() and draft.read_bytes().count(b"\n") > 1):  # it learns
            assert child.poll() is None
            time.sleep(0.01)
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == 130
        told = child.stderr.read().splitlines()
    assert told[-1] == b"driftquilt: stopped; a replay with --store can be continued"
    assert not (tmp_path / "out").exists()


def test_an_earlier_run_is_not_mixed_with_one_that_is_stopped_before_its_report(
    drive: Drive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_sine(tmp_path / "sine.csv", 3, 600)
    assert drive(*ask(data, "out")).code == 0

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("driftquilt.cli.run.baselines", stop)
    assert drive(*ask(data, "out"), "--seed", "1").code == 130
    assert [path.name for path in Path("out").iterdir()] == ["events.jsonl"]
    assert drive("report", "out").code == 0


def test_a_grown_file_that_is_stopped_has_no_report_of_its_beginning(
    drive: Drive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_sine(tmp_path / "sine.csv", 3, 600)
    lines = Path(data).read_text().splitlines(keepends=True)
    Path(data).write_text("".join(lines[:1201]))
    asked = [*ask(data, "out"), "--store", "state"]
    assert drive(*asked).code == 0
    Path(data).write_text("".join(lines))

    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("driftquilt.cli.run._watch", stop)
    assert drive(*asked).code == 130
    assert [path.name for path in Path("out").iterdir()] == ["events.jsonl"]


def test_a_run_that_is_refused_leaves_no_store_that_others_have_to_go_on_with(
    drive: Drive, tmp_path: Path
) -> None:
    data = write_sine(tmp_path / "sine.csv", 2, 100)
    assert drive(*ask(data, "out"), "--store", "first").code == 0
    outcome = drive(*ask(data, "out"), "--store", "second")
    assert outcome.code == 1
    assert "continue with the stream that wrote it" in outcome.stderr
    assert not Path("second").exists()
    assert Path("first").exists()


def test_parameters_reach_the_stream_which_keeps_them(drive: Drive, tmp_path: Path) -> None:
    data = write_sine(tmp_path / "sine.csv", 3, 200)
    asked = [*ask(data, "out"), "--store", "state"]
    assert drive(*asked, "--param", "hidden_units=8", "--param", "max_epochs=20").code == 0
    with QuiltStream.open("state") as stream:
        assert params_of(stream.estimator) == {"hidden_units": 8, "max_epochs": 20}
    again = drive(*asked, "--param", "hidden_units=9").stderr
    assert "--param hidden_units=8 max_epochs=20" in again
    assert "so --param stays hidden_units=8 max_epochs=20; for hidden_units=9 start a new" in again
    refused = drive(*ask(data, "other"), "--param", "hiden_units=8")
    assert (refused.code, "did you mean 'hidden_units'" in refused.stderr) == (1, True)


def test_without_new_rows_the_baselines_are_not_trained_again(
    drive: Drive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_sine(tmp_path / "sine.csv", 3, 400)
    lines = Path(data).read_text().splitlines(keepends=True)
    asked = [*ask(data, "out"), "--store", "state"]
    assert drive(*asked, "--no-baselines").code == 0
    assert json.loads(Path("out/run.json").read_text())["baselines"] == {}
    assert drive(*asked).code == 0
    before = json.loads(Path("out/run.json").read_text())["baselines"]
    assert set(before) == {"all data", "current only"}
    calls = list[int]()

    def count(*args: Any, **settings: Any) -> Any:
        calls.append(1)
        return baselines(*args, **settings)

    monkeypatch.setattr("driftquilt.cli.run.baselines", count)
    assert drive(*asked).code == 0
    assert json.loads(Path("out/run.json").read_text())["baselines"] == before
    assert calls == []
    Path(data).write_text("".join([*lines, *lines[1:30]]))
    assert drive(*asked).code == 0
    assert calls == [1]


def test_a_time_that_is_no_time_is_refused(drive: Drive, tmp_path: Path) -> None:
    data = write_sine(tmp_path / "sine.csv", 2, 100)
    outcome = drive(*ask(data, "out"), "--time", "label")
    assert outcome.code == 1
    assert "'label' is the label" in outcome.stderr
    outcome = drive(*ask(data, "out"), "--time", "segment")
    assert "column 'segment' holds 'month 0', which is not a date" in outcome.stderr


def test_off_a_terminal_drifts_and_progress_are_lines_on_standard_error(
    drive: Drive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("driftquilt.cli.run._SECONDS", 0.0)
    data = write_sine(tmp_path / "sine.csv", 2, 400)
    outcome = drive(*ask(data, "out"), "--json")
    assert outcome.document()["n_rows"] == 800
    lines = outcome.stderr.splitlines()
    assert any(re.fullmatch(r"row 4\d\d: drift found", line) for line in lines)
    assert sum(line.startswith("600 of 800 rows, ") for line in lines) == 1
    assert any(line.startswith("Training baselines: ") for line in lines)


def test_other_data_for_a_store_is_refused_with_what_differs_and_nothing_before(
    drive: Drive, tmp_path: Path
) -> None:
    data = write_sine(tmp_path / "sine.csv", 2, 200)
    other = write_sine(tmp_path / "other.csv", 2, 100)
    asked = ["--store", "state", "--no-baselines"]
    assert drive(*ask(data, "out"), *asked).code == 0
    table = pacsv.read_csv(other)
    pacsv.write_csv(table.rename_columns(["size", *table.column_names[1:]]), "other.csv")
    outcome = drive(*ask("other.csv", "out"), *asked)
    assert outcome.code == 1
    (line,) = outcome.stderr.splitlines()
    assert "sine.csv' (400 rows), and this is 'other.csv' (200 rows)" in line
    assert "Columns gone: 'x0'; columns new: 'size'" in line
    assert "Continuing" not in line


def test_columns_that_tell_the_segments_found_are_noted_until_they_are_dropped(
    drive: Drive, tmp_path: Path
) -> None:
    data = write_sine(tmp_path / "sine.csv", 2, 600)
    asked = ["run", data, "--label", "label", "--detector", "hddm_a", "--no-baselines", "--json"]
    told = drive(*asked, "--out", "with")
    assert told.document()["n_drifts"] == 1
    assert "Note: column 'segment' reveals the segment" in told.stderr
    assert "with --drop segment\n" in told.stderr
    assert "reveals the segment" not in drive(*asked, "--drop", "segment", "--out", "no").stderr


def test_settings_typed_for_a_stream_that_has_others_are_said_to_stay(
    drive: Drive, tmp_path: Path
) -> None:
    data = write_sine(tmp_path / "sine.csv", 2, 200)
    asked = ["run", data, "--label", "label", "--drop", "segment", "--store", "state",
             "--no-baselines"]  # fmt: skip
    assert drive(*asked, "--detector", "hddm_a", "--n-wait", "50").code == 0
    again = drive(*asked)
    assert "with its settings: --detector hddm_a, --n-wait 50, --seed 0" in again.stderr
    assert "Note" not in again.stderr
    changed = drive(*asked, "--detector", "adwin", "--n-wait", "50")
    (note,) = [line for line in changed.stderr.splitlines() if line.startswith("Note")]
    assert "so --detector stays hddm_a; for adwin start a new one" in note
    assert drive(*asked[:-1], "--detector", "adwin").code == 0
    page = Path("run-out/report.html").read_text()  # tells what was typed, and what holds
    assert "--detector adwin  # Continuing the stream" in page
    assert "with its settings: --detector hddm_a" in page


def test_class_weights_steer_the_answers_and_stay_with_the_stream(
    drive: Drive, tmp_path: Path
) -> None:
    data = write_sine(tmp_path / "sine.csv", 2, 300)
    refused = drive(*ask(data, "out"), "--class-weight", "2=5", "--store", "state")
    assert refused.code == 1
    assert "class_weight names '2'; there are '0', '1'" in refused.stderr
    assert not Path("state").exists()
    weighed = [*ask(data, "out"), "--store", "state", "--json"]
    one = drive(*weighed, "--class-weight", "1=50").document()
    plain = drive(*ask(data, "plain"), "--json").document()
    assert one["accuracy"] < plain["accuracy"] - 0.05  # it answers 1 more often than is right
    again = drive(*weighed, "--class-weight", "balanced")
    assert "--class-weight 1=50" in again.stderr
    assert "so --class-weight stays 1=50; for balanced start a new one" in again.stderr
    with QuiltStream.open("state") as stream:
        assert stream.class_weight == {"1": 50.0}


def test_a_line_is_due_ten_seconds_after_the_last() -> None:
    moments = iter([0.0, 9.9, 10.0, 19.9, 35.0, 44.0, 45.0])
    timer = Timer(lambda: next(moments))
    assert [timer.is_due() for _ in range(6)] == [False, True, False, True, False, True]


def test_a_stream_that_goes_on_tells_its_new_drifts_only(tmp_path: Path) -> None:
    table, told = sine_table(3, 250), list[str]()
    detector = {"kind": "known", "points": [249, 499]}
    with start(tmp_path / "store", detector=detector) as stream:
        steps = Replay(stream, tmp_path).run(table.slice(0, 300), "label", drop=["segment"])
        print_progress(steps, stream, told.append, Timer())
    assert told == ["row 250: drift found"]
    with QuiltStream.open(tmp_path / "store", wait=True) as stream:
        steps = Replay(stream, tmp_path).run(table, "label", drop=["segment"])
        print_progress(steps, stream, told.append, Timer())
    assert told == ["row 250: drift found", "row 500: drift found"]


def timed(folder: Path, n_segments: int, n_rows: int) -> pa.Table:
    """A sine stream with an hour for each row."""
    table = pacsv.read_csv(write_sine(folder / "sine.csv", n_segments, n_rows))
    begin = datetime(2024, 3, 5)
    hours = [begin + timedelta(hours=number) for number in range(table.num_rows)]
    return table.append_column("when", [hours])


def shuffled(table: pa.Table) -> pa.Table:
    return table.take(Random(0).sample(range(table.num_rows), table.num_rows))  # noqa: S311


def events(folder: str) -> list[object]:
    lines = map(json.loads, Path(folder, "events.jsonl").read_text().splitlines())
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]
