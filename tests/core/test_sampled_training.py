"""A run under a sampling: scores are reused, weights averaged, and it repeats and forks as ever."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from driftquilt.core.sampling import EVERY_ROW, Sampling
from driftquilt.core.segment import Segment
from driftquilt.core.training import Epoch, Run, Task, Time, disparity, gain, train
from driftquilt.learners.mlp import MLP, MLPModel
from tests.segments import make_segment

LEARNER = MLP(hidden_units=6, learning_rate=0.02, batch_size=16)
SAMPLING = Sampling(score_rows=12, score_every=2, epoch_rows=70, averaging=0.7)
ALL = np.ones(3, dtype=bool)

HISTORY = [make_segment("march", 30), make_segment("april", 41, flip=True), make_segment("may", 52)]
TASK = Task(
    HISTORY,
    make_segment("june", 20),
    make_segment("june", 25, seed=1),
    max_epochs=9,
    patience=50,
    sampling=SAMPLING,
)


def begin(task: Task = TASK) -> Run[MLPModel]:
    return Run(task, LEARNER.start(task.current.X, 2, seed=3))


def finished(task: Task = TASK) -> Run[MLPModel]:
    run = begin(task)
    for _ in train(run, 0.6):
        pass
    return run


def theta(model: MLPModel) -> NDArray[np.float32]:
    weights: NDArray[np.float32] = model.tensors()["theta"]
    return weights


def facts(run: Run[MLPModel]) -> tuple[Any, ...]:
    """Where a run stands and how it came there, to compare bit for bit."""
    models = (run.model, run.average, run.best)
    arrays = [(e.scores.disparity, e.scores.gain, e.selected) for e in run.epochs]
    numbers = [(e.validation_loss, e.n_rows, e.rate) for e in run.epochs]
    weights = [theta(model).tobytes() for model in models]
    return weights, [[a.tobytes() for a in epoch] for epoch in arrays], numbers, run.best_loss


@dataclass
class Watched:
    """A model that notes on which segments it and its copies were scored and trained."""

    model: MLPModel
    scored: list[list[Segment]] = field(default_factory=list)
    validated: list[Segment] = field(default_factory=list)
    trained: list[list[Segment]] = field(default_factory=list)

    def head_gradients(
        self, segments: Sequence[Segment]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        if len(segments) == 1:
            self.validated.extend(segments)
        else:
            self.scored.append(list(segments))
        return self.model.head_gradients(segments)

    def train_epoch(
        self, segments: Sequence[Segment], rng: np.random.Generator, rate: float
    ) -> None:
        self.trained.append(list(segments))
        self.model.train_epoch(segments, rng, rate)

    def copy(self) -> Watched:
        return replace(self, model=self.model.copy())

    def blend(self, other: Watched, share: float) -> None:
        self.model.blend(other.model, share)


def watched(sampling: Sampling, n_epochs: int) -> tuple[Watched, list[Epoch]]:
    model = Watched(begin().model)
    run = Run(replace(TASK, sampling=sampling), model)
    return model, [run.advance(ALL) for _ in range(n_epochs)]


@pytest.mark.parametrize("averaging", [0.0, 0.7])
@pytest.mark.parametrize("every", [1, 2, 3, 10])
def test_segments_are_scored_every_so_many_epochs_and_the_scores_reused(
    every: int, averaging: float
) -> None:
    model, epochs = watched(Sampling(score_every=every, averaging=averaging), 8)
    anew = [k for k in range(8) if k == 0 or epochs[k].scores is not epochs[k - 1].scores]
    assert anew == list(range(0, 8, every))
    assert len(model.scored) == len(anew)
    assert len(model.validated) == 1 + 8


def test_scores_and_epochs_look_at_samples_that_are_drawn_anew() -> None:
    model, epochs = watched(SAMPLING, 6)
    assert [[len(part) for part in parts] for parts in model.scored] == [[12, 12, 12]] * 3
    assert len({parts[0].X.tobytes() for parts in model.scored}) == 3
    n_current = len(TASK.current)
    assert all(np.array_equal(parts[-1].X[-n_current:], TASK.current.X) for parts in model.trained)
    assert len({parts[0].X.tobytes() for parts in model.trained}) == 6
    sizes = [sum(map(len, parts)) for parts in model.trained]
    assert all(45 < size < 95 for size in sizes)  # 70 are asked for
    assert [epoch.n_rows for epoch in epochs] == [30 + 41 + 52 + 20] * 6
    assert all(segment is TASK.validation for segment in model.validated)


def test_scores_of_a_sample_come_near_those_of_all_rows() -> None:
    task = replace(
        TASK, history=[make_segment(str(k), 2000, flip=k == 1, seed=k) for k in range(3)]
    )
    full = begin(replace(task, sampling=EVERY_ROW)).score()
    drawn = [
        begin(replace(task, sampling=Sampling(score_rows=400), seed=seed)).score()
        for seed in range(30)
    ]
    for name in ("disparity", "gain"):
        values, expected = np.array([getattr(s, name) for s in drawn]), getattr(full, name)
        assert np.abs(values - expected).mean() < 0.1 * np.ptp(expected)
        assert (values.std(axis=0) > 0).all()
    # On average the inner product of a sample is right and its distance a little too long.
    gains, disparities = (np.array([getattr(s, n) for s in drawn]) for n in ("gain", "disparity"))
    assert (np.abs(gains.mean(axis=0) - full.gain) < gains.std(axis=0) * 4 / 30**0.5).all()
    assert disparities.mean(axis=0).sum() > full.disparity.sum()


def test_samples_of_all_rows_give_what_the_full_sampling_gives() -> None:
    everything = Sampling(score_rows=10**6, epoch_rows=10**6)
    full = facts(finished(replace(TASK, sampling=EVERY_ROW)))
    assert facts(finished(replace(TASK, sampling=everything))) == full


def test_without_averaging_the_average_is_the_model() -> None:
    run = begin(replace(TASK, sampling=replace(SAMPLING, averaging=0.0)))
    assert run.average is run.model
    assert run.fork().average is not run.model
    fork = run.fork()
    assert fork.average is fork.model


def test_the_average_is_what_three_epochs_give_by_hand() -> None:
    plain, run = (
        begin(replace(TASK, sampling=EVERY_ROW)),
        begin(replace(TASK, sampling=Sampling(averaging=0.8))),
    )
    average = np.zeros_like(theta(run.model))
    for share in (1.0, 1 / 2, 2 / 5):
        plain.advance(ALL)
        epoch = run.advance(ALL)
        average = (1 - share) * average + share * theta(plain.model)
        assert np.allclose(theta(run.average), average, rtol=0, atol=1e-6)
        by_hand = LEARNER.restore({"theta": average.astype(np.float32)}, 2)
        _, [loss] = by_hand.head_gradients([TASK.validation])
        assert epoch.validation_loss == pytest.approx(loss, rel=1e-5)
        # The average looks on: it does not change what is trained.
        assert np.array_equal(theta(run.model), theta(plain.model))
    assert not np.allclose(theta(run.average), theta(run.model), atol=1e-4)


def test_it_is_the_average_that_is_scored_validated_and_kept() -> None:
    run, averages = (
        begin(replace(TASK, sampling=Sampling(averaging=0.8))),
        list[NDArray[np.float32]](),
    )
    for _ in range(6):
        gradients, _losses = run.average.head_gradients([*HISTORY, TASK.validation])
        epoch = run.advance(ALL)
        assert np.array_equal(epoch.scores.disparity, disparity(gradients[:-1], gradients[-1]))
        assert np.array_equal(epoch.scores.gain, gain(gradients[:-1], gradients[-1]))
        _, [loss] = run.average.head_gradients([TASK.validation])
        assert epoch.validation_loss == loss
        averages.append(theta(run.average))
    losses = [epoch.validation_loss for epoch in run.epochs]
    assert run.best_loss == min(losses)
    assert np.array_equal(theta(run.best), averages[int(np.argmin(losses))])


@pytest.mark.parametrize(
    "sampling", [SAMPLING, Sampling(averaging=0.5), Sampling(score_rows=5, epoch_rows=30)]
)
def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(sampling: Sampling) -> None:
    task = replace(TASK, sampling=sampling)
    assert facts(finished(task)) == facts(finished(task))
    assert facts(finished(task)) != facts(finished(replace(task, seed=1)))


samplings = st.builds(
    Sampling,
    score_rows=st.sampled_from([None, 12]),
    score_every=st.integers(1, 3),
    epoch_rows=st.sampled_from([None, 5, 70]),
    averaging=st.sampled_from([0.0, 0.3, 0.9]),
)
choices = st.lists(st.lists(st.booleans(), min_size=3, max_size=3), max_size=5)


@settings(max_examples=30)
@given(samplings, st.integers(0, 5), choices)
def test_a_fork_goes_on_exactly_as_its_origin_would(
    sampling: Sampling, n_before: int, choices: list[list[bool]]
) -> None:
    run = begin(replace(TASK, sampling=sampling))
    for _ in range(n_before):
        run.advance(run.task.rule.keep(run.score(), 0.6))
    run.score()  # A search forks after it has looked at the scores.
    before = facts(run)
    fork = run.fork()
    for choice in choices:
        fork.advance(np.array(choice))
    assert facts(run) == before
    for choice in choices:
        run.advance(np.array(choice))
    assert facts(run) == facts(fork)


def test_an_epoch_is_timed_with_the_scoring_that_it_began_with() -> None:
    ticks = count()
    task = replace(TASK, clock=lambda: Time(wall=next(ticks)), sampling=Sampling(score_every=2))
    run = begin(task)
    # One tick for a scoring, one for training and validation.
    assert [run.advance(ALL).time.wall for _ in range(5)] == [2, 1, 2, 1, 2]
