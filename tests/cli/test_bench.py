"""`driftquilt bench` as a user types it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from tests.cli.test_app import run

ROOT = Path(__file__).parents[2]


def test_a_quick_run_measures_every_part_and_writes_both_files(tmp_path: Path) -> None:
    (tmp_path / "benchmarks").mkdir()
    shutil.copy(ROOT / "benchmarks" / "torch_quilt.py", tmp_path / "benchmarks")
    outcome = run("bench", "--quick", cwd=tmp_path)
    assert outcome.returncode == 0, outcome.stderr
    out = tmp_path / "bench-out"
    assert outcome.stdout.strip() == (out / "bench.md").read_text(encoding="utf-8").strip()
    read = json.loads((out / "bench.json").read_text(encoding="utf-8"))
    assert all(read[part] for part in ("drift", "kernels", "growth", "online", "startup"))
    assert list(read["ratios"]["drift"]) == ["one fold", "default", "paper"]
    assert "torch / default" in outcome.stdout
    assert read["notes"] == []


def test_outside_a_checkout_one_line_says_what_is_left_out(tmp_path: Path) -> None:
    outcome = run("bench", "--quick", "--only", "drift", "--out", "here", cwd=tmp_path)
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.count("the published procedure in torch is left out") == 1
    assert "| torch" not in outcome.stdout
    assert (tmp_path / "here" / "bench.json").exists()


def test_a_part_that_does_not_exist_is_one_line(tmp_path: Path) -> None:
    outcome = run("bench", "--only", "speed", cwd=tmp_path)
    assert outcome.returncode == 1
    assert outcome.stderr.splitlines()[-1].startswith("driftquilt: there is no part 'speed'")


def test_help_has_an_example(tmp_path: Path) -> None:
    assert "driftquilt bench --only" in run("bench", "--help", cwd=tmp_path).stdout
