"""The yardstick does what the package's own core does, in torch."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import benchmarks.torch_quilt
import numpy as np
import pytest
import torch

from driftquilt.core.segment import folds
from driftquilt.core.training import Rule, Scores, disparity, gain
from driftquilt.learners.mlp import MLP, MLPModel
from driftquilt.paper.datasets.synthetic import sine
from driftquilt.paper.protocol import Evaluation, evaluations
from driftquilt.quilt.method import Quilt
from driftquilt.search.bayes import Bayes


@pytest.fixture(scope="module")
def yardstick() -> ModuleType:
    return benchmarks.torch_quilt


def last(n_segments: int, n_rows: int) -> Evaluation:
    return list(evaluations(sine(n_segments, n_rows), "paper"))[-1]


def net_like(yardstick: ModuleType, model: MLPModel) -> Any:
    """The same weights in torch."""
    theta = torch.as_tensor(model.tensors()["theta"])
    net = yardstick.Net(4, 2)
    first, bias, head, offset = torch.split(theta, [4 * 256, 256, 2 * 256, 2])
    net.load_state_dict(
        {
            "hidden.weight": first.reshape(4, 256).T,
            "hidden.bias": bias,
            "head.weight": head.reshape(2, 256),
            "head.bias": offset,
        }
    )
    return net


@pytest.mark.parametrize("n_epochs", [0, 8])
def test_scores_and_selection_are_those_of_the_core(yardstick: ModuleType, n_epochs: int) -> None:
    seen = last(5, 3000)  # 300 rows: the validation part ends in a short batch
    train, validation = folds(seen.current, 1)[0]
    model = MLP().start(train.X, n_classes=2, seed=0)
    for epoch in range(n_epochs):
        model.train_epoch([seen.history[0], train], np.random.default_rng(epoch), 1.0)
    gradients, _ = model.head_gradients(seen.history)
    present, losses = model.head_gradients([validation])
    scores = Scores(disparity(gradients, present[0]), gain(gradients, present[0]))

    net, parts = net_like(yardstick, model), yardstick.split(seen.history, seen.current)
    found = yardstick.score_segments(net, parts.history, parts.validation)
    np.testing.assert_allclose(found[0].numpy(), scores.disparity, atol=1e-4)
    np.testing.assert_allclose(found[1].numpy(), scores.gain, atol=1e-4)
    assert yardstick.evaluate(net, parts.validation) == pytest.approx(losses[0], abs=1e-4)
    for bound in (0.1, 0.5, 1.0):
        kept = Rule().keep(scores, bound).tolist()
        assert yardstick.select(*found, bound) == kept


def test_its_model_is_about_as_good_as_ours(yardstick: ModuleType) -> None:
    seen = last(5, 500)
    method = yardstick.TorchQuilt(n_random=2, n_guided=1)
    fit = method.adapt(seen.history, seen.current)
    ours = Quilt(search=Bayes(2, 1)).adapt(seen.history, seen.current)
    accuracies = [
        np.mean(model.predict_proba(seen.test.X).argmax(axis=1) == seen.test.y)
        for model in (fit, ours)
    ]
    assert abs(accuracies[0] - accuracies[1]) < 0.06
    assert min(accuracies) > 0.75
    assert 0 < fit.disparity_max < 2
    assert fit.cpu_seconds > 0


def test_it_repeats_itself_and_leaves_torch_as_it_was(yardstick: ModuleType) -> None:
    seen = last(3, 200)
    n_threads = torch.get_num_threads()
    first, second = (
        yardstick.TorchQuilt(max_epochs=3).adapt(seen.history, seen.current) for _ in range(2)
    )
    assert np.array_equal(first.predict_proba(seen.test.X), second.predict_proba(seen.test.X))
    assert first.n_epochs == 3
    assert torch.get_num_threads() == n_threads


def test_it_needs_no_history(yardstick: ModuleType) -> None:
    seen = next(evaluations(sine(2, 200), "paper"))
    fit = yardstick.TorchQuilt(max_epochs=2).adapt([], seen.current)
    assert fit.predict_proba(seen.test.X).shape == (len(seen.test), 2)
