"""The compiled two-layer net against the same net in torch, and its part of the contract."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from driftquilt.core.segment import Segment
from driftquilt.errors import InputError, ModelFileError
from driftquilt.learners.mlp import MLP, MLPModel
from driftquilt.learners.torch_module import TorchLearner, TorchModel
from tests.learners.nets import theta, torch_twin, unpack
from tests.segments import random_segment

DEFAULT = MLP()
SMALL = MLP(hidden_units=7, learning_rate=0.05, batch_size=32)


def twin_of(model: MLPModel, learner: MLP, like: NDArray[np.float32]) -> TorchModel:
    def adam(parameters: list[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.Adam(parameters, lr=learner.rate(1))

    net = torch_twin(model, like.shape[1], learner.hidden_units)
    recipe = TorchLearner(net, optimizer=adam, batch_size=learner.batch_size)
    return recipe.start(like, model.n_classes, seed=0)


def flat(model: TorchModel) -> NDArray[np.float32]:
    """Torch's weights in the order of theta."""
    t = model.tensors()
    parts = [t["0.weight"].T, t["0.bias"], t["2.weight"], t["2.bias"]]
    return np.concatenate([part.ravel() for part in parts])


def train(model: MLPModel | TorchModel, segments: list[Segment], n_epochs: int = 5) -> None:
    for epoch in range(n_epochs):
        model.train_epoch(segments, np.random.default_rng((7, epoch)), 1.0 if epoch < 3 else 0.1)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("n_features", [1, 3, 8, 9, 24, 25, 40])
class TestAgainstTorch:
    """300 rows: two full batches and a short one, in three segments."""

    def segments(self, n_features: int, n_classes: int, *, weighted: bool) -> list[Segment]:
        return [
            random_segment(n, n_features, n_classes, weighted=weighted, seed=seed)
            for seed, n in enumerate((150, 20, 130))
        ]

    def test_head_gradients_and_losses_are_torchs(
        self, n_features: int, n_classes: int, weighted: bool
    ) -> None:
        segments = self.segments(n_features, n_classes, weighted=weighted)
        model = DEFAULT.start(segments[0].X, n_classes, seed=1)
        twin = twin_of(model, DEFAULT, segments[0].X)
        for ours, theirs in zip(
            model.head_gradients(segments), twin.head_gradients(segments), strict=True
        ):
            assert ours.shape == theirs.shape
            np.testing.assert_allclose(ours, theirs, atol=1e-5)

    def test_five_epochs_lead_to_torchs_weights(
        self, n_features: int, n_classes: int, weighted: bool
    ) -> None:
        segments = self.segments(n_features, n_classes, weighted=weighted)
        model = DEFAULT.start(segments[0].X, n_classes, seed=1)
        twin, before = twin_of(model, DEFAULT, segments[0].X), theta(model)
        train(model, segments)
        train(twin, segments)
        np.testing.assert_allclose(theta(model), flat(twin), atol=1e-4)
        assert np.abs(theta(model) - before).max() > 5e-3

    def test_predictions_are_torchs(self, n_features: int, n_classes: int, weighted: bool) -> None:
        segments = self.segments(n_features, n_classes, weighted=weighted)
        model = DEFAULT.start(segments[0].X, n_classes, seed=1)
        twin = twin_of(model, DEFAULT, segments[0].X)
        train(model, segments, 2)
        train(twin, segments, 2)
        X = random_segment(333, n_features, n_classes, seed=9).X
        np.testing.assert_allclose(model.predict_proba(X), twin.predict_proba(X), atol=1e-5)


@pytest.mark.parametrize("n_features", [3, 10, 30])
@pytest.mark.parametrize("n_rows", [1, 2, 3, 5, 127, 128, 129, 256, 257])
def test_blocks_and_batches_that_are_not_full_are_handled_as_torch_does(
    n_rows: int, n_features: int
) -> None:
    segment = random_segment(n_rows, n_features, n_classes=3, weighted=True)
    model = DEFAULT.start(segment.X, 3, seed=1)
    twin = twin_of(model, DEFAULT, segment.X)
    for ours, theirs in zip(
        model.head_gradients([segment]), twin.head_gradients([segment]), strict=True
    ):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    train(model, [segment], 2)
    train(twin, [segment], 2)
    np.testing.assert_allclose(theta(model), flat(twin), atol=1e-4)
    np.testing.assert_allclose(
        model.predict_proba(segment.X), twin.predict_proba(segment.X), atol=1e-5
    )


