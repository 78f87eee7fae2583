"""One shared pass gives for every bound what a lone training with it gives, bit for bit."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from driftquilt.core.sampling import Sampling
from driftquilt.core.segment import Segment, cut, folds
from driftquilt.core.training import Epoch, Rule, Run, Task, train
from driftquilt.errors import InputError, LearnerError
from driftquilt.learners.mlp import MLP, MLPModel
from driftquilt.paper.datasets.synthetic import sine
from driftquilt.search.base import Everything, Trial, best, finish
from driftquilt.search.shared import Shared

LEARNER = MLP(hidden_units=16, learning_rate=0.01)
CANDIDATES = (0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.2, 1.6, 2.0)


def sine_task(rule: Rule | None = None) -> Task:
    """Six segments of four concepts; the current one's concept was seen once before."""
    stream = sine(n_segments=6, n_rows=120)
    X = ((stream.features - 0.5) * 3).astype(np.float32)
    history, current = cut(X, stream.labels, stream.segments, list("abcdef"))
    [(training, validation)] = folds(current.take(slice(None, 60)), 1)
    return Task(history, training, validation, rule or Rule(), max_epochs=40, patience=6, seed=3)


def start() -> MLPModel:
    return LEARNER.start(np.zeros((1, 4), np.float32), 2, seed=3)


def lone(task: Task, bound: float) -> Trial[MLPModel]:
    run = Run(task, start())
    for _ in train(run, bound):
        pass
    return finish(run, bound)


def facts(trial: Trial[MLPModel]) -> tuple[Any, ...]:
    """A trial as plain values, to compare bit for bit."""
    theta: NDArray[Any] = trial.model.tensors()["theta"]
    epochs = [
        (e.scores.disparity.tobytes(), e.scores.gain.tobytes(), e.selected.tobytes(),
         e.validation_loss, e.n_rows, e.rate)
        for e in trial.epochs
    ]  # fmt: skip
    return trial.disparity_max, trial.validation_loss, theta.tobytes(), epochs


