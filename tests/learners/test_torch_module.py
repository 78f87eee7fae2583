"""A net in torch obeys the learner's contract; the oracle is torch's own autograd."""

from __future__ import annotations

import copy
import json
import runpy
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import nn

from driftquilt.core.segment import Segment
from driftquilt.errors import InputError, LearnerError, MissingExtraError, ModelFileError
from driftquilt.learners import torch_module
from driftquilt.learners.base import Learner, Model
from driftquilt.learners.torch_module import TorchLearner, TorchModel

CLASSES = 3
sgd = partial(torch.optim.SGD, lr=0.1)
momentum = partial(torch.optim.SGD, lr=0.05, momentum=0.9)


def two_layer(n_features: int, n_classes: int) -> nn.Module:
    return nn.Sequential(nn.Linear(n_features, 8), nn.ReLU(), nn.Linear(8, n_classes))


def deep(n_features: int, n_classes: int) -> nn.Module:
    body = nn.Sequential(
        nn.Linear(n_features, 8), nn.Tanh(), nn.Linear(8, 7), nn.ReLU(), nn.Linear(7, 6), nn.Tanh()
    )
    return nn.Sequential(body, nn.Linear(6, n_classes))


def conv(n_channels: int, n_classes: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(n_channels, 4, 3),
        nn.BatchNorm2d(4),
        nn.ReLU(inplace=True),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(36, n_classes),
    )


def text(_: int, n_classes: int) -> nn.Module:
    return nn.Sequential(nn.EmbeddingBag(50, 5), nn.Linear(5, n_classes))


def dropout(n_features: int, n_classes: int) -> nn.Module:
    return nn.Sequential(
        nn.Linear(n_features, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, n_classes)
    )


def batch_norm(n_features: int, n_classes: int) -> nn.Module:
    return nn.Sequential(nn.Linear(n_features, 8), nn.BatchNorm1d(8), nn.Linear(8, n_classes))


class Backwards(nn.Module):
    """Made in another order than it is called, with its head called by keyword."""

    def __init__(self, n_features: int, n_classes: int) -> None:
        super().__init__()
        self.head = nn.Linear(8, n_classes)
        self.body = nn.Linear(n_features, 8)

    def forward(self, x: torch.Tensor) -> Any:
        return self.head(input=self.body(x).relu())


class Changed(nn.Module):
    """A two-layer net whose output goes through `change`."""

    def __init__(self, change: Callable[[torch.Tensor], object]) -> None:
        super().__init__()
        self.net = two_layer(4, CLASSES)
        self.spare = nn.Linear(8, CLASSES)
        self.change = change

    def forward(self, x: torch.Tensor) -> object:
        return self.change(self.net(x))


def make(n_features: int = 4, n_classes: int = CLASSES, net: Any = two_layer) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(7)
        module = net(n_features, n_classes)
    assert isinstance(module, nn.Module)
    return module


def table(n_rows: int = 50, *shape: int, seed: int = 0, name: str = "may") -> Segment:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, *(shape or (4,)))).astype(np.float32)
    y = rng.integers(CLASSES, size=n_rows)
    return Segment(name, X, y, rng.uniform(0.5, 2, n_rows).astype(np.float32))


def tokens(n_rows: int = 50) -> Segment:
    rows = table(n_rows)
    X = np.random.default_rng(1).integers(50, size=(n_rows, 6))
    return Segment(rows.name, X, rows.y, rows.weight)


def begin(module: Any, segment: Segment | None = None, **settings: Any) -> TorchModel:
    rows = table() if segment is None else segment
    return TorchLearner(module, **settings).start(rows.X, CLASSES, 0)


def train(model: TorchModel, segment: Segment, epochs: int = 3, rate: float = 1.0) -> None:
    for epoch in range(epochs):
        model.train_epoch([segment], np.random.default_rng(epoch), rate)


def same(one: TorchModel, other: TorchModel) -> bool:
    first, second = one.tensors(), other.tensors()
    assert first.keys() == second.keys()
    return all(np.array_equal(first[name], second[name]) for name in first)


def weighted_loss(module: nn.Module, segment: Segment) -> torch.Tensor:
    losses = nn.functional.cross_entropy(
        module(torch.tensor(segment.X)), torch.tensor(segment.y), reduction="none"
    )
    return losses @ torch.tensor(segment.weight)


