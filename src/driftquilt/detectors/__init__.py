"""When did the stream change? One contract, and detectors that watch errors or rows."""

from __future__ import annotations

from driftquilt.detectors.base import Detector, RecordedDetector
from driftquilt.detectors.dawidd import DAWIDD
from driftquilt.detectors.foreign import Foreign, RiverDetector
from driftquilt.detectors.hdddm import HDDDM
from driftquilt.detectors.named import (
    BY_NAME,
    DETECTORS,
    NEED_SETTINGS,
    EveryRows,
    KnownDrifts,
    Never,
    make_detector,
)

__all__ = [
    "BY_NAME",
    "DAWIDD",
    "DETECTORS",
    "HDDDM",
    "NEED_SETTINGS",
    "Detector",
    "EveryRows",
    "Foreign",
    "KnownDrifts",
    "Never",
    "RecordedDetector",
    "RiverDetector",
    "make_detector",
]
