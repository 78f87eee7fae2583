"""Pictures for notebooks and files: they show themselves, and save as SVG or PNG.

>>> from driftquilt.core.selection import Rule
>>> june = Selection((), (), (), Rule(), "June", 200)
>>> draw_selection(june).svg.startswith("<svg ")
True
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from driftquilt.errors import InputError, MissingExtraError
from driftquilt.quilt.explanation import Selection
from driftquilt.report.figures import quilt_parts, quilt_svg, svg_of
from driftquilt.report.letters import inner, short
from driftquilt.report.marks import legend_height
from driftquilt.report.page import Drift
from driftquilt.report.quilt_layout import lay_out
from driftquilt.report.score_panels import PANEL_HEIGHT, panel_parts, panels
from driftquilt.report.whole_file import write_whole

__all__ = ["Drawing", "draw_selection", "draw_selections"]

_WIDTH = 860  # of two panels side by side


@dataclass(frozen=True)
class Drawing:
    """A picture that a notebook shows by itself."""

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return "<Drawing: a notebook shows it; .save('quilt.svg') or .save('quilt.png') keeps it>"

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the picture as its name ends, .svg or .png, and return where it is."""
        target = Path(path)
        kind = target.suffix.lower()
        if kind not in (".svg", ".png"):
            raise InputError(f"a picture is saved as .svg or .png, but got {str(path)!r}")
        write_whole(target, self.svg.encode() if kind == ".svg" else self.to_png())
        return target

    def to_png(self, zoom: float = 2.0) -> bytes:
        """The picture by day as PNG, so many pixels for each of its own."""
        try:
            import resvg_py  # noqa: PLC0415
        except ImportError as error:
            raise MissingExtraError("resvg-py", extra="report") from error
        return bytes(resvg_py.svg_to_bytes(svg_string=self.svg, zoom=zoom))


def draw_selections(selections: Mapping[str, Selection]) -> Drawing:
    """The quilt: a row for each selection, under its name."""
    drifts = [Drift(replace(selection, current=name)) for name, selection in selections.items()]
    return Drawing(quilt_svg(drifts, "Which past segments each model was trained on"))


def draw_selection(selection: Selection) -> Drawing:
    """One row of the quilt, and beneath it the scores of every past segment by epoch."""
    title = f"Trained for {selection.current}"
    drifts = [Drift(selection)]
    layout, charts = lay_out(drifts), panels(selection)
    width = max(layout.width, _WIDTH if charts else 0)
    height = layout.bottom + 22 + legend_height(layout)
    parts = [f'<text class="head" x="20" y="28">{inner(short(title, int(width / 9)))}</text>']
    parts += quilt_parts(drifts, layout)
    for number, chart in enumerate(charts):
        half = width / len(charts)
        parts += panel_parts(chart, 20 + number * half, height, half - 20)
    return Drawing(svg_of(parts, width, height + (PANEL_HEIGHT if charts else 0), title))