def autograd(module: nn.Module, head: str, segment: Segment) -> tuple[NDArray[Any], float]:
    layer = module.eval().get_submodule(head)
    assert isinstance(layer, nn.Linear)
    loss = weighted_loss(module, segment) / float(segment.weight.sum())
    weight, bias = torch.autograd.grad(loss, [layer.weight, layer.bias])
    return torch.cat([bias[:, None], weight], dim=1).ravel().numpy(), loss.item()


NETS = [
    pytest.param(two_layer, "2", table(), id="two-layer"),
    pytest.param(deep, "1", table(), id="deep"),
    pytest.param(conv, "5", table(30, 1, 8, 8), id="conv"),
    pytest.param(text, "1", tokens(), id="text"),
    pytest.param(dropout, "3", table(), id="dropout"),
    pytest.param(batch_norm, "2", table(), id="batch-norm"),
    pytest.param(Backwards, "head", table(), id="backwards"),
    pytest.param(nn.Linear, "", table(), id="linear"),
]


@pytest.mark.parametrize(("net", "head", "segment"), NETS)
@pytest.mark.parametrize("named", [False, True])
def test_head_gradient_equals_autograd(net: Any, head: str, segment: Segment, named: bool) -> None:
    module = make(segment.X.shape[1], net=net)
    learner = TorchLearner(module, head=head if named else None)
    gradients, losses = learner.start(segment.X, CLASSES, 0).head_gradients([segment])
    gradient, loss = autograd(module, head, segment)
    np.testing.assert_allclose(gradients[0], gradient, atol=1e-6)
    assert losses[0] == pytest.approx(loss, rel=1e-5)


@given(
    n_rows=st.integers(1, 20),
    n_features=st.integers(1, 6),
    n_classes=st.integers(CLASSES, 6),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=25, deadline=None)
def test_head_gradient_equals_autograd_for_any_shape(
    n_rows: int, n_features: int, n_classes: int, seed: int
) -> None:
    module, segment = make(n_features, n_classes), table(n_rows, n_features, seed=seed)
    gradients, _ = TorchLearner(module).start(segment.X, n_classes, 0).head_gradients([segment])
    np.testing.assert_allclose(gradients[0], autograd(module, "2", segment)[0], atol=1e-5)


def test_head_gradient_adds_up_over_batches_of_rows() -> None:
    module, segment = make(), table(2500)
    model = begin(module, segment)
    gradient, loss = autograd(module, "2", segment)
    gradients, losses = model.head_gradients([table(), segment])
    np.testing.assert_allclose(gradients[1], gradient, atol=1e-6)
    assert losses[1] == pytest.approx(loss, rel=1e-5)
    assert model.predict_proba(segment.X).shape == (2500, CLASSES)


def test_head_without_bias_is_scored_as_if_it_had_one() -> None:
    module, segment = make(), table()
    head = nn.Linear(8, CLASSES, bias=False)
    bare = nn.Sequential(*list(module.children())[:2], head)
    with torch.no_grad():
        module.get_parameter("2.weight").copy_(head.weight)
        module.get_parameter("2.bias").zero_()
    gradients, _ = begin(bare, segment).head_gradients([segment])
    np.testing.assert_allclose(gradients[0], autograd(module, "2", segment)[0], atol=1e-6)


def test_no_segments_give_empty_head_gradients() -> None:
    gradients, losses = begin(make()).head_gradients([])
    assert (gradients.shape, losses.shape) == ((0, CLASSES * 9), (0,))


@given(row=st.integers(0, 49))
@settings(max_examples=10, deadline=None)
def test_doubling_a_weight_equals_the_row_twice_in_head_gradients(row: int) -> None:
    plain = table()
    once = np.ones(50, np.float32)
    heavy = Segment("heavy", plain.X, plain.y, once + (np.arange(50) == row))
    twice = Segment("twice", plain.X, plain.y, once).take(np.r_[np.arange(50), row])
    model = TorchLearner(make()).start(plain.X, CLASSES, 0)
    gradients, losses = model.head_gradients([heavy, twice])
    np.testing.assert_allclose(gradients[0], gradients[1], atol=1e-8)
    assert losses[0] == pytest.approx(losses[1])


