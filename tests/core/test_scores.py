"""Disparity and gain: a plain loop as oracle, the laws of a mean, and the paper's theorems.

The theorems assume that labels have nothing to do with rows. That holds exactly when every
row occurs with the same labels (a full product design), so the bounds are tested there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from driftquilt.core.segment import Segment, join
from driftquilt.core.training import disparity, gain
from driftquilt.learners.mlp import MLP, MLPModel

N_FEATURES = 3


class Pair(NamedTuple):
    """Disparity and gain of one segment."""

    disparity: float
    gain: float


@dataclass(frozen=True)
class Case:
    """A model and the random rows that go through it."""

    model: MLPModel
    segment: Segment
    present: Segment
    rng: np.random.Generator

    def score(self, segment: Segment) -> Pair:
        gradients, _ = self.model.head_gradients([segment, self.present])
        return pair(gradients[0], gradients[1])


def pair(segment: NDArray[np.float64], present: NDArray[np.float64]) -> Pair:
    return Pair(float(disparity(segment[None], present)[0]), float(gain(segment[None], present)[0]))


def random_rows(rng: np.random.Generator, n: int, n_classes: int) -> Segment:
    X = rng.normal(size=(n, N_FEATURES)).astype(np.float32)
    return Segment("may", X, rng.integers(n_classes, size=n), np.ones(n, np.float32))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    n_classes, n_hidden = draw(st.integers(2, 5)), draw(st.integers(1, 40))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    segment = random_rows(rng, 2 * draw(st.integers(1, 150)), n_classes)
    present = random_rows(rng, draw(st.integers(1, 200)), n_classes)
    model = MLP(hidden_units=n_hidden).start(segment.X, n_classes, seed=draw(st.integers(0, 99)))
    return Case(model, segment, present, rng)


def assert_close(one: Pair, other: Pair) -> None:
    np.testing.assert_allclose(one, other, rtol=1e-5, atol=2e-6)


@given(cases())
def test_scores_do_not_depend_on_the_order_of_rows(case: Case) -> None:
    shuffled = case.segment.take(case.rng.permutation(len(case.segment)))
    assert_close(case.score(shuffled), case.score(case.segment))


@given(cases())
def test_scores_come_from_the_mean_of_two_equal_halves(case: Case) -> None:
    middle = len(case.segment) // 2
    halves = [case.segment.take(slice(None, middle)), case.segment.take(slice(middle, None))]
    gradients, _ = case.model.head_gradients([*halves, case.present])
    assert_close(pair(gradients[:2].mean(axis=0), gradients[2]), case.score(case.segment))


@given(cases())
def test_scores_do_not_change_when_every_row_comes_twice(case: Case) -> None:
    assert_close(case.score(join([case.segment, case.segment])), case.score(case.segment))


@given(cases())
def test_a_weight_of_two_is_a_row_that_comes_twice(case: Case) -> None:
    whole = case.segment
    weight = np.where(np.arange(len(whole)) % 3 == 0, 2.0, 1.0).astype(np.float32)
    weighted = Segment(whole.name, whole.X, whole.y, weight)
    doubled = join([whole, whole.take(weight == 2.0)])
    assert_close(case.score(weighted), case.score(doubled))


@given(cases())
def test_a_segment_compared_with_itself_has_no_disparity_and_a_gain_that_is_its_square(
    case: Case,
) -> None:
    gradients, _ = case.model.head_gradients([case.segment])
    scores = pair(gradients[0], gradients[0])
    assert scores.disparity == 0
    assert scores.gain == pytest.approx(float(np.square(gradients[0]).sum()))


@given(st.integers(0, 6), st.integers(1, 12), st.integers(0, 2**32 - 1))
def test_scores_agree_with_a_plain_loop(n_segments: int, n_numbers: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    segments, present = rng.normal(size=(n_segments, n_numbers)), rng.normal(size=n_numbers)
    distances, products = [], []
    for segment in segments.tolist():
        squares = product = 0.0
        for ours, theirs in zip(segment, present.tolist(), strict=True):
            squares += (ours - theirs) ** 2
            product += ours * theirs
        distances.append(math.sqrt(squares))
        products.append(product)
    np.testing.assert_allclose(disparity(segments, present), distances, rtol=1e-12)
    np.testing.assert_allclose(gain(segments, present), products, rtol=1e-12, atol=1e-12)


@dataclass(frozen=True)
class Design:
    """Every row of X with every one of the labels, before and now."""

    model: MLPModel
    X: NDArray[np.float32]
    then: list[int]
    now: list[int]

    def scores(self) -> Pair:
        gradients, _ = self.model.head_gradients(
            [self._product(self.then), self._product(self.now)]
        )
        return pair(gradients[0], gradients[1])

    def mean_embedding(self) -> NDArray[np.float64]:
        """E[a], shape (H,)."""
        theta = self.model.tensors()["theta"].astype(np.float64)
        n_hidden = (len(theta) - self.model.n_classes) // (N_FEATURES + 1 + self.model.n_classes)
        a = N_FEATURES * n_hidden
        first, bias = theta[:a].reshape(N_FEATURES, n_hidden), theta[a : a + n_hidden]
        mean: NDArray[np.float64] = np.maximum(self.X @ first + bias, 0).mean(axis=0)
        return mean

    def one_hot(self, labels: list[int]) -> NDArray[np.float64]:
        return np.eye(self.model.n_classes)[labels]

    def residual_product(self) -> float:
        """E[p - y_t] · E[p - y_v]."""
        p = self.model.predict_proba(self.X).astype(np.float64).mean(axis=0)
        then, now = self.one_hot(self.then).mean(axis=0), self.one_hot(self.now).mean(axis=0)
        return float((p - then) @ (p - now))

    def _product(self, labels: list[int]) -> Segment:
        X = np.repeat(self.X, len(labels), axis=0)
        y = np.tile(np.array(labels, dtype=np.int64), len(self.X))
        return Segment("", X, y, np.ones(len(y), np.float32))


def constant(model: MLPModel, learner: MLP, offset: NDArray[np.float32]) -> MLPModel:
    """The model with its head's weights at zero: it predicts the same for every row."""
    theta = model.tensors()["theta"]
    theta[-model.n_classes * (learner.hidden_units + 1) :] = 0
    theta[-model.n_classes :] = offset
    return learner.restore({"theta": theta}, model.n_classes)


