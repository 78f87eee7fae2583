"""What is trained: the two-layer net by default, or any torch module.

Learner, Model  the contract
MLP             the two-layer net of the paper, compiled by numba at first use
TorchLearner    any torch module whose last layer is linear (extra `torch`)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from driftquilt.lazy import lazy_names
from driftquilt.learners.base import Learner, Model
from driftquilt.learners.mlp import MLP, MLPModel

if TYPE_CHECKING:
    from driftquilt.learners.torch_module import TorchLearner

__all__ = ["MLP", "Learner", "MLPModel", "Model", "TorchLearner"]

# torch takes seconds to import.
__getattr__ = lazy_names(__name__, torch_module="TorchLearner")
