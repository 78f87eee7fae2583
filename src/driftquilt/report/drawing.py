"""Drawings for notebooks and files: they display themselves, and save as SVG or PNG.

>>> from driftquilt.core.training import Rule
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
from driftquilt.files import atomic_write
from driftquilt.quilt.explanation import Selection
from driftquilt.report.page import Drift
from driftquilt.report.quilt import drift_quilt, quilt_height, quilt_parts, quilt_svg
from driftquilt.report.quilt_layout import lay_out
from driftquilt.report.score_panels import PANEL_HEIGHT, panel_parts, score_panels
from driftquilt.report.svg import picture

__all__ = ["Drawing", "draw_selection", "draw_selections"]

_WIDTH = 860  # of two panels side by side
_ZOOM = 2  # pixels of a PNG


@dataclass(frozen=True)
class Drawing:
    """A drawing that a notebook displays by itself."""

    svg: str

    def _repr_svg_(self) -> str:
        return self.svg

    def __repr__(self) -> str:
        return "<Drawing: a notebook shows it; .save('quilt.svg') or .save('quilt.png') keeps it>"

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the drawing as .svg or .png, by the end of the name, and return its path."""
        target = Path(path)
        kind = target.suffix.lower()
        if kind not in (".svg", ".png"):
            raise InputError(f"a drawing is saved as .svg or .png, but got {str(path)!r}")
        image = self.svg.encode() if kind == ".svg" else self.to_png()
        with atomic_write(target) as file:
            file.write(image)
        return target

    def to_png(self) -> bytes:
        """Return the drawing in light colours as PNG, with twice as many pixels each way."""
        try:
            import resvg_py  # noqa: PLC0415
        except ImportError as error:
            raise MissingExtraError("resvg-py", extra="report") from error
        return bytes(resvg_py.svg_to_bytes(svg_string=self.svg, zoom=_ZOOM))


def draw_selections(selections: Mapping[str, Selection]) -> Drawing:
    """Draw the quilt: a row for each selection, under its name."""
    drifts = [Drift(replace(selection, current=name)) for name, selection in selections.items()]
    title = "Which past segments each model was trained on"
    return Drawing(quilt_svg(drift_quilt(drifts), title))


def draw_selection(selection: Selection) -> Drawing:
    """Draw one row of the quilt, and below it the scores of every past segment by epoch."""
    title = f"Trained for {selection.current}"
    quilt = drift_quilt([Drift(selection)])
    layout = lay_out(quilt)
    panels = score_panels(selection)
    width = max(layout.width, _WIDTH if panels else 0)
    height = quilt_height(layout)
    parts = list(quilt_parts(quilt, layout))
    for number, panel in enumerate(panels):
        half = width / len(panels)
        parts += panel_parts(panel, 20 + number * half, height, half - 20)
    return Drawing(picture(parts, width, height + (PANEL_HEIGHT if panels else 0), title))
