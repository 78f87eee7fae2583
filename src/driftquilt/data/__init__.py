"""From whatever the caller has to arrays: frames, files of any size, labels, one encoder.

Read the modules in this order: `calendar` (dates), `columns` (one column), `matching` (which
columns belong together), `frame` (rows in memory), `arrow` (rows in mapped files), `encoder` and
its `kernels`, `labels` (labels, segment ids, weights), `rows` (all of that for one fit).
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "ArrowFrame": "arrow",
    "Encoder": "encoder",
    "Frame": "frame",
    "Label": "labels",
    "Row": "frame",
    "Rows": "rows",
    "read_frame": "frame",
    "read_in_place": "arrow",
    "read_labels": "labels",
    "read_row": "frame",
    "read_segments": "labels",
    "read_weights": "labels",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
