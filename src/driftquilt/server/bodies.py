"""Request bodies: decoded and checked once, into a `Frame` and labels, or refused as a `Problem`.

JSON is read strictly: no NaN, no infinity, no booleans for numbers, no key twice or unknown, no
number beyond float32. Rows are objects, or lists with the names of the columns once. An Arrow
stream (`arrow_bodies`) becomes the same; its labels are the column `label`. Dates and times of day
become numbers that follow the calendar: Arrow has types for them, and in JSON they are ISO 8601
text in columns that the stream's schema declares as `date` or `time`.

A small body can stand for much: rows that each have other columns, booleans of one bit, a long
text that many rows point to. So sizes are counted before anything is built. No problem repeats
what was sent.

>>> body = b'{"rows": [{"age": 31, "city": "Rome"}]}'
>>> read_predict(body, "application/json", max_rows=10).frame.texts
{'city': ['Rome']}
>>> body = b'{"columns": ["age"], "rows": [[31], [true]]}'
>>> read_predict(body, "application/json", max_rows=10)
Traceback (most recent call last):
driftquilt.server.problems.Problem: Expected `float | str | null`, got `bool` - at `$.rows[1][0]`
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
import numpy as np
import orjson
import pyarrow as pa
from msgspec import UNSET, UnsetType
from pyarrow import types

from driftquilt.data.calendar import flatten, from_arrow, from_objects
from driftquilt.data.columns import FLOAT32_MAX
from driftquilt.data.frame import TARGET_MAX, Frame, Label
from driftquilt.errors import InputError
from driftquilt.quilt.model_file import CLASSIFICATION, REGRESSION
from driftquilt.server.arrow_bodies import UNSOUND, is_moment, read_table
from driftquilt.server.problems import Problem
from driftquilt.server.schemas import (
    ARROW,
    MAX_ID_LETTERS,
    MAX_LETTERS,
    IdLabel,
    LabelsBody,
    PredictBody,
    Row,
)
from driftquilt.stream.columns import LABEL
from driftquilt.stream.task import reader

__all__ = [
    "IdLabels",
    "LabelledRows",
    "PredictRows",
    "decode_strictly",
    "expect_values",
    "explain",
    "pack_rows",
    "read_each_label",
    "read_labels",
    "read_packed",
    "read_predict",
]

T = TypeVar("T")
StreamSchema = Mapping[str, Any] | None

_NUMBERS = "numbers"  # rows of numbers alone, in the form in which they wait for their labels
_PREDICT = msgspec.json.Decoder(PredictBody)
_LABELS = msgspec.json.Decoder(LabelsBody)
_QUOTING = ("Object contains unknown field", "Invalid enum value")
_MOMENTS: dict[str, Callable[[str], Any]] = {  # declared kinds whose text is read
    "date": dt.datetime.fromisoformat,
    "time": dt.time.fromisoformat,
}
_MAX_COLUMNS = 10_000
_MAX_VALUES = 2_000_000
_MAX_TEXT = 1 << 23  # letters of all rows
_LABEL_WORDS = {
    CLASSIFICATION: "a 64-bit integer, a boolean or text without a trailing zero character",
    REGRESSION: f"a number, at most {TARGET_MAX:.0e} in size",
}


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

    def __post_init__(self) -> None:
        if len(self.frame) != len(self.labels):
            raise Problem(
                "body-invalid", f"there are {len(self.frame)} rows but {len(self.labels)} labels"
            )

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
        frame, _, keep = _read_arrow(body, max_rows)
        return PredictRows(_read_dates(frame, schema), keep)
    decoded = _decode(_PREDICT, body)
    n_keys = 1 + (decoded.columns is not UNSET) + (decoded.keep is not UNSET)
    frame = _read_frame(body, decoded.rows, decoded.columns, max_rows, n_keys)
    return PredictRows(_read_dates(frame, schema), decoded.keep is not False)


def read_labels(
    body: bytes,
    media_type: str,
    max_rows: int,
    schema: StreamSchema = None,
    task: str = CLASSIFICATION,
) -> LabelledRows | IdLabels:
    """Read labels by id, or rows with their labels, for a stream of this task."""
    if media_type == ARROW:
        return _labels_from_arrow(body, max_rows, schema, task)
    decoded = _decode(_LABELS, body)
    if task == CLASSIFICATION:
        _refuse_floats(decoded.labels)
    if isinstance(decoded.rows, UnsetType):
        if decoded.columns not in (UNSET, None):
            raise Problem("body-invalid", "there are columns, but no rows")
        return _by_id(body, decoded.labels, max_rows, task)
    n_keys = 2 + (decoded.columns is not UNSET)
    frame = _read_frame(body, decoded.rows, decoded.columns, max_rows, n_keys)
    return LabelledRows(_read_dates(frame, schema), read_each_label(decoded.labels, task))


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
    return b"%d %d\n%b%b" % (len(frame), len(names), names, frame.numbers.tobytes()), _NUMBERS


def read_packed(packed: bytes, media_type: str, n_rows: int, schema: StreamSchema) -> Frame:
    """Read rows that `pack_rows` returned."""
    if media_type != _NUMBERS:
        return read_predict(packed, media_type, n_rows, schema).frame
    head, _, rest = packed.partition(b"\n")
    n_rows, size = map(int, head.split())
    names = orjson.loads(rest[:size])
    numbers = np.frombuffer(rest[size:], dtype=np.float64)
    return Frame(tuple(names), numbers.reshape(n_rows, len(names)), {})


def read_each_label(labels: Sequence[Any], task: str = CLASSIFICATION) -> list[Any]:
    """Read the labels, and refuse the first that cannot be one."""
    read, read_one = [], reader(task)
    for number, label in enumerate(labels):
        try:
            read.append(read_one(label))
        except InputError as error:
            raise Problem("body-invalid", f"label {number} is not {_LABEL_WORDS[task]}") from error
        if isinstance(label, str) and len(label) > MAX_LETTERS:
            raise Problem("body-invalid", f"label {number} has more than {MAX_LETTERS} letters")
    return read


def expect_values(n_rows: int, n_values: int, what: str) -> None:
    """Refuse rows that have too many columns, or whose answer would have too many classes.

    >>> expect_values(3_000, 1_000, "columns")
    Traceback (most recent call last):
    driftquilt.server.problems.Problem: 3000 rows of 1000 columns are more than 2000000 values; \
