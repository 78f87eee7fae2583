"""Labelled rows of a stream: what they may hold, and how they go into a store.

A column is numbers or text for as long as the stream lives; it may be missing in any row, come
late or vanish. So are labels: all whole numbers, all booleans or all text. In the store a row
has its columns under their own names and its label under `LABEL`.

>>> columns, rows, labels = Columns(), [{"age": 31.0, "city": "Rome"}, {"age": None}], ["yes", "no"]
>>> columns.expect(rows, labels)
>>> columns.remember(rows[0], labels[0])
>>> columns.to_batch(rows, labels).to_pydict()
{'age': [31.0, None], 'city': ['Rome', None], 'label': ['yes', 'no']}
>>> columns.expect([{"age": "old"}], ["no"])
Traceback (most recent call last):
driftquilt.errors.InputError: column 'age' holds the text 'old', but it has held numbers so far; \
make all of it numbers or all of it text
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa

from driftquilt.errors import InputError
from driftquilt.inputs.columns import is_missing
from driftquilt.inputs.row import Row

__all__ = ["LABEL", "Columns", "Label", "iter_rows", "read_at", "read_label", "read_labels"]

T = TypeVar("T")

LABEL = "label"

Label: TypeAlias = int | bool | str
_KINDS = {bool: pa.bool_(), int: pa.int64(), str: pa.string()}
_ARROW = {True: pa.string(), False: pa.float64()}
_CODES = {pa.float64(): "d", pa.int64(): "q"}  # of numbers as `struct` writes them
_WORDS = {bool: "booleans", int: "whole numbers", str: "text"}
_INT64 = 2**63


def read_label(y: Any) -> Label:
    """A label as a plain int, bool or string; whole floats become ints."""
    if isinstance(y, np.generic):
        y = y.item()
    if is_missing(y):
        raise InputError("the label is missing (NaN or None); leave the row out until it is known")
    if isinstance(y, bool):
        return y
    if isinstance(y, str):
        return str.__str__(y)
    if isinstance(y, float) and math.isfinite(y) and y == int(y):
        y = int(y)
    if isinstance(y, int) and -_INT64 <= y < _INT64:
        return int(y)
    raise InputError(
        f"the label {y!r} is a {type(y).__name__}; a label is a whole number, a boolean or a string"
    )


class Columns:
    """What each column and the labels have been so far."""

    def __init__(self) -> None:
        self._is_text: dict[str, bool] = {}
        self._label_type: type | None = None

    def expect(self, rows: Sequence[Row], labels: Sequence[Label] = ()) -> None:
        """Refuse rows that do not go with those before, or with each other."""
        new: dict[str, bool] = {}
        for row in rows:
            for name, value in row.items():
                if value is not None:
                    _expect_kind(self._is_text, new, name, value)
        label_type = self._label_type
        for label in labels:
            label_type = label_type or type(label)
            if type(label) is not label_type:
                raise InputError(
                    f"the label {label!r} is a {type(label).__name__}, but labels have been "
                    f"{_WORDS[label_type]} so far; make all of them the same kind"
                )
            if isinstance(label, str):
                _expect_unicode("the label", label)

    def remember(self, row: Row, label: Label) -> None:
        """Take in what a row holds, which has been expected."""
        for name, value in row.items():
            if value is not None and name not in self._is_text:
                self._is_text[name] = isinstance(value, str)
        self._label_type = self._label_type or type(label)

    def to_batch(self, rows: Sequence[Row], labels: Sequence[Label]) -> pa.RecordBatch:
        """Rows that have been remembered, as the store takes them."""
        names = sorted({name for row in rows for name in row if name in self._is_text})
        arrays = [
            _to_arrow([row.get(name) for row in rows], _ARROW[self._is_text[name]])
            for name in names
        ]
        arrays.append(_to_arrow(labels, _KINDS[self._label_type or int]))
        return pa.RecordBatch.from_arrays(arrays, names=[*names, LABEL])

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        kind = None if self._label_type is None else self._label_type.__name__
        return {"is_text": dict(sorted(self._is_text.items())), "label": kind}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Columns:
        columns = cls()
        columns._is_text = dict(data["is_text"])
        by_name = {kind.__name__: kind for kind in _KINDS}
        columns._label_type = None if data["label"] is None else by_name[data["label"]]
        return columns


def _to_arrow(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    code = _CODES.get(kind)
    if code is None or None in values:
        return pa.array(values, kind)
    numbers = struct.pack(f"{len(values)}{code}", *values)  # for one row faster than pa.array
    return pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(numbers)])


def _expect_kind(
    known: dict[str, bool], new: dict[str, bool], name: str, value: float | str
) -> None:
    text = isinstance(value, str)
    if text:
        _expect_unicode(f"the value of column {name!r}", str(value))
    before = known.get(name)
    if before is None:
        _expect_name(name)
        before = new.setdefault(name, text)
    if before != text:
        now, held = ("the text", "numbers") if text else ("the number", "text")
        raise InputError(
            f"column {name!r} holds {now} {value!r}, but it has held {held} so far; make all of "
            "it numbers or all of it text"
        )


def _expect_name(name: str) -> None:
    if name == LABEL:
        raise InputError(
            f"a column is called {LABEL!r}, which is the name that labels are stored under; "
            "rename it"
        )
    _expect_unicode("the name of a column", name)


def _expect_unicode(what: str, text: str) -> None:
    """Refuse halves of surrogate pairs, which Python's strings may hold and files may not."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise InputError(
                f"{what}, {text!r}, is no valid Unicode: {error}; decode it with errors='replace'"
            ) from error


def iter_rows(X: Any) -> Iterable[Any]:
    """Rows of a data frame, or of a list of dictionaries."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return frame.iter_rows(named=True)
    if not isinstance(X, Iterable) or isinstance(X, str | bytes | Mapping):
        raise InputError(
            f"rows are a data frame or a list of dictionaries, but got a {type(X).__name__}"
        )
    return X


def read_labels(y: Any) -> list[Label]:
    """The labels of a list, an array or a series."""
    if not isinstance(y, Iterable) or isinstance(y, str | bytes | Mapping):
        raise InputError(f"labels are a list, an array or a series, but got a {type(y).__name__}")
    return [read_at(number, read_label, label) for number, label in enumerate(y)]


def read_at(number: int, read: Callable[[Any], T], value: Any) -> T:
    """What `read` makes of a value, with its place in the message if it cannot."""
    try:
        return read(value)
    except InputError as error:
        raise InputError(f"row {number}: {error}") from error
