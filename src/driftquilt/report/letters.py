r"""Text from the data, made fit for pictures and pages.

>>> short("a rather long name of a segment", 10), clean("a\x00b")
('a rather …', 'a b')
>>> short("segment 3 (rows 1200 to 1799)", 14)
'segment 3 …'
>>> attribute('"<b>"')
'&quot;&lt;b&gt;&quot;'
"""

from __future__ import annotations

from xml.sax.saxutils import escape

__all__ = ["attribute", "clean", "inner", "short"]


def clean(text: object) -> str:
    """Without the letters that XML has no place for, nor those that turn the text around."""
    return "".join(letter if letter.isprintable() else " " for letter in str(text))


def inner(text: object) -> str:
    """As the text of an element."""
    return escape(clean(text))


def attribute(text: object) -> str:
    """As the value of an attribute in double quotes."""
    return escape(clean(text), {'"': "&quot;"})


def short(text: object, most: int) -> str:
    """At most so many letters, without a remark in brackets first; a sign says what is missing."""
    whole = clean(text)
    if len(whole) <= most:
        return whole
    head = whole.partition(" (")[0]
    return f"{head} …" if len(head) <= most - 2 else f"{whole[: most - 1]}…"
