"""From whatever the caller has to arrays: frames, files of any size, labels, one encoder.

Read the modules in this order: `calendar` (dates), `columns` (one column), `matching` (which
columns belong together), `frame` (rows in memory), `arrow` (rows in mapped files), `encoder` and
its `kernels`, `labels` (labels, segment ids, weights), `rows` (all of that for one fit). Files come
before all that: `paths`, `source` (bytes), `csv_files`, `json_lines`,
`column_types`, `files` (one mapped table of them all) and `mapped_memory`.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "ArrowFrame": "arrow",
    "Data": "files",
    "Encoder": "encoder",
    "Frame": "frame",
    "Label": "labels",
    "Row": "frame",
    "Rows": "rows",
    "TextFormat": "source",
    "find_files": "paths",
    "open_data": "files",
    "read_frame": "frame",
    "read_in_place": "arrow",
    "read_labels": "labels",
    "read_row": "frame",
    "read_segments": "labels",
    "read_weights": "labels",
    "write_table": "files",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    """Import a public name when it is first asked for."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
