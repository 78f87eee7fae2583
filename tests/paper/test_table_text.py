"""Tables as text: what a cell reads, and names that stay in their cell."""

from __future__ import annotations

import csv
import io
from html.parser import HTMLParser

import pytest

from driftquilt.paper.tables import Table, Value, to_csv, to_html, to_markdown

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
