"""QuiltStream: a classifier for a stream that drifts, trained by Algorithm 2.

`QuiltStream` is the stream, `Guard` and `StreamSettings` are how it behaves, `StreamStatus` is how
it stands, `Workers` trains in processes of their own, and `events` has what happens.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from driftquilt.data.frame import Label
    from driftquilt.stream import events
    from driftquilt.stream.events import Event
    from driftquilt.stream.quilt_stream import QuiltStream
    from driftquilt.stream.settings import LET_ALL_THROUGH, Guard, StreamSettings
    from driftquilt.stream.status import StreamStatus
    from driftquilt.stream.workers import Workers

__all__ = [
    "LET_ALL_THROUGH",
    "Event",
    "Guard",
    "Label",
    "QuiltStream",
    "StreamSettings",
    "StreamStatus",
    "Workers",
    "events",
]

# Looked up at first use: scikit-learn and numba take a second to import.
_MODULES = {
    "Event": "driftquilt.stream.events",
    "Guard": "driftquilt.stream.settings",
    "LET_ALL_THROUGH": "driftquilt.stream.settings",
    "Label": "driftquilt.data.frame",
    "QuiltStream": "driftquilt.stream.quilt_stream",
    "StreamSettings": "driftquilt.stream.settings",
    "StreamStatus": "driftquilt.stream.status",
    "Workers": "driftquilt.stream.workers",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