@pytest.mark.parametrize(
    ("module", "head", "message"),
    [
        (nn.Flatten(), None, "Flatten has no linear layer"),
        (Changed(lambda z: z.softmax(dim=1)), None, "'net.2'.* return the logits"),
        (Changed(lambda z: (z, z)), None, "returns a tuple"),
        (make(), "3", r"'3' of Sequential is not there; linear layers are \['0', '2'\]"),
        (make(), "1", r"'1' of Sequential is a ReLU; linear layers are \['0', '2'\]"),
        (make(), "0", "'0', gives something else than the module returns"),
        (Changed(lambda z: z), "spare", r"calls none of its linear layers \['spare'\]"),
        (make(n_classes=5), None, r"shape \(1, 5\) for 1 row of 3 classes"),
        (nn.Sequential(nn.Unflatten(1, (2, 2)), nn.Linear(2, 3)), None, r"gets shape \(1, 2, 2\)"),
        (nn.Sequential(nn.Flatten(0), nn.Linear(4, 3)), None, r"gets shape \(4,\)"),
        (make(5), None, r"cannot run a batch of shape \(1, 4\), torch.float32: mat1 and mat2"),
        (lambda *_: "net", None, "gave a str, not an nn.Module"),
    ],
)
def test_net_without_a_usable_head_is_refused(module: Any, head: str | None, message: str) -> None:
    with pytest.raises(LearnerError, match=message):
        TorchLearner(module, head=head).start(table().X, CLASSES, 0)


