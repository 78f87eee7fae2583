"""The quilt: one row of patches per current segment, one patch per past segment.

A patch is the darker the larger the share of epochs that used the segment; a dropped segment
is an empty outline. Beside each row stand the accuracies of the methods compared. The picture
is one SVG with no outside reference; it follows the reader's light or dark mode, and each
patch says what it means when pointed at.

>>> row = QuiltRow("June", {"April": 0.0, "May": 0.9}, {"Quilt": 0.91, "all data": 0.62})
>>> svg = quilt_svg([row], title="A quilt")
>>> svg.count('class="patch"'), svg.count('class="mark m0"')
(2, 2)
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from xml.sax.saxutils import escape

from driftquilt.methods.explanation import percent
from driftquilt.report.quilt_rows import QuiltRow

__all__ = ["quilt_svg"]

_CELL, _LEFT, _TOP, _GAP, _PLOT = 40, 110, 70, 40, 260
_SHAPES = ("●", "▲", "■", "◆")

_STYLE = """
svg{background:#fff;font:13px system-ui,sans-serif} text{fill:#222} .faint{fill:#666;font-size:11px}
.patch{fill:#0b6e6e;stroke:#9aa} .grid{stroke:#ddd} .m0{fill:#0b6e6e} .m1{fill:#c2571a}
.m2{fill:#5b5bd6} .m3{fill:#777} .middle,.used{text-anchor:middle}
.used{font-size:11px;pointer-events:none}
.mark{text-anchor:middle;dominant-baseline:central}
@media (prefers-color-scheme:dark){svg{background:#16191c} text{fill:#e8e8e8}
.faint{fill:#aaa} .patch{fill:#3cc7c0;stroke:#566} .grid{stroke:#333} .m0{fill:#3cc7c0}
.m1{fill:#f2945c} .m2{fill:#a5a5ff} .m3{fill:#aaa}}
"""


def quilt_svg(rows: Sequence[QuiltRow], title: str) -> str:
    """The picture as SVG text."""
    names = list(dict.fromkeys(name for row in rows for name in row.shares))
    methods = list(dict.fromkeys(method for row in rows for method in row.accuracies))
    plot_left = _LEFT + _CELL * len(names) + _GAP
    width, height = plot_left + _PLOT + 30, _TOP + _CELL * len(rows) + 60
    worst = min((value for row in rows for value in row.accuracies.values()), default=0.0)
    low = min(0.9, int(worst * 10) / 10)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" aria-label="{_attribute(title)}">',
        f"<style>{_STYLE}</style>",
        f'<text x="20" y="26" font-size="16">{escape(title)}</text>',
        *_column_heads(names),
        *_axis(plot_left, low, len(rows)),
    ]
    for number, row in enumerate(rows):
        top = _TOP + _CELL * number
        parts += _patches(row, names, top) + _marks(row, methods, plot_left, low, top)
    parts += _legend(methods, plot_left, height)
    return "\n".join([*parts, "</svg>"])


def _column_heads(names: Sequence[Hashable]) -> list[str]:
    return [
        '<text class="faint" x="20" y="48">current</text>',
        f'<text class="faint" x="{_LEFT}" y="48">past segments (darker: used more)</text>',
        *(
            f'<text class="faint middle" x="{_LEFT + _CELL * k + 17}" y="{_TOP - 6}">'
            f"{_short(name)}</text>"
            for k, name in enumerate(names)
        ),
    ]


def _axis(left: float, low: float, n_rows: int) -> list[str]:
    parts = [f'<text class="faint" x="{left}" y="48">accuracy</text>']
    for step in range(6):
        value = low + (1 - low) * step / 5
        x = left + _PLOT * step / 5
        bottom = _TOP + _CELL * n_rows
        parts += [
            f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{bottom}"/>',
            f'<text class="faint middle" x="{x:.1f}" y="{_TOP - 6}">{value:.2f}</text>',
        ]
    return parts


def _patches(row: QuiltRow, names: Sequence[Hashable], top: float) -> list[str]:
    parts = [f'<text x="20" y="{top + 25}">{_short(row.name)}</text>']
    for k, name in enumerate(names):
        if name not in row.shares:
            continue
        share = row.shares[name]
        told = f"{name}: used in {percent(share)} of epochs" if share else f"{name}: dropped"
        size = _CELL - 6
        parts.append(
            f'<rect class="patch" x="{_LEFT + _CELL * k}" y="{top + 3}" width="{size}" '
            f'height="{size}" rx="5" fill-opacity="{share:.2f}"><title>{escape(told)}</title>'
            "</rect>"
        )
        if share:
            x = _LEFT + _CELL * k + size / 2
            parts.append(
                f'<text class="used" x="{x}" y="{top + 24}">{escape(percent(share))}</text>'
            )
    return parts


def _marks(row: QuiltRow, methods: Sequence[str], left: float, low: float, top: float) -> list[str]:
    middle = top + _CELL / 2
    parts = []
    for k, method in reversed(list(enumerate(methods))):
        if method in row.accuracies:
            value = row.accuracies[method]
            x = left + _PLOT * (value - low) / (1 - low)
            parts.append(
                f'<text class="mark m{k % 4}" x="{x:.1f}" y="{middle}">{_SHAPES[k % 4]}'
                f"<title>{escape(method)}: {value:.3f}</title></text>"
            )
    return parts


def _legend(methods: Sequence[str], left: float, height: float) -> list[str]:
    y, parts = height - 25, []
    for k, method in enumerate(methods):
        x = left + 6 + 96 * k
        parts += [
            f'<text class="mark m{k % 4}" x="{x}" y="{y}">{_SHAPES[k % 4]}</text>',
            f'<text class="faint" x="{x + 12}" y="{y + 4}">{escape(method)}</text>',
        ]
    return parts


def _short(name: Hashable) -> str:
    text = str(name)
    return escape(text if len(text) <= 12 else f"{text[:11]}…")  # noqa: PLR2004


def _attribute(text: str) -> str:
    return escape(text, {'"': "&quot;"})
