"""The two-layer net's weights, and the same net in torch."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from driftquilt.learners.mlp import MLPModel


def theta(model: MLPModel) -> NDArray[np.float32]:
    """Return all weights in one array."""
    weights: NDArray[np.float32] = model.tensors()["theta"]
    return weights


def unpack(
    flat: NDArray[np.float32], n_features: int, n_hidden: int, n_classes: int
) -> list[NDArray[np.float32]]:
    """Input weights (d, H), bias (H,), head (C, H), offset (C,)."""
    ends = np.cumsum([n_features * n_hidden, n_hidden, n_classes * n_hidden])
    first, bias, head, offset = np.split(flat, ends)
    return [first.reshape(n_features, n_hidden), bias, head.reshape(n_classes, n_hidden), offset]


def torch_twin(model: MLPModel, n_features: int, n_hidden: int) -> nn.Sequential:
    """Return the same net in torch, with the same weights."""
    first, bias, head, offset = unpack(theta(model), n_features, n_hidden, model.n_classes)
    net = nn.Sequential(
        nn.Linear(n_features, n_hidden), nn.ReLU(), nn.Linear(n_hidden, model.n_classes)
    )
    names = ["0.weight", "0.bias", "2.weight", "2.bias"]
    arrays = [first.T.copy(), bias, head, offset]
    net.load_state_dict({n: torch.from_numpy(a) for n, a in zip(names, arrays, strict=True)})
    return net
