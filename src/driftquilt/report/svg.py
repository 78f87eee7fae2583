r"""What all drawings and pages share: escaped text, numbers, colours and the style sheet.

Names from the data are escaped and shortened. Text has the contrast of WCAG AA (4.5) on everything
it may stand on; `ink_class` returns which of the two inks a patch needs, by how much of the accent
covers it.

>>> shorten("a rather long name of a segment", 10), clean("a\x00b")
('a rather …', 'a b')
>>> shorten("segment 3 (rows 1200 to 1799)", 14)
'segment 3 …'
>>> attribute('"<b>"\n')
'&quot;&lt;b&gt;&quot; '
>>> ink_class(0.1), ink_class(0.7), ink_class(1.0)
('low', 'mid', 'full')
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from xml.sax.saxutils import escape

__all__ = [
    "DAY",
    "METHODS",
    "NIGHT",
    "attribute",
    "clean",
    "content",
    "ink_class",
    "number",
    "picture",
    "picture_style",
    "shorten",
    "variables",
]

DAY = {
    "paper": "#ffffff",
    "soft": "#f2f6f5",
    "ink": "#16211f",
    "faint": "#566461",
    "line": "#dde5e3",
    "edge": "#b9c6c3",
    "accent": "#0b6e6e",
    "full": "#ffffff",
    "low": "#000000",
    "m1": "#b94e12",
    "m2": "#5450c8",
    "m3": "#8a6400",
    "m4": "#a8326e",
    "m5": "#5b6663",
}
NIGHT = {
    "paper": "#121617",
    "soft": "#1a2021",
    "ink": "#e7edeb",
    "faint": "#9fadaa",
    "line": "#2b3435",
    "edge": "#4a5759",
    "accent": "#3cc7c0",
    "full": "#000000",
    "low": "#ffffff",
    "m1": "#f2945c",
    "m2": "#a9a8ff",
    "m3": "#dcb94b",
    "m4": "#f08bb8",
    "m5": "#a8b5b2",
}
#: The colours of methods, ours first.
METHODS = ("accent", "m1", "m2", "m3", "m4", "m5")

_MID, _FULL = 0.58, 0.85  # from where on the light, the dark accent needs the other ink
_SHAPE = (
    ".dq{font:12px system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',Arial,sans-serif}"
    ".dq .small{font-size:11px}.dq .head{font-size:16px;font-weight:600}"
    ".dq .middle{text-anchor:middle}.dq .end{text-anchor:end}"
    ".dq .num{font-variant-numeric:tabular-nums;pointer-events:none}"
    ".dq .stitch{fill:none;stroke-dasharray:3 3;pointer-events:none}"
    ".dq .line{fill:none;stroke-width:1.8;stroke-linejoin:round;stroke-linecap:round;"
    "vector-effect:non-scaling-stroke}.dq .line.m0{stroke-width:2.4}"
    ".dq .line.cloud{stroke-width:5;stroke-opacity:.45}"
    ".dq .line.faded{stroke-width:1.1}.dq .line.dashed{stroke-dasharray:6 4}"
    ".dq .range{stroke:none;fill-opacity:.13}.dq .other{display:none}"
    ".dq .bound{stroke-dasharray:5 4}.dq .drift{stroke-width:1.5;stroke-dasharray:2 4}"
)
_NONE, _MINUS = "\N{EN DASH}", "\N{MINUS SIGN}"


def clean(text: object) -> str:
    """Replace control characters and characters that reverse the text by spaces."""
    return "".join(letter if letter.isprintable() else " " for letter in str(text))


def content(text: object) -> str:
    """Escape text for the content of an element."""
    return escape(clean(text))


def attribute(text: object) -> str:
    """Escape text for an attribute in double quotes."""
    return escape(clean(text), {'"': "&quot;"})


def shorten(text: object, n_letters: int) -> str:
    """Cut text to `n_letters`, a remark in brackets first; an ellipsis stands for the rest."""
    text = clean(text)
    if len(text) <= n_letters:
        return text
    head = text.partition(" (")[0]
    return f"{head} …" if len(head) <= n_letters - 2 else f"{text[: n_letters - 1]}…"


def number(value: float | None, digits: int, sign: str = "-") -> str:
    """Return a number with so many digits; a dash where there is none."""
    if value is None or not math.isfinite(value):
        return _NONE
    return f"{value:{sign}.{digits}f}".replace("-", _MINUS)


def ink_class(cover: float) -> str:
    """Return the class of text on a patch, by how much of the accent covers the patch."""
    if cover >= _FULL:
        return "full"
    return "mid" if cover >= _MID else "low"


def variables(colours: Mapping[str, str]) -> str:
    """Return the colours as custom properties of a style sheet."""
    return "".join(f"--{name}:{value};" for name, value in colours.items())


def picture_style() -> str:
    """Return the style sheet of every drawing; dark only on a screen, never on paper."""
    night = f"@media screen and (prefers-color-scheme:dark){{{_inks(NIGHT)}}}"
    return _SHAPE + _inks(DAY) + night


def _inks(colours: Mapping[str, str]) -> str:
    c, mid = colours, colours["full"] if colours is NIGHT else colours["low"]
    methods = "".join(
        f".dq .m{k}{{fill:{c[name]};stroke:{c['paper']}}}.dq .line.m{k}{{stroke:{c[name]}}}"
        for k, name in enumerate(METHODS)
    )
    return (
        f"svg.dq{{background:{c['paper']}}}.dq text{{fill:{c['ink']}}}"
        f".dq .faint{{fill:{c['faint']}}}.dq .cover{{fill:{c['accent']}}}"
        f".dq .under{{fill:{c['soft']};stroke:{c['edge']}}}"
        f".dq .stitch{{stroke:{c['paper']}}}.dq .grid{{stroke:{c['line']}}}"
        f".dq .span{{stroke:{c['edge']}}}.dq text.low{{fill:{c['low']}}}"
        f".dq text.mid{{fill:{mid}}}.dq text.full{{fill:{c['full']}}}{methods}"
        f".dq .faded{{fill:{c['edge']};stroke:{c['edge']}}}.dq .bound{{stroke:{c['ink']}}}"
        f".dq .drift{{stroke:{c['faint']}}}.dq .line{{fill:none}}.dq .range{{stroke:none}}"
    )


def picture(parts: Iterable[str], width: float, height: float, title: str) -> str:
    """Return a picture of its own: its title and its parts, with the style sheet."""
    head = content(shorten(title, int(width / 9)))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" class="dq" width="{width:g}" '
            f'height="{height:g}" viewBox="0 0 {width:g} {height:g}" role="img" '
            f'aria-label="{attribute(title)}">',
            f"<style>{picture_style()}</style>",
            f'<text class="head" x="20" y="28">{head}</text>',
            *parts,
            "</svg>",
        ]
    )
