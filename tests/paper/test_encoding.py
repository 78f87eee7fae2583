"""A user's columns become what QuiltClassifier makes of them, and never by rows not yet seen."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pytest
from numpy.typing import NDArray

from driftquilt.data.encoder import Encoder
from driftquilt.data.frame import read_frame
from driftquilt.errors import InputError
from driftquilt.paper.datasets import Stream, read_stream
from driftquilt.paper.plan import EXPERIMENTS, Plan, make_plan
from driftquilt.paper.protocol import Evaluation, Protocol, encode, evaluations
from driftquilt.paper.run import Result, run_plan
from tests.small_streams import without_times, write_shop


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_shop(tmp_path / "shop.csv")


def read(path: Path) -> Stream:
    return read_stream(path, "bought", "month")


def seen(evaluation: Evaluation) -> NDArray[np.float32]:
    return np.concatenate([s.X for s in [*evaluation.history, evaluation.current]])


def test_rows_are_encoded_as_the_classifier_encodes_them(path: Path) -> None:
    frame = pd.read_csv(path, parse_dates=["since"])
    columns = frame[["price", "visits", "channel", "member", "since", "app version"]]
    oracle = Encoder.fit(read_frame(columns))
    X, names = encode(read(path), len(frame), n_known=len(frame))
    assert names == oracle.feature_names_out
    assert {"channel=app", "channel=missing", "visits=missing"} < set(names)
    assert "since (day of year, sin)" in names
    np.testing.assert_array_equal(X, oracle.encode(read_frame(columns)))


def test_under_honest_a_later_category_is_unknown_until_a_row_with_it_is_seen(path: Path) -> None:
    first, second, third = evaluations(read(path), "honest")
    assert "channel=app" not in first.columns + second.columns
    assert "channel=app" in third.columns
    text = [j for j, name in enumerate(second.columns) if name.startswith("channel=")]
    assert (seen(second)[:, text].sum(axis=1) == 1).all()
    assert set(second.test.X[:, text].sum(axis=1)) == {0, 1}  # 0 where the channel is new


def test_under_honest_nothing_depends_on_rows_that_are_not_seen(path: Path) -> None:
    before = list(evaluations(read(path), "honest"))[1]
    lines = path.read_text().splitlines()
    n_seen = 1 + 120 + 12
    later = [line.replace("web", "mars").replace("True", "") for line in lines[n_seen:]]
    path.write_text("\n".join([*lines[:n_seen], *later]))
    after = list(evaluations(read(path), "honest"))[1]
    assert after.columns == before.columns
    np.testing.assert_array_equal(seen(after), seen(before))


def test_under_paper_every_segment_has_the_columns_of_the_whole_stream(path: Path) -> None:
    found = list(evaluations(read(path), "paper"))
    assert len({evaluation.columns for evaluation in found}) == 1
    assert "channel=app" in found[0].columns
    rows = np.concatenate([seen(found[-1]), found[-1].test.X])
    np.testing.assert_allclose(rows[:, found[0].columns.index("price")].std(), 1, rtol=1e-5)


def test_a_column_that_begins_later_is_left_out_until_then(path: Path) -> None:
    first, _, third = evaluations(read(path), "honest")
    assert not any(name.startswith("app version") for name in first.columns)
    assert "app version" in third.columns


def test_rows_without_any_value_are_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "late.csv"
    path.write_text("\n".join(["x,label,segment", *[",0,0"] * 10, *["1,1,0"] * 30]))
    with pytest.raises(InputError, match=r"no column of late .* 4 rows"):
        list(evaluations(read_stream(path), "honest"))


def test_a_number_that_never_changed_so_far_cannot_blow_up_a_row(tmp_path: Path) -> None:
    path = tmp_path / "constant.csv"
    rows = [f"{0.1 if row < 30 else 0.2},{row % 2},{row // 30}" for row in range(60)]
    path.write_text("\n".join(["x,label,segment", *rows]))
    first, *_ = evaluations(read_stream(path), "honest")
    assert np.abs(seen(first)).max() == 0
    _, second = evaluations(read_stream(path), "honest")
    assert np.abs(second.test.X).max() < 10


def plan_for(path: Path, methods: list[str], protocol: Protocol) -> Plan:
    return make_plan(
        ["accuracy", "initialization"],
        datasets=[str(path)],
        methods=methods,
        n_seeds=1,
        protocol=protocol,
        label="bought",
        segment="month",
    )


def run(plan: Plan, out: Path, jobs: int = 1) -> list[Result]:
    return [result for results in run_plan(plan, out, jobs=jobs) for result in results]


def test_workers_know_the_names_of_the_columns(path: Path, tmp_path: Path) -> None:
    plan = plan_for(path, ["sega", "hat"], "honest")
    alone, together = run(plan, tmp_path / "alone"), run(plan, tmp_path / "together", jobs=2)
    assert {result.cell for result in alone} == set(plan.cells)
    assert without_times(alone) == without_times(together)


def test_a_net_goes_on_until_the_columns_grow_and_then_starts_anew(
    path: Path, tmp_path: Path
) -> None:
    may, june, july = (evaluation.columns for evaluation in evaluations(read(path), "honest"))
    assert may == june != july
    results = run(plan_for(path, ["quilt", "quilt_init_previous"], "honest"), tmp_path)
    figures = {(r.method, r.segment): (r.accuracy, r.epochs) for r in results}
    assert figures["quilt", 1] != figures["quilt_init_previous", 1]
    assert figures["quilt", 2] == figures["quilt_init_previous", 2]


def test_a_net_starts_anew_where_a_class_is_new(tmp_path: Path) -> None:
    path = tmp_path / "classes.csv"
    rows = [f"{row % 7},{row % (2 + row // 60)},{row // 60}" for row in range(120)]
    path.write_text("\n".join(["x,bought,month", *rows]))
    results = run(plan_for(path, ["quilt", "quilt_init_previous"], "honest"), tmp_path)
    new, chained = [(r.accuracy, r.epochs) for r in results if r.segment == 1]
    assert new == chained


@pytest.mark.slow
@pytest.mark.parametrize("protocol", ["honest", "paper"])
def test_every_method_takes_such_a_file(path: Path, tmp_path: Path, protocol: Protocol) -> None:
    methods = [*EXPERIMENTS["accuracy"].methods, "quilt_init_previous"]
    results = run(plan_for(path, methods, protocol), tmp_path)
    assert {result.method for result in results} == set(methods)
    assert np.mean([r.accuracy for r in results if r.method == "quilt_default"]) > 0.6
