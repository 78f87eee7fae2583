"""QuiltStream: a classifier for a stream that drifts, trained by Algorithm 2.

`QuiltStream` is the stream, `Guard` and `StreamSettings` are how it behaves, `StreamStatus` is how
it stands, `Workers` trains in processes of their own, and `events` has what happens.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from driftquilt.data.labels import Label
    from driftquilt.stream import events
    from driftquilt.stream.events import Event
    from driftquilt.stream.guard import LET_ALL_THROUGH, Guard
    from driftquilt.stream.quilt_stream import QuiltStream
    from driftquilt.stream.settings import StreamSettings
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
    "Event": "events",
    "Guard": "guard",
    "LET_ALL_THROUGH": "guard",
    "Label": "rows",
    "QuiltStream": "quilt_stream",
    "StreamSettings": "settings",
    "StreamStatus": "status",
    "Workers": "workers",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