@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("n_features", [1, 3, 40])
def test_learn_one_is_one_step_of_torchs_sgd(n_features: int, n_classes: int) -> None:
    segment = random_segment(4, n_features, n_classes)
    model = SMALL.start(segment.X, n_classes, seed=2)
    net = torch_twin(model, n_features, SMALL.hidden_units)
    sgd = torch.optim.SGD(net.parameters(), lr=SMALL.rate(1))
    for x, label in zip(segment.X, segment.y, strict=True):
        model.learn_one(x, int(label))
        sgd.zero_grad()
        loss = nn.functional.cross_entropy(net(torch.from_numpy(x)[None]), torch.tensor([label]))
        torch.autograd.backward(loss)
        sgd.step()
    first, bias, head, offset = (p.detach().numpy() for p in net.parameters())
    expected = np.concatenate([part.ravel() for part in (first.T, bias, head, offset)])
    np.testing.assert_allclose(theta(model), expected, atol=1e-6)


@pytest.mark.parametrize("n_classes", [1, 2, 5])
@pytest.mark.parametrize("n_features", [1, 3, 9, 60])
def test_learn_one_gives_the_probabilities_before_the_step(n_features: int, n_classes: int) -> None:
    segment = random_segment(6, n_features, n_classes)
    model = SMALL.start(segment.X, n_classes, seed=2)
    given = []
    for x, label in zip(segment.X, segment.y, strict=True):
        (before,) = model.predict_proba(x[None])
        given.append(model.learn_one(x, int(label)))
        assert given[-1].dtype == np.float32
        np.testing.assert_allclose(given[-1], before, atol=1e-6)
    # Each call gives an array of its own.
    assert len({answer.ctypes.data for answer in given}) == len(given)


def test_learn_one_leaves_adams_memory_alone() -> None:
    segment = random_segment(40)
    one = SMALL.start(segment.X, 2, seed=0)
    train(one, [segment], 1)
    stepped = one.copy()
    stepped.learn_one(segment.X[0], int(segment.y[0]))
    twin = one.copy()
    twin._theta[:] = theta(stepped)
    train(stepped, [segment], 2)
    train(twin, [segment], 2)
    assert np.array_equal(theta(stepped), theta(twin))


