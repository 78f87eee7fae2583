"""Request bodies: decoded and checked once, into a `Frame` and labels, or refused as a `Problem`.

JSON is read strictly: no NaN, no infinity, no booleans for numbers, no key twice or unknown, no
number beyond float32. Rows are objects, or lists with the names of the columns once. An Arrow
stream (`arrow_bodies`) becomes the same. No problem repeats what was sent.

>>> body = b'{"rows": [{"age": 31, "city": "Rome"}]}'
>>> read_predict(body, "application/json", max_rows=10).frame.texts
{'city': ['Rome']}
>>> body = b'{"columns": ["age"], "rows": [[31], [true]]}'
>>> read_predict(body, "application/json", max_rows=10)
Traceback (most recent call last):
driftquilt.server.problems.Problem: Expected `float | str | null`, got `bool` - at `$.rows[1][0]`
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
import numpy as np
import orjson
from msgspec import UNSET, UnsetType

from driftquilt.data.columns import FLOAT32_MAX
from driftquilt.data.frame import Frame, Label, read_label
from driftquilt.errors import InputError
from driftquilt.server.arrow_bodies import read_arrow_rows
from driftquilt.server.dates import read_dates
from driftquilt.server.limits import MAX_ID_LETTERS, MAX_LETTERS, expect_names, expect_size
from driftquilt.server.problems import Problem
from driftquilt.server.schemas import ARROW, IdLabel, LabelsBody, PredictBody, Row

__all__ = [
    "NUMBERS",
    "IdLabels",
    "LabelledRows",
    "PredictRows",
    "decode_strictly",
    "explain",
    "pack_rows",
    "read_each_label",
    "read_labels",
    "read_packed",
    "read_predict",
]

T = TypeVar("T")
StreamSchema = Mapping[str, Any] | None

#: Rows of numbers alone, in the form in which they are kept until their label comes.
NUMBERS = "numbers"
_PREDICT = msgspec.json.Decoder(PredictBody)
_LABELS = msgspec.json.Decoder(LabelsBody)
_QUOTING = ("Object contains unknown field", "Invalid enum value")


@dataclass(frozen=True, eq=False)
class PredictRows:
    """Rows to predict, and whether they wait for their labels."""

    frame: Frame
    keep: bool = True


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Rows with their labels."""

    frame: Frame
    labels: list[Label]

    def __len__(self) -> int:
        return len(self.labels)


@dataclass(frozen=True, eq=False)
class IdLabels:
    """Labels of predicted rows, by id."""

    pairs: list[tuple[str, Label]]

    def __len__(self) -> int:
        return len(self.pairs)


def read_predict(
    body: bytes, media_type: str, max_rows: int, schema: StreamSchema = None
) -> PredictRows:
    """Read rows to predict."""
    if media_type == ARROW:
        read = read_arrow_rows(body, max_rows)
        return PredictRows(read_dates(_checked(read.frame), schema), read.keep)
    decoded = _decode(_PREDICT, body)
    n_keys = 1 + (decoded.columns is not UNSET) + (decoded.keep is not UNSET)
    frame = _read_frame(body, decoded.rows, decoded.columns, max_rows, n_keys)
    return PredictRows(read_dates(frame, schema), decoded.keep is not False)


def read_labels(
    body: bytes, media_type: str, max_rows: int, schema: StreamSchema = None
) -> LabelledRows | IdLabels:
    """Read labels by id, or rows with their labels."""
    if media_type == ARROW:
        return _labels_from_arrow(body, max_rows, schema)
    decoded = _decode(_LABELS, body)
    if decoded.rows is UNSET or isinstance(decoded.rows, UnsetType):
        if decoded.columns not in (UNSET, None):
            raise Problem("body-invalid", "there are columns, but no rows")
        return _by_id(body, decoded.labels, max_rows)
    n_keys = 2 + (decoded.columns is not UNSET)
    frame = _read_frame(body, decoded.rows, decoded.columns, max_rows, n_keys)
    return _with_labels(read_dates(frame, schema), read_each_label(decoded.labels))


def decode_strictly(body: bytes, kind: type[T]) -> T:
    """Decode a small body into a struct, refusing repeated keys."""
    value = _decode(msgspec.json.Decoder(kind), body)
    _refuse_repeated_keys(body)
    return value


def pack_rows(frame: Frame, body: bytes, media_type: str) -> tuple[bytes, str]:
    """Return the form in which rows are kept: numbers as they are, others as they were sent."""
    if frame.texts:
        return body, media_type
    names = orjson.dumps(frame.names)
    return b"%d %d\n%b%b" % (len(frame), len(names), names, frame.numbers.tobytes()), NUMBERS


def read_packed(packed: bytes, media_type: str, n_rows: int, schema: StreamSchema) -> Frame:
    """Read rows that `pack_rows` gave."""
    if media_type != NUMBERS:
        return read_predict(packed, media_type, n_rows, schema).frame
    head, _, rest = packed.partition(b"\n")
    n_rows, size = map(int, head.split())
    names = orjson.loads(rest[:size])
    numbers = np.frombuffer(rest[size:], dtype=np.float64)
    return Frame(tuple(names), numbers.reshape(n_rows, len(names)), {})


