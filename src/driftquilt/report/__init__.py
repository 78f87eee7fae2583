"""Reports and drawings: values first, drawing after.

Page, Drift, AccuracyLines, ColumnNote     what a report shows, as values
page_of_decision, page_of_replay           pages of `decision`'s results
write_report, render                       a page as one HTML file
Drawing, draw_selection, draw_selections   pictures for notebooks and files

The quilt is drawn in `quilt`, every line chart in `lines`; the report, notebooks and the live page
of the service use the same drawings.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from driftquilt.report.drawing import Drawing, draw_selection, draw_selections
    from driftquilt.report.html import render, write_report
    from driftquilt.report.page import (
        AccuracyLines,
        ColumnNote,
        Drift,
        Page,
        page_of_decision,
        page_of_replay,
    )

__all__ = [
    "AccuracyLines",
    "ColumnNote",
    "Drawing",
    "Drift",
    "Page",
    "draw_selection",
    "draw_selections",
    "page_of_decision",
    "page_of_replay",
    "render",
    "write_report",
]

# Looked up at first use: the command line needs `svg.clean` alone.
_MODULES = {
    "AccuracyLines": "page",
    "ColumnNote": "page",
    "Drawing": "drawing",
    "Drift": "page",
    "Page": "page",
    "draw_selection": "drawing",
    "draw_selections": "drawing",
    "page_of_decision": "page",
    "page_of_replay": "page",
    "render": "html",
    "write_report": "html",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
