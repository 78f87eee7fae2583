"""The quilt: one row of patches per model, one patch per past segment.

A patch is the darker the larger the share of epochs that used the segment; a dropped segment
is pale. Beside each row stand the accuracies of the methods compared. The picture is one SVG
with no outside reference; it follows the reader's light or dark mode, and each patch says what
it means when pointed at.

>>> from driftquilt.core.selection import Rule
>>> from driftquilt.quilt.explanation import Selection
>>> june = Drift(Selection((), (), (), Rule(), "June", 200), {"Quilt": 0.91, "all data": 0.62})
>>> svg = quilt_svg([june], title="A quilt")
>>> svg.count('class="patch"'), svg.count('class="mark')
(0, 4)
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from driftquilt.quilt.explanation import SegmentUse, percent
from driftquilt.report.letters import attribute, inner, short
from driftquilt.report.marks import legend_height, legend_parts, mark
from driftquilt.report.page import Drift
from driftquilt.report.palette import ink_class, picture_style
from driftquilt.report.quilt_layout import MOST_LETTERS, MOST_ROW_LETTERS, Layout, lay_out
from driftquilt.search.base import DISPARITY_RANGE

__all__ = ["disparity_cover", "quilt_parts", "quilt_svg", "share_cover", "svg_of", "told"]

_ROOM_FOR_TEXT = 30  # a patch of this size holds a number


def quilt_svg(drifts: Sequence[Drift], title: str) -> str:
    """The picture as SVG text."""
    layout = lay_out(drifts)
    head = f'<text class="head" x="20" y="28">{inner(short(title, int(layout.width / 9)))}</text>'
    parts = [head, *quilt_parts(drifts, layout)]
    return svg_of(parts, layout.width, layout.bottom + 22 + legend_height(layout), title)


def svg_of(
    parts: Sequence[str], width: float, height: float, title: str, *, style: bool = True
) -> str:
    """A picture of its own: parts with the style sheet, which a page may have already."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="dq" width="{width:g}" '
            f'height="{height:g}" viewBox="0 0 {width:g} {height:g}" role="img" '
            f'aria-label="{attribute(title)}">',
            f"<style>{picture_style()}</style>" if style else "",
            *parts,
            "</svg>",
        ]
    )


def quilt_parts(drifts: Sequence[Drift], layout: Layout, *, live: bool = False) -> list[str]:
    """The elements of the picture; `live` ones are buttons, to be moved by a script."""
    parts = [*_column_heads(layout), *_axis(layout)]
    for number, drift in enumerate(drifts):
        parts += _row(drift, number, layout, live=live)
    return parts + legend_parts(layout, live=live)


def share_cover(use: SegmentUse) -> float:
    """How much of a patch the accent covers; a segment that was kept is never without."""
    return 0.15 + 0.85 * use.share if use.kept else 0.0


def disparity_cover(use: SegmentUse) -> float:
    """The same for the disparity: full at none, nothing from the largest bound on."""
    value = use.disparity.median
    return 0.0 if math.isnan(value) else min(max(1 - value / DISPARITY_RANGE[1], 0.0), 1.0)


def told(use: SegmentUse) -> str:
    """What a patch means."""
    if not use.share:
        return f"{use.name}: dropped"
    return f"{use.name}: {use.word}, used in {percent(use.share)} of epochs"


def _column_heads(layout: Layout) -> list[str]:
    parts = [_caption("model", 20, layout)]
    if layout.columns:
        parts.append(_caption("past segments", layout.left, layout))
    lean, y = (3 if layout.tilted else 0), layout.top - 8
    for name, k in layout.columns.items():
        if k % layout.column_step:
            continue
        x = layout.left + layout.cell * k + (layout.cell - layout.gap) / 2 + lean
        turn = f' transform="rotate(-45 {x:g} {y:g})"' if layout.tilted else ""
        parts.append(
            f'<text class="small{"" if lean else " middle"}" x="{x:g}" y="{y:g}"{turn}>'
            f"{inner(short(name, MOST_LETTERS))}<title>{inner(name)}</title></text>"
        )
    return parts


def _axis(layout: Layout) -> list[str]:
    if not layout.methods:
        return []
    parts = [_caption("accuracy", layout.plot_left, layout)]
    for tick in layout.accuracy_ticks:
        x = layout.accuracy_x(tick)
        parts += [
            f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{layout.top:g}" '
            f'y2="{layout.bottom:g}"/>',
            f'<text class="small faint middle num" x="{x:.1f}" y="{layout.top - 8:g}">'
            f"{tick:g}</text>",
        ]
    return parts


