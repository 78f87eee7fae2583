"""Running a plan: every cell once, the same rows however it is run, and numbers that hold."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, f1_score

from driftquilt.core.segment import History, Segment
from driftquilt.core.training import Time
from driftquilt.errors import DriftquiltError, InputError
from driftquilt.paper.baselines.naive import CurrentSegment, FullData
from driftquilt.paper.plan import Cell, Maker, Plan, load_stream, make_plan
from driftquilt.paper.protocol import evaluations
from driftquilt.paper.run import Result, effort, read_results, run_plan, run_task, split_tasks
from driftquilt.quilt.executor import no_interrupt
from driftquilt.quilt.method import Fitted, Method, Quilt, QuiltModel
from driftquilt.search.shared import Shared
from tests.small_streams import TIMES, without_times, write_sine


def run(plan: Plan, out: Path, jobs: int = 1) -> list[Result]:
    return [result for results in run_plan(plan, out, jobs=jobs) for result in results]


@pytest.fixture
def dataset(tmp_path: Path) -> str:
    return write_sine(tmp_path / "short.csv")


@dataclass(frozen=True)
class Guess:
    """Answers class 1 to every row, or class 0, and says which segments it looked at."""

    label: int = 1
    n_classes: int = 2
    selected: Sequence[int] | None = None

    def adapt(self, history: History, current: Segment) -> Fitted:
        del history, current
        return self

    def predict_proba(self, X: NDArray[Any]) -> NDArray[np.float32]:
        return np.tile(np.eye(self.n_classes, dtype=np.float32)[self.label], (len(X), 1))


@dataclass(frozen=True)
class Trouble:
    """Raises, or takes its process with it, on the second segment."""

    error: Exception | None

    def adapt(self, history: History, current: Segment) -> Fitted:
        if history and self.error is None:
            os._exit(3)
        if history and self.error is not None:
            raise self.error
        return Guess().adapt(history, current)


def make_guess(*_: object) -> Method:
    return Guess(selected=[1])


def make_deadly(*_: object) -> Method:
    return Trouble(None)


def own_plan(dataset: str, make: Maker) -> Plan:
    """Return the plan of one method of the user's own."""
    return make_plan(datasets=[dataset], methods=["own"], n_seeds=1, extra={"own": make})


def test_every_cell_is_run_once(dataset: str, tmp_path: Path) -> None:
    plan = make_plan(datasets=[dataset], methods=["full_data", "sega"], n_seeds=2)
    results = run(plan, tmp_path)
    assert sorted(result.cell for result in results) == sorted(plan.cells)
    assert read_results(tmp_path / "results.jsonl") == results


def test_two_processes_give_the_rows_of_one(dataset: str, tmp_path: Path) -> None:
    plan = make_plan(
        ["accuracy", "initialization"],
        datasets=[dataset],
        methods=["full_data", "hat", "quilt", "quilt_init_previous", "guess"],
        n_seeds=1,
        extra={"guess": make_guess},
    )
    alone, together = run(plan, tmp_path / "alone"), run(plan, tmp_path / "together", jobs=2)
    assert without_times(alone) == without_times(together)
    assert not multiprocessing.active_children()


def test_resuming_runs_only_what_is_missing(dataset: str, tmp_path: Path) -> None:
    plan = make_plan(datasets=[dataset], methods=["full_data", "hat"], n_seeds=1)
    work = run_plan(plan, tmp_path)
    begun = [*next(work), *next(work)]
    work.close()
    assert read_results(tmp_path / "results.jsonl") == begun
    rest = run(plan, tmp_path)
    assert len(rest) == len(plan.cells) - 2
    assert {r.cell for r in rest}.isdisjoint(r.cell for r in begun)
    assert run(plan, tmp_path) == []
    assert without_times(begun + rest) == without_times(run(plan, tmp_path / "at once"))


def test_a_file_that_cannot_be_added_to_is_refused_at_once(dataset: str, tmp_path: Path) -> None:
    run(make_plan(datasets=[dataset], methods=["sega"], n_seeds=1), tmp_path)
    other = make_plan(datasets=[dataset], methods=["sega"], n_seeds=1, protocol="paper")
    with pytest.raises(InputError, match="choose another folder"):
        run_plan(other, tmp_path)


