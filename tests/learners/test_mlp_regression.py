"""The two-layer net for numbers against torch's autograd."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from driftquilt.core.loss import Loss
from driftquilt.core.segment import Segment
from driftquilt.errors import ModelFileError
from driftquilt.learners.mlp import MLPRegression, RegressionModel
from tests.core.test_loss import LOSSES, torch_loss


def rows(n_rows: int, n_features: int, seed: int = 0, *, sparse: bool = False) -> Segment:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)).astype(np.float32)
    if sparse:
        X[rng.random(X.shape) < 0.9] = 0.25
    y = X[:, 0] + rng.standard_t(3, n_rows)
    return Segment(seed, X, y, rng.uniform(0.5, 2, n_rows).astype(np.float32))


def theta(model: RegressionModel) -> NDArray[np.float32]:
    weights: NDArray[np.float32] = model.tensors()["theta"]
    return weights


def torch_net(model: RegressionModel) -> nn.Sequential:
    first, bias, head, offset = map(torch.from_numpy, model.layers())
    net = nn.Sequential(nn.Linear(*first.shape), nn.ReLU(), nn.Linear(head.shape[1], head.shape[0]))
    for parameter, value in zip(net.parameters(), (first.T, bias, head, offset), strict=True):
        parameter.data = value.clone()
    return net


def flat(net: nn.Sequential) -> NDArray[np.float32]:
    first, bias, head, offset = (p.detach().numpy() for p in net.parameters())
    return np.concatenate([part.ravel() for part in (first.T, bias, head, offset)])


each_loss = pytest.mark.parametrize("loss", LOSSES, ids=str)
each_width = pytest.mark.parametrize(
    ("n_features", "sparse"), [(1, False), (8, False), (20, False), (60, False), (60, True)]
)


@each_loss
@each_width
def test_head_gradients_and_losses_are_those_of_autograd(
    loss: Loss, n_features: int, sparse: bool
) -> None:
    segments = [rows(n, n_features, seed, sparse=sparse) for seed, n in enumerate((300, 20))]
    model = MLPRegression(loss=loss).start(segments[0].X, loss.n_outputs, seed=1)
    gradients, losses = model.head_gradients(segments)
    for segment, gradient, value in zip(segments, gradients, losses, strict=True):
        net = torch_net(model)
        share = torch.from_numpy(segment.weight / segment.weight.sum())
        of_rows = torch_loss(
            loss, net(torch.from_numpy(segment.X)), torch.from_numpy(segment.y).float()
        )
        mean = (share * of_rows).sum()
        torch.autograd.backward(mean)
        head, offset = [p.grad for p in net.parameters()][2:]
        assert head is not None
        assert offset is not None
        np.testing.assert_allclose(
            gradient, torch.hstack([offset[:, None], head]).numpy().ravel(), atol=1e-5
        )
        assert value == pytest.approx(float(mean.detach()), abs=1e-5)


@each_loss
@each_width
def test_three_epochs_lead_to_torchs_weights(loss: Loss, n_features: int, sparse: bool) -> None:
    segment, batch = rows(300, n_features, sparse=sparse), 128
    model = MLPRegression(loss=loss).start(segment.X, loss.n_outputs, seed=1)
    net, before = torch_net(model), theta(model)
    adam = torch.optim.Adam(net.parameters(), lr=1e-3)
    for epoch in range(3):
        model.train_epoch([segment], np.random.default_rng(epoch), 1.0)
        order = np.random.default_rng(epoch).permutation(300)
        for start in range(0, 300, batch):
            at = order[start : start + batch]
            of_rows = torch_loss(
                loss, net(torch.from_numpy(segment.X[at])), torch.from_numpy(segment.y[at]).float()
            )
            adam.zero_grad()
            torch.autograd.backward((torch.from_numpy(segment.weight[at]) * of_rows).mean())
            adam.step()
    np.testing.assert_allclose(theta(model), flat(net), atol=1e-4)
    assert np.abs(theta(model) - before).max() > 2e-3
    with torch.no_grad():
        expected = net(torch.from_numpy(segment.X)).numpy()
    np.testing.assert_allclose(model.predict(segment.X), expected, atol=1e-4)


def test_a_copy_and_a_restored_net_predict_as_the_net_does() -> None:
    loss, segment = Loss("quantile", (0.1, 0.5, 0.9)), rows(200, 4)
    learner = MLPRegression(hidden_units=9, loss=loss)
    model = learner.start(segment.X, 3, seed=0)
    model.train_epoch([segment], np.random.default_rng(0), 1.0)
    twin, restored = model.copy(), learner.restore(model.tensors(), 3)
    before = model.predict(segment.X)
    model.train_epoch([segment], np.random.default_rng(1), 1.0)
    assert np.array_equal(twin.predict(segment.X), before)
    assert np.array_equal(restored.predict(segment.X), before)
    assert not np.array_equal(model.predict(segment.X), before)
    with pytest.raises(ModelFileError):
        learner.restore({"theta": model.tensors()["theta"][:-2]}, 3)


@each_loss
def test_learns_one_row_by_a_step_of_plain_gradient(loss: Loss) -> None:
    segment = rows(1, 5)
    model = MLPRegression(16, 0.05, loss=loss).start(segment.X, loss.n_outputs, seed=1)
    net = torch_net(model)
    x = torch.from_numpy(segment.X)
    torch.autograd.backward(torch_loss(loss, net(x), torch.from_numpy(segment.y).float()).sum())
    with torch.no_grad():
        for part in net.parameters():
            assert part.grad is not None
            part.sub_(0.05 * part.grad)
    before = model.predict(segment.X)[0]
    answer = model.learn_one(segment.X[0], segment.y[0])
    np.testing.assert_allclose(answer, before, atol=1e-6)
    np.testing.assert_allclose(theta(model), flat(net), atol=1e-6)


def test_grows_with_its_columns_and_changes_its_scale() -> None:
    X = rows(9, 3).X
    model = MLPRegression(16, 0.05).start(X, 1, seed=0).grow(5)
    padded = np.hstack([X, np.zeros((9, 2), np.float32)])
    before = MLPRegression(16, 0.05).start(X, 1, seed=0).predict(X)
    np.testing.assert_allclose(model.predict(padded), before, atol=1e-6)
    model.scale_outputs(2.0, 1.0)
    np.testing.assert_allclose(model.predict(padded), 2 * before + 1, atol=1e-6)
