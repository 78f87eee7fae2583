"""Which format an input has: by its first bytes, and where those do not tell, by its name.

>>> import io
>>> type(open_rows(spool("standard input", io.BytesIO(b'{"age": 31}')))).__name__
'JsonRows'
"""

from __future__ import annotations

import re
from pathlib import PurePath

from driftquilt.data.arrow_rows import ArrowRows, ParquetRows
from driftquilt.data.csv_rows import CsvRows
from driftquilt.data.json_rows import JsonRows
from driftquilt.data.raw import Source, spool
from driftquilt.data.text_form import USUAL, TextForm
from driftquilt.data.together import Reader
from driftquilt.errors import InputError

__all__ = ["is_known", "open_rows"]

_BY_START = {b"PAR1": "parquet", b"ARROW1": "arrow", b"\xff\xff\xff\xff": "arrow"}
_JSON = re.compile(rb"(\xef\xbb\xbf)?\s*(\[\s*)?\{")  # an object, or an array of them
_BY_SUFFIX = {
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
}


def open_rows(source: Source, file_name: str | None = None, form: TextForm = USUAL) -> Reader:
    """The rows of an input; without a name, text is JSON if it begins like that.

    `form` is how text is written.
    """
    head = source.head(512)
    if not head:
        raise InputError(f"{source.name} is empty; give a file with rows")
    source.encoding = form.encoding
    kind = _by_start(head) or (_by_name(source.name, file_name) if file_name else _guess(source))
    if kind == "csv":
        return CsvRows(source, form)
    if kind == "json":
        return JsonRows(source)
    if source.packed:  # these are read here and there, which gzip cannot do
        with source.unpacked() as file:
            source = spool(source.name, file)
    return ParquetRows(source) if kind == "parquet" else ArrowRows(source)


def is_known(file_name: str) -> bool:
    """Whether the name ends as that of a data file."""
    return _suffix(file_name) in _BY_SUFFIX


def _by_start(head: bytes) -> str | None:
    return next((kind for start, kind in _BY_START.items() if head.startswith(start)), None)


def _by_name(where: str, file_name: str) -> str:
    kind = _BY_SUFFIX.get(_suffix(file_name))
    if kind is None:
        raise InputError(
            f"{where} is of no known format; known are {', '.join(_BY_SUFFIX)}, and each with .gz"
        )
    return kind


def _suffix(file_name: str) -> str:
    """The last suffix before .gz, in small letters."""
    return PurePath(file_name.lower().removesuffix(".gz")).suffix


def _guess(source: Source) -> str:
    head = source.text_head(512)
    if b"\0" in head:
        raise InputError(
            f"{source.name} is of no known format; pipe in CSV, JSON lines, Parquet or Arrow"
        )
    return "json" if _JSON.match(head) else "csv"
