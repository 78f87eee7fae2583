"""Which format an input has: by its first bytes, and where those do not tell, by its name.

>>> import io
>>> type(open_rows(spool("standard input", io.BytesIO(b'{"age": 31}')))).__name__
'JsonRows'
"""

from __future__ import annotations

from pathlib import PurePath

from driftquilt.errors import InputError
from driftquilt.sources.arrow_rows import ArrowRows, ParquetRows
from driftquilt.sources.csv_rows import CsvRows
from driftquilt.sources.json_rows import JsonRows
from driftquilt.sources.raw import Source, spool
from driftquilt.sources.together import Reader

__all__ = ["open_rows"]

_BY_START = {b"PAR1": "parquet", b"ARROW1": "arrow", b"\xff\xff\xff\xff": "arrow"}
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


def open_rows(source: Source, file_name: str | None = None) -> Reader:
    """The rows of an input; without a name, text is JSON lines if it begins with a brace."""
    head = source.head(512)
    if not head:
        raise InputError(f"{source.name} is empty; give a file with rows")
    kind = _find(source.name, head, file_name)
    if kind == "csv":
        return CsvRows(source)
    if kind == "json":
        return JsonRows(source)
    if source.packed:  # these are read here and there, which gzip cannot do
        with source.unpacked() as file:
            source = spool(source.name, file)
    return ParquetRows(source) if kind == "parquet" else ArrowRows(source)


def _find(where: str, head: bytes, file_name: str | None) -> str:
    for start, kind in _BY_START.items():
        if head.startswith(start):
            return kind
    if file_name is None:
        return _guess(where, head)
    suffixes = [suffix.lower() for suffix in PurePath(file_name).suffixes]
    if suffixes[-1:] == [".gz"]:
        suffixes.pop()
    kind = _BY_SUFFIX.get(suffixes[-1] if suffixes else "", "")
    if not kind:
        raise InputError(
            f"{where} is of no known format; known are {', '.join(_BY_SUFFIX)}, and each with .gz"
        )
    return kind


def _guess(where: str, head: bytes) -> str:
    if b"\0" in head:
        raise InputError(
            f"{where} is of no known format; pipe in CSV, JSON lines, Parquet or Arrow"
        )
    return "json" if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{") else "csv"
