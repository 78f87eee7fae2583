"""`driftquilt run` as a user types it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.cli.conftest import Drive
from tests.small_streams import write_sine


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
    assert told["models"][-1]["kept"] or told["models"][-1]["dropped"]
    lines = [json.loads(line) for line in Path("out/events.jsonl").read_text().splitlines()]
    assert any(line.get("event") == "DriftFound" for line in lines)
    page = Path(told["files"]["report"]).read_text()
    assert "all data" in page
    assert "current only" in page


def test_without_baselines_the_report_has_ours_alone(drive: Drive, tmp_path: Path) -> None:
    data = write_sine(tmp_path / "sine.csv", 2, 300)
    outcome = drive(*ask(data, "out"), "--no-baselines")
    assert outcome.code == 0, outcome.stderr
    assert outcome.stdout.splitlines()[-1] == "out/report.html"
    assert not Path("out/baselines.json").exists()


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
    wait_for(tmp_path / "parts" / "events.jsonl", "accuracy")
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
    assert "Going on with the stream in state" in again.stderr
    assert Path("out/events.jsonl").read_text() == before


def test_a_store_that_is_not_ours_is_refused_and_unharmed(drive: Drive, tmp_path: Path) -> None:
    data = write_sine(tmp_path / "sine.csv", 2, 100)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    outcome = drive(*ask(data, "out"), "--store", "mine")
    assert outcome.code == 1
    assert "mine" in outcome.stderr
    assert (tmp_path / "mine" / "letter.txt").read_text() == "dear"


def wait_for(path: Path, words: str) -> None:
    for _ in range(600):
        if path.exists() and words in path.read_text():
            return
        time.sleep(0.1)
    raise AssertionError(f"{path} never told of {words}")


def events(folder: str) -> list[object]:
    lines = map(json.loads, Path(folder, "events.jsonl").read_text().splitlines())
    return [{key: value for key, value in line.items() if key != "seconds"} for line in lines]
