"""Rows that mostly hold each column's usual value: a faster way to the same numbers."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from driftquilt.core.segment import Segment
from driftquilt.learners import mlp_kernels
from driftquilt.learners.mlp import MLP, MLPModel

LEARNER = MLP(hidden_units=19, batch_size=32)
WIDTH = 67

Matrix = NDArray[np.float32]


def counts(n: int, share: float = 0.07, width: int = WIDTH) -> Matrix:
    """Scaled zeros and ones: no value is 0, each column has one that most rows share."""
    rng = np.random.default_rng((n, width))
    X = (rng.random((n, width)) < share).astype(np.float64)
    scaled: Matrix = ((X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 0.05)).astype(np.float32)
    return scaled


def rows(X: Matrix, n_classes: int = 3) -> Segment:
    rng = np.random.default_rng(len(X))
    weight = rng.uniform(0.2, 3, len(X)).astype(np.float32)
    return Segment("may", X, rng.integers(n_classes, size=len(X)), weight)


def dense_half() -> Matrix:
    X = counts(300)
    X[150:] = np.random.default_rng(1).normal(size=(150, WIDTH))
    return X


def dense_end() -> Matrix:
    # The probes see only few of these rows, so blocks are tried sparse and found dense.
    X = counts(900)
    X[780:] = np.random.default_rng(1).normal(size=(120, WIDTH))
    return X


def constant_column() -> Matrix:
    X = counts(200)
    X[:, 5], X[:, 6] = 3.5, 0.0
    return X


def wrong_guess() -> Matrix:
    # Every row that is probed says 4; hardly any other does.
    X = counts(29 * 14 + 1)
    X[:, 7] = -1.0
    X[::29, 7] = 4.0
    return X


def far_from_zero() -> Matrix:
    X = counts(200)
    X[:, 3] += 1e4
    return X


CASES = {
    "sparse": lambda: counts(300),
    "dense_half": dense_half,
    "dense_end": dense_end,
    "constant_column": constant_column,
    "constant_rows": lambda: np.full((200, WIDTH), 0.3, np.float32),
    "wrong_guess": wrong_guess,
    "far_from_zero": far_from_zero,
    "all_zero": lambda: np.zeros((200, WIDTH), np.float32),
    "48_columns": lambda: counts(130, width=48),
    "99_columns": lambda: counts(260, width=99),
} | {f"{n}_rows": lambda n=n: counts(n) for n in (1, 2, 31, 32, 33, 127, 128, 129, 257)}


@pytest.fixture(name="X", params=CASES)
def make_rows(request: pytest.FixtureRequest) -> Matrix:
    made: Matrix = CASES[request.param]()
    return made


def reference(
    model: MLPModel, part: Segment
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64], float]:
    """Embedding, probabilities, mean head gradient and mean loss, in float64 and plain numpy."""
    n_features, n_hidden, n_classes = part.X.shape[1], LEARNER.hidden_units, model.n_classes
    ends = np.cumsum([n_features * n_hidden, n_hidden, n_classes * n_hidden])
    first, bias, head, offset = np.split(model.tensors()["theta"].astype(np.float64), ends)
    embedding = np.maximum(part.X @ first.reshape(n_features, n_hidden) + bias, 0)
    z = embedding @ head.reshape(n_classes, n_hidden).T + offset
    z -= z.max(axis=1, keepdims=True)
    log_p = z - np.log(np.exp(z).sum(axis=1, keepdims=True))
    share = part.weight / part.weight.sum(dtype=np.float64)
    residual = (np.exp(log_p) - np.eye(n_classes)[part.y]) * share[:, None]
    with_one = np.column_stack([np.ones(len(embedding)), embedding])
    loss = -float(share @ log_p[np.arange(len(part)), part.y])
    return embedding, np.exp(log_p), (residual.T @ with_one).ravel(), loss


def epochs(model: MLPModel, part: Segment, n_epochs: int = 5) -> NDArray[np.float32]:
    for epoch in range(n_epochs):
        model.train_epoch([part], np.random.default_rng(epoch), 1.0)
    weights: NDArray[np.float32] = model.tensors()["theta"]
    return weights


def dense_epochs(part: Segment, n_classes: int, n_epochs: int = 5) -> NDArray[np.float64]:
    """The same training in float64 and plain numpy, where every row is dense."""
    d, h = part.X.shape[1], LEARNER.hidden_units
    theta = LEARNER.start(part.X, n_classes, seed=0).tensors()["theta"].astype(np.float64)
    ends = np.cumsum([d * h, h, n_classes * h])
    moment, square, step = np.zeros_like(theta), np.zeros_like(theta), 0
    for epoch in range(n_epochs):
        order = np.random.default_rng(epoch).permutation(len(part))
        for at in np.split(order, range(LEARNER.batch_size, len(order), LEARNER.batch_size)):
            first, bias, head, offset = np.split(theta, ends)
            x, head = part.X[at].astype(np.float64), head.reshape(n_classes, h)
            hidden = np.maximum(x @ first.reshape(d, h) + bias, 0)
            p = np.exp(hidden @ head.T + offset)
            p /= p.sum(axis=1, keepdims=True)
            r = (p - np.eye(n_classes)[part.y[at]]) * part.weight[at, None] / len(at)
            back = (r @ head) * (hidden > 0)
            parts = [x.T @ back, back.sum(axis=0), r.T @ hidden, r.sum(axis=0)]
            slope, step = np.concatenate([g.ravel() for g in parts]), step + 1
            moment = 0.9 * moment + 0.1 * slope
            square = 0.999 * square + 0.001 * slope**2
            scaled = np.sqrt(square / (1 - 0.999**step)) + 1e-8
            theta -= LEARNER.rate(1) * moment / (1 - 0.9**step) / scaled
    return theta


def test_probabilities_and_embeddings_are_those_of_dense_rows(X: Matrix) -> None:
    part = rows(X)
    model = LEARNER.start(X, 3, seed=0)
    embedding, probabilities, _, _ = reference(model, part)
    np.testing.assert_allclose(model.predict_proba(X), probabilities, atol=1e-5)
    np.testing.assert_allclose(model.embed(X)[0], embedding, rtol=1e-5, atol=1e-5)
    assert model.embed(X)[1].tobytes() == model.predict_proba(X).tobytes()


@pytest.mark.parametrize("n_classes", [1, 2, 3])
def test_head_gradients_and_losses_are_those_of_dense_rows(X: Matrix, n_classes: int) -> None:
    part = rows(X, n_classes)
    model = LEARNER.start(X, n_classes, seed=0)
    _, _, gradient, loss = reference(model, part)
    (ours,), (our_loss,) = model.head_gradients([part])
    np.testing.assert_allclose(ours, gradient, rtol=1e-5, atol=1e-5)
    assert our_loss == pytest.approx(loss, rel=1e-5, abs=1e-5)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize(
    "case", sorted(CASES.keys() - {"far_from_zero", "all_zero", "constant_rows"})
)
def test_five_epochs_lead_to_the_weights_of_dense_rows(case: str, n_classes: int) -> None:
    part = rows(CASES[case](), n_classes)
    model = LEARNER.start(part.X, n_classes, seed=0)
    np.testing.assert_allclose(epochs(model, part), dense_epochs(part, n_classes), atol=1e-4)


def test_training_is_bit_equal_and_rows_stay_as_they_are(X: Matrix) -> None:
    before = X.copy()
    X.setflags(write=False)
    one, other = (epochs(LEARNER.start(X, 3, seed=0), rows(X)) for _ in range(2))
    assert one.tobytes() == other.tobytes()
    assert np.isfinite(one).all()
    assert np.array_equal(X, before)


@pytest.mark.parametrize(
    ("X", "is_sparse"),
    [
        (counts(300), True),
        (counts(31), False),
        (counts(300, width=47), False),
        (counts(300, share=0.5), False),
        (np.random.default_rng(0).normal(size=(300, WIDTH)).astype(np.float32), False),
        (np.zeros((0, WIDTH), np.float32), False),
    ],
)
def test_only_wide_rows_of_usual_values_count_as_sparse(X: Matrix, is_sparse: bool) -> None:
    assert bool(len(mlp_kernels.find_usual(X))) is is_sparse


def test_usual_values_are_those_of_most_rows() -> None:
    X = counts(300)
    usual = mlp_kernels.find_usual(X)
    assert np.mean(usual == X) > 0.9
    assert mlp_kernels.find_usual(far_from_zero())[3] == 0


@pytest.mark.parametrize("strange", [np.nan, np.inf, -np.inf])
def test_a_strange_usual_value_spoils_no_row_that_lacks_it(strange: float) -> None:
    X = counts(200)
    X[:, 4] = strange
    X[50, 4] = 1.0
    model = LEARNER.start(X, 2, seed=0)
    assert np.isfinite(model.predict_proba(X)[50]).all()
    assert len(mlp_kernels.find_usual(X)) == WIDTH


def test_the_list_of_unusual_entries_gives_the_rows_back() -> None:
    X, order = counts(200), np.random.default_rng(0).permutation(200)[:50]
    usual = mlp_kernels.find_usual(X)
    columns, values, ends = mlp_kernels.rest_lists(50, usual)
    assert mlp_kernels.fill_rest(X, order, usual, columns, values, ends)
    back = np.tile(usual, (50, 1))
    for i in range(50):
        part = slice(ends[i], ends[i + 1])
        back[i, columns[part]] += values[part]
    np.testing.assert_allclose(back, X[order], atol=1e-6)


def test_lists_hold_the_row_with_which_they_become_too_long() -> None:
    X = np.random.default_rng(0).normal(size=(mlp_kernels.BLOCK, 71)).astype(np.float32)
    usual = np.zeros(71, np.float32)
    columns, values, ends = mlp_kernels.rest_lists(len(X), usual)
    columns[:] = -1
    assert not mlp_kernels.fill_rest(X, np.arange(len(X)), usual, columns, values, ends)
    assert columns[-1] == -1
