"""Bodies of requests become values, or a `Problem`; nothing that was sent is repeated in it.

JSON is read strictly: no NaN, no infinity, no booleans for numbers, no key twice or unknown, no
number beyond float32. Rows come as dictionaries, or as lists with the names once; `Frame` is what
becomes of both, and of an Arrow table (`arrow_bodies`).

>>> from driftquilt.server.media import JSON
>>> read_rows(b'{"rows": [{"age": 31, "city": "Rome"}]}', JSON, 10).frame.texts
{'city': ['Rome']}
>>> read_rows(b'{"columns": ["age"], "rows": [[31], [true]]}', JSON, 10)
Traceback (most recent call last):
driftquilt.server.problems.Problem: rows[1][0] takes a number, text or null, but a boolean came; \
send 1 or 0
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

import msgspec
import numpy as np
import orjson

from driftquilt.data.columns import FLOAT32_MAX
from driftquilt.data.frame import Frame
from driftquilt.data.labels import Label, read_label
from driftquilt.errors import InputError
from driftquilt.server.arrow_bodies import read_arrow_rows
from driftquilt.server.media import ARROW, NUMBERS
from driftquilt.server.problems import Problem
from driftquilt.server.reasons import plain_reason
from driftquilt.server.sizes import MOST_ID_LETTERS, MOST_LETTERS, expect_names, expect_size

__all__ = [
    "IdLabels",
    "Rows",
    "pack_rows",
    "read_each_label",
    "read_labels_body",
    "read_rows",
    "read_strictly",
]

Value: TypeAlias = float | str | None
T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a request, with labels if they came with any."""

    frame: Frame
    labels: list[Label] | None = None
    keep: bool = True


class IdLabel(msgspec.Struct, forbid_unknown_fields=True):
    """The label of a row that was predicted."""

    id: str
    label: int | bool | str


@dataclass(frozen=True)
class IdLabels:
    """Labels of rows that were predicted."""

    pairs: list[tuple[str, Label]]


class _Body(msgspec.Struct, forbid_unknown_fields=True):
    rows: msgspec.Raw
    columns: list[str] | None = None
    keep: bool | msgspec.UnsetType = msgspec.UNSET


class _LabelsBody(msgspec.Struct, forbid_unknown_fields=True):
    labels: msgspec.Raw
    rows: msgspec.Raw = msgspec.Raw()  # a union with None would take nothing but null
    columns: list[str] | None = None


_BODY = msgspec.json.Decoder(_Body)
_LABELS_BODY = msgspec.json.Decoder(_LabelsBody)
_DICTS = msgspec.json.Decoder(list[dict[str, Value]])
_LISTS = msgspec.json.Decoder(list[list[Value]])
_LABELS = msgspec.json.Decoder(list[int | bool | str])
_ID_LABELS = msgspec.json.Decoder(list[IdLabel])


def pack_rows(frame: Frame, body: bytes, kind: str) -> tuple[bytes, str]:
    """Rows in the form in which they wait: numbers as they are, others as they came."""
    if frame.texts:
        return body, kind
    names = orjson.dumps(frame.names)
    return b"%d %d\n%b%b" % (len(frame), len(names), names, frame.numbers.tobytes()), NUMBERS


def _unpack_rows(packed: bytes) -> Frame:
    head, _, rest = packed.partition(b"\n")
    n_rows, size = map(int, head.split())
    names = orjson.loads(rest[:size])
    numbers = np.frombuffer(rest[size:], dtype=np.float64)
    return Frame(tuple(names), numbers.reshape(n_rows, len(names)), {})


def read_rows(body: bytes, kind: str, most: int) -> Rows:
    """The rows to be predicted; `kind` is the body's type."""
    if kind == NUMBERS:
        return Rows(_unpack_rows(body))
    if kind == ARROW:
        found = read_arrow_rows(body, most)
        return Rows(_checked(found.frame), keep=found.keep)
    read = _decode(_BODY, body)
    n_keys = 1 if read.keep is msgspec.UNSET else 2
    return Rows(
        _read_frame(body, read.rows, read.columns, most, n_keys), keep=read.keep is not False
    )


def read_labels_body(body: bytes, kind: str, most: int) -> Rows | IdLabels:
    """Labels by id, or rows with their labels."""
    if kind == ARROW:
        return _from_arrow(body, most)
    read = _decode(_LABELS_BODY, body)
    if not read.rows:
        if read.columns is not None:
            raise Problem("body-invalid", "there are columns, but no rows")
        return _by_id(body, _decode(_ID_LABELS, read.labels, "labels"), most)
    frame = _read_frame(body, read.rows, read.columns, most, n_keys=2)
    labels: list[int | bool | str] = _decode(_LABELS, read.labels, "labels")
    return _with_labels(frame, read_each_label(labels))


