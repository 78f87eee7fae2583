"""What docs/results.md says of the full run is what its kept rows say."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.prequential import read_lines

from benchmarks import bench_select, bench_service, prequential_numbers, service_limits
from driftquilt.paper.run import Result
from driftquilt.paper.tables import TABLES, Table, make_tables, method_table, published

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "results.md").read_text()


@pytest.fixture(scope="module")
def results() -> list[Result]:
    with gzip.open(ROOT / "benchmarks" / "results" / "results.jsonl.gz", "rt") as lines:
        return [Result(**json.loads(line)) for line in lines]


@pytest.fixture(scope="module")
def accuracy(results: list[Result]) -> Table:
    return method_table(results, TABLES[0])


def test_every_accuracy_on_the_page_is_that_of_the_rows(accuracy: Table) -> None:
    for method in accuracy.rows:
        line, *_ = [line for line in PAGE.splitlines() if line.startswith(f"| {method} |")]
        shown = [cell.strip().strip("*").split()[0].strip("*") for cell in line.split("|")[2:-1]]
        means = [accuracy.cells[method, dataset].ours for dataset in accuracy.columns]
        assert shown == [f"{mean:.3f}".lstrip("0") for mean in means]


def test_the_default_is_the_best_on_all_nine_and_nearly_two_points_above_the_paper(
    accuracy: Table,
) -> None:
    above = []
    for dataset in accuracy.columns:
        means = {method: accuracy.cells[method, dataset].ours for method in accuracy.rows}
        assert max(means, key=means.__getitem__) == "quilt_default"
        paper = published("accuracy_f1_runtime", dataset, "quilt", "accuracy")
        assert paper is not None
        above.append(means["quilt_default"] - paper)
    assert len(above) == 9
    assert min(above) > 0
    assert np.mean(above) == pytest.approx(0.019, abs=0.0005)


def test_the_selection_on_the_page_is_that_of_the_rows(results: list[Result]) -> None:
    [table] = [table for table in make_tables(results) if table.name == "selection"]
    for row in ("quilt, precision", "quilt, recall"):
        [line] = [line for line in PAGE.splitlines() if line.startswith(f"| {row} |")]
        shown = [cell.split()[0] for cell in line.split("|")[2:-1]]
        assert shown == [f"{table.cells[row, dataset].ours:.2f}" for dataset in table.columns]


def test_what_a_drift_costs_on_the_page_is_what_was_measured() -> None:
    measured = json.loads((ROOT / "benchmarks" / "results" / "drift.json").read_text())
    for method, words in (("default", "{:.1f} times less than"), ("one fold", "{:.1f} times less")):
        ratios = measured["ratios"]["drift"][method]
        assert words.format(ratios["geometric_mean"]) in PAGE
        for extreme in (min(ratios["streams"].values()), max(ratios["streams"].values())):
            assert f"{extreme:.1f}" in PAGE


def test_the_figures_of_the_readme_are_those_that_were_measured(accuracy: Table) -> None:
    readme, kept = (ROOT / "README.md").read_text(), ROOT / "benchmarks" / "results"
    papers = {d: published("accuracy_f1_runtime", d, "quilt", "accuracy") for d in accuracy.columns}
    above = [accuracy.cells["quilt_default", d].ours - (papers[d] or 0) for d in papers]
    assert f"{100 * np.mean(above):.1f} points above the paper's Quilt" in readme
    lines = map(json.loads, (kept / "prequential.jsonl").read_text().splitlines())
    live: dict[str, list[float]] = {}
    for line in lines:
        if line["seed"] == 0:
            live.setdefault(line["model"], []).append(line["accuracy"])
    for model in ("ours", "arf"):
        assert f"{np.mean(live[model]):.3f}".lstrip("0") in readme


def test_the_errors_of_live_numbers_are_those_that_were_measured() -> None:
    kept = ROOT / "benchmarks" / "results"
    lines = read_lines(kept / "prequential_numbers.jsonl")
    text = prequential_numbers.to_markdown(lines)
    assert text == (kept / "prequential_numbers.md").read_text()
    table = text.split("## Seed 0, all rows\n\n")[1].split("\n\n")[0]
    assert len(table.splitlines()) == 8
    assert table in PAGE
    of_seed = [line for line in lines if line["seed"] == 0]
    assert prequential_numbers.conditions(of_seed, "mae") == (5, 6)
    assert "first on five of six" in PAGE
    other = [line for line in lines if line["seed"] == 100]
    assert prequential_numbers.conditions(of_seed, "mae_second_half") == (5, 6)
    assert prequential_numbers.conditions(other, "mae") == (3, 3)
    assert "five of six and three of three" in PAGE
    cost = dict.fromkeys(prequential_numbers.MODELS, 0.0)
    for line in of_seed:
        cost[line["model"]] += line["cpu_seconds"]
    shown = (cost[model] for model in ("ours", "soknl", "arf", "sgbr"))
    words = "{:.0f} CPU seconds for the six, where SOKNL took {:.0f}, ARF {:.0f} and Streaming"
    assert words.format(*shown) in PAGE


def test_the_costs_that_other_pages_show_are_those_of_the_bench() -> None:
    kept, page = ROOT / "benchmarks" / "results", (ROOT / "docs" / "when-not-to-use.md").read_text()
    for line in (kept / "bench.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.split("|")[1:-1]]
        if cells and cells[0].endswith("000 rows") and "of 20,000" not in cells[0]:
            name = cells[0].replace(" of ", " segments of ")
            assert f"| {name} | {cells[1]} s | {cells[3]} MB |" in page
    rows = [line.split("|") for line in (kept / "drift.md").read_text().splitlines()[8:17]]
    costs = [float(row[3].split()[0]) for row in rows]
    assert len(costs) == 9
    span = f"{min(costs):.2f} to {max(costs):.2f}"
    assert all(span in text for text in (page, PAGE, (ROOT / "docs" / "index.md").read_text()))


@pytest.mark.parametrize(
    ("name", "to_text"),
    [
        ("service", bench_service.to_text),
        ("limits", service_limits.to_text),
        ("select", bench_select.to_text),
    ],
)
def test_figures_on_the_page_are_those_that_were_kept(
    name: str, to_text: Callable[[Any], str]
) -> None:
    found = json.loads((ROOT / "benchmarks" / "results" / f"{name}.json").read_text())
    assert to_text(found) in PAGE


def test_the_page_on_limits_has_the_selection_of_the_rows(results: list[Result]) -> None:
    [table] = [table for table in make_tables(results) if table.name == "selection"]
    page = (ROOT / "docs" / "when-not-to-use.md").read_text()
    said = {
        "recall": "finds {} to {} of what belongs",
        "precision": "only {} to {} of what it uses",
    }
    for row, words in said.items():
        found = [table.cells[f"quilt_default, {row}", name].ours for name in table.columns]
        ends = (f"{end:.2f}".lstrip("0") for end in (min(found), max(found)))
        assert words.format(*ends) in page