def test_failing_net_is_named_as_the_cause() -> None:
    with pytest.raises(LearnerError) as caught:
        begin(make(5))
    assert isinstance(caught.value.__cause__, RuntimeError)


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (np.arange(5), LearnerError, "single numbers"),
        (np.array([["a", "b"]]), InputError, "dtype <U1"),
    ],
)
def test_rows_that_a_callable_cannot_take_are_refused(
    X: NDArray[Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        TorchLearner(two_layer).start(X, CLASSES, 0)


def test_output_equal_to_the_heads_is_accepted_and_types_are_the_contracts() -> None:
    learner: Learner = TorchLearner(Changed(torch.clone))
    model: Model = learner.start(table().X, CLASSES, 0)
    assert model.n_classes == CLASSES


@pytest.mark.parametrize(("net", "head", "segment"), NETS)
def test_same_seeds_give_the_same_weights(net: Any, head: str, segment: Segment) -> None:
    learner = TorchLearner(net, head=head, batch_size=16)
    one, other = (learner.start(segment.X, CLASSES, seed=3) for _ in range(2))
    assert same(one, other)
    train(one, segment)
    torch.rand(1)
    train(other, segment)
    assert same(one, other)


@pytest.mark.parametrize(("net", "head", "segment"), NETS)
def test_copy_goes_on_identically(net: Any, head: str, segment: Segment) -> None:
    model = TorchLearner(net, head=head, batch_size=16).start(segment.X, CLASSES, seed=3)
    train(model, segment)
    twin, before = model.copy(), model.copy()
    train(model, segment, rate=0.1)
    assert same(twin, before)
    assert not same(twin, model)
    train(twin, segment, rate=0.1)
    assert same(twin, model)


def test_momentum_of_the_users_optimiser_survives_copy() -> None:
    segment = table()
    model = begin(make(), segment, optimizer=momentum)
    train(model, segment)
    twin = model.copy()
    forgetful = TorchLearner(make(), optimizer=momentum).restore(model.tensors(), CLASSES)
    for one in (model, twin, forgetful):
        train(one, segment, epochs=1)
    assert same(twin, model)
    assert not same(forgetful, model)


def test_seed_of_start_changes_what_a_callable_makes() -> None:
    learner = TorchLearner(two_layer)
    assert not same(learner.start(table().X, CLASSES, 0), learner.start(table().X, CLASSES, 1))


def test_every_training_begins_with_the_modules_weights() -> None:
    module, segment = make(), table()
    learner = TorchLearner(module)
    untrained = copy.deepcopy(module.state_dict())
    train(learner.start(segment.X, CLASSES, 0), segment)
    tensors = learner.start(segment.X, CLASSES, 1).tensors()
    for name, weights in untrained.items():
        np.testing.assert_array_equal(tensors[name], weights)
        assert torch.equal(module.state_dict()[name], weights)


def test_lazy_layers_are_seeded_too() -> None:
    segment, lazy = table(), nn.Sequential(nn.LazyLinear(8), nn.ReLU(), nn.LazyLinear(CLASSES))
    learner = TorchLearner(lazy)
    model = learner.start(segment.X, CLASSES, 0)
    assert same(model, learner.start(segment.X, CLASSES, 0))
    assert same(model, learner.restore(model.tensors(), CLASSES))


def test_callers_generators_are_left_alone() -> None:
    segment, state = table(), torch.get_rng_state()
    model = begin(dropout, segment)
    train(model, segment)
    model.learn_one(segment.X[0], 1)
    TorchLearner(dropout).restore(model.tensors(), CLASSES)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("rate", [1.0, 0.1])
def test_epoch_equals_a_plain_loop_in_torch(rate: float) -> None:
    module, (may, june) = make(), (table(30), table(21, seed=1, name="june"))
    model = TorchLearner(module, optimizer=sgd, batch_size=8).start(may.X, CLASSES, 0)
    model.train_epoch([may, june], np.random.default_rng(5), rate)
    both = Segment("both", *(np.r_[a, b] for a, b in zip(parts(may), parts(june), strict=True)))
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1 * rate)
    order = np.random.default_rng(5).permutation(51)
    for start in range(0, 51, 8):
        batch = both.take(order[start : start + 8])
        optimizer.zero_grad()
        torch.autograd.backward(weighted_loss(module, batch) / len(batch))
        optimizer.step()
    for name, weights in module.state_dict().items():
        np.testing.assert_allclose(model.tensors()[name], weights, atol=1e-6)


def parts(segment: Segment) -> tuple[NDArray[Any], NDArray[np.int64], NDArray[np.float32]]:
    return segment.X, segment.y, segment.weight


def test_rate_multiplies_every_groups_own_and_never_compounds() -> None:
    made: list[torch.optim.Optimizer] = []

    def optimizer(params: list[nn.Parameter]) -> torch.optim.Optimizer:
        groups = [{"params": params[:2], "lr": 0.5}, {"params": params[2:], "lr": 0.25}]
        made.append(torch.optim.SGD(groups))
        return made[-1]

    segment = table()
    model = begin(make(), segment, optimizer=optimizer)
    for rate in [0.5, 0.5, 0.25]:
        train(model, segment, epochs=1, rate=rate)
        train(model.copy(), segment, epochs=1, rate=rate)
        for chosen in (made[0], made[-1]):
            assert [g["lr"] for g in chosen.param_groups] == [0.5 * rate, 0.25 * rate]


def test_default_optimiser_is_adam_as_torch_sets_it() -> None:
    adam = partial(torch.optim.Adam, lr=1e-3)
    models = [begin(make()), begin(make(), optimizer=adam)]
    for model in models:
        train(model, table())
    assert same(*models)


@given(n_rows=st.integers(2, 12), batch_size=st.integers(2, 6))
@settings(max_examples=25, deadline=None)
def test_batch_norm_never_gets_a_single_row(n_rows: int, batch_size: int) -> None:
    sizes: list[int] = []

    class Spy(nn.BatchNorm1d):
        def forward(self, input: torch.Tensor) -> torch.Tensor:  # noqa: A002  torch's name
            sizes.extend([len(input)] * self.training)
            return super().forward(input)

    net = nn.Sequential(nn.Linear(4, 8), Spy(8), nn.Linear(8, CLASSES))
    segment = table(n_rows)
    train(begin(net, segment, batch_size=batch_size), segment, epochs=1)
    assert sum(sizes) == n_rows
    assert min(sizes) > 1
    assert max(sizes) <= batch_size + (n_rows % batch_size == 1)


@pytest.mark.parametrize(("n_rows", "batch_size"), [(1, 4), (5, 1)])
def test_batch_norm_on_single_rows_is_refused(n_rows: int, batch_size: int) -> None:
    segment = table(n_rows)
    model = begin(batch_norm, segment, batch_size=batch_size)
    with pytest.raises(LearnerError, match="batch normalisation"):
        train(model, segment, epochs=1)


@pytest.mark.parametrize("in_place", [True, False])
def test_relu_behind_the_head_is_refused_once_a_row_shows_it(in_place: bool) -> None:
    net = nn.Sequential(nn.Linear(4, CLASSES), nn.ReLU(inplace=in_place))
    segment = table(200)
    with pytest.raises(LearnerError, match="return the logits"):
        begin(net, segment).head_gradients([segment])


def test_single_row_is_a_batch_of_its_own_without_batch_norm() -> None:
    module, segment = make(), table(5)
    joined = begin(module, segment, batch_size=5)
    cut = begin(module, segment, batch_size=4)
    for model in (joined, cut):
        train(model, segment, epochs=1)
    assert not same(joined, cut)


@pytest.mark.parametrize("net", [two_layer, dropout, batch_norm])
def test_learn_one_lowers_the_loss_of_its_row(net: Any) -> None:
    segment = table()
    model = begin(net, segment, optimizer=sgd)
    before = model.predict_proba(segment.X[:1])[0, 1]
    model.learn_one(segment.X[0], 1)
    assert model.predict_proba(segment.X[:1])[0, 1] > before


def test_learn_one_is_a_plain_step_at_the_base_rate_and_leaves_no_gradient() -> None:
    module, segment = make(), table()
    model = begin(module, segment, optimizer=momentum)
    train(model, segment, rate=0.01)
    one = Segment("one", segment.X[:1], np.array([2]), np.ones(1, np.float32))
    state = {name: torch.tensor(model.tensors()[name]) for name in module.state_dict()}
    module.load_state_dict(state)
    gradients = torch.autograd.grad(weighted_loss(module, one), list(module.parameters()))
    twin = model.copy()
    model.learn_one(segment.X[0], 2)
    for (name, weights), gradient in zip(state.items(), gradients, strict=True):
        np.testing.assert_allclose(model.tensors()[name], weights - 0.05 * gradient, atol=1e-6)
    assert all(p.grad is None for p in model._module.parameters())
    assert not same(twin, model)


def test_learn_one_leaves_running_statistics_alone() -> None:
    segment = table()
    model = begin(batch_norm, segment)
    before = model.tensors()
    (expected,) = model.predict_proba(segment.X[:1])
    np.testing.assert_allclose(model.learn_one(segment.X[0], 1), expected, atol=1e-6)
    for name in ["1.running_mean", "1.running_var", "1.num_batches_tracked"]:
        np.testing.assert_array_equal(model.tensors()[name], before[name])


@pytest.mark.parametrize(("net", "head", "segment"), NETS)
@pytest.mark.parametrize("as_callable", [False, True])
def test_restored_model_predicts_exactly_as_the_saved_one(
    net: Any, head: str, segment: Segment, as_callable: bool
) -> None:
    module = net if as_callable else make(segment.X.shape[1], net=net)
    model = begin(module, segment)
    train(model, segment)
    tensors = model.tensors()
    for array in tensors.values():
        array.flags.writeable = False
    restored = TorchLearner(module, head=head).restore(tensors, CLASSES)
    assert same(restored, model)
    np.testing.assert_array_equal(restored.predict_proba(segment.X), model.predict_proba(segment.X))
    train(restored, segment, epochs=1)
    assert same(TorchLearner(module).restore(tensors, CLASSES), model)


def test_net_that_cannot_do_with_padding_alone_is_restored() -> None:
    class Mean(nn.Module):
        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            if not bool((ids != 0).any(dim=1).all()):
                raise ValueError("empty text")
            return ids.float().mean(dim=1, keepdim=True)

    learner = TorchLearner(nn.Sequential(Mean(), nn.Linear(1, CLASSES)))
    model = learner.start(tokens().X, CLASSES, 0)
    assert same(learner.restore(model.tensors(), CLASSES), model)


@pytest.mark.parametrize("net", [two_layer, make()])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"2.bias": None}, "'2.bias' is missing, but this net wants it"),
        ({"3.bias": np.zeros(3)}, r"'3.bias' is float64 \(3,\), but this net wants it absent"),
        ({"2.bias": np.zeros(4, np.float32)}, r"'2.bias' is float32 \(4,\)"),
        ({"2.bias": np.zeros(3)}, r"'2.bias' is float64 \(3,\)"),
        ({"driftquilt.row_shape": None}, "row_shape.* is missing"),
        ({"driftquilt.integer_rows": None}, "integer_rows.* is missing"),
        ({"driftquilt.row_shape": np.array([-4])}, "row_shape.* is damaged"),
        ({"driftquilt.row_shape": np.array([6])}, "wants it|cannot run"),
        ({"driftquilt.integer_rows": np.array([1])}, "cannot run"),
    ],
)
def test_wrong_tensors_are_refused(net: Any, change: dict[str, Any], message: str) -> None:
    learner, tensors = TorchLearner(net), begin(net).tensors()
    found = {name: array for name, array in (tensors | change).items() if array is not None}
    with pytest.raises(ModelFileError, match=message):
        learner.restore(found, CLASSES)
    with pytest.raises(ModelFileError):
        learner.restore(tensors, CLASSES + 1)


