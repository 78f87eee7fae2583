"""Concept drift: choose which past data to retrain on.

driftquilt is Quilt (Kim, Hwang, Whang, AAAI 2024) as software. Start with `QuiltClassifier`, or
with `QuiltRegressor` for numbers, or with `QuiltSelector` around your own model; on a live stream,
with `QuiltStream`, or with `RiverQuilt` and `RiverQuiltRegressor` inside of river; with `Client` or
`AsyncClient` on a stream that a service keeps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from driftquilt.errors import (
    DriftquiltError,
    InputError,
    LearnerError,
    MissingExtraError,
    ModelFileError,
    ServiceError,
    SourceError,
    StoreError,
)
from driftquilt.lazy import lazy_names

if TYPE_CHECKING:
    from driftquilt.client import AsyncClient, Client
    from driftquilt.integrations.river import RiverQuilt, RiverQuiltRegressor
    from driftquilt.learners.torch_module import TorchLearner
    from driftquilt.quilt.classifier import QuiltClassifier, select_segments
    from driftquilt.quilt.models import choose_model, load_model
    from driftquilt.quilt.regressor import QuiltRegressor
    from driftquilt.quilt.selector import QuiltSelector
    from driftquilt.stream import QuiltStream

__all__ = [
    "AsyncClient",
    "Client",
    "DriftquiltError",
    "InputError",
    "LearnerError",
    "MissingExtraError",
    "ModelFileError",
    "QuiltClassifier",
    "QuiltRegressor",
    "QuiltSelector",
    "QuiltStream",
    "RiverQuilt",
    "RiverQuiltRegressor",
    "ServiceError",
    "SourceError",
    "StoreError",
    "TorchLearner",
    "__version__",
    "choose_model",
    "load_model",
    "select_segments",
]

__version__ = "0.1.0"

# Looked up at first use: scikit-learn, river and torch take seconds to import.
__getattr__ = lazy_names(
    __name__,
    client="AsyncClient Client",
    quilt="QuiltClassifier QuiltRegressor QuiltSelector choose_model load_model select_segments",
    stream="QuiltStream",
    **{"integrations.river": "RiverQuilt RiverQuiltRegressor", "learners": "TorchLearner"},
)


def __dir__() -> list[str]:
    return __all__
