"""Examples in docstrings are shown as code: Markdown takes `>>>` for a quotation."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

_EXAMPLE = re.compile(r"(?:^|(?<=\n))(?P<indent> *)>>> .*?(?=\n\s*\n(?! *>>>)|\Z)", re.DOTALL)


def fence(text: str) -> str:
    """Return the text with a fence around every run of examples."""

    def wrap(match: re.Match[str]) -> str:
        indent = match["indent"]
        return f"\n{indent}```pycon\n{match[0].rstrip()}\n{indent}```"

    return _EXAMPLE.sub(wrap, text)


class FencedExamples(Extension):
    """Fences examples before docstrings are parsed."""

    def on_instance(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = fence(obj.docstring.value)