@dataclass
class Counting:
    """A model that counts the epochs that it and its copies train."""

    model: MLPModel
    trained: list[int] = field(default_factory=list)

    def head_gradients(
        self, segments: Sequence[Segment]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        return self.model.head_gradients(segments)

    def train_epoch(
        self, segments: Sequence[Segment], rng: np.random.Generator, rate: float
    ) -> None:
        self.trained.append(sum(map(len, segments)))
        self.model.train_epoch(segments, rng, rate)

    def copy(self) -> Counting:
        return Counting(self.model.copy(), self.trained)

    def blend(self, other: Counting, share: float) -> None:
        self.model.blend(other.model, share)


@pytest.mark.parametrize("rule", [Rule(), Rule(use_gain=False)], ids=["both", "no gain"])
def test_every_candidate_gets_what_a_lone_training_gives_it(rule: Rule) -> None:
    task = sine_task(rule)
    shared = {trial.disparity_max: trial for trial in Shared(CANDIDATES).trials(task, start)}
    assert set(shared) == set(CANDIDATES)
    for bound in CANDIDATES:
        assert facts(shared[bound]) == facts(lone(task, bound))
    assert len({facts(trial)[2] for trial in shared.values()}) > 1


def test_candidates_that_agree_share_their_epochs() -> None:
    task, counting = sine_task(), Counting(start())
    trials = list(Shared(CANDIDATES).trials(task, lambda: counting))
    # What training each bound alone would have taken:
    n_alone = sum(len(trial.epochs) for trial in trials)
    assert len(counting.trained) < 0.8 * n_alone
    n_paths = len({facts_of_path(trial.epochs) for trial in trials})
    assert n_paths < len(CANDIDATES)


def facts_of_path(epochs: Sequence[Epoch]) -> bytes:
    return b"".join(epoch.selected.tobytes() for epoch in epochs)


def test_each_shared_epoch_is_trained_exactly_once() -> None:
    counting = Counting(start())
    trials = list(Shared(CANDIDATES).trials(sine_task(), lambda: counting))
    # An epoch is known by the selections that led to it.
    different = {
        facts_of_path(trial.epochs[: n + 1]) for trial in trials for n in range(len(trial.epochs))
    }
    assert len(counting.trained) == len(different)


def test_the_model_is_started_once() -> None:
    starts: list[MLPModel] = []

    def counted() -> MLPModel:
        starts.append(start())
        return starts[-1]

    assert len(list(Shared(CANDIDATES).trials(sine_task(), counted))) == len(CANDIDATES)
    assert len(starts) == 1


def test_without_the_disparity_test_all_candidates_are_one_training() -> None:
    counting = Counting(start())
    task = sine_task(Rule(use_disparity=False))
    trials = list(Shared(CANDIDATES).trials(task, lambda: counting))
    assert [trial.disparity_max for trial in trials] == list(CANDIDATES)
    assert len(counting.trained) == len(trials[0].epochs)


@pytest.mark.parametrize("order", [sorted, lambda c: c[::-1]], ids=["rising", "falling"])
def test_the_order_of_candidates_does_not_matter(
    order: Callable[[tuple[float, ...]], Sequence[float]],
) -> None:
    task = sine_task()
    trials = Shared(tuple(order(CANDIDATES))).trials(task, start)
    expected = Shared(CANDIDATES).trials(task, start)
    assert [facts(trial) for trial in trials] == [facts(trial) for trial in expected]


def test_there_are_as_many_trials_as_candidates() -> None:
    assert Shared(CANDIDATES).n_trials == len(CANDIDATES)


def trial(bound: float, loss: float) -> Trial[MLPModel]:
    return Trial(bound, bound, loss, True, (), start())


def test_best_prefers_the_lower_loss_and_then_the_smaller_bound() -> None:
    assert best([trial(0.1, 0.5), trial(0.9, 0.4), trial(0.3, 0.6)]).disparity_max == 0.9
    assert best([trial(0.9, 0.4), trial(0.3, 0.4), trial(0.5, 0.4)]).disparity_max == 0.3


def test_best_prefers_any_number_to_a_diverged_trial() -> None:
    assert best([trial(0.1, math.inf), trial(0.9, 7.0)]).disparity_max == 0.9


def test_only_diverged_trials_are_an_error_that_says_what_to_do() -> None:
    with pytest.raises(LearnerError, match="diverged"):
        best([trial(0.1, math.inf), trial(0.9, math.inf)])


def test_training_on_rows_without_numbers_is_found_to_have_diverged() -> None:
    task = sine_task()
    damaged = replace(task.current, X=np.full_like(task.current.X, np.nan), y=task.current.y.copy())
    trials = list(Shared((0.5, 1.0)).trials(replace(task, current=damaged), start))
    assert [trial.validation_loss for trial in trials] == [math.inf, math.inf]
    assert len(trials[0].epochs) == task.patience
    with pytest.raises(LearnerError, match="diverged"):
        best(trials)


@pytest.mark.parametrize("candidates", [(), (-0.1,), (0.5, float("nan"))])
def test_candidates_that_are_no_bounds_are_refused(candidates: tuple[float, ...]) -> None:
    with pytest.raises(InputError, match="candidates are disparity bounds"):
        Shared(candidates)


def test_relative_candidates_are_shares_of_the_largest_disparity_before_training() -> None:
    task = sine_task()
    largest = Run(task, start()).score().disparity.max()
    trials = {t.candidate: t for t in Shared((0.0, 0.5, 1.0), relative=True).trials(task, start)}
    assert {c: t.disparity_max for c, t in trials.items()} == {
        c: pytest.approx(c * largest) for c in (0.0, 0.5, 1.0)
    }
    for trial in trials.values():
        assert facts(trial) == facts(lone(task, trial.disparity_max))


def test_everything_trains_on_all_segments_alike_and_scores_none() -> None:
    task = replace(sine_task(), sampling=Sampling(score_rows=32, epoch_rows=150))
    [trial] = Everything().trials(task, start)
    held_out = [len(segment) // 5 for segment in task.history]
    n_rows = sum(map(len, task.history)) - sum(held_out) + len(task.current)
    assert all(epoch.selected.all() and epoch.n_rows == n_rows for epoch in trial.epochs)
    assert all(np.isnan(epoch.scores.gain).all() for epoch in trial.epochs)
    assert math.isfinite(trial.validation_loss)
    assert Everything().split(3) == [Everything()]