def test_a_weight_of_one_half_halves_the_part_of_a_row_in_its_batch() -> None:
    # The mean over a batch divides by the number of rows, not by their weights.
    whole = random_segment(32)
    light = Segment("", whole.X, whole.y, np.full(32, 0.5, np.float32))
    one, other = (SMALL.start(whole.X, 2, seed=0) for _ in range(2))
    train(one, [whole], 1)
    train(other, [light], 1)
    assert one._memory is not None
    assert other._memory is not None
    np.testing.assert_allclose(other._memory[0], 0.5 * one._memory[0], rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("n_features", [1, 4, 100])
def test_initial_weights_lie_within_one_over_the_root_of_fan_in(n_features: int) -> None:
    model = DEFAULT.start(np.zeros((1, n_features), np.float32), 5, seed=0)
    fan_in = [n_features, n_features, 256, 256]
    for part, n in zip(unpack(theta(model), n_features, 256, 5), fan_in, strict=True):
        assert np.abs(part).max() <= 1 / math.sqrt(n)
        assert np.abs(part).max() > 0.5 / math.sqrt(n)


def test_initial_weights_follow_from_the_seed() -> None:
    X = random_segment(1).X
    one, same, other = (theta(SMALL.start(X, 2, seed=seed)) for seed in (4, 4, 5))
    assert one.tobytes() == same.tobytes()
    assert not np.array_equal(one, other)


def test_rows_decide_only_the_number_of_inputs() -> None:
    one, other = (
        SMALL.start(random_segment(5).X, 2, seed=0),
        SMALL.start(random_segment(90, seed=8).X, 2, seed=0),
    )
    assert np.array_equal(theta(one), theta(other))


def test_a_copy_goes_its_own_way() -> None:
    segment = random_segment(40)
    model = SMALL.start(segment.X, 2, seed=0)
    train(model, [segment], 2)
    twin, before = model.copy(), theta(model)
    train(twin, [segment], 1)
    twin.learn_one(segment.X[0], 0)
    assert np.array_equal(theta(model), before)
    assert not np.array_equal(theta(twin), before)


def test_a_copy_goes_on_training_exactly_as_the_original_would() -> None:
    segment = random_segment(40)
    model = SMALL.start(segment.X, 2, seed=0)
    train(model, [segment], 2)
    twin = model.copy()
    train(model, [segment], 2)
    train(twin, [segment], 2)
    assert np.array_equal(theta(model), theta(twin))


def test_saved_weights_are_left_alone_by_later_training() -> None:
    segment = random_segment(40)
    model = SMALL.start(segment.X, 2, seed=0)
    saved = model.tensors()
    before = saved["theta"].copy()
    train(model, [segment], 1)
    assert np.array_equal(saved["theta"], before)


def test_a_restored_model_predicts_exactly_as_the_saved_one() -> None:
    segment = random_segment(300, n_classes=4)
    model = SMALL.start(segment.X, 4, seed=0)
    train(model, [segment], 2)
    tensors = model.tensors()
    restored = SMALL.restore(tensors, 4)
    assert restored.n_classes == 4
    assert np.array_equal(restored.predict_proba(segment.X), model.predict_proba(segment.X))
    train(restored, [segment], 1)
    assert np.array_equal(tensors["theta"], theta(model))


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({}, "one float32 vector 'theta'"),
        ({"theta": np.zeros(100)}, "one float32 vector 'theta'"),
        ({"theta": np.zeros((10, 10), np.float32)}, "one float32 vector 'theta'"),
        ({"theta": np.zeros(0, np.float32)}, "has 0 numbers.*7 hidden units and 2 classes"),
        ({"theta": np.zeros(16, np.float32)}, "has 16 numbers"),
        ({"theta": np.zeros(16 + 7, np.float32)}, "has 23 numbers"),
        ({"theta": np.zeros(16 + 15, np.float32)}, "has 31 numbers"),
    ],
)
def test_weights_of_another_net_are_refused(tensors: dict[str, NDArray[Any]], message: str) -> None:
    with pytest.raises(ModelFileError, match=message):
        SMALL.restore(tensors, 2)


def test_rows_that_may_not_be_written_to_are_accepted_and_left_as_they_were() -> None:
    segment = random_segment(150)
    before = segment.X.copy()
    for array in (segment.X, segment.y, segment.weight):
        array.setflags(write=False)
    model = SMALL.start(segment.X, 2, seed=0)
    train(model, [segment], 1)
    model.learn_one(segment.X[0], 1)
    gradients, losses = model.head_gradients([segment])
    assert np.isfinite(model.predict_proba(segment.X)).all()
    assert np.isfinite(gradients).all()
    assert np.isfinite(losses).all()
    assert np.array_equal(segment.X, before)


def test_an_empty_history_has_gradients_of_the_right_width() -> None:
    gradients, losses = SMALL.start(random_segment(1).X, 3, seed=0).head_gradients([])
    assert gradients.shape == (0, 3 * 8)
    assert losses.shape == (0,)


def test_no_rows_have_no_predictions() -> None:
    model = SMALL.start(random_segment(1).X, 3, seed=0)
    assert model.predict_proba(np.zeros((0, 3), np.float32)).shape == (0, 3)