def test_a_wider_plan_adds_to_what_is_there(dataset: str, tmp_path: Path) -> None:
    run(make_plan(datasets=[dataset], methods=["sega"], n_seeds=1), tmp_path)
    added = run(make_plan(datasets=[dataset], methods=["sega", "hat"], n_seeds=2), tmp_path)
    assert len(added) == 3 + 6
    assert len({result.cell for result in read_results(tmp_path / "results.jsonl")}) == 12


def by_hand(dataset: str, seed: int) -> list[QuiltModel]:
    """Every segment's model, each started from the one before."""
    plan, models = make_plan(["initialization"], datasets=[dataset]), list[QuiltModel]()
    for segment, evaluation in enumerate(evaluations(load_stream(dataset))):
        method = plan.make(Cell(dataset, "quilt_init_previous", segment, seed))
        assert isinstance(method, Quilt)
        if models:
            method = replace(method, previous=models[-1].models)
        models.append(method.adapt(evaluation.history, evaluation.current))
    return models


def test_methods_that_start_from_their_last_model_are_one_task(
    dataset: str, tmp_path: Path
) -> None:
    plan = make_plan(
        ["initialization"], datasets=[dataset], methods=["quilt_init_previous"], n_seeds=2
    )
    assert sorted(len(task) for task in split_tasks(plan, set())) == [3, 3]
    results = [result for result in run(plan, tmp_path) if result.seed == 1]
    for result, model, evaluation in zip(
        results, by_hand(dataset, 1), evaluations(load_stream(dataset)), strict=True
    ):
        right = model.predict_proba(evaluation.test.X).argmax(axis=1) == evaluation.test.y
        assert result.accuracy == right.mean()
        assert result.epochs == sum(map(len, model.trainings))


def test_a_chain_that_was_cut_is_run_again_but_no_row_is_repeated(
    dataset: str, tmp_path: Path
) -> None:
    plan = make_plan(
        ["initialization"], datasets=[dataset], methods=["quilt_init_previous"], n_seeds=1
    )
    whole = run(plan, tmp_path)
    path = tmp_path / "results.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:1]))
    added = run(plan, tmp_path)
    assert [result.segment for result in added] == [1, 2]
    assert without_times(read_results(path)) == without_times(whole)


def test_a_maker_that_cannot_travel_is_refused_before_anything_runs(
    dataset: str, tmp_path: Path
) -> None:
    plan = own_plan(dataset, lambda *_: Guess())
    with pytest.raises(InputError, match="at the top of a module"):
        run(plan, tmp_path, jobs=2)
    assert len(run(plan, tmp_path, jobs=1)) == 3


def test_a_worker_that_dies_is_an_error_that_says_what_to_do(dataset: str, tmp_path: Path) -> None:
    plan = own_plan(dataset, make_deadly)
    with pytest.raises(DriftquiltError, match=r"a worker process died.*jobs=1"):
        run(plan, tmp_path, jobs=2)
    assert not multiprocessing.active_children()


def test_an_error_of_ours_names_the_cell(dataset: str, tmp_path: Path) -> None:
    trouble = Trouble(InputError("too few rows"))
    plan = own_plan(dataset, lambda *_: trouble)
    with pytest.raises(InputError, match=r"own on .*short\.csv, segment 2, seed 0: too few rows"):
        run(plan, tmp_path)


def test_an_error_of_the_users_is_left_as_it_is_with_a_note(dataset: str, tmp_path: Path) -> None:
    trouble = Trouble(ZeroDivisionError("oops"))
    plan = own_plan(dataset, lambda *_: trouble)
    with pytest.raises(ZeroDivisionError, match="oops") as caught:
        run(plan, tmp_path)
    assert caught.value.__notes__ == [f"in own on {dataset}, segment 2, seed 0"]


@pytest.mark.parametrize("name", ["full_data", "hat"])
def test_accuracy_and_f1_are_scikit_learns(dataset: str, tmp_path: Path, name: str) -> None:
    plan = make_plan(datasets=[dataset], methods=[name], n_seeds=1)
    asked = list(evaluations(load_stream(dataset)))
    for result in run(plan, tmp_path):
        evaluation = asked[result.segment]
        model = plan.make(result.cell).adapt(evaluation.history, evaluation.current)
        predicted = model.predict_proba(evaluation.test.X).argmax(axis=1)
        assert result.accuracy == accuracy_score(evaluation.test.y, predicted)
        assert result.f1 == f1_score(evaluation.test.y, predicted)


