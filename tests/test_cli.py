"""The command line as a user types it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import driftquilt


def run(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Driftquilt in a process of its own, with plain output."""
    command = [sys.executable, "-c", "from driftquilt.cli import run; run()", *arguments]
    env = {**os.environ, "COLUMNS": "100", "NO_COLOR": "1", "TERM": "dumb"}
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, check=False)


def test_demo_prints_a_row_per_segment_and_writes_a_picture(tmp_path: Path) -> None:
    outcome = run("demo", "--out", "pictures", cwd=tmp_path)
    assert outcome.returncode == 0, outcome.stderr
    lines = [line.split() for line in outcome.stdout.splitlines() if "." in line]
    means = [float(cell) for line in lines if "mean" in line for cell in line if "0." in cell]
    quilt, all_data, current = means
    assert quilt > current > all_data
    assert sum(line[1].isdigit() for line in lines if len(line) > 1) == 8
    picture = ET.parse(tmp_path / "pictures" / "demo.svg").getroot()
    assert len(picture.findall("{http://www.w3.org/2000/svg}rect")) == 28


def test_version_is_the_packages(tmp_path: Path) -> None:
    assert run("--version", cwd=tmp_path).stdout.strip() == driftquilt.__version__


def test_help_of_the_demo_has_an_example(tmp_path: Path) -> None:
    assert "driftquilt demo --out" in run("demo", "--help", cwd=tmp_path).stdout


def test_an_unknown_command_is_a_usage_error(tmp_path: Path) -> None:
    outcome = run("dmeo", cwd=tmp_path)
    assert outcome.returncode == 2
    assert "demo" in outcome.stderr


def test_an_output_path_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    outcome = run("demo", "--out", "taken", cwd=tmp_path)
    assert outcome.returncode == 2
    assert "taken" in outcome.stderr
    assert (tmp_path / "taken").read_text() == "mine"


def test_a_folder_that_cannot_be_made_is_one_line_and_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("mine")
    outcome = run("demo", "--out", "taken/below", cwd=tmp_path)
    assert outcome.returncode == 1
    assert outcome.stderr.startswith("driftquilt: cannot read or write:")
    assert len(outcome.stderr.splitlines()) == 1
