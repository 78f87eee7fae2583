"""What a message says: a row with its label, a row to predict, or the label of an earlier row.

A body is a JSON object in one of three shapes:

    {"row": {"age": 31}, "label": "yes"}     `Labelled`
    {"row": {"age": 31}, "id": "order 7"}    `Asked`
    {"id": "order 7", "label": "yes"}        `LateLabel`

Values of a row are numbers within float32, strings, booleans or null; a label is a whole number,
a boolean or a string; an id is a string or a whole number, of at most 1,000 signs. Anything else
is `Unreadable`, a value and no error: one bad message must not stop those behind it.

>>> decode(b'{"row": {"age": 31, "city": null}, "label": true}')
Labelled(row={'age': 31, 'city': None}, label=True)
>>> decode(b'{"row": {"age": NaN}, "id": 7}')
Unreadable(why='it holds NaN, which is no JSON; give null for what is missing')
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias

import numpy as np

__all__ = ["Arrival", "Asked", "Labelled", "LateLabel", "Unreadable", "decode"]

MOST_BYTES = 2**20

_LONGEST_ID = 1_000  # signs
_SHAPES = '{"row": {...}, "label": ...}, {"row": {...}, "id": ...} or {"id": ..., "label": ...}'
_LARGEST = float(np.finfo(np.float32).max)
_INT64 = 2**63


@dataclass(frozen=True)
class Labelled:
    """A row to learn."""

    row: dict[str, Any] = field(hash=False)
    label: int | bool | str


@dataclass(frozen=True)
class Asked:
    """A row to predict, whose label is still to come."""

    id: str | int
    row: dict[str, Any] = field(hash=False)


@dataclass(frozen=True)
class LateLabel:
    """The label of a row that came before."""

    id: str | int
    label: int | bool | str


@dataclass(frozen=True)
class Unreadable:
    """No such message, and why not."""

    why: str


Arrival: TypeAlias = Labelled | Asked | LateLabel | Unreadable


class _BadMessageError(ValueError):
    """Why a message cannot be read."""


def decode(body: bytes) -> Arrival:
    """What a body says."""
    try:
        if len(body) > MOST_BYTES:
            raise _BadMessageError(f"it has {len(body)} bytes; at most {MOST_BYTES} are read")
        return _arrival(_load(body))
    except _BadMessageError as error:
        return Unreadable(str(error))


def _load(body: bytes) -> dict[str, Any]:
    try:
        found = json.loads(
            body.decode(), object_pairs_hook=_object, parse_constant=_refuse_constant
        )
    except UnicodeDecodeError as error:
        raise _BadMessageError(f"it is no UTF-8: {error}") from error
    except _BadMessageError:
        raise
    except RecursionError as error:
        raise _BadMessageError("it is nested without end") from error
    except ValueError as error:
        raise _BadMessageError(f"it is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise _BadMessageError(f"it is a {type(found).__name__}; give {_SHAPES}")
    return found


def _arrival(found: dict[str, Any]) -> Arrival:
    match sorted(found):
        case ["label", "row"]:
            return Labelled(_row(found["row"]), _label(found["label"]))
        case ["id", "row"]:
            return Asked(_id(found["id"]), _row(found["row"]))
        case ["id", "label"]:
            return LateLabel(_id(found["id"]), _label(found["label"]))
    raise _BadMessageError(f"it has the keys {reprlib.repr(sorted(found))}; give {_SHAPES}")


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise _BadMessageError("a key stands twice in it")
    return made


def _refuse_constant(text: str) -> NoReturn:
    raise _BadMessageError(f"it holds {text}, which is no JSON; give null for what is missing")


def _row(row: Any) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise _BadMessageError(f"its row is a {type(row).__name__}; give an object of columns")
    for name, value in row.items():
        _text(name)
        if isinstance(value, str):
            _text(value)
        elif isinstance(value, int | float):
            if not abs(value) <= _LARGEST:
                raise _BadMessageError(
                    f"column {name!r} holds {reprlib.repr(value)}, beyond float32; give null or a "
                    "bound in its place"
                )
        elif value is not None:
            raise _BadMessageError(
                f"column {name!r} holds a {type(value).__name__}; give a number, a string, a "
                "boolean or null"
            )
    return row


def _label(label: Any) -> int | bool | str:
    if isinstance(label, str):
        return _text(label)
    if isinstance(label, float) and label.is_integer():
        label = int(label)
    if isinstance(label, int) and -_INT64 <= label < _INT64:
        return label
    raise _BadMessageError(
        f"its label is {reprlib.repr(label)}; give a whole number, a boolean or a string"
    )


def _id(key: Any) -> str | int:
    if isinstance(key, str | int) and len(str(key)) > _LONGEST_ID:
        raise _BadMessageError(
            f"its id {reprlib.repr(key)} has {len(str(key))} signs; give at most {_LONGEST_ID}"
        )
    if isinstance(key, str):
        return _text(key)
    if isinstance(key, int) and not isinstance(key, bool):
        return key
    raise _BadMessageError(f"its id is {reprlib.repr(key)}; give a string or a whole number")


def _text(text: str) -> str:
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise _BadMessageError(f"{text!r} is half a surrogate pair, no Unicode") from error
    return text
