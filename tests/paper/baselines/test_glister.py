"""GLISTER: the greedy choice against a plain loop, the loop over budgets, and its limits."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from driftquilt.core.segment import Segment, join
from driftquilt.learners.mlp import MLP, MLPModel
from driftquilt.paper.baselines.glister import Glister, highest
from driftquilt.quilt.method import Fitted
from tests.segments import make_segment

N_HIDDEN = 8
SMALL: dict[str, Any] = {
    "learner": MLP(N_HIDDEN, learning_rate=0.02),
    "max_epochs": 60,
}
BRIEF: dict[str, Any] = SMALL | {"max_epochs": 4}
RNG = np.random.default_rng(0)  # GLISTER draws nothing from it


rows = partial(make_segment, n_features=3)
HISTORY = [rows("april", 150, flip=True, seed=1), rows("may", 150, seed=2)]
CURRENT = rows("june", 60)
ASKED = rows("june", 400, seed=5)


def answer(model: Fitted) -> bytes:
    return model.predict_proba(ASKED.X).tobytes()


def trained(part: Segment, n_classes: int) -> MLPModel:
    model = MLP(N_HIDDEN, learning_rate=0.05).start(part.X, n_classes, seed=0)
    model.train_epoch([part], np.random.default_rng(0), rate=1.0)
    return model


def head_of(model: MLPModel) -> NDArray[np.float64]:
    """The last layer's bias and weights, (C, 1+H)."""
    tail = model.tensors()["theta"][-model.n_classes * (N_HIDDEN + 1) :].astype(np.float64)
    weights = tail[: -model.n_classes].reshape(model.n_classes, N_HIDDEN)
    return np.column_stack([tail[-model.n_classes :], weights])


def gradients_by_row(
    part: Segment, embedding: NDArray[np.float32], head: NDArray[np.float64]
) -> list[NDArray[np.float64]]:
    """Each row's weighted gradient, written out, (C, 1+H)."""
    gradients = []
    for a, label, weight in zip(embedding, part.y, part.weight, strict=True):
        felt = np.concatenate([[1.0], a])
        p = np.exp(head @ felt)
        p /= p.sum()
        p[label] -= 1
        gradients.append(weight * np.outer(p, felt))
    return gradients


def plain_greedy(
    model: MLPModel, part: Segment, validation: Segment, n_rows: int, n_rounds: int, step: float
) -> list[int]:
    """The method as its paper states it, one row and one number at a time."""
    head = head_of(model)
    candidates = gradients_by_row(part, model.embed(part.X)[0], head)
    seen, taken = model.embed(validation.X)[0], list[int]()
    sizes = [n_rows // n_rounds + (k < n_rows % n_rounds) for k in range(n_rounds)]
    for size in sizes:
        moved = head - step * sum((candidates[i] for i in taken), np.zeros_like(head))
        present = sum(gradients_by_row(validation, seen, moved)) / validation.weight.sum()
        left = [i for i in range(len(part)) if i not in taken]
        left.sort(key=lambda i: -float((candidates[i] * present).sum()))
        taken += left[:size]
    return sorted(taken)


@pytest.mark.parametrize("step", [0.0, 1e-3, 0.1])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(("n_rows", "n_rounds"), [(1, 1), (20, 20), (33, 7), (80, 4), (119, 119)])
def test_the_choice_is_that_of_a_plain_loop_over_explicit_gradients(
    n_rows: int, n_rounds: int, n_classes: int, step: float
) -> None:
    kind: dict[str, Any] = {"n_classes": n_classes, "weighted": True}
    part = rows("may", 120, **kind, seed=1)
    validation = rows("june", 30, **kind, seed=2)
    part = Segment(
        "may", np.c_[part.X[:, :2], np.arange(120) / 60].astype(np.float32), part.y, part.weight
    )
    model = trained(part, n_classes)
    chosen = Glister(step=step, n_rounds=n_rounds).choose(model, part, validation, n_rows, RNG)
    wanted = plain_greedy(model, part, validation, n_rows, n_rounds, step)
    np.testing.assert_array_equal(chosen.X, part.X[wanted])
    np.testing.assert_array_equal(chosen.weight, part.weight[wanted])


@pytest.mark.parametrize("n", [1, 2, 5, 40, 99, 100])
def test_the_highest_are_those_of_a_stable_sort(n: int) -> None:
    values = np.random.default_rng(n).integers(12, size=100).astype(np.float32)
    wanted = np.argsort(-values, kind="stable")[:n]
    assert sorted(highest(values, n)) == sorted(wanted)


def test_a_step_of_the_head_changes_what_is_taken_next() -> None:
    part, validation = join(HISTORY), rows("june", 40)
    model = trained(part, 2)
    still, moving = (
        Glister(step=step).choose(model, part, validation, 150, RNG).X for step in (0.0, 0.05)
    )
    assert not np.array_equal(still, moving)


def test_fewer_rows_than_rounds_are_taken_one_by_one() -> None:
    part = rows("may", 30)
    chosen = Glister(n_rounds=20).choose(trained(part, 2), part, CURRENT, 3, RNG)
    assert len(chosen) == 3


def test_rows_that_agree_with_the_present_are_preferred() -> None:
    part = join(HISTORY)
    model = trained(CURRENT, 2)
    chosen = Glister().choose(model, part, CURRENT, 50, RNG)
    assert ((chosen.X[:, 0] > 0) == chosen.y).mean() > 0.9
