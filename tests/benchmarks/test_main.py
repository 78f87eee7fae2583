"""`python -m benchmarks.cost` as a developer types it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "benchmarks.cost", *arguments]
    return subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)


def test_a_quick_run_measures_every_part_and_writes_both_files(tmp_path: Path) -> None:
    out = tmp_path / "bench-out"
    outcome = run("--quick", "--out", str(out))
    assert outcome.returncode == 0, outcome.stderr
    assert outcome.stdout.strip() == (out / "bench.md").read_text(encoding="utf-8").strip()
    read = json.loads((out / "bench.json").read_text(encoding="utf-8"))
    assert all(read[part] for part in ("drift", "kernels", "growth", "online", "startup"))
    assert list(read["ratios"]["drift"]) == ["one fold", "default", "paper"]
    assert "torch / default" in outcome.stdout
    assert read["notes"] == []


def test_a_part_that_does_not_exist_is_named(tmp_path: Path) -> None:
    outcome = run("--only", "speed", "--out", str(tmp_path))
    assert outcome.returncode == 1
    assert "speed" in outcome.stderr
