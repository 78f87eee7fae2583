"""What the paper compares Quilt with, one algorithm per file."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from driftquilt.paper.baselines.best_segments import BestSegments
    from driftquilt.paper.baselines.cvdte import CVDTE
    from driftquilt.paper.baselines.glister import Glister
    from driftquilt.paper.baselines.grad_match import GradMatch
    from driftquilt.paper.baselines.learn_nse import LearnNSE
    from driftquilt.paper.baselines.naive import CurrentSegment, FullData
    from driftquilt.paper.baselines.sega import SEGA
    from driftquilt.paper.baselines.trees import ARF, HAT

__all__ = [
    "ARF",
    "CVDTE",
    "HAT",
    "SEGA",
    "BestSegments",
    "CurrentSegment",
    "FullData",
    "Glister",
    "GradMatch",
    "LearnNSE",
]

# Looked up at first use: river and scikit-learn take seconds to import.
_HOMES = {
    "ARF": "trees",
    "CVDTE": "cvdte",
    "HAT": "trees",
    "SEGA": "sega",
    "BestSegments": "best_segments",
    "CurrentSegment": "naive",
    "FullData": "naive",
    "Glister": "glister",
    "GradMatch": "grad_match",
    "LearnNSE": "learn_nse",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
