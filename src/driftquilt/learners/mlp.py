"""The paper's two-layer net: one hidden layer of ReLU units, softmax, Adam.

It is the default learner and needs no torch. Weights begin as PyTorch begins them: uniform
within ±1/√fan-in. float32 throughout. `MLPRegression` is the same net for numbers: its outputs are
linear, and it is trained by a loss of `core.loss`. `Nets` are models that answer together.

Paper: "Parameters" (256 units, learning rate 1e-3).

>>> import numpy as np
>>> from driftquilt.core.segment import Segment
>>> rng = np.random.default_rng(0)
>>> X = rng.normal(size=(200, 2)).astype(np.float32)
>>> y = (X[:, 0] > 0).astype(np.int64)
>>> rows = Segment("may", X, y, np.ones(200, np.float32))
>>> model = MLP(hidden_units=16, learning_rate=0.02).start(X, n_classes=2, seed=0)
>>> for epoch in range(20):
...     model.train_epoch([rows], np.random.default_rng(epoch), rate=1.0)
>>> bool((model.predict_proba(X).argmax(axis=1) == y).mean() > 0.95)
True
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from driftquilt.core.loss import LOSSES, Loss
from driftquilt.core.segment import Segment, join
from driftquilt.errors import InputError, ModelFileError

__all__ = ["MLP", "MLPModel", "MLPRegression", "Nets", "RegressionModel"]

_UNSEEN = 2.0  # how far the logit of a class without a row begins below the others
_CROSS_ENTROPY = (0, np.zeros(0, np.float32))  # the loss as the kernels take it


@cache
def _kernels() -> ModuleType:
    # Imported at first use, so that `import driftquilt` does not wait for numba.
    return import_module("driftquilt.learners.mlp_kernels")


@dataclass(frozen=True)
class MLP:
    """Settings of the two-layer net; a learning rate of None goes by the width of the rows."""

    hidden_units: int = 256
    learning_rate: float | None = 1e-3
    batch_size: int = 128

    def rate(self, n_features: int) -> float:
        """Return the learning rate for rows so wide.

        A step moves what a unit sees by the sum over its inputs, so wide rows take smaller ones.
        """
        if self.learning_rate is not None:
            return self.learning_rate
        return min(0.01, max(0.003, 0.045 / math.sqrt(n_features)))

    def start(self, X: NDArray[Any], n_classes: int, seed: int) -> MLPModel:
        return MLPModel(self, self._draw(X, n_classes, seed), n_classes)

    def restore(self, tensors: Mapping[str, NDArray[Any]], n_classes: int) -> MLPModel:
        return MLPModel(self, self._read(tensors, n_classes), n_classes)

    def settings(self) -> dict[str, Any]:
        return {"kind": "mlp", **asdict(self)}

    def as_parameters(self) -> dict[str, Any]:
        """Return the settings under the names that they have as parameters of an estimator."""
        return asdict(self)

    def _draw(self, X: NDArray[Any], n_classes: int, seed: int) -> NDArray[np.float32]:
        rng = np.random.default_rng(seed)
        n_features, n_hidden = X.shape[1], self.hidden_units
        parts = [
            (n_features * n_hidden, n_features),
            (n_hidden, n_features),
            (n_classes * n_hidden, n_hidden),
            (n_classes, n_hidden),
        ]
        theta = np.concatenate(
            [rng.uniform(-1, 1, size) / math.sqrt(fan_in) for size, fan_in in parts]
        )
        return theta.astype(np.float32)

    def _read(self, tensors: Mapping[str, NDArray[Any]], n_classes: int) -> NDArray[np.float32]:
        theta = tensors.get("theta")
        n_hidden, n_tail = self.hidden_units, n_classes * (self.hidden_units + 1)
        if theta is None or theta.dtype != np.float32 or theta.ndim != 1:
            raise ModelFileError("the weights of a two-layer net are one float32 vector 'theta'")
        if len(theta) < n_tail + 2 * n_hidden or (len(theta) - n_tail) % n_hidden:
            raise ModelFileError(
                f"'theta' has {len(theta)} numbers, which do not make a net with "
                f"{n_hidden} hidden units and {n_classes} classes"
            )
        return theta.copy()


@dataclass(frozen=True)
class MLPRegression(MLP):
    """The two-layer net with linear outputs, trained by a loss; `n_classes` is that of outputs.

    It starts and restores a `RegressionModel`, which gives no class probabilities.
    """

    loss: Loss = field(default_factory=Loss)

    def start(self, X: NDArray[Any], n_classes: int, seed: int) -> Any:
        if n_classes != self.loss.n_outputs:  # the kernels check no bounds
            raise InputError(
                f"the loss has {self.loss.n_outputs} output(s), but the net is to have {n_classes}"
            )
        return RegressionModel(self, self._draw(X, n_classes, seed), n_classes, self.loss)

    def restore(self, tensors: Mapping[str, NDArray[Any]], n_classes: int) -> Any:
        if n_classes != self.loss.n_outputs:
            raise ModelFileError(
                f"the loss has {self.loss.n_outputs} output(s), but the weights are of {n_classes}"
            )
        return RegressionModel(self, self._read(tensors, n_classes), n_classes, self.loss)

    def settings(self) -> dict[str, Any]:
        loss = {"loss": self.loss.name, "levels": [*self.loss.levels], "delta": self.loss.delta}
        return {**super().settings(), "kind": "mlp_regression", **loss}

    def as_parameters(self) -> dict[str, Any]:
        parameters = asdict(self)
        parameters["loss"] = self.loss.name
        quantiles = {"quantiles": self.loss.levels} if self.loss.name == "quantile" else {}
        return {**parameters, **quantiles}


class _Net:
    """Weights of a two-layer net, and Adam's memory of them; `loss` is as the kernels take it."""

    def __init__(
        self,
        learner: MLP,
        theta: NDArray[np.float32],
        n_classes: int,
        loss: tuple[int, NDArray[np.float32]],
    ) -> None:
        self._learner, self._loss = learner, loss
        self._theta = theta
        self._memory: NDArray[np.float32] | None = None  # Adam's two moments, once it trains
        self._step = 0
        self._n_classes = n_classes
        n_head = n_classes * (learner.hidden_units + 1)
        self._n_features = (len(theta) - n_head) // learner.hidden_units - 1
        self._rate = learner.rate(self._n_features)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # Arrays that were mapped into memory cannot be written to, but weights are trained.
        copied = {n: np.array(v) if isinstance(v, np.ndarray) else v for n, v in state.items()}
        self.__dict__.update(copied)

    @property
    def n_classes(self) -> int:
        return self._n_classes

    @property
    def n_features(self) -> int:
        return self._n_features

    @property
    def n_hidden(self) -> int:
        return self._learner.hidden_units

    @property
    def loss_code(self) -> int:
        """The loss as the kernels take it."""
        return self._loss[0]

    def head_gradients(
        self, segments: Sequence[Segment]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        n_hidden = self._learner.hidden_units
        gradients = np.zeros((len(segments), self._n_classes, n_hidden + 1))
        losses = np.empty(len(segments))
        for s, segment in enumerate(segments):
            X = segment.X
            self._expect(X.shape[1])
            total = segment.weight.sum(dtype=np.float64)
            losses[s] = _kernels().head_gradient(
                X, segment.y.astype(np.float64, copy=False), segment.weight, self._theta,
                n_hidden, gradients[s], *self._loss,
            )  # fmt: skip
            gradients[s] /= total
            losses[s] /= total
        return gradients.reshape(len(segments), self._n_classes * (n_hidden + 1)), losses

    def train_epoch(
        self, segments: Sequence[Segment], rng: np.random.Generator, rate: float
    ) -> None:
        rows, learner = join(segments), self._learner
        self._expect(rows.X.shape[1])
        if self._memory is None:
            self._memory = np.zeros((2, len(self._theta)), np.float32)
        self._step = _kernels().train_epoch(
            rows.X, rows.y.astype(np.float64, copy=False), rows.weight,
            rng.permutation(len(rows)), self._theta, *self._memory, self._step,
            rate * self._rate, learner.hidden_units, self._n_classes,
            learner.batch_size, *self._loss,
        )  # fmt: skip

    def copy(self) -> Self:
        twin = object.__new__(type(self))
        vars(twin).update(vars(self))
        twin._theta = self._theta.copy()
        twin._memory = None if self._memory is None else self._memory.copy()
        return twin

    def use_weights(self, theta: NDArray[np.float32]) -> None:
        """Go on with the weights in this memory, which others may read."""
        self._theta = theta

    def blend(self, other: Self, share: float) -> None:
        self._theta *= np.float32(1 - share)
        self._theta += np.float32(share) * other._theta

    def tensors(self) -> dict[str, NDArray[Any]]:
        return {"theta": self._theta.copy()}

    def layers(self) -> tuple[NDArray[np.float32], ...]:
        """Copy the weights by layer: first (d, H), bias (H,), head (C, H), offset (C,)."""
        n_hidden, n_classes = self._learner.hidden_units, self._n_classes
        shapes = [(self._n_features, n_hidden), (n_hidden,), (n_classes, n_hidden), (n_classes,)]
        ends = np.cumsum([math.prod(shape) for shape in shapes])[:-1]
        parts = np.split(self._theta.copy(), ends)
        return tuple(part.reshape(shape) for part, shape in zip(parts, shapes, strict=True))

    def learn_one(self, x: NDArray[Any], y: float) -> NDArray[np.float32]:
        """One plain gradient step on one row; return the answer (C,) before it."""
        self._expect(len(x))
        answer = np.empty(self._n_classes, dtype=np.float32)
        _kernels().learn_one(
            x, y, self._theta, self._rate, self._learner.hidden_units, answer, *self._loss
        )
        return answer

    def _wider(self, n_features: int) -> list[NDArray[np.float32]]:
        """Return the weights by layer with zeros for new columns."""
        first, *rest = self.layers()
        columns = np.zeros((n_features - self._n_features, self.n_hidden), np.float32)
        return [np.concatenate([first, columns]), *rest]

    def _ask(self, X: NDArray[Any], n_kept: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        self._expect(X.shape[1])
        embedding = np.empty((n_kept, self._learner.hidden_units), dtype=np.float32)
        code, n_empty = self._loss[0], int(self._loss[0] > 0)
        answers = np.empty((len(X), self._n_classes + n_empty), dtype=np.float32)
        _kernels().embed(X, self._theta, embedding, answers, code)
        return embedding, answers[:, n_empty:]

    def _expect(self, n_features: int) -> None:
        # The kernels check no bounds: rows of another width would be read and written past.
        if n_features != self._n_features:
            raise InputError(
                f"rows have {n_features} feature(s), but this net was started with rows of "
                f"{self._n_features}; give it rows of the same width"
            )


class MLPModel(_Net):
    """A two-layer net for classes."""

    def __init__(self, learner: MLP, theta: NDArray[np.float32], n_classes: int) -> None:
        super().__init__(learner, theta, n_classes, _CROSS_ENTROPY)

    def grow(self, n_features: int, n_classes: int) -> MLPModel:
        """Return a net for wider rows or more classes.

        With zeros in the new columns it is this one. A new class starts as improbable. The
        optimiser's memory is not taken along.
        """
        first, bias, head, offset = self._wider(n_features)
        n_new = n_classes - self._n_classes
        lines = np.zeros((n_new, self.n_hidden), np.float32)
        unseen = np.full(n_new, offset.min() - _UNSEEN, np.float32)
        parts = [first, bias, head, lines, offset, unseen]
        return MLPModel(self._learner, np.concatenate([part.ravel() for part in parts]), n_classes)

    def predict_proba(self, X: NDArray[Any]) -> NDArray[np.float32]:
        return self._ask(X, min(len(X), _kernels().BLOCK))[1]

    def embed(self, X: NDArray[Any]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        return self._ask(X, len(X))

    def add_to_logits(self, offsets: NDArray[np.float64]) -> None:
        self._theta[-self._n_classes :] += offsets.astype(np.float32)


class RegressionModel(_Net):
    """A two-layer net for numbers."""

    def __init__(
        self, learner: MLPRegression, theta: NDArray[np.float32], n_classes: int, loss: Loss
    ) -> None:
        levels = (loss.delta,) if loss.name == "huber" else loss.levels
        code = 1 + LOSSES.index(loss.name)
        super().__init__(learner, theta, n_classes, (code, np.array(levels, np.float32)))

    def grow(self, n_features: int) -> RegressionModel:
        """Return a net for wider rows; with zeros in the new columns it is this one."""
        theta = np.concatenate([part.ravel() for part in self._wider(n_features)])
        learner = self._learner
        assert isinstance(learner, MLPRegression)  # noqa: S101
        return RegressionModel(learner, theta, self._n_classes, learner.loss)

    def scale_outputs(self, factor: float, shift: float) -> None:
        """Let each output z be factor · z + shift from now on."""
        head = self._theta[-self._n_classes * (self.n_hidden + 1) :]
        head *= np.float32(factor)
        head[-self._n_classes :] += np.float32(shift)

    def predict(self, X: NDArray[Any]) -> NDArray[np.float32]:
        """Return the outputs of each row, (n, Q)."""
        return self._ask(X, min(len(X), _kernels().BLOCK))[1]


@dataclass(frozen=True, eq=False)
class Nets:
    """Models that answer together: the mean of their class probabilities, weighed by their shares.

        probabilities[:, codes] += share · Σ shares[m] · predict_proba(X) of model m

    Two-layer nets of one shape have their weights in one array, `thetas` (m, P), which they go on
    using. One compiled call asks them and takes each row by itself: an answer is the same, bit for
    bit, whatever rows come with it. Nets for numbers answer with the mean of their outputs. Models
    of other learners are asked one by one.

    >>> X = np.zeros((2, 3), dtype=np.float32)
    >>> nets = Nets.of([MLP(hidden_units=8).start(X, 2, seed) for seed in (0, 1)])
    >>> probabilities = np.zeros((2, 2), dtype=np.float32)
    >>> nets.add(X, 1.0, np.array([0, 1]), probabilities)
    >>> probabilities.sum(axis=1).round(3)
    array([1., 1.], dtype=float32)
    """

    models: tuple[Any, ...]
    shares: NDArray[np.float64]  # (m,)
    thetas: NDArray[np.float32] | None = None
    n_hidden: int = 0
    loss: int = 0  # of these nets, as the kernels take it

    @classmethod
    def of(cls, models: Sequence[Any], shares: Sequence[float] = ()) -> Nets:
        """Take models over; what they learn later, these nets know. All count alike by default."""
        counted = np.array(shares) if shares else np.full(len(models), 1 / max(len(models), 1))
        nets = [model for model in models if isinstance(model, MLPModel | RegressionModel)]
        if len(nets) < len(models) or not nets:
            return cls(tuple(models), counted)
        thetas = np.stack([net.tensors()["theta"] for net in nets])
        for net, theta in zip(nets, thetas, strict=True):
            net.use_weights(theta)
        return cls(tuple(nets), counted, thetas, nets[0].n_hidden, nets[0].loss_code)

    def copy(self) -> Nets:
        """Nets that answer as these do now, and do not learn."""
        if self.thetas is None:
            return replace(self, models=tuple(model.copy() for model in self.models))
        return replace(self, models=(), thetas=self.thetas.copy())

    def add(
        self,
        X: NDArray[np.float32],
        share: float,
        codes: NDArray[np.int64],
        answers: NDArray[np.float32],
    ) -> None:
        """Add the answers for rows (n, d) to (n, C); class c of a model is `codes[c]` there."""
        shares = (share * self.shares).astype(np.float32)
        if self.thetas is not None:
            n_hidden, loss = self.n_hidden, self.loss
            _kernels().add_answers(X, self.thetas, n_hidden, shares, codes, answers, loss)
            return
        for model, each in zip(self.models, shares, strict=True):
            answers[:, codes] += each * model.predict_proba(X)
