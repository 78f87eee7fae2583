"""The marks of methods, and the legend that says what marks and patches mean.

>>> mark(0, 10, 20, cell=40, title="Quilt: 0.910")
'<path class="mark m0" transform="translate(10.0 20)" d="M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z"><title>Quilt: 0.910</title></path>'
"""  # noqa: E501

from __future__ import annotations

from collections.abc import Iterator

from driftquilt.report.letters import inner, short
from driftquilt.report.palette import METHODS
from driftquilt.report.quilt_layout import Layout

__all__ = ["legend_height", "legend_parts", "mark"]

_SHAPES = (
    "M-5 0a5 5 0 1 0 10 0a5 5 0 1 0-10 0z",
    "M0-5.5L5.5 4.5H-5.5z",
    "M-4.5-4.5h9v9h-9z",
    "M0-6L6 0L0 6L-6 0z",
    "M0 5.5L5.5-4.5H-5.5z",
)
_LINE, _LETTER, _LETTERS = 24, 6.8, 28
_FULL_SIZE = 20  # the height of a row that has room for a whole mark


def mark(number: int, x: float, y: float, cell: float, title: str) -> str:
    """The mark of a method; the colours and the shapes come round after 30 methods."""
    size = f" scale({cell / _FULL_SIZE:.2f})" if cell < _FULL_SIZE else ""
    return (
        f'<path class="mark m{number % len(METHODS)}" transform="translate({x:.1f} {y:g}){size}" '
        f'd="{_SHAPES[number % len(_SHAPES)]}"><title>{inner(title)}</title></path>'
    )


def legend_height(layout: Layout) -> float:
    """Of the lines below the patches."""
    lines = [line for *_, line in _places(layout)]
    return _LINE * (bool(layout.columns) + (max(lines) + 1 if lines else 0))


def legend_parts(layout: Layout, *, live: bool = False) -> list[str]:
    """What patches mean, then what marks mean; `live` has a second meaning of patches."""
    top, parts = layout.bottom + 26, []
    if layout.columns:
        parts += _ramp(top, "by-share", "dropped", "used in few", "all epochs")
        if live:
            parts += _ramp(top, "by-far", "", "disparity 2 or more", "0: as today")
        top += _LINE
    for number, name, x, line in _places(layout):
        y = top + _LINE * line
        parts += [
            mark(number, x + 6, y, _FULL_SIZE, name),
            f'<text class="small" x="{x + 18:g}" y="{y + 4:g}">{inner(short(name, _LETTERS))}'
            f"<title>{inner(name)}</title></text>",
        ]
    return parts


def _places(layout: Layout) -> Iterator[tuple[int, str, float, int]]:
    """Number, name, place and line of each method, from left to right as they fit."""
    x, line = 20.0, 0
    for number, name in enumerate(layout.methods):
        width = 36 + len(short(name, _LETTERS)) * _LETTER
        if x + width > layout.width and x > 20:  # noqa: PLR2004  # where a line begins
            x, line = 20.0, line + 1
        yield number, name, x, line
        x += width


def _ramp(y: float, kind: str, none: str, low: str, high: str) -> list[str]:
    x, parts = 20.0, [f'<g class="{kind}">']
    if none:
        parts.append(_sample(x, y, 0.0) + _word(x + 18, y, none))
        x += 18 + len(none) * _LETTER + 10
    parts.append(_word(x, y, low))
    x += len(low) * _LETTER * 0.94 + 4
    for step in range(5):
        parts.append(_sample(x, y, (step + 0.6) / 5 if kind == "by-share" else step / 4))
        x += 15
    return [*parts, _word(x + 3, y, high), "</g>"]


def _sample(x: float, y: float, cover: float) -> str:
    box = f'x="{x:g}" y="{y - 6:g}" width="12" height="12" rx="2.5"'
    return f'<rect class="under" {box}/><rect class="cover" {box} fill-opacity="{cover:.2f}"/>'


def _word(x: float, y: float, word: str) -> str:
    return f'<text class="small faint" x="{x:g}" y="{y + 4:g}">{word}</text>'
