"""The losses of numbers against torch, and what their settings refuse."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from driftquilt.core.loss import Loss
from driftquilt.errors import InputError

LOSSES = [
    Loss("squared"),
    Loss("huber", delta=0.7),
    Loss("quantile"),
    Loss("quantile", (0.1, 0.5, 0.9)),
]


def torch_loss(loss: Loss, z: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The loss of each row, in torch's own words."""
    if loss.name == "squared":
        return nn.functional.mse_loss(z[:, 0], y, reduction="none") / 2
    if loss.name == "huber":
        return nn.functional.huber_loss(z[:, 0], y, reduction="none", delta=loss.delta)
    off, levels = y[:, None] - z, torch.tensor(loss.levels, dtype=z.dtype)
    return torch.maximum(levels * off, (levels - 1) * off).mean(dim=1)


@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_losses_and_residuals_are_those_of_autograd(loss: Loss) -> None:
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=(50, loss.n_outputs)), rng.normal(size=50)
    outputs = torch.tensor(z, requires_grad=True)
    losses = torch_loss(loss, outputs, torch.tensor(y))
    torch.autograd.backward(losses.sum())
    assert outputs.grad is not None
    np.testing.assert_allclose(loss.of_rows(z, y), losses.detach().numpy(), atol=1e-12)
    np.testing.assert_allclose(loss.residuals(z, y), outputs.grad.numpy(), atol=1e-12)


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"name": "absolute"}, "absolute"),
        ({"name": "quantile", "levels": (0.9, 0.1)}, "levels"),
        ({"name": "quantile", "levels": ()}, "levels"),
        ({"name": "quantile", "levels": (0.0, 0.5)}, "levels"),
        ({"name": "huber", "levels": (0.1,)}, "huber"),
        ({"delta": 0.0}, "delta"),
    ],
)
def test_a_setting_of_no_meaning_is_refused(settings: dict[str, object], name: str) -> None:
    with pytest.raises(InputError, match=name):
        Loss(**settings)  # type: ignore[arg-type]


def test_the_answer_is_the_quantile_nearest_to_the_median() -> None:
    assert Loss("quantile", (0.05, 0.25, 0.5, 0.9)).middle == 2
    assert Loss("squared").middle == 0