def test_rows_may_be_read_only_and_stay_as_they_are() -> None:
    segment = table(30, 1, 8, 8)
    for array in parts(segment):
        array.flags.writeable = False
    before = segment.X.copy()
    learner = TorchLearner(nn.Sequential(nn.ReLU(inplace=True), *make(1, net=conv).children()))
    model = learner.start(segment.X, CLASSES, 0)
    train(model, segment)
    model.head_gradients([segment])
    model.predict_proba(segment.X)
    model.learn_one(segment.X[0], 1)
    np.testing.assert_array_equal(segment.X, before)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.bool_, ">f4"])
def test_rows_of_other_dtypes_become_float32(dtype: Any) -> None:
    X = table().X.astype(dtype)
    model = TorchLearner(make()).start(X, CLASSES, 0)
    answer = model.predict_proba(X[::-1])
    assert answer.dtype == np.float32
    np.testing.assert_array_equal(answer, model.predict_proba(X[::-1].astype(np.float32)))


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int64])
def test_integer_rows_become_token_ids(dtype: Any) -> None:
    segment = tokens()
    model = TorchLearner(text).start(segment.X.astype(dtype), CLASSES, 0)
    np.testing.assert_array_equal(
        model.predict_proba(segment.X.astype(dtype)), model.predict_proba(segment.X)
    )
    assert model.tensors()["driftquilt.integer_rows"].tolist() == [1]


