"""Blending moves weights towards another model's, on the straight line between the two."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import nn

from driftquilt.core.segment import Segment
from driftquilt.learners.base import Learner, Model
from driftquilt.learners.mlp import MLP
from driftquilt.learners.torch_module import TorchLearner


def plain(n_features: int, n_classes: int) -> nn.Module:
    return nn.Sequential(nn.Linear(n_features, 5), nn.Tanh(), nn.Linear(5, n_classes))


def batch_norm(n_features: int, n_classes: int) -> nn.Module:
    return nn.Sequential(nn.Linear(n_features, 5), nn.BatchNorm1d(5), nn.Linear(5, n_classes))


def tied(n_features: int, n_classes: int) -> nn.Module:
    """Two layers with the same weights: each of them moves once, not twice."""
    square = nn.Linear(n_features, n_features)
    return nn.Sequential(square, nn.Tanh(), square, nn.Linear(n_features, n_classes))


LEARNERS: dict[str, Learner] = {
    "mlp": MLP(hidden_units=5, learning_rate=0.05),
    "plain": TorchLearner(plain),
    "batch norm": TorchLearner(batch_norm),
    "tied": TorchLearner(tied),
}
each = pytest.mark.parametrize("kind", LEARNERS)
rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3)).astype(np.float32)
ROWS = Segment("may", X, (X[:, 0] > 0).astype(np.int64), np.ones(40, np.float32))


def train(model: Model, n_epochs: int) -> Model:
    for epoch in range(n_epochs):
        model.train_epoch([ROWS], np.random.default_rng(epoch), 1.0)
    return model


@cache
def _pair(kind: str) -> tuple[Model, Model]:
    first = train(LEARNERS[kind].start(X, 2, seed=0), 1)
    return first, train(first.copy(), 5)


def pair(kind: str) -> tuple[Any, Any]:
    """A model, and one that came from it by further epochs; copies, free to change."""
    first, second = _pair(kind)
    return first.copy(), second.copy()


def weights(model: Model) -> dict[str, NDArray[Any]]:
    return model.tensors()


def equal(one: dict[str, NDArray[Any]], other: dict[str, NDArray[Any]]) -> bool:
    return one.keys() == other.keys() and all(np.array_equal(one[k], other[k]) for k in one)


@each
def test_a_share_of_one_takes_over(kind: str) -> None:
    mine, other = pair(kind)
    assert not np.allclose(mine.predict_proba(X), other.predict_proba(X), atol=1e-3)
    mine.blend(other, 1.0)
    assert weights(mine).keys() == weights(other).keys()
    for name, tensor in weights(other).items():
        assert np.allclose(weights(mine)[name], tensor, rtol=0, atol=1e-6)
    assert np.allclose(mine.predict_proba(X), other.predict_proba(X), atol=1e-6)


@each
def test_a_share_of_zero_changes_no_weight(kind: str) -> None:
    mine, other = pair(kind)
    before = weights(mine)
    mine.blend(other, 0.0)
    floats = {k: v for k, v in weights(mine).items() if v.dtype.kind == "f"}
    assert equal(floats, {k: v for k, v in before.items() if v.dtype.kind == "f"})


@each
@given(share=st.floats(0, 1))
def test_in_between_every_weight_moves_by_its_share(kind: str, share: float) -> None:
    mine, other = pair(kind)
    before, aim = weights(mine), weights(other)
    mine.blend(other, share)
    for name, tensor in weights(mine).items():
        if tensor.dtype.kind == "f":
            line = (1 - share) * before[name].astype(float) + share * aim[name]
            assert np.allclose(tensor, line, rtol=0, atol=1e-6)


@each
def test_the_other_model_stays_as_it_was_and_shares_nothing(kind: str) -> None:
    mine, other = pair(kind)
    before = weights(other)
    for share in (0.3, 1.0):
        mine.blend(other, share)
        assert equal(weights(other), before)
    train(mine, 1)
    assert equal(weights(other), before)
    again = _pair(kind)[1].copy()
    assert equal(weights(train(other, 2)), weights(train(again, 2)))


@each
def test_a_blended_model_can_be_copied_saved_and_trained(kind: str) -> None:
    mine, other = pair(kind)
    mine.blend(other, 0.4)
    restored = LEARNERS[kind].restore(mine.tensors(), 2)
    assert np.array_equal(restored.predict_proba(X), mine.predict_proba(X))
    assert equal(weights(train(mine.copy(), 2)), weights(train(mine, 2)))


@pytest.mark.parametrize("share", [0.0, 0.25, 1.0])
def test_a_counter_is_copied_whatever_the_share(share: float) -> None:
    mine, other = pair("batch norm")
    name = "1.num_batches_tracked"
    assert weights(mine)[name] == 1
    mine.blend(other, share)
    assert weights(mine)[name] == weights(other)[name] == 6
    assert weights(mine)[name].dtype == np.int64
