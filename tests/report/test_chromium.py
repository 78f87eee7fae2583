"""The report in a browser: what it does under the pointer, the keyboard and the printer."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator
from playwright.sync_api import Page as Tab
from pypdf import PdfReader

from driftquilt.report.html import write_report
from driftquilt.report.page import Page
from tests.report.pages import HOSTILE, drifts, full_page, hostile_page, large_page, renamed


@dataclass
class Visit:
    """A page that was opened, and what the browser had to complain about."""

    tab: Tab
    complaints: list[str] = field(default_factory=list)

    @property
    def tip(self) -> Locator:
        return self.tab.locator("#tip")

    def patch(self, drift: int, segment: int) -> Locator:
        return self.tab.locator(f'[data-row="{drift}"] [data-segment="{segment}"]')

    @property
    def model(self) -> Locator:
        """The section of the model that is chosen."""
        return self.tab.locator("section.drift:not([hidden])")

    def lines(self) -> Locator:
        """The lines of its scores that are shown."""
        return self.model.locator(".view:not(.other) .line")

    def shown_drifts(self) -> list[int]:
        parts = self.tab.locator("section.drift").all()
        return [k for k, part in enumerate(parts) if part.is_visible()]


def visit(browser: Browser, path: Path, **options: Any) -> Visit:
    tab = browser.new_context(offline=True, **options).new_page()
    tab.set_default_timeout(10_000)
    seen = Visit(tab)
    tab.on("console", lambda message: seen.complaints.append(message.text))
    tab.on("pageerror", lambda error: seen.complaints.append(str(error)))
    tab.on("requestfailed", lambda request: seen.complaints.append(request.url))
    tab.on("request", lambda r: None if r.url == path.as_uri() else seen.complaints.append(r.url))
    tab.on("dialog", lambda dialog: seen.complaints.append(dialog.message))
    tab.goto(path.as_uri())
    return seen


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reports")
    write_report(full_page(), folder / "full.html")
    write_report(hostile_page(), folder / "hostile.html")
    write_report(Page("First", (), drifts()[:1]), folder / "first.html")
    write_report(Page("Nothing", (), ()), folder / "nothing.html")
    write_report(large_page(60, 20), folder / "sixty.html")
    return folder


@pytest.fixture
def full(browser: Browser, folder: Path) -> Iterator[Visit]:
    seen = visit(browser, folder / "full.html")
    yield seen
    assert seen.complaints == []
    seen.tab.context.close()


def test_a_complaint_would_be_seen(browser: Browser, tmp_path: Path) -> None:
    page = tmp_path / "broken.html"
    page.write_text("<img src='http://localhost/x.png'><script>nonsense()</script>")
    assert len(visit(browser, page).complaints) >= 2


@pytest.mark.parametrize("name", ["full", "hostile", "first", "nothing", "sixty"])
@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (1280, "dark")])
def test_it_opens_without_a_complaint_and_never_scrolls_sideways(
    browser: Browser, folder: Path, name: str, width: int, scheme: str
) -> None:
    size = {"width": width, "height": 800}
    seen = visit(browser, folder / f"{name}.html", viewport=size, color_scheme=scheme)
    assert seen.tab.evaluate("document.documentElement.scrollWidth") <= width
    assert seen.complaints == []
    seen.tab.context.close()


def test_the_last_drift_is_chosen_and_its_lines_are_drawn(full: Visit) -> None:
    assert full.shown_drifts() == [4]
    assert full.lines().count() == 2 * 4
    assert full.tab.locator("#accuracy-chart .line").count() == 2


def test_every_drift_is_a_dotted_line_inside_of_the_accuracy_chart(full: Visit) -> None:
    marks = full.tab.locator("#accuracy-chart .drift")
    assert marks.count() == 6
    dashes = marks.evaluate_all("all => all.map((m) => getComputedStyle(m).strokeDasharray)")
    assert set(dashes) == {"2px, 4px"}
    places = marks.evaluate_all("all => all.map((m) => parseFloat(m.getAttribute('x1')))")
    assert all(0 < place < 100 for place in places)
    assert places == sorted(places)
    chosen = full.tab.locator("#accuracy-chart .drift.chosen")
    assert chosen.get_attribute("data-drift") == "4"
    full.patch(2, 0).click()
    assert chosen.get_attribute("data-drift") == "2"


def point_at(seen: Visit, chart: Locator, x: float, y: float) -> list[str]:
    """What the tip says at a place of a chart, from 0 to 1 each way."""
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box is not None
    seen.tab.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])
    return [line for line in seen.tip.inner_text().splitlines() if line]


def test_pointing_at_a_chart_tells_the_values_of_its_lines(full: Visit) -> None:
    told = point_at(full, full.tab.locator("#accuracy-chart svg.chart"), 0.5, 0.5)
    assert told[0].startswith("Row ")
    assert told[1:] == ["Quilt", "0.900", "all data", "0.600"]
    selection, chart = drifts()[4].selection, full.model.locator("svg.chart").first
    full.model.get_by_label("Fold").select_option("1")
    fold = selection.folds[0].disparity
    told = point_at(full, chart, 0.0, 0.5)
    assert told == ["Epoch 1", *(
        text for s, name in enumerate(selection.names) for text in (str(name), f"{fold[0, s]:.3f}")
    )]  # fmt: skip
    full.tab.mouse.move(1, 1)
    assert full.tip.is_hidden()


def test_the_legend_hides_a_line_and_shows_it_again(full: Visit) -> None:
    place = full.tab.locator("#accuracy-chart")
    button = place.get_by_role("button", name="all data")
    line = place.locator(".line[data-line='1']")
    assert button.get_attribute("aria-pressed") == "true"
    button.click()
    assert line.is_hidden()
    assert button.get_attribute("aria-pressed") == "false"
    told = point_at(full, place.locator("svg.chart"), 0.5, 0.5)
    assert told[1:] == ["Quilt", "0.900"]
    button.press("Enter")
    assert line.evaluate("line => getComputedStyle(line).display") != "none"


def test_pointing_at_a_patch_tells_its_numbers(full: Visit) -> None:
    use = drifts()[3].uses[1]
    full.patch(3, 1).hover()
    told = full.tip.inner_text()
    assert full.tip.is_visible()
    assert f"{use.name}" in told
    assert f"{use.disparity.median:.3f}" in told
    full.tab.mouse.move(1, 1)
    assert full.tip.is_hidden()


def test_the_keyboard_reaches_patches_and_enter_chooses_the_drift(full: Visit) -> None:
    full.tab.locator("svg.live [tabindex='0']").focus()
    for key in ("ArrowRight", "ArrowUp", "ArrowRight"):
        full.tab.keyboard.press(key)
    held = "document.activeElement.closest('.row').dataset.row"
    assert full.tab.evaluate(held) == "3"
    assert full.tip.is_visible()
    assert full.shown_drifts() == [4]
    full.tab.keyboard.press("Enter")
    assert full.shown_drifts() == [3]
    assert full.tab.locator("#drift-choice").input_value() == "3"
    assert full.tab.locator('[aria-selected="true"]').get_attribute("data-row") == "3"
    full.tab.keyboard.press("Escape")
    assert full.tip.is_hidden()
    assert full.tab.locator("svg.live [tabindex='0']").count() == 1


def test_a_click_on_a_patch_or_a_name_chooses_the_drift(full: Visit) -> None:
    full.patch(2, 0).click()
    assert full.shown_drifts() == [2]
    assert full.tab.locator(".row.chosen").get_attribute("data-row") == "2"
    full.tab.locator('[data-row="0"] .name').click()
    assert full.shown_drifts() == [0]
    assert full.model.locator("svg.chart").count() == 0
    full.tab.select_option("#drift-choice", "4")
    assert full.shown_drifts() == [4]
    assert full.model.locator("svg.chart").count() == 2


def test_the_fold_can_be_chosen(full: Visit) -> None:
    selection = drifts()[4].selection

    choice, note = full.model.get_by_label("Fold"), full.model.locator(".fold-note")

    def bound() -> str | None:
        return full.model.locator(".view:not(.other) .halo").text_content()

    assert bound() == f"mean bound {selection.disparity_max:.3f}"
    for number, fold in enumerate(selection.folds, start=1):
        choice.select_option(str(number))
        assert bound() == f"bound of fold {number} {fold.disparity_max:.3f}"
        assert f"those of fold {number}" in note.inner_text()
        assert full.lines().count() == 2 * 4
    choice.select_option("0")
    assert "means over folds" in note.inner_text()


def test_the_switch_colours_patches_by_disparity(full: Visit) -> None:
    use = drifts()[4].uses[0]
    strength = "part => Number(getComputedStyle(part).fillOpacity)"
    cover = full.patch(4, 0).locator(".cover:visible")
    before = cover.evaluate(strength)
    full.tab.emulate_media(reduced_motion="reduce")
    full.tab.get_by_label("disparity", exact=True).check(force=True)
    assert cover.evaluate(strength) == pytest.approx(
        max(1 - use.disparity.median / 2, 0), abs=0.006
    )
    assert full.patch(4, 0).locator("text.by-disparity").is_visible()
    full.tab.get_by_label("weight", exact=True).check(force=True)
    assert cover.evaluate(strength) == before


def column(table: Locator, number: int) -> list[float]:
    cells = table.locator(f"tbody tr > :nth-child({number})").all()
    return [float(cell.get_attribute("data-v") or "nan") for cell in cells]


@pytest.mark.parametrize("how", ["click", "keyboard"])
def test_a_table_is_sorted_and_says_so(full: Visit, how: str) -> None:
    table = full.tab.locator("section.drift:not([hidden]) table.sortable")
    button = table.get_by_role("button", name="Disparity")

    def press() -> None:
        if how == "click":
            button.click()
        else:
            button.press("Enter")

    whole = column(table, 4)
    press()
    assert column(table, 4) == sorted(whole)
    heads = table.locator("th[aria-sort]").evaluate_all("all => all.map((th) => th.ariaSort)")
    assert heads == ["none", "none", "none", "ascending", "none", "none", "none"]
    press()
    assert column(table, 4) == sorted(whole, reverse=True)
    assert table.locator('th[aria-sort="descending"]').inner_text().startswith("Disparity")


def test_colours_follow_the_reader_and_so_do_the_lines(full: Visit) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    line = "getComputedStyle(document.querySelector('#accuracy-chart .line')).stroke"
    assert full.tab.evaluate(ground) == "rgb(255, 255, 255)"
    by_day = full.tab.evaluate(line)
    full.tab.emulate_media(color_scheme="dark")
    assert full.tab.evaluate(ground) == "rgb(18, 22, 23)"
    assert full.tab.evaluate(line) != by_day


def test_on_paper_every_drift_is_there_and_no_button(full: Visit) -> None:
    text = " ".join(
        page.extract_text() for page in PdfReader(io.BytesIO(full.tab.pdf(format="A4"))).pages
    )
    plain = "".join(text.split())
    for drift in drifts():
        assert f"Trainedfor{drift.name}" in plain
        for use in drift.uses:
            assert "".join(use.reason[1:].split()) in plain
    assert plain.count("disparitybyepoch:meanandrangeoverfolds") == 4
    assert "Colourpatchesby" not in plain
    full.tab.emulate_media(media="print")
    assert full.tab.locator("#switch").is_hidden()
    assert full.tab.locator("select").first.is_hidden()


def test_after_printing_the_page_is_as_before(browser: Browser, folder: Path) -> None:
    seen = visit(browser, folder / "full.html", color_scheme="dark")
    width = "document.querySelector('#accuracy-chart svg').getBoundingClientRect().width"
    before = seen.tab.evaluate(width)
    seen.tab.pdf(format="A4")
    assert seen.tab.evaluate(width) == before
    assert seen.shown_drifts() == [4]
    assert seen.complaints == []


def test_hostile_names_are_shown_as_they_are(browser: Browser, folder: Path) -> None:
    seen = visit(browser, folder / "hostile.html")
    name = HOSTILE.replace("\x00", " ")
    assert seen.tab.locator("h1").inner_text() == " ".join(name.split())
    seen.patch(1, 0).hover()
    assert name[:20] in seen.tip.inner_text()
    assert seen.tab.locator("img, b:has-text('bold')").count() == 0
    legend = seen.tab.locator("#accuracy-chart .legend button").first.text_content() or ""
    assert legend.startswith("</script><img")
    seen.tab.get_by_role("button", name="Gain").first.click()
    assert seen.complaints == []


def test_charts_are_as_wide_as_their_place_and_labels_of_axes_keep_apart(
    browser: Browser, folder: Path
) -> None:
    for width in (1400, 390):
        seen = visit(browser, folder / "full.html", viewport={"width": width, "height": 800})
        labels = seen.tab.locator("#accuracy-chart svg.chart > text.middle:visible")
        boxes = [box for label in labels.all() if (box := label.bounding_box())]
        assert len(boxes) >= 3
        for one, next_one in pairwise(boxes):
            assert one["x"] + one["width"] < next_one["x"]
        seen.tab.context.close()


def test_a_phone_shows_findings_of_the_data_check_whole(browser: Browser, folder: Path) -> None:
    seen = visit(browser, folder / "full.html", viewport={"width": 390, "height": 800})
    box = seen.tab.locator("#checks .why").first.bounding_box()
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    seen.tab.context.close()


def test_without_scripts_every_model_and_its_lines_are_there(
    browser: Browser, folder: Path
) -> None:
    seen = visit(browser, folder / "full.html", java_script_enabled=False)
    assert seen.shown_drifts() == [0, 1, 2, 3, 4]
    assert seen.tab.locator("section.drift svg.chart:visible").count() == 2 * 4
    assert seen.tab.locator("select:visible").count() == 0
    seen.tab.context.close()


@pytest.mark.parametrize("n_segments", [17, 40])
def test_a_page_of_1200_pixels_shows_the_whole_quilt(
    browser: Browser, tmp_path: Path, n_segments: int
) -> None:
    names = [f"{2020 + k // 12}-{k % 12 + 1:02d}" for k in range(n_segments)]
    page = Page("Months", (), (renamed(drifts()[-1], names, "2024-01"),))
    path = write_report(page, tmp_path / "months.html")
    seen = visit(browser, path, viewport={"width": 1200, "height": 800})
    quilt = seen.tab.locator("#quilt")
    assert quilt.evaluate("quilt => quilt.scrollWidth - quilt.clientWidth") == 0
    assert quilt.locator(".patch .under").first.evaluate("p => p.getBBox().width") >= 20
    seen.tab.set_viewport_size({"width": 360, "height": 800})
    assert quilt.evaluate("quilt => quilt.scrollWidth > quilt.clientWidth")
    assert seen.tab.evaluate("document.documentElement.scrollWidth") <= 360


def test_of_one_model_there_is_only_the_fold_to_choose(browser: Browser, tmp_path: Path) -> None:
    path = write_report(Page("One", (), drifts()[-1:]), tmp_path / "one.html")
    seen = visit(browser, path)
    assert seen.tab.locator("#drift-choice").is_hidden()
    assert seen.tab.get_by_label("Fold").is_visible()


def test_sixty_drifts_can_be_walked_through(browser: Browser, folder: Path) -> None:
    seen = visit(browser, folder / "sixty.html")
    assert seen.tab.locator(".row").count() == 60
    seen.tab.locator("svg.live [tabindex='0']").focus()
    for _ in range(59):
        seen.tab.keyboard.press("ArrowUp")
    seen.tab.keyboard.press(" ")
    assert seen.shown_drifts() == [0]
    assert seen.complaints == []
