"""Ratios of known values, JSON that holds everything, and well-formed Markdown tables."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from benchmarks.cost.report import (
    drift_means,
    geometric_mean,
    growth_ratios,
    kernel_ratios,
    online_ratios,
    to_document,
    to_markdown,
    torch_ratios,
    write_bench,
)
from benchmarks.cost.run import Bench

from tests.benchmarks.values import BENCH, DRIFTS, MACHINE


def tables(markdown: str) -> dict[str, list[list[str]]]:
    """The cells of every table under its title; each row as wide as the head."""
    found = {}
    for part in markdown.split("\n## ")[1:]:
        title, *lines = part.splitlines()
        rows = [line for line in lines if line.startswith("|")]
        cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
        assert re.fullmatch(r"\| --- \|( ---: \|)+", rows[1])
        assert {len(row) for row in cells} == {len(cells[0])}
        found[title] = [cells[0], *cells[2:]]
    return found


def test_json_holds_every_value_and_ratio() -> None:
    read = to_document(BENCH)
    assert read["machine"]["cpu"] == "a | b"
    assert list(read["notes"]) == ["weather is left out"]
    assert len(read["drift"]) == len(BENCH.drift)
    assert read["drift"][0]["cpu_seconds"] == 2.0
    ratios = read["ratios"]
    assert ratios["drift"]["default"]["streams"] == {"sine": 4.0, "sea": 8.0}
    assert round(ratios["drift"]["default"]["geometric_mean"], 3) == 5.657
    assert ratios["growth"][0] == {"cpu_seconds": 15.0, "peak_bytes": 2.0}
    assert ratios["online"] == {"sine": {"HAT": 10.0}}


def test_markdown_has_a_table_per_part_and_the_notes() -> None:
    markdown = to_markdown(BENCH)
    assert "- weather is left out\n" in markdown
    found = list(tables(markdown).values())
    costs, accuracies, kernels, growth, online, startup = found
    assert costs[0] == ["stream", "default", "torch", "torch / default"]
    assert costs[1] == ["sine", "2.00 (4.00)", "8.00 (16.00)", "4.0"]
    assert costs[-1] == ["geometric mean", "", "", "5.7"]
    assert accuracies[2] == ["sea", "0.800", "0.900"]
    assert kernels[1] == ["4, 2", "60", "40", "1.5", "30", "10", "3.0"]
    assert growth[1] == ["80 of 2,000 rows", "30.00", "15.0", "400", "2.0", "2"]
    assert online[1] == ["sine, 4 features", "50,000", "5,000", "10.0"]
    assert startup[1] == ["`import driftquilt`", "0.12"]


def test_parts_that_were_not_measured_have_no_table() -> None:
    only = Bench(MACHINE, startup=BENCH.startup)
    assert list(tables(to_markdown(only))) == ["Start-up of a fresh process"]
    assert to_document(only)["ratios"]["drift"] == {}


def test_without_torch_its_columns_are_left_out() -> None:
    ours = tuple(cost for cost in BENCH.drift if cost.method != "torch")
    costs = next(iter(tables(to_markdown(Bench(MACHINE, drift=ours))).values()))
    assert costs == [["stream", "default"], ["sine", "2.00 (4.00)"], ["sea", "1.00 (2.00)"]]


def test_both_files_are_written(tmp_path: Path) -> None:
    write_bench(BENCH, tmp_path)
    assert json.loads((tmp_path / "bench.json").read_text(encoding="utf-8")) == json.loads(
        json.dumps(to_document(BENCH))
    )
    assert (tmp_path / "bench.md").read_text(encoding="utf-8") == to_markdown(BENCH)


def test_a_stream_counts_by_the_mean_over_its_segments() -> None:
    mean = drift_means(DRIFTS)["sea"]["default"]
    assert (mean.cpu_seconds, mean.wall_seconds) == (1.0, 2.0)
    assert mean.accuracy == pytest.approx(0.8)


def test_the_published_procedure_is_compared_stream_by_stream() -> None:
    assert torch_ratios(DRIFTS) == {"default": {"sine": 4.0, "sea": 8.0}}


def test_without_the_published_procedure_there_is_no_ratio() -> None:
    assert torch_ratios(cost for cost in DRIFTS if cost.method != "torch") == {}


def test_streams_are_summed_up_by_the_geometric_mean() -> None:
    assert geometric_mean([4.0, 9.0]) == pytest.approx(6.0)
    assert geometric_mean([0.5, 2.0]) == pytest.approx(1.0)


def test_kernels_are_multiples_of_their_products() -> None:
    assert kernel_ratios(BENCH.kernels[0]) == pytest.approx((1.5, 3.0))


def test_sizes_are_multiples_of_the_smallest_wherever_it_stands() -> None:
    assert growth_ratios(BENCH.growth) == [(15.0, 2.0), (1.0, 1.0)]
    assert growth_ratios([]) == []


def test_the_net_is_a_multiple_of_each_tree() -> None:
    assert online_ratios(BENCH.online) == {"sine": {"HAT": 10.0}}
    assert online_ratios(BENCH.online[1:]) == {}
