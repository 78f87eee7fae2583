"""Which cells a plan holds, and what it refuses to plan."""

from __future__ import annotations

from pathlib import Path

import pytest

from driftquilt.errors import InputError
from driftquilt.paper.baselines.naive import CurrentSegment, FullData
from driftquilt.paper.datasets import names
from driftquilt.paper.plan import (
    EXPERIMENTS,
    GOLD_SEEDS,
    METHODS,
    Cell,
    has_length,
    load_stream,
    make_plan,
)
from driftquilt.quilt.method import Method
from tests.small_streams import write_shop, write_sine


def mine(seed: int, _: str) -> Method:
    return CurrentSegment(seed=seed)


def test_a_plan_is_every_method_on_every_segment_with_every_seed_once() -> None:
    plan = make_plan(datasets=["sine:3"], methods=["hat", "quilt"], n_seeds=2)
    expected = {
        Cell("sine:3", method, segment, seed)
        for method in ("hat", "quilt")
        for segment in range(3)
        for seed in range(2)
    }
    assert set(plan.cells) == expected
    assert len(plan.cells) == len(expected)


def test_cells_that_two_experiments_share_are_planned_once() -> None:
    plan = make_plan(["accuracy", "ablation"], datasets=["sine:2"], methods=["quilt"], n_seeds=1)
    assert len(plan.cells) == 2


def test_a_data_set_that_is_asked_for_twice_is_planned_once() -> None:
    plan = make_plan(datasets=["sine:2", "sine:2"], methods=["quilt"], n_seeds=1)
    assert len(plan.cells) == 2


def test_the_gold_standard_has_fewer_seeds_than_the_rest() -> None:
    plan = make_plan(["selection"], datasets=["sine:2"], n_seeds=4)
    seeds = {m: {c.seed for c in plan.cells if c.method == m} for m in ("quilt", "best_segments")}
    assert seeds == {"quilt": {0, 1, 2, 3}, "best_segments": set(range(GOLD_SEEDS))}


def test_a_method_of_ones_own_is_in_every_experiment_that_compares_methods() -> None:
    for name, experiment in EXPERIMENTS.items():
        if experiment.methods:
            plan = make_plan([name], datasets=["sine:2"], n_seeds=1, extra={"mine": mine})
            assert {cell.method for cell in plan.cells} == {*experiment.methods, "mine"}


def test_methods_on_request_are_planned_only_by_name() -> None:
    everything = make_plan(["accuracy"], datasets=["sine:3"], n_seeds=1)
    assert "full_data_default" not in {cell.method for cell in everything.cells}
    asked = ["full_data_default", "current_segment_default"]
    plan = make_plan(["accuracy"], datasets=["sine:3"], methods=asked, n_seeds=1)
    assert [cell.method for cell in plan.cells] == [m for m in asked for _ in range(3)]


def test_a_method_of_ones_own_is_made_by_its_maker() -> None:
    plan = make_plan(datasets=["sine:2"], methods=["full_data", "mine"], extra={"mine": mine})
    assert plan.make(Cell("sine:2", "mine", 0, 3)) == CurrentSegment(seed=3)
    assert plan.make(Cell("sine:2", "full_data", 0, 4)) == FullData(seed=4)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_can_be_made_for_every_stream(name: str) -> None:
    plan = make_plan(datasets=["sine:2"])
    assert all(callable(plan.make(Cell(dataset, name, 0, 0)).adapt) for dataset in names())


def test_a_method_of_ones_own_may_not_take_the_name_of_the_papers() -> None:
    with pytest.raises(InputError, match="'quilt'"):
        make_plan(datasets=["sine:2"], extra={"quilt": mine})


def test_streams_of_the_paper_stay_out_of_the_tables_that_lack_them() -> None:
    experiment = EXPERIMENTS["initialization"]
    assert experiment.covers("sea")
    assert not experiment.covers("usenet1")
    assert experiment.covers("sine:3")
    assert experiment.covers("own.csv")
    assert not EXPERIMENTS["accuracy"].covers("random_rbf:20")


def test_scalability_takes_streams_with_a_length_and_leaves_the_others_alone() -> None:
    plan = make_plan(
        ["accuracy", "scalability"], datasets=["sine:2"], methods=["hat", "quilt"], n_seeds=1
    )
    assert {cell.dataset for cell in plan.cells} == {"sine:2"}
    assert has_length("sine:2")
    assert not has_length("sine")
    assert not has_length("C:own.csv")


def test_the_case_study_alone_needs_no_cells() -> None:
    assert make_plan(["case-study"], extra={"mine": mine}).cells == ()


def test_a_file_is_a_stream_by_its_path(tmp_path: Path) -> None:
    dataset = write_sine(tmp_path / "own:2.csv")
    assert load_stream(dataset).n_segments == 3
    assert load_stream(dataset).segment_names[0] == "month 0"


def test_the_columns_of_a_file_may_have_other_names(tmp_path: Path) -> None:
    dataset = str(write_shop(tmp_path / "shop.csv"))
    plan = make_plan(
        datasets=[dataset, "sine:2"], methods=["sega"], label="bought", segment="month"
    )
    assert plan.stream(dataset).class_names == ("later", "no", "yes")
    assert plan.stream(dataset).segment_names == ("may", "june", "july")
    assert plan.stream("sine:2").n_segments == 2
    with pytest.raises(InputError, match="no column 'label'"):
        make_plan(datasets=[dataset])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"experiments": ["acuracy"]}, "no experiment called 'acuracy'; did you mean 'accuracy'"),
        ({"methods": ["quilts"]}, "no method called 'quilts'; did you mean 'quilt'"),
        ({"methods": ["zzz"]}, "there are 'full_data', 'current_segment'"),
        ({"datasets": ["usenet3"]}, "no data set 'usenet3'; there are .*'usenet2'"),
        ({"datasets": ["sine:many"]}, "'sine:many' asks for 'many' segments"),
        ({"datasets": ["sine:-1"]}, "'sine:-1' asks for '-1' segments"),
        ({"datasets": ["sine:0"]}, "n_segments must be a whole number of at least 1"),
        ({"datasets": ["nowhere.csv"]}, "there is no file nowhere.csv"),
        ({"label": "sold"}, "label 'sold' and segment 'segment' name columns of a file, but none"),
        ({"n_seeds": 0}, "n_seeds must be a whole number of at least 1, but got 0"),
        ({"methods": ["best_segments"]}, "nothing to run: accuracy compares full_data"),
    ],
)
def test_what_cannot_be_planned_is_said_in_one_line(
    arguments: dict[str, list[str]], message: str
) -> None:
    with pytest.raises(InputError, match=message) as caught:
        make_plan(**{"datasets": ["sine:2"], **arguments})  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_a_file_whose_segments_are_too_short_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"15 rows per segment, .* 10%"):
        load_stream(write_sine(tmp_path / "short.csv", 2, 15))


def test_a_file_with_one_segment_that_leaves_no_test_rows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "uneven.csv"
    write_sine(path, 2, 60)
    path.write_text(path.read_text() + "0.1,0.2,0.3,0.4,1,last\n" * 4)
    with pytest.raises(InputError, match="'last' has 4 row"):
        load_stream(str(path))
