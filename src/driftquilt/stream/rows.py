"""Labelled rows of a stream: what they may hold, and how they go into a store.

A column is numbers or text for as long as the stream lives; it may be missing in any row, come
late or vanish. So are labels: all whole numbers, all booleans or all text. In the store a row
has its columns under their own names and its label under `LABEL`.

>>> columns = Columns()
>>> batch = columns.to_batch([{"age": 31.0, "city": "Rome"}, {"age": None}], ["yes", "no"])
>>> batch.to_pydict()
{'age': [31.0, None], 'city': ['Rome', None], 'label': ['yes', 'no']}
>>> columns.to_batch([{"age": "old"}], ["no"])
Traceback (most recent call last):
driftquilt.errors.InputError: column 'age' holds the text 'old', but it has held numbers so far; \
make all of it numbers or all of it text
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import narwhals.stable.v2 as nw
import numpy as np
import pyarrow as pa

from driftquilt.errors import InputError
from driftquilt.inputs.columns import is_missing
from driftquilt.inputs.row import Row, Value

__all__ = ["LABEL", "Columns", "Label", "iter_rows", "read_at", "read_label"]

T = TypeVar("T")

LABEL = "label"

Label: TypeAlias = int | bool | str
_KINDS = {bool: pa.bool_(), int: pa.int64(), str: pa.string()}
_ARROW = {True: pa.string(), False: pa.float64()}
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
        """Refuse rows that do not go with those before; else remember what they hold."""
        is_text, label_type = dict(self._is_text), self._label_type
        for row in rows:
            for name, value in row.items():
                _expect_kind(is_text, name, value)
        for label in labels:
            label_type = label_type or type(label)
            if type(label) is not label_type:
                raise InputError(
                    f"the label {label!r} is a {type(label).__name__}, but labels have been "
                    f"{_WORDS[label_type]} so far; make all of them the same kind"
                )
        if labels:
            self._is_text, self._label_type = is_text, label_type

    def to_batch(self, rows: Sequence[Row], labels: Sequence[Label]) -> pa.RecordBatch:
        """The rows as the store takes them."""
        self.expect(rows, labels)
        names = dict.fromkeys(name for row in rows for name in row if name in self._is_text)
        arrays = [
            pa.array([row.get(name) for row in rows], _ARROW[self._is_text[name]]) for name in names
        ]
        arrays.append(pa.array(labels, _KINDS[self._label_type or int]))
        return pa.RecordBatch.from_arrays(arrays, names=[*names, LABEL])

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        kind = None if self._label_type is None else self._label_type.__name__
        return {"is_text": self._is_text, "label": kind}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Columns:
        columns = cls()
        columns._is_text = dict(data["is_text"])
        by_name = {kind.__name__: kind for kind in _KINDS}
        columns._label_type = None if data["label"] is None else by_name[data["label"]]
        return columns


def _expect_kind(is_text: dict[str, bool], name: str, value: Value) -> None:
    if name == LABEL:
        raise InputError(
            f"a column is called {LABEL!r}, which is the name that labels are stored under; "
            "rename it"
        )
    if value is None:
        return
    text = isinstance(value, str)
    if is_text.setdefault(name, text) != text:
        now, before = ("the text", "numbers") if text else ("the number", "text")
        raise InputError(
            f"column {name!r} holds {now} {value!r}, but it has held {before} so far; make all of "
            "it numbers or all of it text"
        )


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


def read_at(number: int, read: Callable[[Any], T], value: Any) -> T:
    """What `read` makes of a value, with its place in the message if it cannot."""
    try:
        return read(value)
    except InputError as error:
        raise InputError(f"row {number}: {error}") from error