def read_each_label(labels: Sequence[Any]) -> list[Label]:
    """Read the labels, and refuse the first that cannot be one."""
    read = []
    for number, label in enumerate(labels):
        try:
            read.append(read_label(label))
        except InputError as error:
            raise Problem(
                "body-invalid",
                f"label {number} is not a 64-bit integer, a boolean or text without a trailing "
                "zero character",
            ) from error
        if isinstance(label, str) and len(label) > MAX_LETTERS:
            raise Problem("body-invalid", f"label {number} has more than {MAX_LETTERS} letters")
    return read


def _labels_from_arrow(body: bytes, max_rows: int, schema: StreamSchema) -> LabelledRows | IdLabels:
    frame, labels, _ = read_arrow_rows(body, max_rows)
    if labels is None:
        raise Problem("body-invalid", "the table has no column 'label'")
    read = read_each_label(labels)
    ids = frame.texts.get("id")
    if ids is not None and not frame.names and len(frame.texts) == 1:
        if None in ids:
            raise Problem("body-invalid", "an id is missing")
        if any(len(row_id or "") > MAX_ID_LETTERS for row_id in ids):
            raise Problem("body-invalid", f"an id has at most {MAX_ID_LETTERS} letters")
        return IdLabels([(row_id or "", label) for row_id, label in zip(ids, read, strict=True)])
    return _with_labels(read_dates(_checked(frame), schema), read)


def _by_id(body: bytes, labels: Sequence[IdLabel | Label], max_rows: int) -> IdLabels:
    expect_size(len(labels), 1, max_rows)
    pairs = [pair for pair in labels if isinstance(pair, IdLabel)]
    if len(pairs) < len(labels):
        raise Problem("body-invalid", "labels without rows are objects with an id and a label")
    if body.count(b":") > 2 * len(pairs) + 1:
        _refuse_repeated_keys(body)
    read = read_each_label([pair.label for pair in pairs])
    return IdLabels([(pair.id, label) for pair, label in zip(pairs, read, strict=True)])


def _with_labels(frame: Frame, labels: list[Label]) -> LabelledRows:
    if len(frame) != len(labels):
        raise Problem("body-invalid", f"there are {len(frame)} rows but {len(labels)} labels")
    return LabelledRows(frame, labels)


def _read_frame(
    body: bytes,
    rows: Sequence[Row],
    columns: list[str] | UnsetType | None,
    max_rows: int,
    n_keys: int,
) -> Frame:
    """Build a frame; `n_keys` are the keys of the body itself."""
    if columns is None or isinstance(columns, UnsetType):
        return _frame_of_objects(body, rows, max_rows, n_keys)
    if body.count(b":") > n_keys:
        _refuse_repeated_keys(body)
    if len(set(columns)) < len(columns):
        raise Problem("body-invalid", "two columns have the same name")
    expect_size(len(rows), len(columns), max_rows)
    if set(map(type, rows)) != {list}:
        raise Problem("body-invalid", "with columns, each row is a list of values")
    if set(map(len, rows)) != {len(columns)}:
        raise Problem("body-invalid", f"a row does not have {len(columns)} values, one per column")
    try:
        return Frame.of_matrix(columns, rows)  # type: ignore[arg-type]
    except InputError as error:
        raise Problem("body-invalid", "a column holds numbers and text") from error


def _frame_of_objects(body: bytes, rows: Sequence[Any], max_rows: int, n_keys: int) -> Frame:
    if rows and set(map(type, rows)) != {dict}:
        raise Problem("body-invalid", "without columns, each row is an object by column")
    n_columns = len(rows[0]) if len(rows) == 1 else len(set().union(*rows))
    expect_size(len(rows), n_columns, max_rows)
    # A colon more than there are keys is in a text, or belongs to a key that came twice.
    if body.count(b":") > n_keys + sum(map(len, rows)):
        _refuse_repeated_keys(body)
    try:
        return Frame.of_rows(rows)
    except InputError as error:
        raise Problem("body-invalid", "a column holds numbers and text") from error


def _checked(frame: Frame) -> Frame:
    """Hold a table of Arrow to what the structs declare for JSON."""
    expect_names(frame.names)
    expect_names(frame.texts)
    if (np.abs(frame.numbers) > FLOAT32_MAX).any():
        raise Problem("body-invalid", "a number is beyond float32 (at most 3.4e38)")
    return frame


def _decode(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise Problem("body-invalid", explain(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Problem("body-malformed", "the body is not valid JSON") from error


def explain(error: msgspec.ValidationError) -> str:
    """Return msgspec's message, without the text of the caller that some of them quote."""
    message = str(error)
    quoting = next((start for start in _QUOTING if message.startswith(start)), None)
    return message if quoting is None else f"{quoting}; see /openapi.json"


def _refuse_repeated_keys(body: bytes) -> None:
    try:
        json.loads(body, object_pairs_hook=_unique)
    except (RecursionError, ValueError) as error:  # in a value that the second key hides
        raise Problem("body-malformed", "the body is not valid JSON") from error


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    unique = dict(pairs)
    if len(unique) < len(pairs):
        raise Problem("body-invalid", "a key comes twice in one object")
    return unique
