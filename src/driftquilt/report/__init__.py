"""Reports and drawings: values first, drawing after.

Page, Drift, AccuracyLines, ColumnNote     what a report shows, as values
page_of_decision, page_of_replay           pages of `decision`'s results
write_report, render                       a page as one HTML file
Drawing, draw_selection, draw_selections   pictures for notebooks and files

The quilt is drawn in `quilt`, every line chart in `lines`; the report, notebooks and the live page
of the service use the same drawings.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from driftquilt.lazy import lazy_names

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

# The command line needs `svg.clean` alone.
__getattr__ = lazy_names(
    __name__,
    drawing="Drawing draw_selection draw_selections",
    html="render write_report",
    page="AccuracyLines ColumnNote Drift Page page_of_decision page_of_replay",
)
