"""What a row sends into the head: the fast net and torch agree, and both with their answers."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from driftquilt.core.head import cross_entropy, head_gradient
from driftquilt.core.segment import Segment
from driftquilt.errors import InputError
from driftquilt.learners.base import Model
from driftquilt.learners.mlp import MLP, MLPModel
from driftquilt.learners.torch_module import ROWS_PER_FORWARD, TorchLearner, TorchModel

N_HIDDEN = 9


def rows(n: int, n_features: int = 4, n_classes: int = 3) -> Segment:
    rng = np.random.default_rng((n, n_features, n_classes))
    X = rng.normal(size=(n, n_features)).astype(np.float32)
    weight = rng.uniform(0.2, 3, n).astype(np.float32)
    return Segment("may", X, rng.integers(n_classes, size=n), weight)


def both(n_features: int = 4, n_classes: int = 3) -> tuple[MLPModel, TorchModel]:
    """The same net twice, trained a little so that its weights are none it began with."""
    like = rows(64, n_features, n_classes)
    fast = MLP(N_HIDDEN, learning_rate=0.05).start(like.X, n_classes, seed=0)
    fast.train_epoch([like], np.random.default_rng(0), rate=1.0)
    ends = np.cumsum([n_features * N_HIDDEN, N_HIDDEN, n_classes * N_HIDDEN])
    first, bias, head, offset = np.split(fast.tensors()["theta"], ends)
    net = nn.Sequential(nn.Linear(n_features, N_HIDDEN), nn.ReLU(), nn.Linear(N_HIDDEN, n_classes))
    arrays = {
        "0.weight": first.reshape(n_features, N_HIDDEN).T.copy(),
        "0.bias": bias,
        "2.weight": head.reshape(n_classes, N_HIDDEN),
        "2.bias": offset,
    }
    net.load_state_dict({name: torch.from_numpy(array) for name, array in arrays.items()})
    return fast, TorchLearner(net).start(like.X, n_classes, seed=0)


@pytest.mark.parametrize("n_features", [1, 4])
@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("n_rows", [1, 127, 128, 129, ROWS_PER_FORWARD + 1])
def test_the_fast_net_and_torch_embed_alike(n_rows: int, n_features: int, n_classes: int) -> None:
    X = rows(n_rows, n_features, n_classes).X
    (embedding, probabilities), (wanted, answers) = (
        m.embed(X) for m in both(n_features, n_classes)
    )
    assert embedding.shape == (n_rows, N_HIDDEN)
    assert embedding.dtype == wanted.dtype == probabilities.dtype == answers.dtype == np.float32
    np.testing.assert_allclose(embedding, wanted, atol=1e-5)
    np.testing.assert_allclose(probabilities, answers, atol=1e-5)


@pytest.mark.parametrize("which", [0, 1])
def test_probabilities_are_those_of_predict_proba_to_the_bit(which: int) -> None:
    model, X = both()[which], rows(300).X
    assert model.embed(X)[1].tobytes() == model.predict_proba(X).tobytes()


@pytest.mark.parametrize("which", [0, 1])
def test_embedding_and_probabilities_make_up_the_head_gradient(which: int) -> None:
    model, part = both()[which], rows(300)
    embedding, probabilities = model.embed(part.X)
    (gradient,), (loss,) = model.head_gradients([part])
    total = part.weight.sum()
    by_rows = head_gradient(probabilities, part.y, embedding, part.weight) / total
    np.testing.assert_allclose(by_rows, gradient, atol=1e-6)
    assert cross_entropy(probabilities, part.y, part.weight) / total == pytest.approx(
        loss, abs=1e-6
    )


@pytest.mark.parametrize("which", [0, 1])
def test_no_rows_have_no_embedding(which: int) -> None:
    embedding, probabilities = both()[which].embed(np.empty((0, 4), np.float32))
    assert embedding.shape == (0, N_HIDDEN)
    assert probabilities.shape == (0, 3)


@pytest.mark.parametrize("which", [0, 1])
def test_asking_changes_neither_the_rows_nor_the_model(which: int) -> None:
    model, X = both()[which], rows(50).X
    X.setflags(write=False)
    before = weights(model)
    first = model.embed(X)
    first[0][:] = 0.0
    assert model.embed(X)[0].any()
    assert weights(model) == before


def weights(model: Model) -> list[bytes]:
    tensors: list[NDArray[np.float32]] = list(model.tensors().values())
    return [tensor.tobytes() for tensor in tensors]


@pytest.mark.parametrize("n_features", [1, 3, 9])
def test_rows_of_another_width_are_refused(n_features: int) -> None:
    with pytest.raises(InputError, match=rf"rows have {n_features} feature.* rows of 4"):
        both()[0].embed(rows(40, n_features).X)