def test_f1_of_a_class_that_is_never_answered_is_zero(dataset: str, tmp_path: Path) -> None:
    extra = {"no": lambda *_: Guess(0), "none seen": lambda *_: Guess(0, n_classes=1)}
    plan = make_plan(datasets=[dataset], methods=list(extra), n_seeds=1, extra=extra)
    results = run(plan, tmp_path)
    assert {result.f1 for result in results} == {0.0}
    assert all(0 < result.accuracy < 1 for result in results)


def test_f1_of_three_classes_is_weighted_even_before_the_third_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "three.csv"
    labels = [row % 2 for row in range(60)] + [row % 3 for row in range(60)]
    rows = [f"{row % 7},{label},{row // 60}" for row, label in enumerate(labels)]
    path.write_text("\n".join(["x,label,segment", *rows]))
    plan = own_plan(str(path), lambda *_: Guess(1, n_classes=2))
    results = sorted(run(plan, tmp_path), key=lambda result: result.segment)
    for result, evaluation in zip(results, evaluations(load_stream(str(path))), strict=True):
        answered = np.ones_like(evaluation.test.y)
        expected = f1_score(evaluation.test.y, answered, average="weighted", zero_division=0.0)
        assert result.f1 == pytest.approx(expected)


def test_usage_is_one_where_all_is_used_and_falls_with_what_is_dropped(
    dataset: str, tmp_path: Path
) -> None:
    plan = make_plan(
        ["ablation"], datasets=[dataset], methods=["quilt_without_both", "quilt"], n_seeds=1
    )
    for result in run(plan, tmp_path):
        assert result.usage is not None
        if result.method == "quilt_without_both" or result.segment == 0:
            assert result.usage == 1.0
            assert result.selected == list(range(result.segment))
        else:
            assert 6 / (6 + 120 * result.segment) <= result.usage <= 1.0


def test_usage_is_the_mean_share_of_rows_over_epochs(dataset: str, tmp_path: Path) -> None:
    method = Quilt(search=Shared((0.3, 0.6)), n_folds=3)
    plan = own_plan(dataset, lambda *_: method)
    last = max(run(plan, tmp_path), key=lambda result: result.segment)
    *_, evaluation = evaluations(load_stream(dataset))
    model = method.adapt(evaluation.history, evaluation.current)
    n_train = 12 * 2 / 3  # of three folds, two train
    shares = [
        (n_train + 120 * int(epoch.selected.sum())) / (n_train + 240)
        for training in model.trainings
        for epoch in training
    ]
    assert last.usage == pytest.approx(np.mean(shares))
    assert last.selected == model.selection.ever_used()
    assert last.epochs == len(shares)


def test_the_gold_set_is_what_best_segments_selected(dataset: str, tmp_path: Path) -> None:
    plan = make_plan(["selection"], datasets=[dataset], methods=["best_segments"], n_seeds=1)
    for result in run(plan, tmp_path):
        evaluation = list(evaluations(load_stream(dataset)))[result.segment]
        model = plan.make(result.cell).adapt(evaluation.history, evaluation.current)
        assert result.selected == list(model.gold)  # type: ignore[attr-defined]
        assert result.usage is None


def test_a_model_of_ones_own_may_say_what_it_selected(dataset: str, tmp_path: Path) -> None:
    extra = {"open": make_guess, "silent": lambda *_: Guess()}
    plan = make_plan(datasets=[dataset], methods=list(extra), n_seeds=1, extra=extra)
    selected = {(r.method, tuple(r.selected or ())) for r in run(plan, tmp_path)}
    assert selected == {("open", (1,)), ("silent", ())}


