"""The command line as a user types it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

import driftquilt
from driftquilt.cli.app import COMMANDS, load_command
from tests.cli.conftest import Drive
from tests.processes import PATIENCE, wait_for
from tests.small_streams import write_sine

DOCS = Path(__file__).parents[2] / "docs"
MAIN = "from driftquilt.cli.app import main; main()"


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Driftquilt in a process of its own, with plain output."""
    command = [sys.executable, "-c", MAIN, *arguments]
    env = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)


def patch_classes(picture: Path) -> list[str]:
    """Of each patch of a quilt, which tell those that were used."""
    classes = [group.get("class", "") for group in ET.parse(picture).getroot().iter()]
    return [words for words in classes if "patch" in words.split()]


def test_demo_prints_a_row_per_segment_and_writes_a_picture(tmp_path: Path) -> None:
    outcome = run("demo", "--out", "pictures", cwd=tmp_path)
    assert outcome.returncode == 0, outcome.stderr
    lines = [line.split() for line in outcome.stdout.splitlines() if "." in line]
    means = [float(cell) for line in lines if "mean" in line for cell in line if "0." in cell]
    quilt, all_data, current = means
    assert quilt > current > all_data
    assert sum(line[1].isdigit() for line in lines if len(line) > 1) == 8
    patches = patch_classes(tmp_path / "pictures" / "demo.svg")
    assert len(patches) == 28
    assert patches == patch_classes(DOCS / "demo.svg")  # the picture of README and docs
    assert (tmp_path / "pictures" / "report.html").stat().st_size <= 400_000


def test_version_is_the_packages(tmp_path: Path) -> None:
    assert run("--version", cwd=tmp_path).stdout.strip() == driftquilt.__version__


def test_an_unknown_command_is_a_usage_error(tmp_path: Path) -> None:
    outcome = run("dmeo", cwd=tmp_path)
    assert outcome.returncode == 2
    assert "demo" in outcome.stderr


@pytest.mark.parametrize("share", ["1", "2", "-0.1", "nan"])
def test_a_share_out_of_range_is_a_usage_error(share: str, tmp_path: Path) -> None:
    outcome = run("select", "x.csv", "--label", "y", "--holdout", share, cwd=tmp_path)
    assert outcome.returncode == 2
    assert "from 0 to below 1" in outcome.stderr


def test_an_output_path_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    outcome = run("demo", "--out", "taken", cwd=tmp_path)
    assert outcome.returncode == 2
    assert "taken" in outcome.stderr
    assert (tmp_path / "taken").read_text() == "mine"


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_an_example_and_speaks_json(command: str, tmp_path: Path) -> None:
    text = run(command, "--help", cwd=tmp_path).stdout
    assert f"Example: driftquilt {command}" in " ".join(text.split())
    assert "--json" in text


def test_every_command_has_a_schema_and_every_schema_a_command(tmp_path: Path) -> None:
    listed = run("--help", cwd=tmp_path).stdout
    names = {path.stem for path in (DOCS / "schemas").glob("*.json")}
    commands = set(re.findall(r"^│ ([a-z]+) ", listed.partition("Commands")[2], re.MULTILINE))
    assert names == commands == {*COMMANDS}


def loaded_modules(*arguments: str, cwd: Path) -> set[str]:
    """The modules of ours that a command loads."""
    code = (
        "import sys; from driftquilt.cli.app import app; app(standalone_mode=False); "
        "print(*sys.modules)"
    )
    command = [sys.executable, "-c", code, *arguments]
    ended = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=True)
    return {name for name in ended.stdout.split() if name.startswith("driftquilt.")}


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_load_no_command(option: str, tmp_path: Path) -> None:
    assert loaded_modules(option, cwd=tmp_path) <= {
        "driftquilt.cli", "driftquilt.cli.app", "driftquilt.errors", "driftquilt.files",
        "driftquilt.lazy",
    }  # fmt: skip


def test_select_imports_neither_server_nor_stream_nor_paper(tmp_path: Path) -> None:
    write_sine(tmp_path / "sine.csv")
    asked = ["sine.csv", "--label", "label", "--segment-by", "segment", "--out", "out"]
    packages = {name.split(".")[1] for name in loaded_modules("select", *asked, cwd=tmp_path)}
    assert {"data", "decision", "quilt", "report"} <= packages
    assert not {"server", "client", "paper", "brokers", "stream", "store"} & packages


