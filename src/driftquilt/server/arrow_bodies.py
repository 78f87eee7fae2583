"""Untrusted Arrow bodies: bytes become a table that is safe to read, or a `Problem`.

Arrow's reader trusts what it reads: offsets are looked at only by `validate`, and a compressed
buffer is unpacked to whatever size it claims. So compressed bodies, also those in the form of
Arrow 0.17, are refused before they are touched, everything else is validated in full before a
value is read, and only flat columns of numbers, booleans, text, categories of text, dates and
times are taken.

>>> sink = pa.BufferOutputStream()
>>> with pa.ipc.new_stream(sink, pa.schema({"age": pa.float64()})) as writer:
...     writer.write_table(pa.table({"age": [31.0, None]}))
>>> read_table(sink.getvalue().to_pybytes(), max_rows=10).num_rows
2
>>> read_table(sink.getvalue().to_pybytes(), max_rows=1)
Traceback (most recent call last):
driftquilt.server.problems.Problem: at most 1 rows go in a request
"""

from __future__ import annotations

import re
import struct

import pyarrow as pa
from pyarrow import types

from driftquilt.server.problems import Problem
from driftquilt.stream.columns import LABEL

__all__ = ["UNSOUND", "is_moment", "read_table"]

#: What reading a damaged table may raise, at any moment.
UNSOUND = (
    pa.ArrowException, OSError, ValueError, ArithmeticError, LookupError, struct.error,
)  # fmt: skip
_ZONE = re.compile(r"[A-Za-z0-9_+:-]{1,40}(/[A-Za-z0-9_+-]{1,40}){0,2}")
_MARK = 0xFFFFFFFF  # of a message's beginning
_COMPRESSION = 3  # the place of that field in Arrow's RecordBatch
_VERSION, _HEADER_TYPE, _HEADER, _BODY_LENGTH, _METADATA = range(5)  # of those in Arrow's Message
_V5 = 4  # that is how Arrow counts; what came before had another way to say "compressed"
_DICTIONARY_BATCH = 2
_BATCH_OF_DICTIONARY = 1
_MAX_BATCHES = 100  # each is validated with the whole of its categories


def read_table(body: bytes, max_rows: int) -> pa.Table:
    """Return the table in a body; raise a `Problem`, or one of `UNSOUND`."""
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
        if len(set(reader.schema.names)) < len(reader.schema.names):
            raise Problem("body-invalid", "two columns have the same name")
        return pa.Table.from_batches(batches, reader.schema)


def is_moment(kind: pa.DataType) -> bool:
    """Return whether the type is a date, timestamp or time of day."""
    return bool(types.is_date(kind) or types.is_timestamp(kind) or types.is_time(kind))


def _expect_type(name: str, kind: pa.DataType) -> None:
    zone = getattr(kind, "tz", None)
    if zone is not None and not _ZONE.fullmatch(zone):  # some of Arrow's builds open a file by it
        raise Problem("body-invalid", "invalid time zone in a timestamp column")
    if is_moment(kind) and name != LABEL:
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
        _expect_v5(head)
        if _is_compressed(head):
            raise Problem("body-invalid", "the body is compressed; send it as it is")
        at += 8 + size
        length_at = _field(head, _uint(head, 0), _BODY_LENGTH)
        if length_at is not None:
            (length,) = struct.unpack_from("<q", head, length_at)
            if length < 0:
                raise ValueError("a body has no such length")
            at += length


def _expect_v5(head: bytes) -> None:
    """Refuse messages of early versions, or with metadata, which could say "compressed" too."""
    message = _uint(head, 0)
    version_at = _field(head, message, _VERSION)
    version = 0 if version_at is None else struct.unpack_from("<h", head, version_at)[0]
    if version != _V5:
        raise Problem("body-invalid", "the body is not in Arrow's format 1.0 (metadata version V5)")
    if _field(head, message, _METADATA) is not None:
        raise Problem("body-invalid", "a message of the body has metadata of its own")


def _is_compressed(head: bytes) -> bool:
    message = _uint(head, 0)  # where the root table begins
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


def _uint(head: bytes, at: int) -> int:
    (value,) = struct.unpack_from("<I", head, at)
    return int(value)


def _field(head: bytes, table: int, number: int) -> int | None:
    """Return where a field of a flatbuffer's table lies; None if it is not there."""
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
