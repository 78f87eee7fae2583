"""`driftquilt reproduce` and `driftquilt datasets` as a user types them."""

from __future__ import annotations

from pathlib import Path

import pytest

from driftquilt.paper.datasets import names
from driftquilt.paper.run import read_results
from tests.cli.conftest import Drive
from tests.small_streams import write_shop, write_sine


def test_reproduce_ends_in_results_and_tables(drive: Drive, tmp_path: Path) -> None:
    dataset = write_sine(tmp_path / "own mail.csv")
    arguments = ["reproduce", "accuracy", "--datasets", dataset, "--methods", "full_data, sega"]
    arguments += ["--seeds", "1", "--jobs", "1", "--out", "made/here"]
    outcome = drive(*arguments)
    assert outcome.code == 0, outcome.stderr
    written = outcome.stdout.splitlines()
    assert written == [
        "made/here/report.html",
        "made/here/accuracy.md",
        "made/here/tables.csv",
    ]
    assert "6/6" in outcome.stderr
    assert "time left" in outcome.stderr
    results = read_results(Path("made/here/results.jsonl"))
    assert len(results) == 6
    text = Path("made/here/accuracy.md").read_text()
    assert "| full_data |" in text
    assert "| sega |" in text
    assert f"--datasets '{dataset}'" in text.splitlines()[0]

    again = drive(*arguments)
    assert again.code == 0
    assert again.stdout == outcome.stdout
    assert again.stderr.splitlines() == ["All 6 results are in made/here already"]
    assert read_results(Path("made/here/results.jsonl")) == results


def test_a_file_of_ones_own_is_reported_on_without_the_paper(drive: Drive, tmp_path: Path) -> None:
    write_shop(tmp_path / "shop.csv")
    arguments = ["--label", "bought", "--segment", "month", "--methods", "sega,current_segment"]
    arguments += ["--seeds", "1", "--jobs", "1", "--out", "out"]
    outcome = drive("reproduce", "--datasets", "shop.csv", *arguments)
    assert outcome.code == 0, outcome.stderr
    assert outcome.stdout.splitlines() == [
        "out/report.html",
        "out/accuracy.md",
        "out/tables.csv",
        "out/figures/curve-shop.svg",
    ]
    page = Path("out/report.html").read_text()
    assert "<h1>Methods compared on shop.csv</h1>" in page
    assert "paper" not in page


def test_how_a_file_was_read_is_noted(drive: Drive, tmp_path: Path) -> None:
    path = Path(write_shop(tmp_path / "paid.csv"))
    header, *rows = path.read_text().splitlines()
    path.write_text("\n".join([f"{header},paid", *(f'{row},"3,14"' for row in rows)]))
    arguments = ["--label", "bought", "--segment", "month", "--methods", "current_segment"]
    outcome = drive(
        "reproduce", "--datasets", "paid.csv", *arguments, "--seeds", "1", "--jobs", "1"
    )
    assert outcome.code == 0, outcome.stderr
    assert "Note: paid.csv: column 'paid' is read as text" in outcome.stderr
    assert "--decimal ," not in outcome.stdout


def test_the_case_study_alone_is_two_pictures(drive: Drive) -> None:
    outcome = drive("reproduce", "case-study", "--out", "study")
    assert outcome.code == 0, outcome.stderr
    assert "study/figures/case-study-gain.svg" in outcome.stdout.splitlines()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--datasets", "usenet3"], "there is no data set 'usenet3'"),
        (["--datasets", "gone.csv"], "there is no file gone.csv"),
        (
            ["--datasets", "sine:2", "--methods", "quit"],
            "there is no method called 'quit'; did you",
        ),
        (["--datasets", "sine:2", "--label", "y"], "label 'y' and segment 'segment' name columns"),
        (["--datasets", "sine:x"], "'sine:x' asks for 'x' segments"),
        (["--datasets", "sine:2", "--methods", "best_segments"], "there is nothing to run"),
    ],
)
def test_what_cannot_be_run_is_one_line_on_stderr(
    drive: Drive, arguments: list[str], message: str
) -> None:
    outcome = drive("reproduce", "accuracy", *arguments)
    assert outcome.code == 1
    assert outcome.stdout == ""
    (line,) = outcome.stderr.splitlines()
    assert line.startswith(f"driftquilt: {message}")
    assert not Path("reproduce-out").exists()


def test_results_of_another_protocol_are_refused_in_one_line(drive: Drive, tmp_path: Path) -> None:
    dataset = write_sine(tmp_path / "mail.csv", 2)
    arguments = ["reproduce", "accuracy", "--datasets", dataset, "--methods", "sega", "--jobs", "1"]
    assert drive(*arguments, "--seeds", "1").code == 0
    outcome = drive(*arguments, "--seeds", "1", "--protocol", "paper")
    assert outcome.code == 1
    (line,) = outcome.stderr.splitlines()
    assert "choose another folder" in line


def test_ctrl_c_before_anything_runs_says_the_same_as_later(
    drive: Drive, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("driftquilt.cli.paper.make_plan", interrupt)
    outcome = drive("reproduce", "accuracy")
    assert outcome.code == 130
    assert outcome.stderr == "driftquilt: stopped; the same command continues where it stopped\n"


def test_help_tells_of_quick_and_has_an_example(drive: Drive) -> None:
    outcome = drive("reproduce", "--help")
    assert outcome.code == 0
    assert "--quick" in outcome.stdout
    assert "usenet1" in outcome.stdout
    assert "driftquilt reproduce accuracy --datasets" in " ".join(outcome.stdout.split())


def test_quick_takes_one_seed_and_leaves_the_long_stream_out(
    drive: Drive, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []

    def plan(experiments: list[str], **settings: object) -> None:
        asked.append((experiments, settings["n_seeds"], settings["datasets"]))
        raise KeyboardInterrupt

    monkeypatch.setattr("driftquilt.cli.paper.make_plan", plan)
    drive("reproduce", "--quick")
    drive("reproduce", "ablation", "--quick", "--datasets", "sine")
    everything = ["accuracy", "selection", "ablation", "initialization", "case-study"]
    assert asked == [(everything, 1, ["usenet1", "usenet2"]), (["ablation"], 1, ["sine"])]


def test_datasets_lists_all_nine_by_their_whole_names(drive: Drive) -> None:
    outcome = drive("datasets")
    assert outcome.code == 0
    lines = [line.split() for line in outcome.stdout.splitlines() if line[:1].strip()]
    told = {line[0]: line[1:6] for line in lines}
    assert [name for name in told if name in names()] == list(names())
    assert told["random_rbf"] == ["synthetic", "16000", "10", "5", "8"]
    assert told["usenet1"] == ["real", "1500", "99", "2", "5"]
    assert "…" not in outcome.stdout