send fewer rows
    """
    if n_rows * n_values > _MAX_VALUES:
        raise Problem(
            "too-many-rows",
            f"{n_rows} rows of {n_values} {what} are more than {_MAX_VALUES} values; "
            "send fewer rows",
        )


def explain(error: msgspec.ValidationError) -> str:
    """Return msgspec's message, without the text of the caller that some of them quote."""
    message = str(error)
    quoting = next((start for start in _QUOTING if message.startswith(start)), None)
    return message if quoting is None else f"{quoting}; see /openapi.json"


# JSON.


def _decode(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise Problem("body-invalid", explain(error)) from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Problem("body-malformed", "the body is not valid JSON") from error


def _refuse_floats(labels: Sequence[Any]) -> None:
    """Refuse numbers with a decimal point where labels are classes, as the types of JSON would."""
    for number, label in enumerate(labels):
        of_id = isinstance(label, IdLabel)
        if type(label.label if of_id else label) is float:
            place = f"$.labels[{number}]" + (".label" if of_id else "")
            expected = "Expected `bool | int | str`, got `float`"
            raise Problem("body-invalid", f"{expected} - at `{place}`")


def _by_id(body: bytes, labels: Sequence[Any], max_rows: int, task: str) -> IdLabels:
    _expect_size(len(labels), 1, max_rows)
    pairs = [pair for pair in labels if isinstance(pair, IdLabel)]
    if len(pairs) < len(labels):
        raise Problem("body-invalid", "labels without rows are objects with an id and a label")
    if body.count(b":") > 2 * len(pairs) + 1:
        _refuse_repeated_keys(body)
    read = read_each_label([pair.label for pair in pairs], task)
    return IdLabels([(pair.id, label) for pair, label in zip(pairs, read, strict=True)])


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
    _expect_size(len(rows), len(columns), max_rows)
    if set(map(type, rows)) != {list}:
        raise Problem("body-invalid", "with columns, each row is a list of values")
    if set(map(len, rows)) != {len(columns)}:
        raise Problem("body-invalid", f"a row does not have {len(columns)} values, one per column")
    return _without_mixed_columns(Frame.of_matrix, columns, rows)


def _frame_of_objects(body: bytes, rows: Sequence[Any], max_rows: int, n_keys: int) -> Frame:
    if rows and set(map(type, rows)) != {dict}:
        raise Problem("body-invalid", "without columns, each row is an object by column")
    n_columns = len(rows[0]) if len(rows) == 1 else len(set().union(*rows))
    _expect_size(len(rows), n_columns, max_rows)
    # A colon more than there are keys is in a text, or belongs to a key that came twice.
    if body.count(b":") > n_keys + sum(map(len, rows)):
        _refuse_repeated_keys(body)
    return _without_mixed_columns(Frame.of_rows, rows)


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


def _read_dates(frame: Frame, schema: StreamSchema) -> Frame:
    """Turn text columns that the schema declares as dates or times into numbers."""
    declared = {} if schema is None else schema["columns"]
    readers = {n: _MOMENTS[declared[n]] for n in frame.texts if declared.get(n) in _MOMENTS}
    if not readers:
        return frame
    parts: dict[str, Any] = {}
    try:
        for name, read in readers.items():
            moments = [None if text is None else read(text) for text in frame.texts[name]]
            parts |= from_objects(moments).columns(name)
    except ValueError as error:
        raise Problem(
            "rows-invalid", "a column declared as date or time holds text that is not ISO 8601"
        ) from error
    numbers = np.column_stack([frame.numbers, *parts.values()])
    others = {name: column for name, column in frame.texts.items() if name not in readers}
    return Frame((*frame.names, *parts), numbers, others)


# Arrow.


def _labels_from_arrow(
    body: bytes, max_rows: int, schema: StreamSchema, task: str
) -> LabelledRows | IdLabels:
    frame, labels, _ = _read_arrow(body, max_rows)
    if labels is None:
        raise Problem("body-invalid", f"the table has no column {LABEL!r}")
    read = read_each_label(labels, task)
    ids = frame.texts.get("id")
    if ids is None or frame.names or len(frame.texts) > 1:
        return LabelledRows(_read_dates(frame, schema), read)
    if None in ids:
        raise Problem("body-invalid", "an id is missing")
    if any(len(row_id) > MAX_ID_LETTERS for row_id in ids):
        raise Problem("body-invalid", f"an id has at most {MAX_ID_LETTERS} letters")
    return IdLabels(list(zip(ids, read, strict=True)))


def _read_arrow(body: bytes, max_rows: int) -> tuple[Frame, list[Any] | None, bool]:
    """Return rows, their labels if there is such a column, and whether the rows are to wait."""
    try:
        table = read_table(body, max_rows)
        _expect_size(table.num_rows, table.num_columns, max_rows)
        labels = _to_list(table[LABEL]) if LABEL in table.column_names else None
        return _frame_of_table(table), labels, _keep(table.schema.metadata or {})
    except UNSOUND as error:
        raise Problem("body-malformed", "the body is not a valid Arrow stream") from error


def _keep(metadata: Mapping[bytes, bytes]) -> bool:
    keep = metadata.get(b"keep", b"true")
    if keep not in (b"true", b"false"):
        raise Problem("body-invalid", "keep in the metadata of the schema is true or false")
    return keep == b"true"


def _frame_of_table(table: pa.Table) -> Frame:
    """Build a frame without the labels, and hold it to what the structs declare for JSON."""
    names = [name for name in table.column_names if name != LABEL]
    if any(len(name) > MAX_LETTERS for name in names):
        raise Problem("body-invalid", f"the name of a column has at most {MAX_LETTERS} letters")
    columns = flatten(_to_columns(name, table[name]) for name in names)
    frame = _without_mixed_columns(Frame.of_columns, [*columns], [*columns.values()], len(table))
    texts = frame.texts.values()
    if sum(len(text) for column in texts for text in column if text is not None) > _MAX_TEXT:
        raise Problem("too-many-rows", f"the text of the rows has more than {_MAX_TEXT} letters")
    if (np.abs(frame.numbers) > FLOAT32_MAX).any():
        raise Problem("body-invalid", "a number is beyond float32 (at most 3.4e38)")
    return frame


def _to_columns(name: str, column: pa.ChunkedArray) -> dict[str, list[Any]]:
    """Return a column, or those of its parts if it holds dates or times."""
    if not is_moment(column.type):
        return {name: _to_list(column)}
    parts = from_arrow(column.combine_chunks()).columns(name)
    return {part: _without_nan(values.tolist()) for part, values in parts.items()}


def _to_list(column: pa.ChunkedArray) -> list[Any]:
    """Return plain values: numbers as floats, NaN as missing; equal categories are one object."""
    values: list[Any] = []
    for chunk in column.chunks:
        if types.is_dictionary(chunk.type):
            indices = chunk.indices.to_pylist()
            known = {i: chunk.dictionary[i].as_py() for i in {*indices} - {None}}
            values += [known.get(i) for i in indices]
        elif types.is_floating(chunk.type):
            numbers = chunk.cast(pa.float64()).to_numpy(zero_copy_only=False)
            values += _without_nan(numbers.tolist())
        else:
            values += chunk.to_pylist()
    return values


def _without_nan(numbers: list[float]) -> list[float | None]:
    return [None if number != number else number for number in numbers]  # noqa: PLR0124


# Both.


def _without_mixed_columns(build: Callable[..., Frame], *parts: Any) -> Frame:
    try:
        return build(*parts)
    except InputError as error:
        raise Problem("body-invalid", "a column holds numbers and text") from error


def _expect_size(n_rows: int, n_columns: int, max_rows: int) -> None:
    """Refuse no rows, and too many rows, columns or values."""
    if not n_rows:
        raise Problem("body-invalid", "there are no rows")
    if n_rows > max_rows:
        raise Problem(
            "too-many-rows", f"there are {n_rows} rows; send at most {max_rows} in a request"
        )
    if n_columns > _MAX_COLUMNS:
        raise Problem("body-invalid", f"there are more than {_MAX_COLUMNS} columns")
    expect_values(n_rows, n_columns, "columns")
