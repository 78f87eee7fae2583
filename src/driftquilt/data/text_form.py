"""How text files are written: what stands between fields, the decimal mark, the encoding.

Parquet and Arrow files say so themselves; of JSON lines only the encoding counts.

>>> TextForm(delimiter=";", decimal=",", encoding="latin-1")
TextForm(delimiter=';', decimal=',', encoding='iso8859-1')
"""

from __future__ import annotations

import codecs
import io
from dataclasses import dataclass

from driftquilt.errors import InputError

__all__ = ["USUAL", "TextForm"]

_TAB = ("tab", "\\t")  # as it is typed where a tab cannot be
_UTF8 = ("utf-8", "utf-8-sig")


@dataclass(frozen=True)
class TextForm:
    """`delimiter` None is found from the header; `encoding` is kept by Python's name for it."""

    delimiter: str | None = None
    decimal: str = "."
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        if self.delimiter in _TAB:
            object.__setattr__(self, "delimiter", "\t")
        if self.delimiter is not None and not _is_delimiter(self.delimiter):
            raise InputError(
                f"got --delimiter {self.delimiter!r}; give the one character that stands between "
                "fields, such as ',' ';' '|' or tab"
            )
        if self.decimal not in (".", ","):
            raise InputError(f"got --decimal {self.decimal!r}; give ',' or '.'")
        object.__setattr__(self, "encoding", _find_encoding(self.encoding))


def _is_delimiter(text: str) -> bool:
    return len(text) == 1 and text.isascii() and not text.isalnum() and text not in '"\r\n\0'


def _find_encoding(name: str) -> str:
    try:
        io.TextIOWrapper(io.BytesIO(), name)  # refuses codecs that are none of text, such as hex
        found = codecs.lookup(name).name
    except (LookupError, ValueError) as error:
        raise InputError(
            f"got --encoding {name!r}, which is none that is known; give one such as utf-8, "
            "latin-1, cp1252 or utf-16"
        ) from error
    return "utf-8" if found in _UTF8 else found


#: Text as most programs write it.
USUAL = TextForm()
