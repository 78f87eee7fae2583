"""An Arrow stream from a stranger becomes a `Frame`, or a `Problem`.

Arrow's reader trusts what it reads: offsets are looked at only by `validate`, and a compressed
buffer is unpacked to whatever size it claims. So compressed bodies are refused before they are
touched, everything else is validated in full before a value is read, and only flat columns of
numbers, booleans, text, categories of text, dates and times are taken. A column called `label` is
set apart.

>>> import pyarrow as pa
>>> table = pa.table({"age": [31.0, None], "label": ["yes", "no"]})
>>> sink = pa.BufferOutputStream()
>>> with pa.ipc.new_stream(sink, table.schema) as writer:
...     writer.write_table(table)
>>> read = read_arrow_rows(sink.getvalue().to_pybytes(), max_rows=10)
>>> read.frame.names, read.frame.numbers.tolist(), read.labels, read.keep
(('age',), [[31.0], [nan]], ['yes', 'no'], True)
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from pyarrow import types

from driftquilt.data.calendar import flatten
from driftquilt.data.frame import Frame
from driftquilt.errors import InputError
from driftquilt.server.dates import is_moment, read_arrow_dates
from driftquilt.server.limits import expect_letters, expect_size
from driftquilt.server.problems import Problem

__all__ = ["ArrowRows", "read_arrow_rows"]

_LABEL = "label"
_MARK = 0xFFFFFFFF  # of a message's beginning
_COMPRESSION = 3  # the place of that field in Arrow's RecordBatch
_HEADER = 2  # and of the header in Arrow's Message
_HEADER_TYPE = 1
_DICTIONARY_BATCH = 2
_BATCH_OF_DICTIONARY = 1
_UNSOUND = (
    pa.ArrowException, OSError, ValueError, ArithmeticError, LookupError, struct.error,
)  # fmt: skip
_MAX_BATCHES = 100  # each is validated with the whole of its categories


class ArrowRows(NamedTuple):
    """Rows, their labels if there is such a column, and whether they are to wait for labels."""

    frame: Frame
    labels: list[Any] | None
    keep: bool


def read_arrow_rows(body: bytes, max_rows: int) -> ArrowRows:
    """What a body holds; `keep` is `false` in the metadata of its schema, or true."""
    try:
        return _read_rows(body, max_rows)
    except _UNSOUND as error:  # the names of columns are read last, and may be no text
        raise Problem("body-malformed", "the body is not a valid Arrow stream") from error


def _read_rows(body: bytes, max_rows: int) -> ArrowRows:
    table = _read_table(body, max_rows)
    names = table.column_names
    if len(set(names)) < len(names):
        raise Problem("body-invalid", "two columns have the same name")
    expect_size(table.num_rows, table.num_columns, max_rows)
    labels = _to_list(table[_LABEL]) if _LABEL in names else None
    columns = flatten(_to_columns(name, table[name]) for name in names if name != _LABEL)
    try:
        frame = Frame.of_columns([*columns], [*columns.values()], table.num_rows)
    except InputError as error:
        raise Problem("body-invalid", "a column holds numbers and text") from error
    expect_letters(frame.texts.values())
    if np.isinf(frame.numbers).any():
        raise Problem("body-invalid", "a number is infinite")
    return ArrowRows(frame, labels, _keep(table.schema.metadata or {}))


def _keep(metadata: Mapping[bytes, bytes]) -> bool:
    keep = metadata.get(b"keep", b"true")
    if keep not in (b"true", b"false"):
        raise Problem("body-invalid", "keep in the metadata of the schema is true or false")
    return keep == b"true"


def _read_table(body: bytes, max_rows: int) -> pa.Table:
    _refuse_compressed(body)
    with pa.ipc.open_stream(body) as reader:
        for field in reader.schema:
            _expect_type(field.name, field.type)
        batches, n_rows = [], 0
        for batch in reader:
            batch.validate(full=True)
            n_rows += batch.num_rows
            if n_rows > max_rows:
                raise Problem("too-many-rows", f"at most {max_rows} rows go in a request")
            batches.append(batch)
            if len(batches) > _MAX_BATCHES:
                raise Problem("body-invalid", f"there are more than {_MAX_BATCHES} batches")
        return pa.Table.from_batches(batches, reader.schema)


def _expect_type(name: str, kind: pa.DataType) -> None:
    if is_moment(kind) and name != _LABEL:
        return
    if types.is_dictionary(kind):
        kind = kind.value_type
        if types.is_null(kind):  # which has a length and no values
            raise Problem("body-invalid", "a column has categories that are nothing")
    if not (
        types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind)
        or types.is_string(kind) or types.is_large_string(kind) or types.is_null(kind)
    ):  # fmt: skip
        raise Problem(
            "body-invalid",
            "a column holds other values than numbers, booleans, text, dates and times",
        )


def _to_columns(name: str, column: pa.ChunkedArray) -> dict[str, list[Any]]:
    """A column, or those of its parts if it holds dates or times."""
    if is_moment(column.type):
        return dict(read_arrow_dates(name, column))
    return {name: _to_list(column)}


def _to_list(column: pa.ChunkedArray) -> list[Any]:
    """Plain values: numbers as floats, NaN as missing; equal categories are one object."""
    values: list[Any] = []
    for chunk in column.chunks:
        if types.is_dictionary(chunk.type):
            indices = chunk.indices.to_pylist()
            known = {i: chunk.dictionary[i].as_py() for i in {*indices} - {None}}
            values += [known.get(i) for i in indices]
        elif types.is_floating(chunk.type):
            values += [None if v != v else v for v in _floats(chunk)]  # noqa: PLR0124
        else:
            values += chunk.to_pylist()
    return values


def _floats(chunk: pa.Array) -> list[float]:
    numbers: list[float] = chunk.cast(pa.float64()).to_numpy(zero_copy_only=False).tolist()
    return numbers


def _refuse_compressed(body: bytes) -> None:
    """Look into every message's head, which is a flatbuffer, for a compression."""
    at = 0
    while at + 8 <= len(body):
        mark, size = struct.unpack_from("<Ii", body, at)
        if mark != _MARK:
            raise ValueError("no message begins here")
        if size <= 0:
            return
        head = body[at + 8 : at + 8 + size]
        if _is_compressed(head):
            raise Problem("body-invalid", "the body is compressed; send it as it is")
        (length,) = struct.unpack_from("<q", head, _field(head, _root(head), 3) or 0)
        if length < 0:
            raise ValueError("a body has no such length")
        at += 8 + size + (length if _field(head, _root(head), 3) else 0)


