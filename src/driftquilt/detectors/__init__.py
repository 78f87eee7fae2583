"""When did the stream change? One contract, and detectors that watch errors or rows."""

from __future__ import annotations

from driftquilt.detectors.base import Detector, Never
from driftquilt.detectors.dawidd import DAWIDD
from driftquilt.detectors.foreign import Foreign
from driftquilt.detectors.from_river import RiverDetector
from driftquilt.detectors.hdddm import HDDDM
from driftquilt.detectors.known import EveryRows, KnownDrifts
from driftquilt.detectors.named import make_detector

__all__ = [
    "DAWIDD",
    "HDDDM",
    "Detector",
    "EveryRows",
    "Foreign",
    "KnownDrifts",
    "Never",
    "RiverDetector",
    "make_detector",
]
