"""The closed form of the head's gradient; the oracle is torch's autograd."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from driftquilt.core.gradients import cross_entropy, head_gradient

sizes = st.tuples(st.integers(1, 30), st.integers(2, 6), st.integers(1, 9))
seeds = st.integers(0, 2**32 - 1)


@given(sizes, seeds)
def test_head_gradient_is_what_autograd_finds(size: tuple[int, int, int], seed: int) -> None:
    n, n_classes, n_hidden = size
    rng = np.random.default_rng(seed)
    embedding, y = rng.normal(size=(n, n_hidden)), rng.integers(n_classes, size=n)
    row_weight = rng.uniform(0.1, 3, n)
    weight = torch.tensor(rng.normal(size=(n_classes, n_hidden)), requires_grad=True)
    bias = torch.tensor(rng.normal(size=n_classes), requires_grad=True)
    logits = torch.tensor(embedding) @ weight.T + bias
    losses = torch.nn.functional.cross_entropy(logits, torch.tensor(y), reduction="none")
    loss = losses @ torch.tensor(row_weight)
    slope_weight, slope_bias = torch.autograd.grad(loss, [weight, bias])

    probabilities = torch.softmax(logits, dim=1).detach().numpy()
    gradient = head_gradient(probabilities, y, embedding, row_weight)

    # Layout, class by class: the bias, then the weights.
    expected = torch.cat([slope_bias[:, None], slope_weight], dim=1).ravel().numpy()
    np.testing.assert_allclose(gradient, expected, rtol=1e-10, atol=1e-12)
    assert np.isclose(cross_entropy(probabilities, y, row_weight), loss.item(), rtol=1e-10)


def test_gradient_lists_for_each_class_its_bias_and_then_its_weights() -> None:
    probabilities, embedding = np.array([[0.2, 0.3, 0.5]]), np.array([[10.0, 100.0]])
    gradient = head_gradient(probabilities, np.array([2]), embedding, np.array([2.0]))
    np.testing.assert_allclose(gradient, [0.4, 4, 40, 0.6, 6, 60, -1, -10, -100])


def test_gradient_of_no_rows_is_zero() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    gradient = head_gradient(np.zeros((0, 3)), nothing, np.zeros((0, 4)), np.zeros(0))
    assert gradient.tolist() == [0.0] * 15


def test_gradient_leaves_the_probabilities_as_they_were() -> None:
    probabilities = np.array([[0.2, 0.8]])
    head_gradient(probabilities, np.array([1]), np.ones((1, 1)), np.ones(1))
    assert probabilities.tolist() == [[0.2, 0.8]]


def test_loss_stays_finite_where_the_likelihood_is_zero() -> None:
    loss = cross_entropy(np.array([[1.0, 0.0]], dtype=np.float32), np.array([1]), np.ones(1))
    assert 80 < loss < 90