def _is_compressed(head: bytes) -> bool:
    message = _root(head)
    kind_at, batch_at = _field(head, message, _HEADER_TYPE), _field(head, message, _HEADER)
    if kind_at is None or batch_at is None:
        return False
    batch = batch_at + _uint(head, batch_at)
    if head[kind_at] == _DICTIONARY_BATCH:
        inner = _field(head, batch, _BATCH_OF_DICTIONARY)
        if inner is None:
            return False
        batch = inner + _uint(head, inner)
    elif head[kind_at] == 1:  # a schema
        return False
    return _field(head, batch, _COMPRESSION) is not None


def _root(head: bytes) -> int:
    return _uint(head, 0)


def _uint(head: bytes, at: int) -> int:
    (value,) = struct.unpack_from("<I", head, at)
    return int(value)


def _field(head: bytes, table: int, number: int) -> int | None:
    """Where a field of a flatbuffer's table lies; None if it is not there."""
    (back,) = struct.unpack_from("<i", head, table)
    vtable = table - back
    if vtable < 0:
        raise ValueError("a table has no such layout")
    (size,) = struct.unpack_from("<H", head, vtable)
    place = 4 + 2 * number
    if place + 2 > size:
        return None
    (offset,) = struct.unpack_from("<H", head, vtable + place)
    return table + offset if offset else None
