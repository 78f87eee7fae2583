"""What `reproduce` writes: tables, figures whose points are all in place, and the case study."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
from itertools import accumulate
from pathlib import Path
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy.stats import spearmanr

from driftquilt.core.training import Scores
from driftquilt.paper.outputs import Series, accuracy_curves, case_study, lines_svg, write_report
from driftquilt.paper.plan import EXPERIMENTS
from driftquilt.paper.run import Result
from tests.processes import PATIENCE

CHROMIUM = "/usr/bin/chromium"
COMMAND = 'driftquilt reproduce all --datasets "<b>.csv"'


def made_up(experiments: list[str], datasets: list[str], extra: tuple[str, ...]) -> list[Result]:
    """Results for every method of the experiments, with figures made up from their numbers."""
    methods = dict.fromkeys(m for name in experiments for m in EXPERIMENTS[name].methods)
    return [
        Result(
            dataset,
            method,
            segment,
            seed,
            data="",
            protocol="honest",
            accuracy=0.5 + number / 50 + seed / 100,
            f1=0.4 + number / 50,
            seconds=1.0,
            cpu_seconds=1.0 + number,
            training_seconds=0.5 + segment,
            training_cpu_seconds=0.5 + segment,
            epochs=10,
            usage=0.5 if "quilt" in method else None,
            selected=[0] if "quilt" in method or method == "best_segments" else None,
        )
        for dataset in datasets
        for number, method in enumerate([*methods, *extra])
        for segment in range(3)
        for seed in range(2)
    ]


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the report on everything."""
    folder = tmp_path_factory.mktemp("report") / "new" / "folder"
    datasets = ["sea", "usenet1", "random_rbf:20", "own/<i>.csv"]
    results = made_up(list(EXPERIMENTS), datasets, ("my <own> method",))
    write_report(results, EXPERIMENTS, folder, command=COMMAND)
    return folder


