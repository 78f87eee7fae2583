r"""Text as lines: the header of a CSV file, and in which line something is wrong.

The header is the first line that is not blank. Where it is not told, the separator is that of
`,` `;` tab and `|` which the header has most of, outside quotes.

>>> from driftquilt.data.raw import spool
>>> header = read_header(spool("a.csv", io.BytesIO(b"age;city\n31;Oslo\n5\n")))
>>> header.names, header.separator
(['age', 'city'], ';')
"""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import re
from dataclasses import dataclass
from typing import cast

from driftquilt.data.names import check_names
from driftquilt.data.raw import BLOCK, Source, one_line
from driftquilt.errors import InputError
from driftquilt.text import listing

__all__ = ["Header", "read_header", "refuse_bad_byte", "refuse_bad_row"]

_SEPARATORS = (",", ";", "\t", "|")
_END = "\x1a end of data \x1a"  # read as a row of its own, unless a quote is open
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True)
class Header:
    """The columns as they are given and named, what stands between them, and blank lines above."""

    given: list[str]
    separator: str
    n_blank: int
    names: list[str]


def read_header(source: Source, *, separator: str | None = None, tabs: bool = False) -> Header:
    """The header; `tabs` prefers them to other separators where none is told."""
    head = source.text_head()
    try:
        text = codecs.getincrementaldecoder("utf-8-sig")().decode(head)
    except UnicodeDecodeError:
        refuse_bad_byte(source)
        raise
    body = text.lstrip("\r\n")
    if not body.strip():
        raise InputError(f"{source.name} is empty; give a file with a header and rows")
    separator = separator or _find_separator(body.splitlines()[0], tabs=tabs)
    try:
        fields = next(csv.reader(io.StringIO(body, newline=""), delimiter=separator))
    except csv.Error as error:
        raise InputError(f"{source.name} has no usable header: {one_line(error)}") from error
    _refuse_numbers(source.name, fields)
    blank = text[: len(text) - len(body)]
    n_blank = len(blank.splitlines())
    return Header(fields, separator, n_blank, check_names(source.name, fields))


def refuse_bad_byte(source: Source) -> None:
    """Raise `InputError` where the first byte stands that is not UTF-8, if there is one."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    line = 1
    with source.text() as file:
        while True:
            block = file.read(BLOCK)
            try:
                decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                line += error.object[: error.start].count(b"\n")
                raise _bad_byte(source, line, error.object[error.start]) from error
            if not block:
                return
            line += block.count(b"\n")


def refuse_bad_row(source: Source, header: Header) -> None:
    """Raise `InputError` at the first row that is none, if there is one.

    Its fields are not as many as the names, or a quote in it is never closed, so that all lines
    below it belong to it.
    """
    with source.text() as file:
        lines = io.TextIOWrapper(
            cast(io.BufferedReader, file), "utf-8-sig", errors="replace", newline=""
        )
        rows = csv.reader(itertools.chain(lines, [_END]), delimiter=header.separator)
        line = 0
        try:
            for fields in rows:
                _check_row(f"{source.name}, line {line + 1}", fields, header)
                line = rows.line_num
        except csv.Error as error:
            raise InputError(
                f"{source.name}, line {line + 1}: {one_line(error)}; look for a quote that is "
                "never closed"
            ) from error


def _check_row(where: str, fields: list[str], header: Header) -> None:
    if fields and fields[-1].endswith(_END):
        if fields == [_END]:
            return
        raise InputError(
            f"{where}: a quote is never closed; close it, or write it twice inside quotes if it is "
            "part of the text"
        )
    if fields and len(fields) != len(header.names):
        raise InputError(
            f"{where} has {len(fields)} fields, but the header has {len(header.names)} "
            f"({header.separator!r} between them); correct that line, or name what stands between "
            "fields with --delimiter"
        )


def _find_separator(line: str, *, tabs: bool) -> str:
    if tabs and "\t" in line:
        return "\t"
    bare = re.sub(r'"[^"]*"', "", line)
    return max(_SEPARATORS, key=bare.count)


def _refuse_numbers(where: str, fields: list[str]) -> None:
    if not all(_is_number(field) for field in fields if field.strip()):
        return
    raise InputError(
        f"{where} has no header: its first line names no column, it holds {listing(fields)}; "
        "write the names of the columns above it"
    )


def _is_number(field: str) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _bad_byte(source: Source, line: int, byte: int) -> InputError:
    encoding = "utf-16" if source.head(2) in _UTF16 else "latin-1"
    return InputError(
        f"{source.name}, line {line}: byte 0x{byte:02x} is not UTF-8; give the encoding that it is "
        f"in, such as --encoding {encoding}, or save it as UTF-8"
    )
