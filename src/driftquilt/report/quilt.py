"""The quilt: a row of patches per model, a patch per past segment.

A patch is the darker the larger the weight of the segment in the model, or the smaller its
disparity; a segment that is dropped is pale. Beside each row stand the scores of the methods
compared, or a note. One drawing serves notebooks and files (`quilt_svg`), the report and the live
page (`page_quilt`, `stream_quilt`), where it is a grid that a script makes interactive.

>>> from driftquilt.core.training import Rule
>>> from driftquilt.quilt.explanation import Selection
>>> june = Drift(Selection((), (), (), Rule(), "June", 200), {"Quilt": 0.91, "all data": 0.62})
>>> svg = quilt_svg(drift_quilt([june]), title="A quilt")
>>> svg.count('class="patch"'), svg.count('class="mark')
(0, 4)
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from driftquilt.quilt.explanation import SegmentUse, percent, use_word
from driftquilt.report.page import Drift
from driftquilt.report.quilt_layout import (
    ROW_LETTERS,
    Layout,
    Patch,
    Quilt,
    QuiltRow,
    Room,
    lay_out,
)
from driftquilt.report.svg import METHODS, attribute, content, ink_class, number, picture, shorten
from driftquilt.search.base import DISPARITY_RANGE

__all__ = [
    "drift_quilt",
    "page_quilt",
    "quilt_height",
    "quilt_parts",
    "quilt_svg",
    "stream_quilt",
    "weight_cover",
]

_ROOM_FOR_TEXT = 30  # a patch of this size has room for a number
_FULL_MARK = 20  # a row of this height has room for a whole mark
_MARK = 12  # size of a mark, with the space around it
_LINE, _LETTER, _LETTERS = 24, 6.8, 28  # of the legend
_SHAPES = (
    "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z",
    "M0-5.5L5.5 4.5H-5.5z",
    "M-4.5-4.5h9v9h-9z",
    "M0-6L6 0L0 6L-6 0z",
    "M0 5.5L5.5-4.5H-5.5z",
)


def drift_quilt(drifts: Sequence[Drift]) -> Quilt:
    """Return the quilt of the models of a page."""
    rows = tuple(_drift_row(k, drift) for k, drift in enumerate(drifts))
    return Quilt(rows, measure=drifts[0].measure if drifts else "accuracy")


def stream_quilt(
    selections: Sequence[Mapping[str, Any]],
    segments: Sequence[Mapping[str, Any]],
    in_use: int | None,
    room: Room,
) -> str:
    """Draw the quilt of a live stream from the service's selections and segments.

    `in_use` is the version of the model that answers.
    """
    sizes = {one["number"]: (one["n_rows"], one["first_row"]) for one in segments}
    rows = tuple(_selection_row(selection, sizes, in_use) for selection in selections)
    quilt = Quilt(rows, row_title="at row", note_title="model")
    return page_quilt(quilt, room, "The quilt: arrow keys move, Enter explains the selection")


def quilt_svg(quilt: Quilt, title: str) -> str:
    """Draw a quilt as a picture of its own, with its title."""
    layout = lay_out(quilt)
    return picture(quilt_parts(quilt, layout), layout.width, quilt_height(layout), title)


def page_quilt(quilt: Quilt, room: Room, label: str) -> str:
    """Draw a quilt as an interactive part of a page that has the style sheet."""
    layout = lay_out(quilt, room)
    width, height = layout.width, quilt_height(layout)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="dq live" width="{width:g}" '
        f'height="{height:g}" viewBox="0 0 {width:g} {height:g}" role="grid" '
        f'aria-colcount="{len(layout.columns) + 1 + layout.has_notes}" '
        f'aria-label="{attribute(label)}">{"".join(quilt_parts(quilt, layout))}</svg>'
    )


def quilt_height(layout: Layout) -> float:
    """Return the height of the whole drawing."""
    lines = [line for *_, line in _legend_places(layout)]
    legend = bool(layout.columns) + (max(lines) + 1 if lines else 0)
    return layout.bottom + 22 + _LINE * legend


def quilt_parts(quilt: Quilt, layout: Layout) -> Iterator[str]:
    """Yield the elements of the drawing; on a page they are the cells of a grid."""
    yield from _titles(quilt, layout)
    yield from _score_axis(layout, quilt.measure)
    for place, row in enumerate(quilt.rows):
        yield from _row(row, place, layout)
    yield from _legend(layout)


def weight_cover(weight: float) -> float:
    """Return how much of a patch the accent covers; nothing of a dropped segment."""
    return 0.15 + 0.85 * weight if use_word(weight, used=False) != "dropped" else 0.0


def disparity_cover(disparity: float) -> float:
    """Return the same for the disparity: full at 0, nothing from the largest bound on."""
    if math.isnan(disparity):
        return 0.0
    return min(max(1 - disparity / DISPARITY_RANGE[1], 0.0), 1.0)


def _drift_row(row: int, drift: Drift) -> QuiltRow:
    patches = tuple(_use_patch(k, use, drift) for k, use in enumerate(drift.uses))
    label = f"Model for {drift.name}"
    return QuiltRow(row, str(drift.name), label, patches, drift.shown_scores)


def _use_patch(k: int, use: SegmentUse, drift: Drift) -> Patch:
    weight = f", weight {percent(use.weight)}" if use.weight else ""
    scores = f"median disparity {use.disparity.median:.2f}, median gain {use.gain.median:+.2g}"
    tip = (
        str(use.name),
        f"{use.word}, for {drift.name}",
        ("rows", f"{use.n_rows:,}"),
        ("weight", percent(use.weight)),
        ("median disparity", number(use.disparity.median, 3)),
        ("median gain", number(use.gain.median, 4, "+")),
    )
    label = f"{use.name}: {use.word}{weight}, {scores}"
    return Patch(use.name, k, use.weight, use.used, use.disparity.median, label, tip)


def _selection_row(
    selection: Mapping[str, Any], sizes: Mapping[int, tuple[int, int]], in_use: int | None
) -> QuiltRow:
    row, model = f"{selection['row']:,}", selection["model"]
    is_used = model is not None and model == in_use
    tip = (
        f"At row {row}",
        ("current rows", f"{selection['n_current']:,}"),
        ("model", "refused" if model is None else str(model)),
        ("validation loss", number(selection["validation_loss"], 3)),
    )
    patches = tuple(_stream_patch(patch, sizes) for patch in selection["patches"])
    note = "refused" if model is None else f"{model}{' in use' if is_used else ''}"
    label = f"selection at row {row}"
    return QuiltRow(selection["number"], row, label, patches, {}, note, tip, is_used)


def _stream_patch(patch: Mapping[str, Any], sizes: Mapping[int, tuple[int, int]]) -> Patch:
    segment, weight, used = patch["segment"], patch["weight"], patch["used"]
    word = f"{use_word(weight, used=used)}, weight {percent(weight)}"
    size = f"{sizes[segment][0]:,} from {sizes[segment][1]:,}" if segment in sizes else ""
    gain = number(patch["gain"], 4, "+")
    rows = (("rows", size),) if size else ()
    tip: tuple[str | tuple[str, str], ...] = (
        f"Segment {segment}",
        *rows,
        ("weight", percent(weight)),
        ("disparity", number(patch["disparity"], 3)),
        ("gain", gain),
    )
    label = f"segment {segment}: {word}, disparity {number(patch['disparity'], 2)}, gain {gain}"
    disparity = math.nan if patch["disparity"] is None else patch["disparity"]
    return Patch(segment, segment, weight, used, disparity, label, tip)


def _titles(quilt: Quilt, layout: Layout) -> Iterator[str]:
    """Yield the first row of the grid: what rows and columns are."""
    yield '<g role="row">' if layout.room else "<g>"
    yield _title(quilt.row_title, 20, layout, column=1)
    if layout.columns:
        yield _title("past segments", layout.left, layout)
    lean, y = (3 if layout.tilted else 0), layout.top - 8
    for name, k in layout.columns.items():
        x = layout.left + layout.cell * k + (layout.cell - layout.gap) / 2 + lean
        turn = f' transform="rotate(-45 {x:g} {y:g})"' if layout.tilted else ""
        text = "" if k % layout.column_step else content(layout.labels[name])
        if not text and not layout.room:
            continue
        cell = f' role="columnheader" aria-colindex="{k + 2}"' if layout.room else ""
        yield (
            f'<text class="small{"" if lean else " middle"}" x="{x:g}" y="{y:g}"{turn}{cell}>'
            f"{text}<title>{content(name)}</title></text>"
        )
    if layout.has_notes:
        yield _title(quilt.note_title, layout.beside, layout, column=len(layout.columns) + 2)
    yield "</g>"


def _title(words: str, x: float, layout: Layout, column: int | None = None) -> str:
    cell = f' role="columnheader" aria-colindex="{column}"' if column and layout.room else ""
    return f'<text class="small faint" x="{x:g}" y="{layout.titles:g}"{cell}>{words}</text>'


def _score_axis(layout: Layout, measure: str) -> Iterator[str]:
    if not layout.methods:
        return
    yield _title(content(measure), layout.beside, layout)
    for tick in layout.score_ticks:
        x = f"{layout.score_x(tick):.1f}"
        yield f'<line class="grid" x1="{x}" x2="{x}" y1="{layout.top:g}" y2="{layout.bottom:g}"/>'
        yield (
            f'<text class="small faint middle num" x="{x}" y="{layout.top - 8:g}">{tick:g}</text>'
        )


def _row(row: QuiltRow, place: int, layout: Layout) -> Iterator[str]:
    top = layout.top + layout.cell * place
    middle = top + layout.cell / 2
    has_room = place % layout.row_step == 0
    if layout.room:
        yield f'<g class="row{" used" if row.in_use else ""}" role="row" data-row="{row.number}">'
        yield (
            f'<rect class="band" x="8" y="{top:g}" width="{layout.width - 16:g}" '
            f'height="{layout.cell}" rx="6"/>'
        )
    else:
        yield "<g>"
    if has_room or layout.room:  # on a page also without room, for those who come by keyboard
        yield _row_text("name", 20, middle, row.name, row, layout, 1, has_room=has_room)
    for patch in row.patches:
        left = layout.left + layout.cell * layout.columns[patch.column]
        yield from _patch(patch, left, top + layout.gap / 2, layout)
    yield from _scores(row, middle, layout)
    if layout.has_notes and (has_room or layout.room):
        column = len(layout.columns) + 2
        yield _row_text(
            "model small", layout.beside, middle, row.note, row, layout, column, has_room=has_room
        )
    yield "</g>"


def _row_text(
    kind: str, x: float, middle: float, text: str, row: QuiltRow, layout: Layout, column: int,
    *, has_room: bool,
) -> str:  # fmt: skip
    cell, title = "", f"<title>{content(text)}</title>"
    if layout.room:
        role = "rowheader" if column == 1 else "gridcell"
        label = row.label if column == 1 else f"model {text}"
        cell, title = _cell(role, column, label, row.tip), ""
    return (
        f'<text class="{kind}{"" if has_room else " tight"}" x="{x:g}" y="{middle + 4:g}"{cell}>'
        f"{content(shorten(text, ROW_LETTERS))}{title}</text>"
    )


def _cell(role: str, column: int, label: str, tip: Sequence[str | tuple[str, str]]) -> str:
    """Return the attributes of a cell; its tip has line feeds between lines, tabs before values."""
    lines = (
        attribute(line) if isinstance(line, str) else "&#9;".join(map(attribute, line))
        for line in tip
    )
    data = f' data-tip="{"&#10;".join(lines)}"' if tip else ""
    return (
        f' role="{role}" tabindex="-1" aria-colindex="{column}" aria-label="{attribute(label)}"'
        f"{data}"
    )


def _patch(patch: Patch, x: float, y: float, layout: Layout) -> Iterator[str]:
    size, column = layout.cell - layout.gap, layout.columns[patch.column] + 2
    box = f'x="{x:g}" y="{y:g}" width="{size:g}" height="{size:g}" rx="{min(5, size / 5):g}"'
    weight, near = weight_cover(patch.weight), disparity_cover(patch.disparity)
    cell = ""
    if layout.room:
        cell = f' data-segment="{patch.number}"{_cell("gridcell", column, patch.label, patch.tip)}'
    yield f'<g class="patch{"" if patch.used else " out"}"{cell}><rect class="under" {box}/>'
    yield f'<rect class="cover by-weight" {box} fill-opacity="{weight:.2f}"/>'
    if layout.room:
        yield f'<rect class="cover by-disparity" {box} fill-opacity="{near:.2f}"/>'
    if size >= _ROOM_FOR_TEXT:
        yield from _patch_text(patch, x, y, size, layout)
    yield "</g>" if layout.room else f"<title>{content(patch.label)}</title></g>"


def _patch_text(patch: Patch, x: float, y: float, size: float, layout: Layout) -> Iterator[str]:
    place = f'x="{x + size / 2:g}" y="{y + size / 2 + 4:g}"'
    if patch.used:
        box = f'x="{x + 2.5:g}" y="{y + 2.5:g}" width="{size - 5:g}" height="{size - 5:g}" rx="3"'
        yield f'<rect class="stitch" {box} stroke-opacity=".55"/>'
    if cover := weight_cover(patch.weight):
        ink = ink_class(cover)
        yield f'<text class="small middle num by-weight {ink}" {place}>'
        yield f"{content(percent(patch.weight))}</text>"
    if layout.room:
        ink = ink_class(disparity_cover(patch.disparity))
        yield f'<text class="small middle num by-disparity {ink}" {place}>'
        yield f"{number(patch.disparity, 2)}</text>"


def _scores(row: QuiltRow, middle: float, layout: Layout) -> Iterator[str]:
    values = {
        name: value
        for name, value in row.scores.items()
        if name in layout.methods and not math.isnan(value)
    }
    if not values:
        return
    places = {name: layout.score_x(value) for name, value in values.items()}
    yield (
        f'<line class="span" x1="{min(places.values()):.1f}" x2="{max(places.values()):.1f}" '
        f'y1="{middle:g}" y2="{middle:g}"/>'
    )
    heights = _spread(places, layout.cell)
    # Ours comes first and is drawn last, so that no other hides it.
    for k, name in reversed(list(enumerate(layout.methods))):
        if name in values:
            title = f"{name}: {values[name]:.3f}"
            yield _mark(k, places[name], middle + heights[name], layout.cell, title)


def _spread(places: Mapping[str, float], cell: float) -> dict[str, float]:
    """Return how far each mark is moved down, so that none hides another at the same place.

    Marks at one place stand in the order of the methods.

    >>> _spread({"Quilt": 303.0, "all data": 120.0, "current only": 300.0}, 40)
    {'all data': 0.0, 'Quilt': -6.0, 'current only': 6.0}
    """
    order = list(places)
    groups: list[list[str]] = []
    for name in sorted(places, key=lambda name: places[name]):
        if groups and places[name] - places[groups[-1][-1]] < _MARK:
            groups[-1].append(name)
        else:
            groups.append([name])
    moved: dict[str, float] = {}
    for group in groups:
        step = min(_MARK, cell / len(group))
        first = -step * (len(group) - 1) / 2
        in_order = sorted(group, key=order.index)
        moved |= {name: first + step * k for k, name in enumerate(in_order)}
    return moved


def _mark(method: int, x: float, y: float, cell: float, title: str) -> str:
    """Return the mark of a method; colours and shapes repeat after 30 methods."""
    size = f" scale({cell / _FULL_MARK:.2f})" if cell < _FULL_MARK else ""
    return (
        f'<path class="mark m{method % len(METHODS)}" transform="translate({x:.1f} {y:g}){size}" '
        f'd="{_SHAPES[method % len(_SHAPES)]}"><title>{content(title)}</title></path>'
    )


def _legend(layout: Layout) -> Iterator[str]:
    """Yield what the colours of patches mean, then what marks mean."""
    top = layout.bottom + 26
    if layout.columns:
        yield from _ramp(top, "by-weight", "dropped", "low weight", "full")
        if layout.room:
            yield from _ramp(top, "by-disparity", "", "disparity 2 or more", "0; dashed: not used")
        top += _LINE
    for method, name, x, line in _legend_places(layout):
        y = top + _LINE * line
        yield _mark(method, x + 6, y, _FULL_MARK, name)
        yield (
            f'<text class="small" x="{x + 18:g}" y="{y + 4:g}">{content(shorten(name, _LETTERS))}'
            f"<title>{content(name)}</title></text>"
        )


def _legend_places(layout: Layout) -> Iterator[tuple[int, str, float, int]]:
    """Yield number, name, place and line of each method, from left to right as they fit."""
    x, line = 20.0, 0
    for method, name in enumerate(layout.methods):
        width = 36 + len(shorten(name, _LETTERS)) * _LETTER
        if x + width > layout.width and x > 20:  # noqa: PLR2004  # where a line begins
            x, line = 20.0, line + 1
        yield method, name, x, line
        x += width


def _ramp(y: float, kind: str, none: str, low: str, high: str) -> Iterator[str]:
    x = 20.0
    yield f'<g class="{kind}">'
    if none:
        yield _sample(x, y, 0.0) + _word(x + 18, y, none)
        x += 18 + len(none) * _LETTER + 10
    yield _word(x, y, low)
    x += len(low) * _LETTER * 0.94 + 4
    for step in range(5):
        yield _sample(x, y, (step + 0.6) / 5 if kind == "by-weight" else step / 4)
        x += 15
    yield _word(x + 3, y, high) + "</g>"


def _sample(x: float, y: float, cover: float) -> str:
    box = f'x="{x:g}" y="{y - 6:g}" width="12" height="12" rx="2.5"'
    return f'<rect class="under" {box}/><rect class="cover" {box} fill-opacity="{cover:.2f}"/>'


def _word(x: float, y: float, word: str) -> str:
    return f'<text class="small faint" x="{x:g}" y="{y + 4:g}">{word}</text>'
