"""GRAD-MATCH: matching pursuit against others' solvers, the weights of rows, and its limits."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import nnls
from sklearn.linear_model import orthogonal_mp

from driftquilt.core.segment import Segment, join
from driftquilt.errors import LearnerError
from driftquilt.learners.mlp import MLP, MLPModel
from driftquilt.paper.baselines.grad_match import GradMatch, match
from driftquilt.quilt.method import Fitted
from tests.segments import make_segment

SMALL: dict[str, Any] = {"learner": MLP(8, learning_rate=0.02), "max_epochs": 60}
BRIEF: dict[str, Any] = SMALL | {"max_epochs": 4}


rows = partial(make_segment, n_features=3)
HISTORY = [rows("april", 150, flip=True, seed=1), rows("may", 150, seed=2)]
CURRENT = rows("june", 60)
ASKED = rows("june", 400, seed=5)


def answer(model: Fitted) -> bytes:
    return model.predict_proba(ASKED.X).tobytes()


def trained(part: Segment) -> MLPModel:
    model = MLP(8, learning_rate=0.05).start(part.X, 2, seed=0)
    model.train_epoch([part], np.random.default_rng(0), rate=1.0)
    return model


def problem(seed: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Atoms that lean to one side, as gradients of one concept do, and any target."""
    rng = np.random.default_rng(seed)
    n_atoms, width = rng.integers(1, 30), rng.integers(2, 40)
    return rng.normal(size=(n_atoms, width)) + 0.5 * rng.normal(), rng.normal(size=width)


