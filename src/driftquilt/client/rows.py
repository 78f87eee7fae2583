"""Rows on the wire: dicts as JSON, tables as Arrow.

>>> as_body([{"age": 31, "city": "Rome"}], keep=False).content
b'{"rows":[{"age":31,"city":"Rome"}],"keep":false}'

Booleans of rows are numbers, 1 and 0, as they are in Arrow; labels stay what they are.
"""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import narwhals as nw
import pyarrow as pa

from driftquilt.errors import InputError

__all__ = ["ARROW", "Body", "as_body", "as_json"]

ARROW = "application/vnd.apache.arrow.stream"
_LABEL = "label"


class Body(NamedTuple):
    """A request's body and what kind it is."""

    kind: str
    content: bytes


def as_body(rows: Any, *, keep: bool = True, labels: list[Any] | None = None) -> Body:
    """Rows, with their labels or without; `keep` is for rows to be predicted.

    Labels of a table are its column `label`. Rows with dates go as a table too, since JSON has
    none; a table that has such a column already goes as JSON.
    """
    if isinstance(rows, Mapping):
        rows = [rows]
    besides = {"keep": keep} if labels is None else {"labels": labels}
    dicts = isinstance(rows, list | tuple) and all(isinstance(row, Mapping) for row in rows)
    if dicts and any(_is_date(value) for row in rows for value in row.values()):
        rows, dicts = _of_dicts(rows), False  # JSON has no dates
    if dicts:
        values = [{name: _value(value) for name, value in row.items()} for row in rows]
        return as_json({"rows": values, **besides})
    table = _as_arrow(rows)
    if _LABEL not in table.column_names:
        metadata = {} if keep else {"keep": "false"}
        return Body(ARROW, _stream_of(table.replace_schema_metadata(metadata), labels))
    columns = [column.to_pylist() for column in table.columns]
    lists = [[_value(value) for value in row] for row in zip(*columns, strict=True)]
    return as_json({"columns": table.column_names, "rows": lists, **besides})


def as_json(document: Mapping[str, Any]) -> Body:
    """Return a document as it goes over the wire."""
    text = json.dumps(_plain(document), allow_nan=False, separators=(",", ":"), ensure_ascii=False)
    return Body("application/json", text.encode())


def _plain(value: Any) -> Any:
    """Return what JSON can say: numbers of numpy are numbers, gaps are null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if hasattr(value, "item"):
        value = value.item()
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else _gap(value)
    raise InputError(
        "rows are numbers, text, booleans, dates, times and None, and labels the first three, but "
        f"got {value!r}"
    )


def _value(value: Any) -> Any:
    """Return a value of a row, which is a number where it was a boolean."""
    plain = value.item() if hasattr(value, "item") else value
    return int(plain) if isinstance(plain, bool) else plain


def _is_date(value: Any) -> bool:
    return isinstance(value, dt.date | dt.time)  # time stamps are dates too


def _of_dicts(rows: Sequence[Mapping[str, Any]]) -> Any:
    names = list(dict.fromkeys(name for row in rows for name in row))
    try:
        return pa.table({str(n): pa.array([_value(row.get(n)) for row in rows]) for n in names})
    except pa.ArrowException as error:
        raise InputError(
            f"a column is all numbers, all text, all dates or all times: {error}"
        ) from error


def _gap(value: float) -> None:
    if math.isinf(value):
        raise InputError(f"JSON has no {value!r}; give a number, or None for a gap")


def _as_arrow(rows: Any) -> Any:
    """Return the columns of any table that narwhals knows, without an index, as an Arrow table."""
    try:
        frame = nw.from_native(rows, eager_only=True)
    except TypeError as error:
        raise InputError(
            "rows are a dict, a list of dicts, or a table of pandas, polars or Arrow, "
            f"but got {type(rows).__name__}"
        ) from error
    return pa.table({column.name: column.to_arrow() for column in frame.iter_columns()})


def _stream_of(table: Any, labels: list[Any] | None) -> bytes:
    if labels is not None:
        if len(labels) != len(table):
            raise InputError(f"{len(table)} rows came with {len(labels)} labels; give one for each")
        try:
            table = table.append_column(_LABEL, pa.array(_plain(labels)))
        except pa.ArrowException as error:
            raise InputError(
                f"the labels of a table are all numbers, all text or all booleans: {error}"
            ) from error
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())