def test_training_is_a_part_of_the_whole_and_all_of_it_without_a_search(
    dataset: str, tmp_path: Path
) -> None:
    plan = make_plan(datasets=[dataset], methods=["quilt", "hat"], n_seeds=1)
    for result in run(plan, tmp_path):
        assert 0 < result.training_cpu_seconds <= result.cpu_seconds
        assert (result.training_cpu_seconds == result.cpu_seconds) == (result.method == "hat")
        assert (result.epochs is None) == (result.method == "hat")
        assert 0 < result.training_seconds <= result.seconds


@pytest.mark.parametrize("name", ["hat", "arf"])
def test_trees_go_on_where_they_stopped_and_end_where_a_new_one_would(
    dataset: str, tmp_path: Path, name: str
) -> None:
    plan = make_plan(datasets=[dataset], methods=[name], n_seeds=1, protocol="paper")
    [task] = split_tasks(plan, set())
    results = run(plan, tmp_path)
    anew = [run_task(plan, (cell,))[0] for cell in task]
    assert without_times(results) == without_times(anew)
    assert results[0].cpu_seconds < results[1].cpu_seconds < results[2].cpu_seconds


def test_under_honest_trees_learn_the_past_in_its_new_scale(dataset: str) -> None:
    plan = make_plan(datasets=[dataset], methods=["hat"], n_seeds=1)
    assert len(split_tasks(plan, set())) == len(plan.cells)


def test_results_of_rows_that_have_changed_are_not_taken_for_those_of_today(
    tmp_path: Path,
) -> None:
    dataset, out = write_sine(tmp_path / "short.csv"), tmp_path / "out"
    plan = make_plan(datasets=[dataset], methods=["sega"], n_seeds=1)
    [first, *_] = run(plan, out)
    assert load_stream(dataset).checksum().startswith(first.data)
    path = out / "results.jsonl"
    path.write_text(path.read_text().replace(first.data, "another sum"))
    with pytest.raises(InputError, match=r"short\.csv as it was before its rows changed"):
        run_plan(plan, out)


def test_what_a_method_loads_when_first_used_is_not_timed(
    dataset: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded, now = set[bool](), 0.0

    class Lazy(Guess):
        def adapt(self, history: History, current: Segment) -> Fitted:
            nonlocal now
            now += 1.0 if bool(history) in loaded else 1000.0
            loaded.add(bool(history))
            return super().adapt(history, current)

    monkeypatch.setattr("driftquilt.paper.run.read_clock", lambda: Time(now, now))
    extra = {"lazy": lambda *_: Lazy()}
    results = run(make_plan(datasets=[dataset], methods=["lazy"], n_seeds=1, extra=extra), tmp_path)
    assert loaded == {True, False}
    assert [(result.seconds, result.cpu_seconds) for result in results] == [(1.0, 1.0)] * 3


def test_ctrl_c_waits_for_the_end_of_a_block_whichever_thread_hears_it() -> None:
    reached, stop = list[bool](), threading.Event()
    listener = threading.Thread(target=stop.wait)  # takes the signal that this thread blocks
    listener.start()

    def interrupted() -> None:
        with no_interrupt():
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.05)
            reached.append(True)

    try:
        with pytest.raises(KeyboardInterrupt):
            interrupted()
    finally:
        stop.set()
        listener.join()
    assert reached
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_longest_tasks_come_first() -> None:
    plan = make_plan(["accuracy", "selection", "initialization"], datasets=["sine:4"], n_seeds=1)
    tasks = split_tasks(plan, set())
    efforts = [effort(plan, task) for task in tasks]
    assert efforts == sorted(efforts, reverse=True)
    assert tasks[0][-1] == Cell("sine:4", "best_segments", 3, 0)
    assert ("quilt_init_previous", 4) in [(task[0].method, len(task)) for task in tasks[:3]]
    assert [task[0].segment for task in tasks if task[0].method == "hat"] == [3, 2, 1, 0]


def test_only_timing_fields_may_differ() -> None:
    assert {name for name in Result.__dataclass_fields__ if "seconds" in name} == TIMES


def test_naive_methods_of_the_plan_are_the_papers(dataset: str) -> None:
    plan = make_plan(datasets=[dataset], n_seeds=1)
    assert plan.make(Cell(dataset, "full_data", 0, 2)) == FullData(seed=2)
    assert plan.make(Cell(dataset, "current_segment", 0, 2)) == CurrentSegment(seed=2)