class TestMatch:
    @pytest.mark.parametrize("regulariser", [1e-6, 0.5, 10.0])
    @pytest.mark.parametrize("seed", range(15))
    def test_with_every_atom_allowed_it_is_scipys_non_negative_least_squares(
        self, seed: int, regulariser: float
    ) -> None:
        atoms, target = problem(seed)
        ridge = np.vstack([atoms.T, np.sqrt(regulariser) * np.eye(len(atoms))])
        wanted, _ = nnls(ridge, np.r_[target, np.zeros(len(atoms))])
        found = match(atoms, target, len(atoms) + 1, regulariser, tolerance=0.0)
        np.testing.assert_allclose(found, wanted, atol=1e-6)

    @pytest.mark.parametrize("n_max", [1, 2, 3, 5])
    @pytest.mark.parametrize("seed", range(5))
    def test_where_no_weight_falls_below_zero_it_is_scikit_learns_pursuit(
        self, seed: int, n_max: int
    ) -> None:
        rng = np.random.default_rng(seed)
        atoms = rng.normal(size=(12, 400))
        atoms /= np.linalg.norm(atoms, axis=1, keepdims=True)
        target = np.array([5.0, 4.0, 3.0, 2.0, 1.0]) @ atoms[3:8]
        wanted = orthogonal_mp(atoms.T, target, n_nonzero_coefs=n_max)
        assert wanted.min() >= 0
        found = match(atoms, target, n_max, regulariser=1e-12, tolerance=0.0)
        np.testing.assert_allclose(found, wanted, atol=1e-6)

    @pytest.mark.parametrize("seed", range(8))
    def test_each_step_is_the_steepest_atom_and_a_plain_least_squares_fit(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        atoms, target = rng.uniform(size=(9, 50)), rng.uniform(size=50)
        used: list[int] = []
        for n_max in range(1, 4):
            before = match(atoms, target, n_max - 1, 0.5, 0.0)
            used.append(int(np.argmax(atoms @ (target - before @ atoms) * (before == 0))))
            ridge = np.vstack([atoms[used].T, np.sqrt(0.5) * np.eye(n_max)])
            fit, *_ = np.linalg.lstsq(ridge, np.r_[target, np.zeros(n_max)])
            if fit.min() <= 0:
                break
            wanted = np.zeros(9)
            wanted[used] = fit
            np.testing.assert_allclose(match(atoms, target, n_max, 0.5, 0.0), wanted, atol=1e-9)

    @pytest.mark.parametrize("seed", range(10))
    def test_weights_are_not_negative_and_no_more_than_allowed(self, seed: int) -> None:
        atoms, target = problem(seed)
        for n_max in range(len(atoms)):
            weights = match(atoms, target, n_max, 0.5, 0.0)
            assert weights.min() >= 0
            assert np.count_nonzero(weights) <= n_max

    def test_it_ends_once_little_enough_is_missing(self) -> None:
        atoms, target = np.eye(3), np.array([8.0, 4.0, 1.0])
        counts = [np.count_nonzero(match(atoms, target, 3, 1e-9, t)) for t in (0.6, 0.3, 0.01)]
        assert counts == [1, 2, 3]

    def test_atoms_that_point_away_get_nothing(self) -> None:
        atoms = np.array([[-1.0, 0.0], [0.0, 1.0]])
        assert match(atoms, np.array([1.0, 0.0]), 2, 0.5, 0.0).tolist() == [0.0, 0.0]

    def test_a_target_of_zero_needs_nothing(self) -> None:
        assert match(np.eye(2), np.zeros(2), 2, 0.5, 0.01).tolist() == [0.0, 0.0]

    def test_equal_atoms_share_the_weight(self) -> None:
        weights = match(np.ones((2, 2)), np.ones(2), 2, 0.5, 0.0)
        np.testing.assert_allclose(weights, 2 / (2 * 2 + 0.5))


def batches_of(chosen: Segment) -> NDArray[np.float32]:
    """The different weights that rows of weight 1 came back with, one per batch in use."""
    return np.unique(chosen.weight)


def test_chosen_batches_match_the_present_better_than_all_rows_do() -> None:
    part = join(HISTORY)
    model = trained(CURRENT)
    method = GradMatch(batch_size=16, regulariser=1e-3, fill=False)
    chosen = method.choose(model, part, CURRENT, 150, np.random.default_rng(0))
    (present, before, after), _ = model.head_gradients([CURRENT, part, chosen])

    def angle(gradient: NDArray[np.float64]) -> float:
        return float(gradient @ present / np.linalg.norm(gradient) / np.linalg.norm(present))

    assert angle(after) > angle(before) + 0.2


@pytest.mark.parametrize("weighted", [False, True])
def test_the_weighted_rows_add_up_to_the_weighted_atoms(weighted: bool) -> None:
    part = rows("may", 95, weighted=weighted, seed=3)
    model, rng = trained(CURRENT), np.random.default_rng(0)
    chosen = GradMatch(batch_size=10, fill=False).choose(model, part, CURRENT, 95, rng)
    batches = np.array_split(np.random.default_rng(0).permutation(95), 10)
    atoms, _ = model.head_gradients([part.take(batch) for batch in batches])
    target, _ = model.head_gradients([CURRENT])
    weights = match(atoms, target[0], 10, 0.5, 0.01)
    gradient, _ = model.head_gradients([chosen])
    np.testing.assert_allclose(gradient[0], weights @ atoms / weights.sum(), atol=1e-5)


def test_rows_of_one_batch_weigh_alike_and_one_in_the_mean() -> None:
    part = rows("may", 100, seed=3)
    method = GradMatch(batch_size=10, tolerance=0.0, fill=False)
    chosen = method.choose(trained(CURRENT), part, CURRENT, 30, np.random.default_rng(0))
    assert len(chosen) == 10 * len(batches_of(chosen)) <= 30
    assert chosen.weight.mean() == pytest.approx(1, abs=1e-6)


def test_random_rows_of_weight_one_fill_the_budget() -> None:
    part, model = rows("may", 100, seed=3), trained(CURRENT)
    bare, filled = (
        GradMatch(batch_size=10, tolerance=0.5, fill=fill).choose(
            model, part, CURRENT, 73, np.random.default_rng(0)
        )
        for fill in (False, True)
    )
    assert len(bare) < len(filled) == 73
    matched = {(x.tobytes(), w) for x, w in zip(bare.X, bare.weight, strict=True)}
    both = {(x.tobytes(), w) for x, w in zip(filled.X, filled.weight, strict=True)}
    assert matched < both
    assert {w for _, w in both - matched} == {1.0}


def test_the_whole_budget_is_every_row() -> None:
    part = join(HISTORY)
    rng = np.random.default_rng(0)
    chosen = GradMatch(batch_size=16).choose(trained(CURRENT), part, CURRENT, len(part), rng)
    np.testing.assert_array_equal(chosen.X, part.X)


@pytest.mark.parametrize("fill", [False, True])
def test_rows_are_drawn_at_random_where_no_batch_helps(fill: bool) -> None:
    part, contrary = rows("may", 100, seed=3), rows("june", 200, flip=True)
    model = trained(part)
    for epoch in range(30):
        model.train_epoch([part], np.random.default_rng(epoch), rate=1.0)
    chosen = GradMatch(batch_size=50, fill=fill).choose(
        model, part, contrary, 30, np.random.default_rng(0)
    )
    assert len(chosen) == 30
    assert set(chosen.weight) == {1.0}


def test_rows_that_are_no_numbers_in_the_past_do_not_trip_the_pursuit() -> None:
    bad = Segment("old", np.full_like(HISTORY[0].X, np.nan), HISTORY[0].y, HISTORY[0].weight)
    with pytest.raises(LearnerError, match="not a finite number"):
        GradMatch(**BRIEF, budgets=(1.0,)).adapt([bad], CURRENT)
