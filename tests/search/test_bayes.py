"""Guided trials: inside the paper's range, repeatable, and each an ordinary training."""

from __future__ import annotations

import contextlib
import logging
import sys
import threading
from dataclasses import replace
from typing import Any

import numpy as np
import optuna
import pytest
from numpy.typing import NDArray

from driftquilt.core.segment import cut, folds
from driftquilt.core.training import Task
from driftquilt.errors import InputError, MissingExtraError
from driftquilt.learners.mlp import MLP, MLPModel
from driftquilt.paper.datasets.synthetic import sine
from driftquilt.quilt.executor import Threads
from driftquilt.search.base import Trial
from driftquilt.search.bayes import Bayes
from driftquilt.search.shared import Shared

LEARNER = MLP(hidden_units=8, learning_rate=0.02)


def sine_task(seed: int = 0) -> Task:
    stream = sine(n_segments=5, n_rows=80)
    X = ((stream.features - 0.5) * 3).astype(np.float32)
    history, current = cut(X, stream.labels, stream.segments, list("abcde"))
    [(training, validation)] = folds(current.take(slice(None, 40)), 1)
    return Task(history, training, validation, max_epochs=15, patience=4, seed=seed)


def start() -> MLPModel:
    return LEARNER.start(np.zeros((1, 4), np.float32), 2, seed=0)


def bounds(task: Task, search: Bayes) -> list[float]:
    return [trial.disparity_max for trial in search.trials(task, start)]


def facts(trial: Trial[MLPModel]) -> tuple[Any, ...]:
    theta: NDArray[Any] = trial.model.tensors()["theta"]
    epochs = [(e.validation_loss, e.n_rows, e.selected.tobytes()) for e in trial.epochs]
    return trial.disparity_max, trial.validation_loss, theta.tobytes(), epochs


def test_every_trial_is_what_the_shared_search_finds_for_its_bound() -> None:
    task = sine_task()
    for trial in Bayes().trials(task, start):
        [expected] = Shared((trial.disparity_max,)).trials(task, start)
        assert facts(trial) == facts(expected)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_bounds_lie_between_zero_and_two(seed: int) -> None:
    assert all(0 < bound < 2 for bound in bounds(sine_task(seed), Bayes(4, 8)))


def test_the_same_seed_tries_the_same_bounds_and_another_seed_others() -> None:
    one, same = bounds(sine_task(5), Bayes()), bounds(sine_task(5), Bayes())
    assert one == same
    assert one != bounds(sine_task(6), Bayes())
    assert len(set(one)) == len(one)


@pytest.mark.parametrize(("n_random", "n_guided"), [(1, 0), (3, 3), (0, 2), (2, 1)])
def test_there_are_as_many_trials_as_asked_for(n_random: int, n_guided: int) -> None:
    search = Bayes(n_random, n_guided)
    assert search.n_trials == n_random + n_guided
    assert len(bounds(sine_task(), search)) == search.n_trials


def test_random_trials_come_first_and_do_not_depend_on_how_many_guided_ones_follow() -> None:
    assert bounds(sine_task(), Bayes(3, 2))[:3] == bounds(sine_task(), Bayes(3, 0))


def test_trials_come_one_by_one_as_they_are_finished() -> None:
    starts: list[MLPModel] = []

    def counted() -> MLPModel:
        starts.append(start())
        return starts[-1]

    trials = Bayes().trials(sine_task(), counted)
    assert len(starts) == 0
    next(trials)
    next(trials)
    assert len(starts) == 2


class Listener(logging.Handler):
    def __init__(self, said: list[logging.LogRecord]) -> None:
        super().__init__()
        self.said = said

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record)


def test_a_search_says_nothing_and_leaves_optunas_own_voice_as_it_was() -> None:
    said: list[logging.LogRecord] = []
    listener = Listener(said)
    before = optuna.logging.get_verbosity()
    logging.getLogger("optuna").addHandler(listener)
    try:
        assert len(bounds(sine_task(), Bayes(1, 1))) == 2
    finally:
        logging.getLogger("optuna").removeHandler(listener)
    assert said == []
    assert optuna.logging.get_verbosity() == before


def test_diverged_trials_do_not_stop_the_search() -> None:
    task = sine_task()
    damaged = replace(task.current, X=np.full_like(task.current.X, np.nan))
    trials = list(Bayes(2, 2).trials(replace(task, current=damaged), start))
    assert [trial.validation_loss for trial in trials] == [float("inf")] * 4


@pytest.mark.parametrize(("n_random", "n_guided"), [(0, 0), (3, -1)])
def test_a_search_without_trials_is_refused(n_random: int, n_guided: int) -> None:
    with pytest.raises(InputError, match="at least one trial"):
        Bayes(n_random, n_guided)


def test_folds_on_threads_put_optunas_verbosity_back(monkeypatch: pytest.MonkeyPatch) -> None:
    meeting, inside, most = threading.Barrier(2, timeout=0.2), list[int](), list[int]()
    create = optuna.create_study

    def slow(**settings: Any) -> optuna.Study:
        inside.append(1)
        with contextlib.suppress(threading.BrokenBarrierError):
            meeting.wait()  # in vain where only one at a time gets here
        most.append(len(inside))
        study = create(**settings)
        inside.pop()
        return study

    monkeypatch.setattr(optuna, "create_study", slow)
    before = optuna.logging.get_verbosity()
    works = Threads(2).run(lambda _, seed: Bayes(1, 0).trials(sine_task(seed), start), None, [0, 1])
    assert len(list(works)) == 2
    assert most == [1, 1]
    assert optuna.logging.get_verbosity() == before


def test_without_optuna_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(MissingExtraError, match=r"optuna .*driftquilt\[paper\]"):
        next(Bayes().trials(sine_task(), start))
