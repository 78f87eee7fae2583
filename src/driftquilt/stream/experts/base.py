"""What an expert of a stream promises.

- `learn` returns what the expert would have answered *before* it learned the row, from this row
  and labels that have arrived. The answer has a probability for each class so far, perhaps fewer:
  classes that came later have none.
- `snapshot` is what answers now, as a value that `Snapshot` can ask; it does not change when it is
  copied.
- `pack` and `unpack` are each other's way back, through safetensors and JSON: an expert that was
  unpacked goes on bit for bit. Nothing is random, and nothing looks at a clock.

The mixture weighs experts by `loss` alone; another kind of target needs another loss and nothing
else there.
"""

from __future__ import annotations

import math
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from driftquilt.data.frame import Frame
from driftquilt.stream.snapshot import Expert

__all__ = ["LOSS_MAX", "LearningExpert", "Tensors", "by_part", "loss", "prefixed"]

Tensors: TypeAlias = dict[str, NDArray[Any]]

#: The loss of a row on which an expert gives the true class no chance, which bounds every loss.
LOSS_MAX = -math.log(1e-3)


class LearningExpert(Protocol):
    """An expert that learns every row."""

    @property
    def expert(self) -> Expert:
        """What answers now."""

    def learn(self, frame: Frame, code: int) -> NDArray[np.float32]:
        """One row of class `code` further; the probabilities before it."""

    def pack(self) -> tuple[Tensors, dict[str, Any]]:
        """Weights, and everything else as plain values."""

    def unpack(self, tensors: Tensors, record: dict[str, Any]) -> None:
        """Go on from what `pack` gave."""


def loss(answer: NDArray[Any], code: int) -> float:
    """Return the log loss of an answer, at most `LOSS_MAX`.

    >>> loss(np.array([0.5, 0.5]), 1)
    0.6931471805599453
    >>> loss(np.array([0.5, 0.5]), 2) == LOSS_MAX    # a class that the expert does not know
    True
    """
    likelihood = float(answer[code]) if code < len(answer) else 0.0
    return min(LOSS_MAX, -math.log(likelihood)) if likelihood > 0 else LOSS_MAX


def prefixed(prefix: str, tensors: Tensors) -> Tensors:
    """Tensors with a part's name before theirs."""
    return {f"{prefix}.{name}": tensor for name, tensor in tensors.items()}


def by_part(tensors: Tensors) -> dict[str, Tensors]:
    """Tensors by the part that their names begin with.

    >>> by_part({"online.theta": np.zeros(1)})
    {'online': {'theta': array([0.])}}
    """
    parts: dict[str, Tensors] = {}
    for name, tensor in tensors.items():
        part, _, rest = name.partition(".")
        parts.setdefault(part, {})[rest] = tensor
    return parts