def read_strictly(body: bytes, kind: type[T]) -> T:
    """A small body as a struct, with no key twice."""
    value = _decode(msgspec.json.Decoder(kind), body)
    _refuse_twice(body)
    return value


def _from_arrow(body: bytes, most: int) -> Rows | IdLabels:
    frame, labels, _ = read_arrow_rows(body, most)
    if labels is None:
        raise Problem("body-invalid", "the table has no column 'label'")
    read = read_each_label(labels)
    ids = frame.texts.get("id")
    if ids is not None and not frame.names and len(frame.texts) == 1:
        if None in ids:
            raise Problem("body-invalid", "an id is missing")
        return _ids_with([i or "" for i in ids], read)
    return _with_labels(_checked(frame), read)


def _by_id(body: bytes, pairs: list[IdLabel], most: int) -> IdLabels:
    expect_size(len(pairs), 1, most)
    if body.count(b":") > 2 * len(pairs) + 1:
        _refuse_twice(body)
    return _ids_with([pair.id for pair in pairs], read_each_label([pair.label for pair in pairs]))


def _ids_with(ids: list[str], labels: list[Label]) -> IdLabels:
    if any(len(row_id) > MOST_ID_LETTERS for row_id in ids):
        raise Problem("body-invalid", f"an id has at most {MOST_ID_LETTERS} letters")
    return IdLabels(list(zip(ids, labels, strict=True)))


def _with_labels(frame: Frame, labels: list[Label]) -> Rows:
    if len(frame) != len(labels):
        raise Problem("body-invalid", f"there are {len(frame)} rows but {len(labels)} labels")
    return Rows(frame, labels)


def _read_frame(
    body: bytes, raw: msgspec.Raw, columns: list[str] | None, most: int, n_keys: int
) -> Frame:
    if columns is None:
        rows = _decode(_DICTS, raw, "rows")
        expect_size(len(rows), _n_columns(rows), most)
        # A colon more than there are keys is one in a text, or a key that came twice.
        if body.count(b":") > n_keys + sum(map(len, rows)):
            _refuse_twice(body)
        return _checked(_frame(Frame.of_rows, rows))
    if body.count(b":") > n_keys + 1:
        _refuse_twice(body)
    if len(set(columns)) < len(columns):
        raise Problem("body-invalid", "two columns have the same name")
    lists = _decode(_LISTS, raw, "rows")
    expect_size(len(lists), len(columns), most)
    if set(map(len, lists)) != {len(columns)}:
        raise Problem(
            "body-invalid", f"there are {len(columns)} columns, but a row has another width"
        )
    return _checked(_frame(lambda rows: Frame.of_matrix(columns, rows), lists))


def _n_columns(rows: list[dict[str, Value]]) -> int:
    return len(set().union(*rows)) if len(rows) > 1 else sum(map(len, rows))


def _frame(make: Callable[[Any], Frame], rows: Any) -> Frame:
    try:
        return make(rows)
    except InputError as error:
        raise Problem("body-invalid", "a column holds numbers and text") from error


def _checked(frame: Frame) -> Frame:
    expect_names(frame.names)
    expect_names(frame.texts)
    if (np.abs(frame.numbers) > FLOAT32_MAX).any():
        raise Problem("body-invalid", "a number is beyond float32 (at most 3.4e38)")
    return frame


def read_each_label(labels: Sequence[Any]) -> list[Label]:
    """The labels, if each can be one."""
    read = []
    for number, label in enumerate(labels):
        try:
            read.append(_short(number, read_label(label)))
        except InputError as error:
            raise Problem(
                "body-invalid",
                f"label {number} is no whole number of 64 bits, no boolean and no text, or ends in "
                "a zero character",
            ) from error
    return read


def _short(number: int, label: Label) -> Label:
    if isinstance(label, str) and len(label) > MOST_LETTERS:
        raise Problem("body-invalid", f"label {number} has more than {MOST_LETTERS} letters")
    return label


def _decode(decoder: msgspec.json.Decoder[T], body: bytes | msgspec.Raw, name: str = "") -> T:
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise Problem("body-invalid", plain_reason(error, decoder.type, name)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Problem("body-malformed", "the body is no JSON as RFC 8259 has it") from error


def _refuse_twice(body: bytes) -> None:
    """Refuse a key that comes twice in one object."""
    try:
        json.loads(body, object_pairs_hook=_once)
    except (RecursionError, ValueError) as error:  # in a value that the second key hides
        raise Problem("body-malformed", "the body is no JSON as RFC 8259 has it") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise Problem("body-invalid", "a key comes twice in one object")
    return made