def test_datasets_and_demo_speak_json(drive: Drive) -> None:
    assert len(drive("datasets", "--json").document()["datasets"]) == 9
    told = drive("demo", "--json").document()
    # Segment 4 is the concept of segment 0 again, 5 that of 1, and so on.
    used = {line["segment"]: line["used"] for line in told["segments"]}
    assert all(str(number - 4) in used[str(number)] for number in (4, 5, 6, 7))


def test_a_reader_who_goes_away_is_no_traceback(tmp_path: Path) -> None:
    write_sine(tmp_path / "sine.csv", 3, 2000)
    driven = f"{sys.executable} -c '{MAIN}'"
    train = f"{driven} select sine.csv --label label --segment-by segment --out out --json"
    script = f"{train} > /dev/null && {driven} predict out/model.safetensors sine.csv | head -1"
    ended = subprocess.run(
        ["/bin/bash", "-c", f"set -o pipefail; {script}"], cwd=tmp_path, capture_output=True,
        text=True, check=False,
    )  # fmt: skip
    assert ended.stdout.splitlines() == ['"row","prediction","p(0)","p(1)"']
    assert ended.returncode == 1
    assert "Traceback" not in ended.stderr
    assert "BrokenPipe" not in ended.stderr


def test_ctrl_c_leaves_nothing_half_written(tmp_path: Path) -> None:
    write_sine(tmp_path / "sine.csv", 3, 5000)
    asked = ["select", "sine.csv", "--label", "label", "--segment-by", "segment"]
    env = {**os.environ, "FORCE_COLOR": "1"}
    with subprocess.Popen(
        [sys.executable, "-c", MAIN, *asked], cwd=tmp_path, stderr=subprocess.PIPE, env=env
    ) as child:
        assert child.stderr is not None
        told = b""
        while b"Training" not in told:
            assert child.poll() is None
            told += child.stderr.read(1)
        child.send_signal(signal.SIGINT)
        assert child.wait(60) == 130
        rest = child.stderr.read()
        assert b"Traceback" not in rest
        assert rest.splitlines()[-1].endswith(b"driftquilt: stopped")
    assert not (tmp_path / "select-out").exists()


def test_what_is_stopped_while_it_writes_leaves_no_folder(
    drive: Drive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("driftquilt.decision.decision._write_rows", stop)
    data = write_sine(tmp_path / "sine.csv")
    assert drive("select", data, "--label", "label", "--segment-by", "segment").code == 130
    assert not Path("select-out").exists()


def test_ctrl_c_is_reported_in_one_line(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", MAIN, "demo"], cwd=tmp_path, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    ) as child:  # fmt: skip
        wait_for((tmp_path / "demo-out").exists)  # the command runs
        child.send_signal(signal.SIGINT)
        _, errors = child.communicate(timeout=PATIENCE)
    assert child.returncode == 130
    assert errors.splitlines()[-1] == b"driftquilt: stopped"  # kernels may be compiled before


@pytest.mark.parametrize("command", COMMANDS)
def test_ctrl_c_while_a_command_is_loaded_is_reported_too(
    command: str, drive: Drive, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(_: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("driftquilt.cli.app.load_command", stop)
    outcome = drive(command)
    assert (outcome.code, outcome.stderr) == (130, "driftquilt: stopped\n")


@pytest.mark.parametrize("command", COMMANDS)
def test_the_list_of_commands_says_what_each_docstring_begins_with(command: str) -> None:
    assert load_command(command).help.partition("\n\n")[0] == COMMANDS[command]


def test_a_full_disk_under_standard_output_is_one_line(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-c", MAIN, "datasets", "--json"], cwd=tmp_path, stdout=full,
            stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert ended.returncode == 1
    assert ended.stderr.startswith("driftquilt: cannot read or write: the disk is full; free some")
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.parametrize("asked", [["demo", "--out", "/proc/x"], ["demo", "--out", "taken/x"]])
def test_a_folder_that_cannot_be_is_named_with_what_is_wrong(
    asked: list[str], tmp_path: Path
) -> None:
    (tmp_path / "taken").write_text("mine")
    outcome = run(*asked, cwd=tmp_path)
    assert outcome.returncode == 1
    (line,) = outcome.stderr.splitlines()
    assert line.startswith(f"driftquilt: cannot read or write: {asked[-1]}: ")
    assert "Errno" not in line
