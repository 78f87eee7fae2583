"""What a run leaves behind: the files for what was run, and a page that stands alone."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from driftquilt.paper.outputs import accuracy_curves, lines_svg, write_report
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