@pytest.mark.parametrize("n_rows", [1, 127, 128, 129])
def test_probabilities_are_positive_and_add_up_to_one(n_rows: int) -> None:
    segment = random_segment(n_rows, n_classes=5)
    probabilities = SMALL.start(segment.X, 5, seed=0).predict_proba(segment.X)
    assert probabilities.shape == (n_rows, 5)
    assert probabilities.dtype == np.float32
    assert (probabilities > 0).all()
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("size", [1e3, 1e6, 1e12])
def test_huge_logits_give_finite_losses_and_no_nan(size: float) -> None:
    whole = random_segment(130, n_classes=3)
    huge = Segment("", (whole.X * size).astype(np.float32), whole.y, whole.weight)
    model = SMALL.start(huge.X, 3, seed=0)
    for _ in range(2):
        gradients, losses = model.head_gradients([huge])
        assert np.isfinite(gradients).all()
        assert np.isfinite(losses).all()
        assert losses[0] > 1
        np.testing.assert_allclose(model.predict_proba(huge.X).sum(axis=1), 1, atol=1e-6)
        train(model, [huge], 1)
    assert np.isfinite(theta(model)).all()


def test_the_loss_of_a_confident_mistake_is_the_distance_of_the_logits() -> None:
    # -log(p) would overflow here; the difference of the logits does not.
    learner = MLP(hidden_units=1)
    weights = np.array([1, 0, 1, 0, 0, 0], np.float32)  # logits (x, 0) for x > 0
    model = learner.restore({"theta": weights}, 2)
    x = np.array([[5000.0]], np.float32)
    _, losses = model.head_gradients([Segment("", x, np.array([1]), np.ones(1, np.float32))])
    assert losses[0] == pytest.approx(5000)


def test_training_twice_is_bit_equal() -> None:
    segment = random_segment(300)
    one, other = (DEFAULT.start(segment.X, 2, seed=0) for _ in range(2))
    train(one, [segment])
    train(other, [segment])
    assert theta(one).tobytes() == theta(other).tobytes()


def test_how_rows_are_spread_over_segments_does_not_matter() -> None:
    segment = random_segment(60)
    one, other = (SMALL.start(segment.X, 2, seed=0) for _ in range(2))
    train(one, [segment])
    train(other, [segment.take(slice(None, 23)), segment.take(slice(23, None))])
    assert theta(one).tobytes() == theta(other).tobytes()


def test_settings_tell_one_recipe_from_another() -> None:
    assert MLP(hidden_units=8).settings() == {
        "kind": "mlp", "hidden_units": 8, "learning_rate": 1e-3, "batch_size": 128,
    }  # fmt: skip


@pytest.mark.parametrize("n_features", [1, 2, 4, 9])
def test_rows_of_another_width_are_refused_by_every_way_in(n_features: int) -> None:
    # The kernels check no bounds: without the refusal this writes past the end of an array.
    model, stranger = SMALL.start(random_segment(1).X, 2, seed=0), random_segment(40, n_features)
    ways_in: list[Callable[[], object]] = [
        lambda: model.head_gradients([random_segment(5), stranger]),
        lambda: model.train_epoch([stranger], np.random.default_rng(0), 1.0),
        lambda: model.predict_proba(stranger.X),
        lambda: model.learn_one(stranger.X[0], 0),
    ]
    for way_in in ways_in:
        with pytest.raises(InputError, match=rf"{n_features} feature.* 3"):
            way_in()


def test_a_rate_that_is_not_given_falls_with_the_width_of_rows() -> None:
    by_width = MLP(learning_rate=None)
    assert [by_width.rate(n) for n in (1, 20)] == [0.01, 0.01]
    assert by_width.rate(100) == pytest.approx(0.0045)
    assert by_width.rate(5000) == 0.003
    assert MLP(learning_rate=0.5).rate(100) == 0.5


def test_a_model_trains_with_the_rate_of_its_rows() -> None:
    rows = Segment(0, np.ones((4, 100), np.float32), np.arange(4) % 2, np.ones(4, np.float32))
    told, left = MLP(8, 0.0045), MLP(8, None)
    models = [learner.start(rows.X, 2, seed=0) for learner in (told, left)]
    for model in models:
        model.train_epoch([rows], np.random.default_rng(0), 1.0)
    assert models[0].tensors()["theta"].tobytes() == models[1].tensors()["theta"].tobytes()