def names(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def test_everything_run_leaves_every_file(out: Path) -> None:
    pages = {f"{name}.md" for name in ("accuracy", "selection", "ablation", "initialization")}
    curves = {f"figures/curve-{name}.svg" for name in ("sea", "usenet1", "<i>")}
    case_study = {f"figures/case-study-{score}.svg" for score in ("disparity", "gain")}
    assert names(out) == {"report.html", "tables.csv", "figures/scalability.svg"}.union(
        pages, curves, case_study
    )


def test_the_files_written_are_told_and_the_page_comes_first(tmp_path: Path) -> None:
    written = write_report(
        made_up(["accuracy"], ["sea"], ()), ["accuracy"], tmp_path, command=COMMAND
    )
    assert written[0] == tmp_path / "report.html"
    assert {str(path.relative_to(tmp_path)) for path in written} == names(tmp_path)
    assert names(tmp_path) == {"report.html", "accuracy.md", "tables.csv"}


def test_the_case_study_needs_no_results(tmp_path: Path) -> None:
    write_report([], ["case-study"], tmp_path, command=COMMAND)
    assert {name for name in names(tmp_path) if name.startswith("figures")} == {
        "figures/case-study-disparity.svg",
        "figures/case-study-gain.svg",
    }


def test_scalability_of_another_stream_has_a_name_of_its_own(tmp_path: Path) -> None:
    results = made_up(["scalability"], ["sine:3"], ())
    write_report(results, ["scalability"], tmp_path, command=COMMAND)
    assert "figures/scalability-sine-3.svg" in names(tmp_path)


def test_files_of_one_name_in_two_folders_have_a_curve_each(tmp_path: Path) -> None:
    results = made_up(["selection"], ["a/mail.csv", "b/mail.csv"], ())
    write_report(results, ["selection"], tmp_path, command=COMMAND)
    assert {name for name in names(tmp_path) if name.startswith("figures")} == {
        "figures/curve-mail.svg",
        "figures/curve-mail-2.svg",
    }


def test_the_order_of_the_results_does_not_matter(tmp_path: Path) -> None:
    results = made_up(list(EXPERIMENTS), ["sea", "own.csv", "a.csv"], ("mine", "also mine"))
    for folder, order in (("there", results), ("back", results[::-1])):
        write_report(order, ["accuracy", "selection"], tmp_path / folder, command=COMMAND)
    for name in names(tmp_path / "there"):
        assert (tmp_path / "there" / name).read_text() == (tmp_path / "back" / name).read_text()


def test_every_text_names_its_command_and_what_a_cell_means(out: Path) -> None:
    for page in out.glob("*.md"):
        assert page.read_text().startswith(f"`{COMMAND}`")
        assert "± standard deviation over seeds (the paper's figure, difference)" in (
            page.read_text()
        )
    assert "&quot;&lt;b&gt;.csv&quot;" in (out / "report.html").read_text()


def test_the_paper_is_spoken_of_only_where_it_has_a_figure(tmp_path: Path) -> None:
    everything = list(EXPERIMENTS)
    results = made_up(everything, ["own/mail.csv", "<i>.csv"], ())
    written = write_report(results, everything, tmp_path, command="driftquilt reproduce all")
    for path in written:
        if path.suffix != ".csv":  # its columns are the same for every stream
            assert "paper" not in path.read_text().lower()
            assert "ours" not in path.read_text()
    page = (tmp_path / "report.html").read_text()
    assert "<h1>Methods compared on &lt;i&gt;.csv, own/mail.csv</h1>" in page
    assert "Each cell: mean ± standard deviation over seeds. The best in a column is bold." in page
    assert not list((tmp_path / "figures").glob("case-study*"))


def test_one_stream_of_the_papers_brings_its_figures_back(out: Path) -> None:
    page = (out / "report.html").read_text()
    assert "<h1>The paper&#x27;s evaluation, theirs beside ours</h1>" in page
    assert "Each cell: ours ± standard deviation over seeds; below it the paper" in page


def test_the_page_of_the_case_study_alone_explains_no_cells(tmp_path: Path) -> None:
    write_report([], ["case-study"], tmp_path, command=COMMAND)
    page = (tmp_path / "report.html").read_text()
    assert "<h1>The paper&#x27;s case study</h1>" in page
    assert "Each cell" not in page


def test_the_curves_show_what_the_classifier_does_by_default() -> None:
    results = made_up(list(EXPERIMENTS), ["own.csv"], ("mine",))
    shown = ["full_data", "current_segment", "quilt", "quilt_default", "best_segments", "mine"]
    curves = accuracy_curves(results, "own.csv")
    assert list(curves) == shown
    svg = lines_svg(curves, title="t", x_label="x", y_label="y")
    assert len(set(re.findall(r'<path class="line ([\w ]+)"', svg))) == len(shown)


def test_every_picture_is_valid_svg(out: Path) -> None:
    for path in (out / "figures").iterdir():
        assert ET.parse(path).getroot().tag == "{http://www.w3.org/2000/svg}svg"


def test_the_page_holds_every_table_and_picture(out: Path) -> None:
    page = (out / "report.html").read_text()
    assert page.count("<table>") == sum(
        text.count("### ") for text in (path.read_text() for path in out.glob("*.md"))
    )
    assert page.count('class="dq"') == len(list((out / "figures").iterdir()))
    assert page.count("my &lt;own&gt; method") >= page.count("<table>")


def test_the_page_asks_nothing_of_the_net(out: Path) -> None:
    page = (out / "report.html").read_text()
    assert set(re.findall(r"https?://[^\s\"'<]*", page)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"\b(src|href|@import|url\()", page)
    assert "<i>" not in page
    assert "<b>.csv" not in page


@pytest.mark.skipif(not shutil.which(CHROMIUM), reason=f"needs {CHROMIUM}")
def test_a_browser_opens_the_page_without_a_complaint(out: Path, tmp_path: Path) -> None:
    def visit(page: Path) -> subprocess.CompletedProcess[str]:
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr"]
        options += [f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", page.as_uri()]
        return subprocess.run(
            [CHROMIUM, *options], capture_output=True, text=True, timeout=PATIENCE, check=True
        )

    broken = tmp_path / "broken.html"
    broken.write_text("<script>nonsense()</script>")
    assert "CONSOLE" in visit(broken).stderr  # or this test would see nothing
    seen = visit(out / "report.html")
    assert "CONSOLE" not in seen.stderr
    assert seen.stdout.count("<table>") == (out / "report.html").read_text().count("<table>")


SVG = "{http://www.w3.org/2000/svg}"
WIDTH, HEIGHT = 400, 262  # of the box of the lines

numbers = st.floats(-1e12, 1e12)
points = st.lists(
    st.tuples(st.floats(0, 1e6), numbers), max_size=6, unique_by=lambda point: point[0]
)
offsets = st.builds(
    lambda base, steps: [(float(k), base + step) for k, step in enumerate(steps)],
    numbers,
    st.lists(st.floats(0, 1e-9), min_size=1, max_size=5),
)


def draw(series: Series, *, log_y: bool = False, title: str = "t") -> ET.Element:
    svg = lines_svg(series, title=title, x_label="x", y_label="y", log_y=log_y)
    return ET.fromstring(svg)


def places(picture: ET.Element) -> list[list[tuple[float, float]]]:
    """The points of each line, as drawn; a point alone has a stroke of no length."""
    lines = []
    for path in sorted(picture.iter(f"{SVG}path"), key=lambda path: int(path.get("data-line", ""))):
        line: list[complex] = []
        for stroke in (path.get("d") or "").split("M")[1:]:
            x = list(map(float, re.findall(r"-?[\d.]+(?:e[-+]?\d+)?", stroke)))
            steps = [complex(*pair) for pair in zip(x[::2], x[1::2], strict=True)]
            line += list(accumulate(steps))[: 1 if steps[1:] == [0] else None]
        lines.append([(point.real, point.imag) for point in line])
    return lines


def expect_inside(picture: ET.Element) -> None:
    for line in places(picture):
        for x, y in line:
            assert -0.5 <= x <= WIDTH + 0.5
            assert -0.5 <= y <= HEIGHT + 0.5


@given(st.dictionaries(st.text(max_size=30), points | offsets, max_size=4))
def test_every_point_is_inside_the_frame_whatever_the_range(
    series: dict[str, list[tuple[float, float]]],
) -> None:
    picture = draw(series)
    expect_inside(picture)
    assert list(map(bool, places(picture))) == list(map(bool, series.values()))


@given(st.lists(st.floats(1e-9, 1e9), min_size=1, max_size=6))
def test_every_point_of_a_log_axis_is_inside_the_frame(values: list[float]) -> None:
    expect_inside(draw({"a": list(enumerate(values))}, log_y=True))


@pytest.mark.parametrize("value", [0.0, 1.0, -1.0, 0.3, -1e-320, 5e-324, 1e16, -7e11])
def test_a_constant_has_a_frame(value: float) -> None:
    expect_inside(draw({"a": [(0, value), (1, value)]}))


def test_higher_is_higher_and_later_is_further_right() -> None:
    ((first, second),) = places(draw({"a": [(1, 2.0), (2, 3.0)]}))
    assert second[0] > first[0]
    assert second[1] < first[1]


def test_a_log_axis_gives_every_decade_the_same_room() -> None:
    ((a, b, c),) = places(draw({"a": [(0, 0.1), (1, 1.0), (2, 10.0)]}, log_y=True))
    assert a[1] - b[1] == pytest.approx(b[1] - c[1], abs=0.11)
    assert a[1] > c[1]


def test_what_has_no_place_is_left_out() -> None:
    values = [1.0, math.nan, math.inf, 2.0]
    assert [len(line) for line in places(draw({"a": list(enumerate(values))}))] == [2]
    below = [(0, 1.0), (1, 0.0), (2, -1.0), (3, 10.0)]
    assert [len(line) for line in places(draw({"a": below}, log_y=True))] == [2]


@pytest.mark.parametrize("series", [{}, {"a": []}, {"a": [], "b": [(1.0, 2.0)]}])
@pytest.mark.parametrize("log_y", [True, False])
def test_empty_series_are_still_a_picture(series: Series, log_y: bool) -> None:
    picture = draw(series, log_y=log_y)
    assert len(places(picture)) == len(series)


def test_a_single_point_can_be_seen() -> None:
    (path,) = draw({"a": [(1.0, 2.0)]}).iter(f"{SVG}path")
    assert (path.get("d") or "").endswith("l0 0")  # a dot, as strokes have round ends


def test_names_cannot_break_out_of_the_picture() -> None:
    name = '<script>"&\x00'
    picture = draw({name: [(0, 1)]}, title=name)
    assert picture.get("aria-label") == '<script>"& '
    assert {title.text for title in picture.iter(f"{SVG}title")} == {'<script>"& '}
    assert not list(picture.iter(f"{SVG}script"))


def test_the_legend_has_every_name_inside_the_picture() -> None:
    series = {f"a method with a long name, number {k}": [(0.0, float(k))] for k in range(30)}
    picture = draw(series)
    texts = [text for text in picture.iter(f"{SVG}text") if "method" in (text.text or "")]
    assert len(texts) == 30
    assert max(float(text.get("y", "nan")) for text in texts) < float(picture.get("height", "nan"))
    assert max(len(text.text or "") for text in texts) <= 20
    assert [text[0].text for text in texts] == list(series)


def test_ticks_are_round_numbers() -> None:
    picture = draw({"a": [(1, 0.31), (20, 0.88)]})
    ticks = [
        float(text.text or "nan")
        for text in picture.iter(f"{SVG}text")
        if text.get("class") and (text.text or "").replace(".", "").isdigit()
    ]
    assert ticks == [0.4, 0.6, 0.8, *range(2, 21, 2)]


N_EPOCHS = 60


@pytest.fixture(scope="module", params=[0, 1, 2])
def curves(request: pytest.FixtureRequest) -> dict[str, Scores]:
    return case_study(request.param, n_epochs=N_EPOCHS)


def trend(curve: NDArray[np.float64]) -> float:
    """Rank correlation with time: 1 rises throughout, -1 falls throughout."""
    return float(spearmanr(np.arange(len(curve)), curve).statistic)


def test_both_past_segments_have_a_score_per_epoch(curves: dict[str, Scores]) -> None:
    assert list(curves) == ["same concept", "other concept"]
    for scores in curves.values():
        assert scores.disparity.shape == scores.gain.shape == (N_EPOCHS,)


def test_the_same_concept_has_a_disparity_near_zero_and_the_other_a_high_one_throughout(
    curves: dict[str, Scores],
) -> None:
    same, other = curves["same concept"].disparity, curves["other concept"].disparity
    assert same.max() < 0.1
    assert other.min() > np.sqrt(2)  # the labels alone are so far apart; the embedding adds to it
    assert other[-1] > 0.9 * other[0]


def test_the_same_concept_has_a_positive_gain_that_falls_to_zero(curves: dict[str, Scores]) -> None:
    gain = curves["same concept"].gain
    assert (gain > 0).all()
    assert trend(gain) < -0.99
    assert gain[-1] < 0.01 * gain[0]


def test_the_other_concept_has_a_negative_gain_that_rises_to_zero(
    curves: dict[str, Scores],
) -> None:
    gain = curves["other concept"].gain
    assert (gain < 0).all()
    assert trend(gain) > 0.9
    assert gain[-1] > 0.1 * gain[0]


def test_a_seed_gives_the_same_curves_again() -> None:
    first, again, other = (case_study(seed, n_epochs=5)["same concept"] for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.gain, again.gain)
    assert not np.array_equal(first.gain, other.gain)
