"""What a row sends into the head: the fast net and torch agree, and both with their answers."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from numpy.typing import NDArray

from driftquilt.core.gradients import cross_entropy, head_gradient
from driftquilt.errors import InputError
from driftquilt.learners.base import Model
from driftquilt.learners.mlp import MLP, MLPModel
from driftquilt.learners.torch_module import ROWS_PER_FORWARD, TorchLearner, TorchModel
from tests.learners.nets import torch_twin
from tests.segments import random_segment

N_HIDDEN = 9
random_rows = partial(random_segment, weighted=True)


def both(n_features: int = 4, n_classes: int = 3) -> tuple[MLPModel, TorchModel]:
    """The same net twice, trained a little so that its weights are none it began with."""
    like = random_rows(64, n_features, n_classes)
    fast = MLP(N_HIDDEN, learning_rate=0.05).start(like.X, n_classes, seed=0)
    fast.train_epoch([like], np.random.default_rng(0), rate=1.0)
    net = torch_twin(fast, n_features, N_HIDDEN)
    return fast, TorchLearner(net).start(like.X, n_classes, seed=0)


@pytest.mark.parametrize("n_features", [1, 4])
@pytest.mark.parametrize("n_classes", [2, 5])
@pytest.mark.parametrize("n_rows", [1, 127, 128, 129, ROWS_PER_FORWARD + 1])
def test_the_fast_net_and_torch_embed_alike(n_rows: int, n_features: int, n_classes: int) -> None:
    X = random_rows(n_rows, n_features, n_classes).X
    (embedding, probabilities), (wanted, answers) = (
        m.embed(X) for m in both(n_features, n_classes)
    )
    assert embedding.shape == (n_rows, N_HIDDEN)
    assert embedding.dtype == wanted.dtype == probabilities.dtype == answers.dtype == np.float32
    np.testing.assert_allclose(embedding, wanted, atol=1e-5)
    np.testing.assert_allclose(probabilities, answers, atol=1e-5)


@pytest.mark.parametrize("which", [0, 1])
def test_probabilities_are_those_of_predict_proba_to_the_bit(which: int) -> None:
    model, X = both()[which], random_rows(300, 4, 3).X
    assert model.embed(X)[1].tobytes() == model.predict_proba(X).tobytes()


@pytest.mark.parametrize("which", [0, 1])
def test_embedding_and_probabilities_make_up_the_head_gradient(which: int) -> None:
    model, part = both()[which], random_rows(300, 4, 3)
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
    model, X = both()[which], random_rows(50, 4, 3).X
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
    with pytest.raises(InputError, match=rf"{n_features} feature.* 4"):
        both()[0].embed(random_rows(40, n_features).X)
