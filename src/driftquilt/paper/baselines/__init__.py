"""What the paper compares Quilt with, one algorithm per file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from driftquilt.lazy import lazy_names

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

# river and scikit-learn take seconds to import.
__getattr__ = lazy_names(
    __name__,
    best_segments="BestSegments",
    cvdte="CVDTE",
    glister="Glister",
    grad_match="GradMatch",
    learn_nse="LearnNSE",
    naive="CurrentSegment FullData",
    sega="SEGA",
    trees="ARF HAT",
)
