"""The benchmarks of live streams run, resume, and say what their lines say."""

from __future__ import annotations

import doctest
import json
import math
from pathlib import Path
from typing import Any

import pytest

from benchmarks import detection, endless, prequential
from driftquilt.errors import InputError
from driftquilt.paper.datasets.stream import Stream
from driftquilt.paper.datasets.synthetic import hyperplane, sine

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def stream() -> Stream:
    return sine(n_segments=2, n_rows=300, original_order=True)


def _line(dataset: str, model: str, accuracy: float) -> prequential.Line:
    return {"dataset": dataset, "model": model, "seed": 0, "accuracy": accuracy}


@pytest.mark.parametrize("module", [prequential, detection, endless])
def test_what_the_modules_show_is_true(module: Any) -> None:
    shown = doctest.testmod(module)
    assert shown.attempted > 0
    assert shown.failed == 0


def test_every_model_predicts_each_row_before_it_learns_it(stream: Stream) -> None:
    lines = {model: prequential.measure(stream, model, 0) for model in ("ours", "online", "hat")}
    for line in lines.values():
        assert line["n_rows"] == 600
        assert 0.4 < line["accuracy"] < 0.97  # the concept turns round, so nobody is right always
    assert lines["ours"]["accuracy"] > lines["hat"]["accuracy"]


def test_a_model_of_river_is_wrong_on_the_first_row_and_then_counted(stream: Stream) -> None:
    rows = list(prequential.labelled_rows(stream))[:1]
    assert prequential.MODELS["arf"](rows, 0) == 0
    assert prequential.MODELS["srp"](rows, 0) == 0


def test_a_second_run_measures_only_what_is_missing(stream: Stream, tmp_path: Path) -> None:
    path = tmp_path / "prequential.jsonl"
    prequential.run([stream], ["online"], 0, path)
    first = path.read_text()
    lines = prequential.run([stream], ["online", "hat"], 0, path)
    assert path.read_text().startswith(first)
    assert [line["model"] for line in lines] == ["online", "hat"]
    assert prequential.run([stream], ["online"], 1, path)[-1]["seed"] == 1


def test_a_torn_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "prequential.jsonl"
    path.write_text('{"dataset": "sea", "mod')
    with pytest.raises(InputError, match=r"prequential\.jsonl has a line that is not JSON"):
        prequential.read_lines(path)


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(InputError, match="there is no model 'knn'"):
        prequential.main(["--models", "ours,knn"])


def test_conditions_fail_where_ours_is_behind() -> None:
    lines = [_line("sea", "ours", 0.80), _line("sea", "arf", 0.79), _line("sea", "online", 0.81)]
    lines += [_line("sine", "ours", 0.8), _line("sine", "arf", 0.81), _line("sine", "online", 0.7)]
    assert [holds for *_, holds in prequential.conditions(lines)] == [False, False, False]
    text = prequential.to_markdown(lines)
    assert "| sine | .800 | .700 | .810 | -.010 |" in text
    assert "| mean | .800 | .755 | .800 | +.000 |" in text
    assert "half a point below online only: -1.0 points at worst, does not hold" in text


def test_a_mean_over_streams_that_were_not_all_run_is_left_out() -> None:
    lines = [_line("sea", "ours", 0.9), _line("sine", "ours", 0.7), _line("sea", "arf", 0.8)]
    assert "| mean | .800 |  |  |" in prequential.to_markdown(lines)


def test_alarms_before_the_first_drift_and_second_alarms_are_false() -> None:
    assert detection.judge([50, 100], [100]) == (0, None, 2)  # after 100 rows none of it was seen
    assert detection.judge([101, 102, 200, 201], [100, 200]) == (2, 1.0, 2)
    assert detection.judge([], [100]) == (0, None, 0)


def test_a_drift_is_found_and_written_down(stream: Stream, tmp_path: Path) -> None:
    path = tmp_path / "detection.jsonl"
    [line] = detection.run([stream], ["hddm_a"], 0, path)
    assert line["n_found"] == line["n_drifts"] == 1
    assert line["delay"] == next(a for a in line["alarms"] if a > 300) - 300
    shown = f"| hddm_a | 1/1, {line['delay']:.0f}, {line['n_false']}; "
    assert shown in detection.to_markdown([line])
    before = path.read_text()
    detection.run([stream], ["hddm_a"], 0, path)
    assert path.read_text() == before


def test_a_stream_without_known_drifts_cannot_be_judged() -> None:
    with pytest.raises(InputError, match="drifts of hyperplane are not known"):
        detection.measure(hyperplane(1, 10), "adwin", 0)


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read on Linux only")
def test_an_endless_stream_tells_what_it_holds(tmp_path: Path) -> None:
    found = endless.measure(1_500, tmp_path / "state", warm_rows=1_000)
    assert found["n_rows"] == 1_500
    assert found["events"]["ModelTrained"] > 0
    assert found["held_bytes"] > 0
    assert found["growth"] == found["peak_after_bytes"] / found["held_bytes"]
    assert found["disk_bytes"] > 1_500 * 4 * 8
    assert "| rows | 1,500 |" in endless.to_markdown(json.loads(json.dumps(found)))


def test_the_endless_rows_change_their_concept_and_are_the_same_each_time() -> None:
    rows, labels = endless.make_batch(19_000, 2_000)
    assert (rows, labels) == endless.make_batch(19_000, 2_000)
    low = [x["x0"] < math.sin(x["x1"]) for x in rows]
    assert labels[:1_000] == low[:1_000]
    assert labels[1_000:] == [not is_low for is_low in low[1_000:]]


def test_the_page_shows_the_lines_that_were_kept() -> None:
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8").splitlines()
    lines = prequential.read_lines(prequential.RESULTS / "prequential.jsonl")
    first = prequential.to_markdown([line for line in lines if line["seed"] == 0])
    found = detection.to_markdown(prequential.read_lines(prequential.RESULTS / "detection.jsonl"))
    shown = [line for line in (first + found).splitlines() if line.startswith("|")]
    assert len(shown) == 2 + 9 + 1 + 2 + 9
    assert set(shown) <= set(page)


def test_every_condition_holds_in_the_lines_that_were_kept() -> None:
    lines = prequential.read_lines(prequential.RESULTS / "prequential.jsonl")
    asked = prequential.conditions([line for line in lines if line["seed"] == 0])
    assert [holds for *_, holds in asked] == [True, True, True]
