r"""Text in drawings and pages: names from the data, escaped and shortened, and numbers.

>>> shorten("a rather long name of a segment", 10), clean("a\x00b")
('a rather …', 'a b')
>>> shorten("segment 3 (rows 1200 to 1799)", 14)
'segment 3 …'
>>> attribute('"<b>"\n')
'&quot;&lt;b&gt;&quot; '
"""

from __future__ import annotations

import math
from xml.sax.saxutils import escape

__all__ = ["attribute", "clean", "content", "number", "shorten"]

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
