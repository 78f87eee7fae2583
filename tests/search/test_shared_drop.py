"""Giving up on a bound changes nothing for the others, and never costs the winner."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from driftquilt.core.sampling import EVERY_ROW, Sampling
from driftquilt.core.segment import Segment
from driftquilt.core.training import Rule, Run, Task, train
from driftquilt.errors import InputError
from driftquilt.learners.mlp import MLPModel
from driftquilt.search.base import Trial, best, finish
from driftquilt.search.shared import Shared
from tests.search.test_shared import CANDIDATES, facts, lone, sine_task, start

SAMPLING = Sampling(score_rows=40, score_every=2, epoch_rows=150, averaging=0.7)


def search(task: Task, drop_by: float) -> list[Trial[MLPModel]]:
    trials = list(Shared(CANDIDATES, drop_by=drop_by).trials(task, start))
    assert sorted(trial.disparity_max for trial in trials) == sorted(CANDIDATES)
    return trials


@pytest.mark.parametrize("sampling", [EVERY_ROW, SAMPLING], ids=["full", "sampled"])
def test_a_bound_that_was_not_dropped_gets_what_a_lone_training_gives_it(
    sampling: Sampling,
) -> None:
    task = replace(sine_task(), sampling=sampling)
    trials = search(task, drop_by=0.06)
    assert {trial.finished for trial in trials} == {True, False}
    for trial in trials:
        alone = lone(task, trial.disparity_max)
        if trial.finished:
            assert facts(trial) == facts(alone)
        else:
            n_epochs = len(trial.epochs)
            assert n_epochs < len(alone.epochs)
            assert facts(trial)[-1] == facts(alone)[-1][:n_epochs]


@pytest.mark.parametrize("sampling", [EVERY_ROW, SAMPLING], ids=["full", "sampled"])
def test_by_default_none_is_dropped(sampling: Sampling) -> None:
    task = replace(sine_task(), sampling=sampling)
    for trial in Shared(CANDIDATES).trials(task, start):
        assert trial.finished
        assert facts(trial) == facts(lone(task, trial.disparity_max))


def test_the_less_is_forgiven_the_fewer_epochs_are_trained() -> None:
    n_epochs = [
        sum(len(trial.epochs) for trial in search(sine_task(), drop_by))
        for drop_by in (math.inf, 0.1, 0.0)
    ]
    assert n_epochs == sorted(n_epochs, reverse=True)
    assert n_epochs[-1] < n_epochs[0]


@pytest.mark.parametrize("drop_by", [-0.1, -math.inf, math.nan])
def test_a_share_below_zero_or_without_a_number_is_refused(drop_by: float) -> None:
    with pytest.raises(InputError, match=f"drop_by is {drop_by}"):
        Shared(CANDIDATES, drop_by=drop_by)


# A model whose losses are written down beforehand, one list for each number of kept segments.


@dataclass
class Scripted:
    """Past segment k is at a disparity of 0.5 + k, so that bounds 0, 1, 2 keep 0, 1, 2 of them."""

    losses: Sequence[Sequence[float]]
    n_kept: int = 0
    epoch: int = 0

    def head_gradients(
        self, segments: Sequence[Segment]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        gradients = np.array([[float(segment.X[0, 0])] for segment in segments])
        loss = self.losses[self.n_kept][self.epoch - 1] if self.epoch else 9.0
        return gradients, np.full(len(segments), loss)

    def train_epoch(
        self, segments: Sequence[Segment], rng: np.random.Generator, rate: float
    ) -> None:
        del rng, rate
        self.n_kept, self.epoch = sum(map(len, segments)) - 1, self.epoch + 1

    def copy(self) -> Scripted:
        return replace(self)

    def blend(self, other: Scripted, share: float) -> None:
        raise AssertionError(f"nothing was to be averaged: {other}, {share}")


def one_row(gradient: float) -> Segment:
    return Segment("", np.full((1, 1), gradient), np.zeros(1, np.int64), np.ones(1, np.float32))


N_EPOCHS, BOUNDS = 8, (0.0, 1.0, 2.0)
TASK = Task(
    [one_row(0.5), one_row(1.5)], one_row(0), one_row(0),
    rule=Rule(use_gain=False), max_epochs=N_EPOCHS, patience=3,
)  # fmt: skip

losses = st.sampled_from([0.0, 0.2, 0.4, 0.5, 0.6, 0.9, 1.0, math.nan, math.inf])
scripts = st.lists(st.lists(losses, min_size=N_EPOCHS, max_size=N_EPOCHS), min_size=3, max_size=3)
Facts = tuple[float, float, int, int]


def facts_of(trial: Trial[Scripted]) -> Facts:
    return trial.disparity_max, trial.validation_loss, len(trial.epochs), trial.model.epoch


def alone(script: list[list[float]], bound: float) -> Trial[Scripted]:
    run = Run(TASK, Scripted(script))
    for _ in train(run, bound):
        pass
    return finish(run, bound)


@given(scripts, st.sampled_from([0.0, 0.1, 0.5, 2.0, math.inf]))
def test_what_is_dropped_was_far_behind_and_what_is_not_is_finished(
    script: list[list[float]], drop_by: float
) -> None:
    shared = Shared(BOUNDS, drop_by=drop_by)
    trials = list(shared.trials(TASK, lambda: Scripted(script)))
    lowest = min(trial.validation_loss for trial in trials)
    assert sorted(trial.disparity_max for trial in trials) == list(BOUNDS)
    for trial in trials:
        if trial.finished:
            assert facts_of(trial) == facts_of(alone(script, trial.disparity_max))
        else:
            assert drop_by < math.inf
            assert trial.validation_loss > lowest * (1 + drop_by / len(trial.epochs))


@given(scripts, st.sampled_from([0.0, 0.1, 0.5, 2.0]))
def test_the_winner_is_the_same_unless_it_was_itself_dropped(
    script: list[list[float]], drop_by: float
) -> None:
    everyone = list(Shared(BOUNDS).trials(TASK, lambda: Scripted(script)))
    if not any(math.isfinite(trial.validation_loss) for trial in everyone):
        return
    shared = Shared(BOUNDS, drop_by=drop_by)
    trials = list(shared.trials(TASK, lambda: Scripted(script)))
    winner, champion = best(trials), best(everyone)
    assert winner.finished
    if next(t for t in trials if t.disparity_max == champion.disparity_max).finished:
        assert facts_of(winner) == facts_of(champion)


def test_a_run_is_dropped_in_the_epoch_that_leaves_it_too_far_behind() -> None:
    falling = [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3]
    slow = [1.0, 0.95, 0.9, 0.85, 0.8, 0.75, 0.7, 0.65]  # 0.85 > (1 + 0.8 / 4) * 0.7
    near = [1.1, 0.99, 0.88, 0.77, 0.66, 0.55, 0.44, 0.35]  # never so far behind
    script = [falling, slow, near]
    trials = Shared(BOUNDS, drop_by=0.8).trials(TASK, lambda: Scripted(script))
    assert [(t.disparity_max, len(t.epochs), t.finished, t.validation_loss) for t in trials] == [
        (1.0, 4, False, 0.85),
        (0.0, 8, True, 0.3),
        (2.0, 8, True, 0.35),
    ]


def test_a_finished_run_still_sets_the_mark_for_the_others() -> None:
    early = [0.2, *[0.9] * 7]  # over after its patience of 3
    steady = [0.9, 0.89, 0.88, 0.87, 0.86, 0.85, 0.84, 0.83]  # 0.86 > (1 + 16 / 5) * 0.2
    script = [early, steady, steady]
    trials = list(Shared(BOUNDS, drop_by=16).trials(TASK, lambda: Scripted(script)))
    assert [(t.disparity_max, len(t.epochs), t.finished) for t in trials] == [
        (0.0, 4, True),
        (1.0, 5, False),
        (2.0, 5, False),
    ]
