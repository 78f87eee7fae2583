"""QuiltStream: a classifier for a stream that drifts, trained by Algorithm 2.

`QuiltStream` is the stream, `Guard` and `StreamSettings` are how it behaves, `StreamStatus` is how
it stands, `Workers` trains in processes of their own, and `events` has what happens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from driftquilt.lazy import lazy_names

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
__getattr__ = lazy_names(
    __name__,
    events="Event",
    quilt_stream="QuiltStream",
    settings="LET_ALL_THROUGH Guard StreamSettings",
    status="Label StreamStatus",
    workers="Workers",
)
