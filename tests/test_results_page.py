"""What docs/results.md says of the full run is what its kept rows say."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from driftquilt.experiments.results import Result
from driftquilt.report.published import published
from driftquilt.report.tables import TABLES, Table, make_tables, method_table

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


def test_the_default_is_the_best_on_all_nine_and_two_points_above_the_paper(
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
    assert np.mean(above) == pytest.approx(0.020, abs=0.0005)


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
