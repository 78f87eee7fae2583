"""The page on many machines shows the figures that were measured, and its code runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
FIGURES: dict[str, Any] = json.loads((ROOT / "benchmarks" / "results" / "ray.json").read_text())


def row(name: str) -> str:
    measured, predicted = FIGURES[name], FIGURES[f"{name}, predicted"]
    seconds = f"{measured['look']} s | {measured['drift']} s"
    return f"| {name} | {seconds} | {predicted['look']} s, {predicted['drift']} s |"


def test_the_figures_are_those_of_the_kept_run() -> None:
    shown = [
        row("one worker"),
        row("two workers"),
        f"| {FIGURES['look, one / two']} | {FIGURES['drift, one / two']} |",
        f"takes {FIGURES['search, Ray / pool']} times as long",
        f"a drift takes {FIGURES['small, local']['small']} s here on threads",
        f"and {FIGURES['small, Ray']['small']} s on two Ray workers",
        f"took {FIGURES['seconds more when a node is lost']:.1f} s longer here",
    ]
    assert [words for words in shown if words not in PAGE] == []


def test_the_kept_run_is_within_its_bounds() -> None:
    assert FIGURES["n_rows"] >= 5_000_000
    assert FIGURES["look, one / two"] >= 1.6
    assert FIGURES["drift, one / two"] >= 1.6
    assert FIGURES["search, Ray / pool"] <= 1.1
    assert FIGURES["seconds more when a node is lost"] < 5


def test_the_prediction_is_worth_its_name() -> None:
    for name in ("one worker", "two workers"):
        for what in ("look", "drift"):
            assert abs(FIGURES[f"{name}, predicted"][what] / FIGURES[name][what] - 1) < 0.25
