"""The values of the tables, against figures worked out by hand, and how they are written."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from driftquilt.paper.plan import EXPERIMENTS
from driftquilt.paper.run import Result
from driftquilt.paper.tables import (
    TABLES,
    Table,
    Value,
    make_tables,
    precision_recall,
    summarise,
    to_csv,
    to_html,
    to_markdown,
)


def result(
    method: str = "quilt",
    dataset: str = "sea",
    *,
    segment: int = 0,
    seed: int = 0,
    accuracy: float = 0.5,
    usage: float | None = None,
    selected: list[int] | None = None,
) -> Result:
    return Result(
        dataset,
        method,
        segment,
        seed,
        data="",
        protocol="honest",
        accuracy=accuracy,
        f1=accuracy / 2,
        seconds=3.0,
        cpu_seconds=2.0,
        training_seconds=1.0,
        training_cpu_seconds=1.0,
        epochs=10,
        usage=usage,
        selected=selected,
    )


def table(results: list[Result], name: str, experiments: tuple[str, ...] = ()) -> Table:
    return next(table for table in make_tables(results, experiments) if table.name == name)


FOUR = [
    result(segment=0, seed=0, accuracy=0.8),
    result(segment=0, seed=1, accuracy=0.9),
    result(segment=1, seed=0, accuracy=0.4),
    result(segment=1, seed=1, accuracy=0.8),
]


def test_a_value_is_the_mean_over_seeds_then_over_segments() -> None:
    value = summarise(FOUR, lambda r: r.accuracy)
    assert value is not None
    assert value.ours == pytest.approx((0.85 + 0.6) / 2)
    assert value.spread == pytest.approx((0.05 + 0.2) / 2)


def test_a_segment_counts_once_however_many_seeds_it_has() -> None:
    value = summarise(FOUR[:3], lambda r: r.accuracy)
    assert value is not None
    assert value.ours == pytest.approx((0.85 + 0.4) / 2)
    assert value.spread == pytest.approx((0.05 + 0.0) / 2)


def test_one_seed_has_no_spread() -> None:
    value = summarise(FOUR[::2], lambda r: r.accuracy)
    assert value is not None
    assert value.ours == pytest.approx(0.6)
    assert value.spread is None


def test_nothing_measured_is_no_value() -> None:
    assert summarise(FOUR, lambda r: r.usage) is None
    assert summarise([], lambda r: r.accuracy) is None


def test_a_cell_has_the_papers_figure_and_the_difference() -> None:
    value = table(FOUR, "accuracy", ("accuracy",)).cells["quilt", "sea"]
    assert value.paper == 0.888
    assert value.difference == pytest.approx(0.725 - 0.888)


def test_a_cell_that_the_paper_lacks_has_no_difference() -> None:
    results = [replace(r, dataset="own.csv") for r in FOUR]
    value = table(results, "accuracy", ("accuracy",)).cells["quilt", "own.csv"]
    assert (value.paper, value.difference) == (None, None)


@pytest.mark.parametrize(
    ("name", "method", "expected"),
    [
        ("f1", "quilt", 0.909),
        ("runtime", "quilt", 2.20),
        ("runtime-whole", "quilt", None),
        ("ablation", "quilt_without_gain", 0.881),
        ("initialization", "quilt", 0.888),
        ("initialization-runtime", "quilt", 2.20),
    ],
)
def test_each_table_stands_beside_its_own_figures(
    name: str, method: str, expected: float | None
) -> None:
    spec = next(spec for spec in TABLES if spec.name == name)
    found = table([result(method)], name, (spec.experiment,)).cells[method, "sea"]
    assert found.paper == expected


@pytest.mark.parametrize("spec", TABLES, ids=lambda spec: spec.name)
def test_the_paper_has_a_figure_for_every_cell_of_its_tables(spec: object) -> None:
    assert isinstance(spec, type(TABLES[0]))
    experiment = EXPERIMENTS[spec.experiment]
    found = {
        (method, dataset)
        for method in experiment.methods
        for dataset in experiment.datasets
        if spec.published(dataset, method) is not None
    }
    expected = {(m, d) for m in experiment.methods for d in experiment.datasets}
    expected -= {("quilt_default", d) for d in experiment.datasets}
    assert found == (expected if spec.paper_table else set())


def test_the_best_is_the_highest_as_printed_and_ties_share_it() -> None:
    cells = {("a", "x"): Value(0.8881), ("b", "x"): Value(0.8879), ("c", "x"): Value(0.887)}
    made = Table("t", "accuracy", "T", list("abc"), ["x"], cells)
    assert made.best("x") == 0.888
    assert made.best("y") is None


def test_the_best_time_is_the_lowest_and_epochs_have_no_best() -> None:
    cells = {("a", "x"): Value(2.0), ("b", "x"): Value(1.0)}
    assert Table("t", "", "T", list("ab"), ["x"], cells, 2, "lower").best("x") == 1.0
    assert Table("t", "", "T", list("ab"), ["x"], cells, 2, None).best("x") is None


@pytest.mark.parametrize(
    ("selected", "gold", "expected"),
    [
        ({1, 2}, {2, 3, 4}, (1 / 2, 1 / 3)),
        (set(), {2}, (1.0, 0.0)),
        ({2}, set(), (0.0, 1.0)),
        (set(), set(), (1.0, 1.0)),
        ({1}, {1}, (1.0, 1.0)),
    ],
)
def test_precision_and_recall_of_a_choice(
    selected: set[int], gold: set[int], expected: tuple[float, float]
) -> None:
    assert precision_recall(selected, gold) == expected


def test_selection_is_measured_against_the_gold_of_the_same_seed() -> None:
    results = [
        result("best_segments", segment=1, seed=0, selected=[0]),
        result("best_segments", segment=1, seed=1, selected=[]),
        result(segment=1, seed=0, selected=[0]),
        result(segment=1, seed=1, selected=[0]),
        result(segment=1, seed=2, selected=[]),  # for which there is no gold
    ]
    found = table(results, "selection").cells
    assert found["quilt, precision", "sea"].ours == 0.5
    assert found["quilt, precision", "sea"].spread == 0.5
    assert found["quilt, recall", "sea"].ours == 1.0
    assert found["quilt, precision", "sea"].paper is not None
    assert not any("best_segments" in row for row, _ in found)


def everything(*extra: str) -> list[Result]:
    """One result for each method and stream of every experiment."""
    cells = {
        (method, dataset): None
        for experiment in EXPERIMENTS.values()
        for dataset in experiment.datasets
        for method in (*experiment.methods, *extra)
    }
    return [
        result(
            method,
            dataset,
            usage=0.5 if "quilt" in method else None,
            selected=[] if "quilt" in method or method == "best_segments" else None,
        )
        for method, dataset in cells
    ]


def test_a_method_of_ones_own_is_in_every_table() -> None:
    tables = make_tables(everything("mine"))
    assert {made.name for made in tables} == {*(spec.name for spec in TABLES), "selection"}
    for made in tables:
        assert any(row.split(",")[0] == "mine" for row in made.rows), made.name


def test_a_method_of_ones_own_that_tells_its_choice_is_measured_too() -> None:
    results = [*everything(), result("mine", selected=[1])]
    assert table(results, "selection").cells["mine, precision", "sea"].ours == 0.0


def test_rows_and_columns_are_in_the_papers_order_and_ones_own_come_last() -> None:
    results = [result("mine", "own.csv"), *reversed(everything("mine"))]
    made = table(results, "accuracy")
    assert made.rows == [*EXPERIMENTS["accuracy"].methods, "mine"]
    assert made.columns == [*EXPERIMENTS["accuracy"].datasets, "own.csv"]
    assert table(results, "initialization").columns == [
        *EXPERIMENTS["initialization"].datasets,
        "own.csv",
    ]


def test_the_long_stream_is_in_no_table_of_accuracy() -> None:
    for made in make_tables(everything()):
        assert "random_rbf:20" not in made.columns
        assert {column for _, column in made.cells} <= set(made.columns)


def test_a_stream_cut_short_is_a_stream_of_ones_own() -> None:
    assert table([result(dataset="sine:3")], "accuracy", ("accuracy",)).columns == ["sine:3"]


def test_cells_that_were_not_run_stay_empty() -> None:
    made = table([result("quilt", "sea"), result("hat", "sine")], "accuracy")
    assert set(made.cells) == {("quilt", "sea"), ("hat", "sine")}
    assert (made.rows, made.columns) == (["hat", "quilt"], ["sea", "sine"])


def test_a_table_that_would_compare_nothing_is_left_out_unless_asked_for() -> None:
    accuracy_only = [result("quilt"), result("hat")]
    assert {made.experiment for made in make_tables(accuracy_only)} == {"accuracy"}
    asked = make_tables(accuracy_only, ["accuracy", "ablation"])
    assert {made.experiment for made in asked} == {"accuracy", "ablation"}


def test_nothing_run_makes_no_table() -> None:
    assert make_tables([], ["accuracy", "selection"]) == []


TABLE = Table(
    "accuracy",
    "accuracy",
    "Accuracy",
    rows=["hat", "quilt"],
    columns=["sea", "sine"],
    cells={
        ("hat", "sea"): Value(0.825, 0.01, 0.826),
        ("quilt", "sea"): Value(0.8884, 0.004, 0.888),
        ("quilt", "sine"): Value(1.0, None, None),
    },
)


def test_markdown_has_ours_in_bold_if_best_then_spread_paper_and_difference() -> None:
    assert to_markdown(TABLE).splitlines() == [
        "### Accuracy",
        "",
        "| | sea | sine |",
        "| --- | ---: | ---: |",
        "| hat | .825 ±.010 (.826, -.001) |  |",
        "| quilt | **.888** ±.004 (.888, +.000) | **1.000** |",
    ]


@pytest.mark.parametrize(
    ("ours", "told"),
    [(0.8876, "+.000"), (0.8884, "+.000"), (0.887, "-.001"), (0.99, "+.102"), (0.0, "-.888")],
)
def test_the_sign_is_that_of_the_difference_as_printed(ours: float, told: str) -> None:
    cells = {("quilt", "sea"): Value(ours, None, 0.888)}
    made = Table("t", "accuracy", "T", ["quilt"], ["sea"], cells, better=None)
    assert f"(.888, {told})" in to_markdown(made)


def test_seconds_keep_their_zero() -> None:
    cells = {("quilt", "sea"): Value(0.5, 0.25, 2.2)}
    made = Table("t", "accuracy", "T", ["quilt"], ["sea"], cells, 2, "lower")
    assert "| quilt | **0.50** ±0.25 (2.20, -1.70) |" in to_markdown(made)


def test_csv_has_one_line_per_cell_with_all_digits() -> None:
    lines = list(csv.DictReader(io.StringIO(to_csv([TABLE]))))
    assert len(lines) == 3
    assert lines[1] == {
        "table": "accuracy",
        "row": "quilt",
        "column": "sea",
        "ours": "0.8884",
        "spread": "0.004",
        "paper": "0.888",
        "difference": "0.0004",
    }
    assert [lines[2][name] for name in ("spread", "paper", "difference")] == ["", "", ""]


class Reader(HTMLParser):
    """Collects the tags and the text of a page."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, _: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_html_says_the_same() -> None:
    read = Reader(to_html(TABLE))
    assert read.tags.count("tr") == 3
    assert read.tags.count("td") == 4
    assert read.tags.count("b") == 2
    assert "".join(read.text) == (
        "Accuracyseasinehat.825 ±.010.826, -.001quilt.888 ±.004.888, +.0001.000"
    )


EVIL = '<script>alert("1")</script>|a\nb,c'


@pytest.fixture
def evil() -> Table:
    return Table("t", "accuracy", EVIL, [EVIL], [EVIL], {(EVIL, EVIL): Value(0.5)})


def test_names_cannot_break_out_of_html(evil: Table) -> None:
    read = Reader(to_html(evil))
    assert "script" not in read.tags
    assert read.text.count(EVIL) == 3


def test_names_cannot_break_out_of_a_markdown_cell(evil: Table) -> None:
    *_, head, rule, row = to_markdown(evil).splitlines()
    assert rule == "| --- | ---: |"
    assert head.replace(r"\|", "").count("|") == row.replace(r"\|", "").count("|") == 3
    assert "<script" not in to_markdown(evil)


def test_names_cannot_break_out_of_csv(evil: Table) -> None:
    assert next(csv.DictReader(io.StringIO(to_csv([evil]))))["row"] == EVIL
