"""A net that grows answers as before until its new columns and classes have been trained."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftquilt.core.segment import Segment
from driftquilt.errors import InputError
from driftquilt.learners.mlp import MLP, MLPModel

rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3)).astype(np.float32)
Y = (X[:, 0] > 0).astype(np.int64)


def trained() -> MLPModel:
    model = MLP(hidden_units=6, learning_rate=0.05).start(X, 2, seed=1)
    for epoch in range(5):
        rows = Segment("may", X, Y, np.ones(len(X), np.float32))
        model.train_epoch([rows], np.random.default_rng(epoch), 1.0)
    return model


def widened(n_columns: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.hstack([X, np.zeros((len(X), n_columns - 3), np.float32)])


@given(n_columns=st.integers(3, 9), n_classes=st.integers(2, 6))
def test_with_zeros_in_new_columns_old_classes_keep_their_shares(
    n_columns: int, n_classes: int
) -> None:
    old = trained()
    grown = old.grow(n_columns, n_classes)
    answer = grown.predict_proba(widened(n_columns))
    assert grown.n_classes == answer.shape[1] == n_classes
    among_old = answer[:, :2] / answer[:, :2].sum(axis=1, keepdims=True)
    np.testing.assert_allclose(among_old, old.predict_proba(X), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(answer.sum(axis=1), 1, rtol=1e-5)


def test_a_new_class_begins_as_improbable() -> None:
    answer = trained().grow(3, 3).predict_proba(X)
    assert (answer[:, 2] < 0.5).all()
    assert answer[:, 2].mean() < 0.15


def test_without_anything_new_it_is_the_same_net() -> None:
    old = trained()
    same = old.grow(3, 2)
    assert same.predict_proba(X).tobytes() == old.predict_proba(X).tobytes()
    assert same.tensors()["theta"].tobytes() == old.tensors()["theta"].tobytes()


def test_the_net_it_came_from_stays_as_it_was() -> None:
    old = trained()
    before = old.tensors()["theta"]
    grown = old.grow(5, 3)
    for x, y in zip(widened(5), Y, strict=True):
        grown.learn_one(x, int(y))
    assert old.tensors()["theta"].tobytes() == before.tobytes()
    with pytest.raises(InputError, match=r"rows have 3 feature\(s\)"):
        grown.predict_proba(X)


def test_a_new_column_and_a_new_class_are_learned() -> None:
    grown = trained().grow(4, 3)
    wide = widened(4)
    wide[:, 3] = rng.choice([-1.0, 1.0], len(wide))
    labels = np.where(wide[:, 3] > 0, 2, Y)  # the new column tells the new class
    for _ in range(60):
        for x, y in zip(wide, labels, strict=True):
            grown.learn_one(x, int(y))
    assert (grown.predict_proba(wide).argmax(axis=1) == labels).mean() > 0.95


def test_a_grown_net_is_restored_and_trained_as_any_other() -> None:
    grown = trained().grow(5, 3)
    again = MLP(hidden_units=6, learning_rate=0.05).restore(grown.tensors(), 3)
    rows = Segment("june", widened(5), Y, np.ones(len(X), np.float32))
    for model in (grown, again):
        model.train_epoch([rows], np.random.default_rng(0), 1.0)
    assert grown.tensors()["theta"].tobytes() == again.tensors()["theta"].tobytes()
