"""Algorithm 1 as a run: what an epoch records, when it ends, and that it repeats and forks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from driftquilt.core.segment import Segment
from driftquilt.core.training import Epoch, Rule, Run, Task, disparity, gain, train
from driftquilt.learners.mlp import MLP, MLPModel
from tests.segments import make_segment

LEARNER = MLP(hidden_units=6, learning_rate=0.02, batch_size=16)


HISTORY = [make_segment("march", 30), make_segment("april", 41, flip=True), make_segment("may", 52)]
TASK = Task(
    HISTORY, make_segment("june", 20), make_segment("june", 25, seed=1), max_epochs=12, patience=50
)


def begin(task: Task = TASK) -> Run[MLPModel]:
    return Run(task, LEARNER.start(task.current.X, 2, seed=3))


def finished(task: Task = TASK, disparity_max: float = 0.6) -> Run[MLPModel]:
    run = begin(task)
    epochs = list(train(run, disparity_max))
    assert epochs == run.epochs
    return run


def theta(model: MLPModel) -> bytes:
    weights: NDArray[Any] = model.tensors()["theta"]
    return weights.tobytes()


def facts(epoch: Epoch) -> tuple[Any, ...]:
    """An epoch as plain values, to compare bit for bit."""
    arrays = (epoch.scores.disparity, epoch.scores.gain, epoch.selected)
    return (*(a.tobytes() for a in arrays), epoch.validation_loss, epoch.n_rows, epoch.rate)


class Scripted:
    """A model whose n-th epoch ends with the n-th loss, and that knows its epoch."""

    def __init__(self, losses: Sequence[float], epoch: int = 0) -> None:
        self.losses, self.epoch, self.rates = losses, epoch, list[float]()
        self.orders: list[list[int]] = []

    def head_gradients(
        self, segments: Sequence[Segment]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        loss = self.losses[self.epoch - 1] if self.epoch else 1.0
        return np.ones((len(segments), 2)), np.full(len(segments), loss)

    def train_epoch(self, _: Sequence[Segment], rng: np.random.Generator, rate: float) -> None:
        self.epoch += 1
        self.orders.append(rng.permutation(20).tolist())
        self.rates.append(rate)

    def copy(self) -> Scripted:
        return Scripted(self.losses, self.epoch)

    def blend(self, other: Scripted, share: float) -> None:
        raise AssertionError(f"nothing was to be averaged: {other}, {share}")


def scripted(losses: Sequence[float], **changes: Any) -> Run[Scripted]:
    task = replace(TASK, **({"max_epochs": len(losses)} | changes))
    run = Run(task, Scripted(losses))
    for _ in train(run, 1.0):
        pass
    return run


def test_every_epoch_holds_the_scores_of_every_past_segment() -> None:
    for epoch in finished().epochs:
        assert epoch.scores.disparity.shape == epoch.scores.gain.shape == (3,)
        assert np.isfinite([*epoch.scores.disparity, *epoch.scores.gain]).all()
        assert (epoch.scores.disparity >= 0).all()


def test_an_epoch_begins_with_the_scores_of_the_model_it_trains() -> None:
    run = begin()
    for _ in range(3):
        gradients, _losses = run.model.head_gradients([*HISTORY, TASK.validation])
        epoch = run.advance(np.array([True, False, True]))
        assert np.array_equal(epoch.scores.disparity, disparity(gradients[:-1], gradients[-1]))
        assert np.array_equal(epoch.scores.gain, gain(gradients[:-1], gradients[-1]))


def test_an_epoch_ends_with_the_loss_of_the_model_it_trained() -> None:
    run = begin()
    for _ in range(3):
        epoch = run.advance(np.ones(3, dtype=bool))
        _, losses = run.model.head_gradients([TASK.validation])
        assert epoch.validation_loss == losses[0]


@pytest.mark.parametrize("rule", [Rule(), Rule(use_gain=False), Rule(use_disparity=False)])
def test_the_recorded_selection_is_what_the_rule_keeps_of_the_recorded_scores(rule: Rule) -> None:
    run = finished(replace(TASK, rule=rule), 0.6)
    for epoch in run.epochs:
        assert np.array_equal(epoch.selected, rule.keep(epoch.scores, 0.6))
    assert len(run.epochs) == TASK.max_epochs


def test_the_other_concept_is_left_out_and_the_same_one_used() -> None:
    selected = np.array([epoch.selected for epoch in finished().epochs])
    assert selected[:, [0, 2]].any(axis=0).all()
    assert not selected[:, 1].all()


def test_the_rows_of_an_epoch_are_the_selected_ones_and_the_current_ones() -> None:
    sizes = np.array([len(segment) for segment in HISTORY])
    for epoch in finished().epochs:
        assert epoch.n_rows == sizes[epoch.selected].sum() + len(TASK.current)


def test_current_segment_stays_even_when_every_score_is_bad() -> None:
    for epoch in finished(disparity_max=0.0).epochs:
        assert not epoch.selected.any()
        assert epoch.n_rows == len(TASK.current)


def test_training_without_history_uses_the_current_segment() -> None:
    run = finished(replace(TASK, history=[]))
    assert [epoch.n_rows for epoch in run.epochs] == [len(TASK.current)] * 12
    assert run.epochs[0].scores.gain.shape == (0,)
    assert run.best_loss < run.epochs[0].validation_loss


def test_rows_that_are_not_selected_have_no_influence_on_the_weights() -> None:
    lone, beside = begin(replace(TASK, history=[])), begin()
    for _ in range(4):
        lone.advance(np.zeros(0, dtype=bool))
        beside.advance(np.zeros(3, dtype=bool))
    assert theta(lone.model) == theta(beside.model)


def test_best_is_the_model_of_the_epoch_with_the_lowest_loss() -> None:
    run = finished(replace(TASK, max_epochs=60, patience=5))
    losses = [epoch.validation_loss for epoch in run.epochs]
    again = begin(run.task)
    for epoch in run.epochs[: 1 + int(np.argmin(losses))]:
        again.advance(epoch.selected)
    assert run.best_loss == min(losses)
    assert theta(run.best) == theta(again.model)


@given(st.lists(st.sampled_from([0.2, 0.3, 0.5, math.nan, math.inf]), min_size=1, max_size=12))
def test_best_is_the_first_of_equal_epochs_and_never_one_without_a_number(
    losses: list[float],
) -> None:
    run = scripted(losses, patience=99)
    finite = [loss for loss in losses if math.isfinite(loss)]
    assert run.best_loss == min(finite, default=math.inf)
    if finite:
        assert run.best.epoch == losses.index(min(finite)) + 1


def test_a_run_ends_after_max_epochs() -> None:
    run = finished(replace(TASK, max_epochs=4))
    assert len(run.epochs) == 4
    assert run.finished


def test_a_run_ends_when_patience_is_over() -> None:
    run = scripted([0.9, 0.5, 0.5, 0.5, 0.4, 0.4, 0.4, 0.4, 0.1], patience=3)
    assert len(run.epochs) == 8
    assert run.best_loss == 0.4
    assert run.best.epoch == 5


def test_the_rate_falls_to_a_tenth_when_only_a_hair_is_gained() -> None:
    # Each loss is 2e-4 lower: enough to go on, but less than a ten-thousandth of the best.
    losses = [10 - 2e-4 * k for k in range(8)]
    run = scripted(losses, patience=3)
    assert [epoch.rate for epoch in run.epochs] == pytest.approx([1.0] * 5 + [0.1] * 3)
    assert [epoch.rate for epoch in run.epochs] == run.model.rates


def test_scores_are_computed_once_per_epoch() -> None:
    run = begin()
    assert run.score() is run.score()
    before = run.score()
    run.advance(np.ones(3, dtype=bool))
    assert run.score() is not before


@settings(max_examples=20)
@given(st.integers(0, 6), st.lists(st.lists(st.booleans(), min_size=3, max_size=3), max_size=6))
def test_a_fork_goes_on_exactly_as_its_origin_would(
    n_before: int, choices: list[list[bool]]
) -> None:
    run = begin()
    for _ in range(n_before):
        run.advance(run.task.rule.keep(run.score(), 0.6))
    fork = run.fork()
    for one in (run, fork):  # One after the other: neither may feel the other's steps.
        for choice in choices:
            one.advance(np.array(choice))
    assert theta(run.model) == theta(fork.model)
    assert [facts(epoch) for epoch in run.epochs] == [facts(epoch) for epoch in fork.epochs]
    if run.epochs:
        assert theta(run.best) == theta(fork.best)
    assert run.best_loss == fork.best_loss
    assert run.finished == fork.finished


def test_training_a_fork_leaves_its_origin_as_it_was() -> None:
    run = begin()
    run.advance(np.ones(3, dtype=bool))
    weights, best, loss = theta(run.model), theta(run.best), run.best_loss
    fork = run.fork()
    for _ in range(5):
        fork.advance(np.zeros(3, dtype=bool))
    assert (theta(run.model), theta(run.best), run.best_loss) == (weights, best, loss)
    assert len(run.epochs) == 1
    assert len(fork.epochs) == 6


def test_training_twice_is_bit_equal() -> None:
    one, other = finished(), finished()
    assert theta(one.best) == theta(other.best)
    assert theta(one.model) == theta(other.model)
    assert [facts(epoch) for epoch in one.epochs] == [facts(epoch) for epoch in other.epochs]


def test_the_order_of_rows_follows_from_the_seed_and_changes_with_every_epoch() -> None:
    one, same, other = (scripted([0.5] * 4, seed=seed).model.orders for seed in (1, 1, 2))
    assert one == same
    assert len({tuple(order) for order in one + other}) == 8


def test_another_seed_gives_other_weights() -> None:
    assert theta(finished().model) != theta(finished(replace(TASK, seed=1)).model)


def test_a_mask_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(ValueError, match="zip"):
        begin().advance(np.ones(2, dtype=bool))
