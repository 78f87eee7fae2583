"""The published procedure in torch: the yardstick of `python -m benchmarks.cost`.

It is what someone who follows the paper's notebooks would write, with nothing made slow on
purpose: one training per threshold, each from the same weights, with autograd, torch's own
Adam and a loader that shuffles every epoch; then one more training with the best threshold.
At the start of every epoch each past segment goes through the net in one piece, and the
gradients of its rows are formed and averaged, as in the published code; the validation part
comes from its loader.

It is not the published code and need not cost the same. The factors of a row's gradient are
not copied to full width before they are multiplied, as they are there; only the validation loss
is evaluated; thresholds come from optuna's sampler.

It is not part of the package and shares no numeric code with it.

Paper: Algorithm 1 and "Parameters".
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import optuna
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, TensorDataset

from driftquilt.core.segment import History, Segment, count_classes, folds

__all__ = ["Fit", "Net", "TorchQuilt", "evaluate", "score_segments", "select"]

_BATCH, _HIDDEN, _PATIENCE, _MIN_DELTA = 128, 256, 10, 1e-4

Rows = tuple[Tensor, Tensor]


class Net(nn.Module):
    """One hidden layer of ReLU units."""

    def __init__(self, n_features: int, n_classes: int) -> None:
        super().__init__()
        self.hidden = nn.Linear(n_features, _HIDDEN)
        self.head = nn.Linear(_HIDDEN, n_classes)

    def embed(self, X: Tensor) -> Tensor:
        return torch.relu(self.hidden(X))

    def forward(self, X: Tensor) -> Tensor:
        logits: Tensor = self.head(self.embed(X))
        return logits


class Parts(NamedTuple):
    """The rows of a drift as tensors; the validation part comes in batches."""

    history: list[Rows]
    current: Rows
    validation: DataLoader[Any]


@dataclass(frozen=True, eq=False)
class Training:
    """A finished training: the net of its best epoch."""

    net: Net
    loss: float
    n_epochs: int


@dataclass(frozen=True, eq=False)
class Fit:
    """A model for the present, and the CPU seconds from the drift to it."""

    net: Net
    disparity_max: float
    n_epochs: int
    cpu_seconds: float

    def predict_proba(self, X: NDArray[Any]) -> NDArray[np.float32]:
        with torch.no_grad():
            answer = functional.softmax(self.net(torch.as_tensor(X)), dim=1)
        return np.asarray(answer.numpy(), dtype=np.float32)


@dataclass(frozen=True)
class TorchQuilt:
    """The method, behind the contract of `driftquilt.quilt.method`."""

    seed: int = 0
    n_random: int = 3
    n_guided: int = 3
    max_epochs: int = 2000

    def adapt(self, history: History, current: Segment) -> Fit:
        started = time.process_time()
        with _one_thread():
            parts = split(history, current)
            n_classes = count_classes(history, current)
            bound = self._search(parts, n_classes)
            last = self._train(parts, n_classes, bound)
        return Fit(last.net, bound, last.n_epochs, time.process_time() - started)

    def _search(self, parts: Parts, n_classes: int) -> float:
        """Return the threshold whose training ends with the lowest validation loss."""
        sampler = optuna.samplers.TPESampler(n_startup_trials=self.n_random, seed=self.seed)
        verbosity = optuna.logging.get_verbosity()
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        study = optuna.create_study(sampler=sampler)
        study.optimize(
            lambda trial: (
                self._train(parts, n_classes, trial.suggest_float("bound", 0.0, 2.0)).loss
            ),
            n_trials=self.n_random + self.n_guided,
        )
        optuna.logging.set_verbosity(verbosity)
        return float(study.best_params["bound"])

    def _train(self, parts: Parts, n_classes: int, bound: float) -> Training:
        torch.manual_seed(self.seed)
        net = Net(parts.current[0].shape[1], n_classes)
        optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
        plateau = ReduceLROnPlateau(optimizer, factor=0.1, patience=_PATIENCE, threshold=1e-4)
        best, lowest, reached, waited, n_epochs = net.state_dict(), math.inf, math.inf, 0, 0
        while n_epochs < self.max_epochs and waited < _PATIENCE:
            chosen = select(*score_segments(net, parts.history, parts.validation), bound)
            kept = [rows for rows, keep in zip(parts.history, chosen, strict=True) if keep]
            train_epoch(net, optimizer, [*kept, parts.current])
            loss = evaluate(net, parts.validation)
            plateau.step(loss)
            n_epochs += 1
            if loss < lowest:
                best, lowest = copy.deepcopy(net.state_dict()), loss
            waited = 0 if loss < reached - _MIN_DELTA else waited + 1
            reached = loss if waited == 0 else reached
        net.load_state_dict(best)
        return Training(net, lowest, n_epochs)


def split(history: History, current: Segment) -> Parts:
    """Tensors of the past, and of both halves of the current segment."""
    ((train, validation),) = folds(current, 1)
    loader = DataLoader(TensorDataset(*_tensors(validation)), batch_size=_BATCH)
    return Parts([_tensors(segment) for segment in history], _tensors(train), loader)


def train_epoch(net: Net, optimizer: torch.optim.Optimizer, parts: Sequence[Rows]) -> None:
    """One pass over all rows of the parts, in batches of 128 in a new order."""
    rows = TensorDataset(torch.cat([X for X, _ in parts]), torch.cat([y for _, y in parts]))
    criterion = nn.CrossEntropyLoss()
    for X, y in DataLoader(rows, batch_size=_BATCH, shuffle=True):
        optimizer.zero_grad()
        criterion(net(X), y).backward()
        optimizer.step()


@torch.no_grad()
def evaluate(net: Net, loader: DataLoader[Any]) -> float:
    """Mean cross-entropy over all rows."""
    total, n_rows = 0.0, 0
    for X, y in loader:
        total += float(functional.cross_entropy(net(X), y, reduction="sum"))
        n_rows += len(y)
    return total / n_rows


@torch.no_grad()
def score_segments(
    net: Net, history: Sequence[Rows], validation: DataLoader[Any]
) -> tuple[Tensor, Tensor]:
    """Disparity and gain of every past segment, each of shape (S,)."""
    batches = [(mean_gradient(net, X, y) * len(y), len(y)) for X, y in validation]
    present = torch.stack([total for total, _ in batches]).sum(dim=0)
    present /= sum(n_rows for _, n_rows in batches)
    if not history:
        return torch.empty(0), torch.empty(0)
    gradients = torch.stack([mean_gradient(net, X, y) for X, y in history])
    return torch.linalg.vector_norm(gradients - present, dim=1), gradients @ present


def mean_gradient(net: Net, X: Tensor, y: Tensor) -> Tensor:
    """Return the last layer's gradient of every row, averaged: C biases, then C·H weights."""
    embedding = net.embed(X)
    residual = functional.softmax(net.head(embedding), dim=1)
    residual = residual - functional.one_hot(y, residual.shape[1])
    weights = residual[:, :, None] * embedding[:, None, :]  # (n, C, H)
    return torch.cat([residual.mean(dim=0), weights.mean(dim=0).flatten()])


def select(disparity: Tensor, gain: Tensor, disparity_max: float) -> list[bool]:
    """Which past segments stay."""
    kept: list[bool] = ((gain > 0) & (disparity < disparity_max)).tolist()
    return kept


def _tensors(segment: Segment) -> Rows:
    return torch.as_tensor(segment.X), torch.as_tensor(segment.y)


@contextmanager
def _one_thread() -> Iterator[None]:
    n_threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(n_threads)