def test_no_rows_give_no_probabilities() -> None:
    model = begin(make())
    assert model.predict_proba(table().X[:0]).shape == (0, CLASSES)


def test_probabilities_are_the_softmax_of_the_logits() -> None:
    module, segment = make(), table()
    answer = begin(module, segment).predict_proba(segment.X)
    logits = module(torch.tensor(segment.X)).detach()
    np.testing.assert_allclose(answer, logits.softmax(dim=1), atol=1e-6)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        (make(), "Sequential"),
        (two_layer, "two_layer"),
        (Backwards, "Backwards"),
        (partial(two_layer), "partial"),
    ],
)
def test_settings_are_json(module: Any, name: str) -> None:
    found = json.loads(json.dumps(TorchLearner(module, head="2", batch_size=9).settings()))
    expected = {"kind": "torch", "module": name, "head": "2", "batch_size": 9, "device": "cpu"}
    assert found == expected


@pytest.mark.parametrize("module", [make(), two_layer])
def test_learner_can_be_deep_copied(module: Any) -> None:
    learner = TorchLearner(module, optimizer=lambda params: torch.optim.SGD(params, lr=0.1))
    twin = copy.deepcopy(learner)
    segment = table()
    models = [one.start(segment.X, CLASSES, 0) for one in (learner, twin)]
    for model in models:
        train(model, segment)
    assert same(*models)


def test_missing_torch_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingExtraError, match=r"driftquilt\[torch\]"):
        runpy.run_path(str(torch_module.__file__))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"batch_size": 0}, "batch_size is 0"),
        ({"optimizer": sgd(make().parameters())}, "give a callable, such as lambda params"),
        ({"module": "resnet"}, "module is 'resnet'"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        TorchLearner(**{"module": two_layer, **settings})


def test_a_class_that_takes_no_arguments_says_how_it_was_called() -> None:
    class Fixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()

    with pytest.raises(LearnerError, match=r"Fixed\(4, 3\)"):
        TorchLearner(Fixed).start(table(5).X, 3, 0)  # type: ignore[arg-type]


class ThreadCounter(nn.Module):
    """Passes rows on and notes how many threads torch would use for them."""

    def __init__(self) -> None:
        super().__init__()
        self.seen = list[int]()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.append(torch.get_num_threads())
        return x


@pytest.fixture
def three_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("three_threads")
@pytest.mark.parametrize(("n_hidden", "n_threads"), [(8, 1), (8192, 3)])
def test_small_nets_use_one_thread_and_large_ones_all(n_hidden: int, n_threads: int) -> None:
    X = np.ones((4, 4), np.float32)
    net = nn.Sequential(ThreadCounter(), nn.Linear(4, n_hidden), nn.Linear(n_hidden, 2))
    learner = TorchLearner(net, batch_size=2048)
    model = learner.start(X, n_classes=2, seed=0)
    model.train_epoch(
        [Segment("may", X, np.zeros(4, np.int64), np.ones(4, np.float32))],
        np.random.default_rng(0),
        1.0,
    )
    counter = model._module.get_submodule("0")
    assert isinstance(counter, ThreadCounter)
    assert counter.seen[-1] == n_threads
    model.predict_proba(X)
    model.learn_one(X[0], 1)
    assert counter.seen[-2:] == [1, 1]
    assert torch.get_num_threads() == 3