@st.composite
def designs(draw: st.DrawFn, *, flat: bool = False) -> Design:
    n_classes, size = draw(st.integers(2, 4)), draw(st.integers(1, 6))
    learner = MLP(hidden_units=draw(st.integers(1, 16)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(draw(st.integers(1, 20)), N_FEATURES)).astype(np.float32)
    model = learner.start(X, n_classes, seed=draw(st.integers(0, 99)))
    if flat:
        model = constant(model, learner, rng.normal(size=n_classes).astype(np.float32))
    labels = st.lists(st.integers(0, n_classes - 1), min_size=size, max_size=size)
    return Design(model, X, draw(labels), draw(labels))


@given(designs())
def test_disparity_is_the_mean_label_change_times_the_length_of_the_mean_embedding(
    design: Design,
) -> None:
    change = design.one_hot(design.then).mean(axis=0) - design.one_hot(design.now).mean(axis=0)
    length = math.sqrt(1 + float(np.square(design.mean_embedding()).sum()))
    exact = float(np.linalg.norm(change)) * length
    assert design.scores().disparity == pytest.approx(exact, rel=1e-5, abs=1e-6)


@given(designs())
def test_disparity_stays_below_the_bound_of_the_theorem(design: Design) -> None:
    changes = np.linalg.norm(design.one_hot(design.then) - design.one_hot(design.now), axis=1)
    length = math.sqrt(1 + float(np.square(design.mean_embedding()).sum()))
    assert design.scores().disparity <= float(changes.mean()) * length * (1 + 1e-5) + 1e-6


@given(designs(flat=True))
def test_gain_is_the_product_of_mean_residuals_times_one_plus_the_squared_mean_embedding(
    design: Design,
) -> None:
    exact = design.residual_product() * (1 + float(np.square(design.mean_embedding()).sum()))
    assert design.scores().gain == pytest.approx(exact, rel=1e-5, abs=1e-6)


@given(designs(flat=True))
def test_gain_stays_above_the_bound_of_the_theorem_when_the_residuals_point_the_same_way(
    design: Design,
) -> None:
    product = design.residual_product()
    if product < 0:  # The same labels in both parts make it a sum of squares.
        design = Design(design.model, design.X, design.now, design.now)
        product = design.residual_product()
    assert design.scores().gain >= product * (1 - 1e-5) - 1e-6


def test_gain_falls_below_the_printed_bound_when_the_residuals_point_apart() -> None:
    # The proof ends with `product · (1 + ‖E[a]‖²) >= product`, which needs a product >= 0. In
    # the paper's own Case 2 it is negative: the factor then makes the gain lower, not higher.
    learner, X = MLP(hidden_units=8), np.ones((4, N_FEATURES), dtype=np.float32)
    model = constant(learner.start(X, 2, seed=0), learner, np.zeros(2, np.float32))
    design = Design(model, X, then=[0], now=[1])
    assert design.residual_product() == pytest.approx(-0.5)
    assert design.scores().gain < -0.6
