"""What a message says: a row with its label, a row to predict, or the label of an earlier row.

A body is a JSON object in one of three shapes:

    {"row": {"age": 31}, "label": "yes"}     `Labelled`
    {"row": {"age": 31}, "id": "order 7"}    `Asked`
    {"id": "order 7", "label": "yes"}        `LateLabel`

An id is a string or a whole number, of at most 1,000 characters. Anything else is `Unreadable`, a
value and no error: one bad message must not stop those behind it. Rows and labels are checked by
the stream that gets them.

>>> decode(b'{"row": {"age": 31, "city": null}, "label": true}')
Labelled(row={'age': 31, 'city': None}, label=True)
>>> decode(b'{"row": {"age": NaN}, "id": 7}')
Unreadable(why='it holds NaN, which is not valid JSON; give null for what is missing')
"""

from __future__ import annotations

import json
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias

__all__ = ["Arrival", "Asked", "Labelled", "LateLabel", "Unreadable", "decode"]

_MAX_BYTES = 2**20
_MAX_ID_LENGTH = 1_000
_SHAPES = '{"row": {...}, "label": ...}, {"row": {...}, "id": ...} or {"id": ..., "label": ...}'


@dataclass(frozen=True)
class Labelled:
    """A row to learn."""

    row: Any = field(hash=False)
    label: Any


@dataclass(frozen=True)
class Asked:
    """A row to predict, whose label is still to come."""

    id: str | int
    row: Any = field(hash=False)


@dataclass(frozen=True)
class LateLabel:
    """The label of a row that came before."""

    id: str | int
    label: Any


@dataclass(frozen=True)
class Unreadable:
    """No such message, and why not."""

    why: str


Arrival: TypeAlias = Labelled | Asked | LateLabel | Unreadable


class _BadMessageError(ValueError):
    """Why a message cannot be read."""


def decode(body: bytes) -> Arrival:
    """Return what a body says."""
    try:
        if len(body) > _MAX_BYTES:
            raise _BadMessageError(f"it has {len(body)} bytes; at most {_MAX_BYTES} are read")
        return _read(_load(body))
    except _BadMessageError as error:
        return Unreadable(str(error))


def _load(body: bytes) -> Any:
    try:
        return json.loads(body.decode(), object_pairs_hook=_object, parse_constant=_refuse_constant)
    except _BadMessageError:
        raise
    except UnicodeDecodeError as error:
        raise _BadMessageError(f"it is not UTF-8: {error}") from error
    except RecursionError as error:
        raise _BadMessageError("it is nested too deeply") from error
    except ValueError as error:
        raise _BadMessageError(f"it is not valid JSON: {error}") from error


def _object(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise _BadMessageError("a key stands twice in it")
    return made


def _refuse_constant(text: str) -> NoReturn:
    raise _BadMessageError(
        f"it holds {text}, which is not valid JSON; give null for what is missing"
    )


def _read(body: Any) -> Arrival:
    if not isinstance(body, dict):
        raise _BadMessageError(f"it is a {type(body).__name__}; give {_SHAPES}")
    match sorted(body):
        case ["label", "row"]:
            return Labelled(body["row"], body["label"])
        case ["id", "row"]:
            return Asked(_read_id(body["id"]), body["row"])
        case ["id", "label"]:
            return LateLabel(_read_id(body["id"]), body["label"])
    raise _BadMessageError(f"it has the keys {reprlib.repr(sorted(body))}; give {_SHAPES}")


def _read_id(key: Any) -> str | int:
    if not isinstance(key, str | int) or isinstance(key, bool):
        raise _BadMessageError(f"its id is {reprlib.repr(key)}; give a string or a whole number")
    text = str(key)
    if len(text) > _MAX_ID_LENGTH:
        raise _BadMessageError(
            f"its id {reprlib.repr(key)} has {len(text)} characters; give at most {_MAX_ID_LENGTH}"
        )
    if text != text.encode(errors="replace").decode():
        raise _BadMessageError(f"its id {reprlib.repr(key)} is not valid Unicode")
    return key
