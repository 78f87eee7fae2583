"""What callers give, as plain values: rows of tables, pairs, labels.

Labels are whole numbers, booleans or text. What cannot be read is an `InputError`, which says at
which row if there are many.

>>> read_label(3.0), read_labels(["yes", "no"]), read_pair(({"age": 31}, True))
(3, ['yes', 'no'], ({'age': 31}, True))
>>> read_at(7, read_label, None)
Traceback (most recent call last):
driftquilt.errors.InputError: row 7: the label is missing (NaN or None); leave the row out until \
it is known
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any, TypeAlias, TypeVar

import narwhals.stable.v2 as nw
import numpy as np

from driftquilt.data.columns import is_missing
from driftquilt.errors import InputError

__all__ = ["Label", "iter_rows", "read_at", "read_label", "read_labels", "read_pair"]

T = TypeVar("T")

Label: TypeAlias = int | bool | str
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
        return _read_text(str.__str__(y))
    if isinstance(y, float) and math.isfinite(y) and y == int(y):
        y = int(y)
    if isinstance(y, int) and -_INT64 <= y < _INT64:
        return int(y)
    raise InputError(
        f"the label {y!r} is a {type(y).__name__}; a label is a whole number, a boolean or a string"
    )


def _read_text(label: str) -> str:
    """A label of text, unless it would be another one in an array."""
    if label.endswith("\0"):
        raise InputError(
            f"the label {reprlib.repr(label)} ends in a zero character, which numpy drops; leave "
            "it out"
        )
    return label


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


def read_pair(pair: Any) -> tuple[Any, Any]:
    """A row and its label, neither of them read yet."""
    if isinstance(pair, Iterable) and not isinstance(pair, str | bytes | Mapping):
        parts = tuple(islice(pair, 3))
        if len(parts) == 2:  # noqa: PLR2004
            return parts
    raise InputError(
        f"this is no pair of row and label: {reprlib.repr(pair)}; give, for example, "
        "({'age': 31.0}, 'yes')"
    )
