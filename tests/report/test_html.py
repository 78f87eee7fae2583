"""The report as a file: whole, self-contained, and deaf to what the data would like to be."""

from __future__ import annotations

import re
import sys
import time
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest

from driftquilt.errors import MissingExtraError
from driftquilt.quilt.explanation import TriedSet
from driftquilt.report.html import render, view, write_report
from driftquilt.report.lines import accuracy_chart
from driftquilt.report.page import Page
from tests.report.pages import HOSTILE, drifts, full_page, hostile_page, large_page


class Reader(HTMLParser):
    """Collects the tags with their attributes, and the text outside of scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] not in ("script", "style"):
            self.words.append(data)

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.tags)


@pytest.fixture(scope="module")
def read() -> Reader:
    return Reader(render(full_page()))


def test_the_training_sets_of_another_model_are_a_table_also_on_a_phone() -> None:
    last = drifts()[-1]
    n = len(last.selection)
    sets = (TriedSet(n, False, 900, 40, -0.7, 0.0), TriedSet(1, False, 300, 40, -0.25, 1.0))
    weights = tuple(float(s == last.selection.ranking[0]) for s in range(n))
    selection = replace(last.selection, sets=sets, weights=weights, metric="log_loss")
    html = render(Page("Boosted", (), (replace(last, selection=selection),)))
    table = html.partition('<table class="sortable cards sets">')[2].partition("</table>")[0]
    rows = table.split("<tr")[2:]
    assert ["all data</th>" in rows[0], "0.700</td>" in rows[0]] == [True, True]
    assert ["the best segment (" in rows[1], "0.250</td>" in rows[1]] == [True, True]
    assert [' class="out"' in row for row in rows] == [True, False]  # chosen ones stand out
    assert all(row.count("<td") == row.count(' data-label="') == 4 for row in rows)
    assert "No set without it did well enough to be judged to the end (rank 1 of" in html
    assert f"rank 1 of {n}" in html
    assert "Disparity, median" not in html


@pytest.mark.parametrize(("n_segments", "is_wide"), [(2, False), (30, True)])
def test_a_quilt_that_a_phone_cuts_off_says_so(n_segments: int, is_wide: bool) -> None:
    words = " ".join(Reader(render(large_page(1, n_segments))).words)
    assert ("scroll it sideways" in words) == is_wide


def test_the_number_of_models_is_a_tile_only_where_there_are_several() -> None:
    (first, _), *_ = view(Page("One", (), drifts()[-1:]))["tiles"]
    assert " of " in first
    assert view(Page("All", (), drifts()))["tiles"][0][1] == "models"


def test_everything_of_the_page_is_told(read: Reader) -> None:
    page, text = full_page(), " ".join(read.words)
    told = [
        f"Segments are {page.cut}.",
        page.title,
        *page.sentences,
        *page.warnings,
        *(f"{finding.sentence}." for finding in page.checks or ()),
        page.command,
        "12 values",
        "AUC over time",
        "0.1.0",
    ]
    told += [f"{use.reason[1:]}." for drift in page.drifts for use in drift.uses]
    told += [drift.selection.composition() for drift in page.drifts if drift.uses]
    told += [f"the bound is {drift.selection.disparity_max:.3f}." for drift in page.drifts[1:]]
    told += [f"{value:.3f}" for drift in page.drifts for value in drift.accuracies.values()]
    assert [words for words in told if words not in text] == []


def test_tiles_say_how_many_segments_were_used_and_from_when_accuracy_counts() -> None:
    page = full_page()
    n_used = sum(use.used for drift in page.drifts for use in drift.uses)
    (_, _), (used, words), (_, ours), *_ = view(page)["tiles"]
    assert used == f"{n_used} of 10"
    assert words == "past segments used; over all models"
    assert ours == "mean accuracy of Quilt over models, from when each model took over"


def test_each_drift_has_its_segments_and_its_search(read: Reader) -> None:
    page = full_page()
    n_past = sum(len(drift.selection) for drift in page.drifts)
    with_past = [drift for drift in page.drifts if drift.uses]
    n_bounds = sum(len(drift.bounds) for drift in with_past)
    assert sum(attrs.get("class") == "why" for _, attrs in read.tags) == n_past + 2 + 1
    assert sum(attrs.get("class") == "won" for _, attrs in read.tags) == 2 * len(with_past)
    tables = 1 + 1 + 1 + 3 * len(with_past)
    assert read.count("table") == tables
    assert read.count("tr") == n_past + n_bounds + len(page.drifts) + 2 + 1 + 1 + tables


def test_headings_come_in_order(read: Reader) -> None:
    levels = [int(tag[1]) for tag, _ in read.tags if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))


def test_every_control_has_a_name_and_every_reference_a_target(read: Reader) -> None:
    ids = [attrs["id"] for _, attrs in read.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    for key in ("aria-labelledby", "for"):
        assert {attrs[key] for _, attrs in read.tags if key in attrs} <= set(ids)
    assert next(attrs for tag, attrs in read.tags if tag == "html")["lang"] == "en"
    cells = [attrs for _, attrs in read.tags if attrs.get("role") in ("rowheader", "gridcell")]
    assert len(cells) == sum(1 + len(drift.uses) for drift in full_page().drifts)
    assert all(attrs["aria-label"] for attrs in cells)


def test_the_page_asks_nothing_of_the_net(read: Reader) -> None:
    assert not [tag for tag, attrs in read.tags if "src" in attrs or tag in ("link", "img")]
    assert {attrs["href"] for _, attrs in read.tags if "href" in attrs} == {"#quilt-heading"}
    policy = next(attrs["content"] for _, attrs in read.tags if "http-equiv" in attrs) or ""
    assert policy.startswith("default-src 'none'; script-src 'sha256-")


def test_hostile_names_stay_text() -> None:
    text = render(hostile_page())
    read = Reader(text)
    assert read.count("script") == 1
    assert not read.count("img")
    assert not read.count("b") or "<b>bold" not in text
    assert "49" not in [word.strip() for word in read.words]
    words = " ".join(read.words)
    assert HOSTILE.replace("\x00", " ") in words
    assert "\x00" not in text
    tips = [attrs["data-tip"] or "" for _, attrs in read.tags if "data-tip" in attrs]
    assert tips[0].startswith(f"0 {HOSTILE}\n".replace("\x00", " "))


def test_a_page_without_drifts_says_so() -> None:
    words = " ".join(Reader(render(Page("Nothing", (), ()))).words)
    assert "No model was trained yet" in words


def test_one_drift_without_a_past_is_a_page_without_lines() -> None:
    page = Page("First", (), drifts()[:1])
    words = " ".join(Reader(render(page)).words)
    assert "There was no past segment" in words
    assert "Accuracy over time" not in words
    assert not Reader(render(page)).count("figure")


def test_lines_come_from_the_drifts_where_there_is_no_stream() -> None:
    chart = accuracy_chart(None, drifts())
    assert chart is not None
    assert chart.names == ("0", "1", "2", "3", "4")
    (view,) = chart.views
    assert view.lines[0].values == tuple(drift.accuracies["Quilt"] for drift in drifts())


def test_scores_that_are_not_numbers_are_gaps() -> None:
    drift = drifts()[-1]
    folds = tuple(
        replace(fold, gain=fold.gain * float("nan"), disparity=fold.disparity * float("inf"))
        for fold in drift.selection.folds
    )
    broken = replace(drift, selection=replace(drift.selection, folds=folds), accuracies={"a": 0.5})
    text = render(Page("Broken", (), (broken, broken)))
    assert "\N{EN DASH}" in text
    paths = [attrs for tag, attrs in Reader(text).tags if tag == "path"]
    lines = [path["d"] for path in paths if "line" in (path["class"] or "")]
    assert set(lines[2:]) == {""}  # those before are of accuracy


def test_a_report_of_eight_models_is_at_most_400_kilobytes() -> None:
    n_bytes = len(render(large_page(8, 7)).encode())
    assert n_bytes <= 400_000


def test_sixty_drifts_with_sixty_segments_are_soon_written_and_not_too_large(
    tmp_path: Path,
) -> None:
    page = large_page(60, 60)
    began = time.process_time()
    path = write_report(page, tmp_path / "large.html")
    assert time.process_time() - began < 10
    assert path.stat().st_size < 12e6


def test_a_report_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("the one before")
    broken = replace(full_page(), versions=None)  # type: ignore[arg-type]
    with pytest.raises(AttributeError):
        write_report(replace(broken, drifts=(None,)), path)  # type: ignore[arg-type]
    assert path.read_text() == "the one before"
    assert write_report(full_page(), path) == path
    assert path.read_text().endswith("</html>")
    assert [other.name for other in tmp_path.iterdir()] == ["report.html"]


def test_a_folder_that_is_not_there_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"report\.html"):
        write_report(Page("", (), ()), tmp_path / "no" / "report.html")


def test_without_the_extra_it_is_a_sentence_with_the_command(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(MissingExtraError, match=r"jinja2 .* 'driftquilt\[report\]'"):
        write_report(full_page(), tmp_path / "report.html")
