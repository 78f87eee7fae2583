"""What is planned, and that every step measures something at a tiny size."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from benchmarks.cost.drifts import choose_segments, choose_streams, measure_growth, our_methods
from benchmarks.cost.measure import look_at_machine, measure, peak_bytes, run_fresh
from benchmarks.cost.run import PARTS, Bench, Scope, plan_steps
from benchmarks.cost.speed import ONLINE_MODELS, measure_kernels, measure_online, measure_startup

from driftquilt.errors import DriftquiltError, InputError
from driftquilt.paper.plan import METHODS
from tests.small_streams import write_sine


def test_the_default_and_its_one_fold_come_from_the_plan_of_the_experiments() -> None:
    methods = our_methods("sine")
    assert methods["default"] == METHODS["quilt_default"](0, "sine")
    assert methods["one fold"] == replace(methods["default"], n_folds=1)  # type: ignore[type-var]
    assert methods["paper"] == METHODS["quilt"](0, "sine")


def test_real_streams_that_are_not_here_are_left_out_and_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("driftquilt.paper.datasets.catalog.find_file", lambda _: None)
    streams, absent = choose_streams(None)
    assert list(streams) == ["sea", "hyperplane", "random_rbf", "sine"]
    assert absent == ["electricity", "weather", "spam", "usenet1", "usenet2"]
    steps, (note,) = plan_steps(Scope(["drift"], ["spam:2", "sine:3"], segments="all"))
    assert "spam:2; set DRIFTQUILT_DATA" in note
    assert len(steps) == 3 * 4


@pytest.mark.parametrize(
    ("wanted", "found"), [("last", [3]), ("all", [0, 1, 2, 3]), ("0, 2", [0, 2])]
)
def test_segments_are_the_last_all_or_numbers(wanted: str, found: list[int]) -> None:
    assert choose_segments(wanted, 4) == found


@pytest.mark.parametrize("wanted", ["4", "first", "1,", "-1", ""])
def test_other_segments_are_refused(wanted: str) -> None:
    with pytest.raises(InputError, match="numbers from 0 to 3"):
        choose_segments(wanted, 4)


def test_a_part_that_does_not_exist_is_refused() -> None:
    with pytest.raises(InputError, match="no part 'drfit'; there are drift, kernels"):
        plan_steps(Scope(["drfit"]))


def test_all_parts_are_planned_in_order_whatever_the_order_asked_for() -> None:
    steps, _ = plan_steps(Scope(quick=True))
    assert list(dict.fromkeys(step.part for step in steps)) == list(PARTS)
    steps, _ = plan_steps(Scope(["startup", "kernels"]))
    assert list(dict.fromkeys(step.part for step in steps)) == ["kernels", "startup"]


def test_drifts_on_a_file_give_costs_and_accuracies(tmp_path: Path) -> None:
    name = write_sine(tmp_path / "small.csv")
    scope = Scope(["drift"], [name], segments="1,2", repeats=2)
    bench = Bench(look_at_machine())
    for step in plan_steps(scope)[0]:
        bench = bench.plus(step)
    methods = ("one fold", "default", "paper", "torch")
    assert [(cost.segment, cost.method) for cost in bench.drift] == [
        (segment, method) for segment in (1, 2) for method in methods
    ]
    assert all(cost.stream == name for cost in bench.drift)
    assert {cost.repeats for cost in bench.drift if cost.method != "torch"} == {2}
    assert all(cost.cpu_seconds > 0 and 0.3 < cost.accuracy <= 1 for cost in bench.drift)


def test_growth_tells_time_and_memory_of_its_own_process() -> None:
    ballast = bytearray(b"x") * 600_000_000  # which the measured process must not be charged with
    cost = measure_growth(2, 50)
    assert len(ballast) > cost.peak_bytes > cost.row_bytes == 150 * (4 * 4 + 8 + 4)
    assert cost.cpu_seconds > 0


def test_kernels_and_their_products_take_time() -> None:
    cost = measure_kernels(4, 2, repeats=1)
    assert min(cost.training, cost.training_products, cost.scoring, cost.scoring_products) > 0


@pytest.mark.parametrize("model", ONLINE_MODELS)
def test_online_models_have_a_rate(model: str) -> None:
    cost = measure_online(model, "electricity", n_rows=60, repeats=2)
    assert (cost.n_features, cost.n_rows) == (6, 60)
    assert cost.rows_per_second > 0


def test_start_up_is_timed_in_a_fresh_process() -> None:
    assert measure_startup("import driftquilt", repeats=1).wall_seconds > 0


def test_a_process_that_fails_says_why() -> None:
    with pytest.raises(DriftquiltError, match=r"code 1: ValueError: too big; if memory ran out"):
        run_fresh("raise ValueError('too big')")
    assert run_fresh("import sys; print(sys.argv[1:])", "a", "b").strip() == "['a', 'b']"
    assert peak_bytes() > 10**7


def test_a_measured_call_is_made_as_often_as_asked() -> None:
    calls = iter(range(10))
    answer, time = measure(lambda: next(calls), repeats=3)
    assert answer == 2
    assert time.wall >= 0


def test_the_machine_is_told() -> None:
    machine = look_at_machine()
    assert machine.cores >= 1
    assert {"numpy", "numba"} <= set(machine.packages)
    assert machine.cpu