def _caption(words: str, x: float, layout: Layout) -> str:
    return f'<text class="small faint" x="{x:g}" y="{layout.heads:g}">{words}</text>'


def _row(drift: Drift, number: int, layout: Layout, *, live: bool) -> list[str]:
    top = layout.top + layout.cell * number
    middle = top + layout.cell / 2
    band = (
        f'<rect class="band" x="8" y="{top:g}" width="{layout.width - 16:g}" '
        f'height="{layout.cell}" rx="6"/>'
    )
    parts = [f'<g class="row" data-drift="{number}">{band}' if live else "<g>"]
    parts += _name(drift, middle, live=live, shown=number % layout.row_step == 0)
    for segment, use in enumerate(drift.uses):
        left = layout.left + layout.cell * layout.columns[use.name]
        parts += _patch(use, left, top + layout.gap / 2, layout, data=segment if live else None)
    return [*parts, *_accuracies(drift, middle, layout), "</g>"]


def _name(drift: Drift, middle: float, *, live: bool, shown: bool) -> list[str]:
    """The label; a live one is there even without room, for those who come by keyboard."""
    if not shown and not live:
        return []
    button = (
        f' role="button" tabindex="-1" aria-label="{attribute(f"Model for {drift.name}")}"'
        if live
        else ""
    )
    words = inner(short(drift.name, MOST_ROW_LETTERS))
    return [
        f'<text class="name{"" if shown else " tight"}" x="20" y="{middle + 4:g}"{button}>{words}'
        f"{'' if live else f'<title>{inner(drift.name)}</title>'}</text>"
    ]


def _patch(use: SegmentUse, x: float, y: float, layout: Layout, *, data: int | None) -> list[str]:
    """One patch; with `data`, its place among the drift's segments, it is a button."""
    cover, far = share_cover(use), disparity_cover(use)
    size, live = layout.cell - layout.gap, data is not None
    box = f'x="{x:g}" y="{y:g}" width="{size:g}" height="{size:g}" rx="{min(5, size / 5):g}"'
    kind = "patch" if use.kept else "patch out"
    scores = f"median disparity {use.disparity.median:.2f}, median gain {use.gain.median:+.2g}"
    numbers = f"{told(use)}, {scores}"
    button = (
        f' role="button" tabindex="-1" data-segment="{data}" style="--far:{far:.2f}" '
        f'aria-label="{attribute(numbers)}"'
        if live
        else ""
    )
    parts = [
        f'<g class="{kind}"{button}><rect class="under" {box}/>'
        f'<rect class="cover" {box} fill-opacity="{cover:.2f}"/>'
    ]
    if size >= _ROOM_FOR_TEXT:
        middle = f'x="{x + size / 2:g}" y="{y + size / 2 + 4:g}"'
        parts += _stitch(use, x, y, size) + _numbers(use, middle, live=live)
    return [*parts, "</g>" if live else f"<title>{inner(numbers)}</title></g>"]


def _stitch(use: SegmentUse, x: float, y: float, size: float) -> list[str]:
    if not use.kept:
        return []
    box = f'x="{x + 2.5:g}" y="{y + 2.5:g}" width="{size - 5:g}" height="{size - 5:g}" rx="3"'
    return [f'<rect class="stitch" {box} stroke-opacity=".55"/>']


def _numbers(use: SegmentUse, place: str, *, live: bool) -> list[str]:
    ink = ink_class(share_cover(use))
    words = percent(use.share) if use.kept else ""
    parts = [f'<text class="small middle num by-share {ink}" {place}>{inner(words)}</text>']
    if live:
        ink = ink_class(disparity_cover(use))
        parts.append(
            f'<text class="small middle num by-far {ink}" {place}>{use.disparity.median:.2f}</text>'
        )
    return parts


def _accuracies(drift: Drift, middle: float, layout: Layout) -> list[str]:
    known = {name: value for name, value in drift.accuracies.items() if not math.isnan(value)}
    if not known:
        return []
    places = {name: layout.accuracy_x(value) for name, value in known.items()}
    parts = [
        f'<line class="span" x1="{min(places.values()):.1f}" x2="{max(places.values()):.1f}" '
        f'y1="{middle:g}" y2="{middle:g}"/>'
    ]
    # Ours comes first and is drawn last, so that no other hides it.
    for number, name in reversed(list(enumerate(layout.methods))):
        if name in known:
            words = f"{name}: {known[name]:.3f}"
            parts.append(mark(number, places[name], middle, layout.cell, words))
    return parts
