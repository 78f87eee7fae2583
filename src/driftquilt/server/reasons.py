"""Why a body was refused, in plain words made of our own names alone.

msgspec says what it wanted, what came and where; keys of the caller's own stand there as `[...]`,
but an unknown key is named. So its sentence is taken apart and said anew.

>>> class Point(msgspec.Struct, forbid_unknown_fields=True):
...     x: float | str | None
...     y: float = 0.0
>>> def refusal(body: bytes) -> str:
...     try:
...         msgspec.json.decode(body, type=list[Point])
...     except msgspec.ValidationError as error:
...         return plain_reason(error, list[Point], "points")
>>> refusal(b'[{"x": true}]')
'points[0].x takes a number, text or null, but a boolean came; send 1 or 0'
>>> refusal(b'[{"x": 1}, {"x": 2, "secret": 3}]')
'points[1] has a key that is not known here; there are x, y'
"""

from __future__ import annotations

import re
from typing import Any

import msgspec
from msgspec import inspect

__all__ = ["plain_reason"]

_WORDS = {
    "float": "a number", "int": "a whole number", "str": "text", "bool": "a boolean",
    "null": "null", "array": "a list", "object": "an object",
}  # fmt: skip
_ORDER = list(_WORDS.values())
_PLACE = re.compile(r" - at `\$(.*)`$")
_WANTED = re.compile(r"Expected `([a-z |]+)`, got `([a-z]+)`")
_MISSING = re.compile(r"Object missing required field `(\w+)`")
_OF_ROW = "float | str | null"
_BOUND = re.compile(r"Expected `int` (<=|>=) (-?\d+)")


def plain_reason(error: msgspec.ValidationError, kind: Any, name: str = "") -> str:
    """The reason why a body, or the part of it called `name`, is no `kind`."""
    said = str(error)
    found = _PLACE.search(said)
    path = found[1] if found else ""
    where = f"{name}{path}".removeprefix(".") or "the body"
    if "unknown field" in said:
        known = ", ".join(_keys(inspect.type_info(kind), re.findall(r"\.(\w+)", path)))
        return f"{where} has a key that is not known here; there are {known}"
    if missing := _MISSING.match(said):
        return f"{where} has no {missing[1]}"
    if bound := _BOUND.match(said):
        return f"{where} is {'at most' if bound[1] == '<=' else 'at least'} {bound[2]}"
    if wanted := _WANTED.match(said):
        return f"{where} takes {_wanted(*wanted.groups())}"
    return f"{where} does not hold what it should"


def _wanted(kinds: str, got: str) -> str:
    *firsts, last = sorted((_WORDS[kind] for kind in kinds.split(" | ")), key=_ORDER.index)
    wanted = f"{', '.join(firsts)} or {last}" if firsts else last
    advice = "; send 1 or 0" if got == "bool" and kinds == _OF_ROW else ""
    return f"{wanted}, but {_WORDS[got]} came{advice}"


def _keys(kind: inspect.Type, path: list[str]) -> list[str]:
    """The keys of the object at a path."""
    if isinstance(kind, inspect.ListType):
        return _keys(kind.item_type, path)
    if isinstance(kind, inspect.UnionType):
        return next(filter(None, (_keys(one, path) for one in kind.types)), [])
    if not isinstance(kind, inspect.StructType):
        return []
    if not path:
        return [field.encode_name for field in kind.fields]
    below = next(field for field in kind.fields if field.encode_name == path[0])
    return _keys(below.type, path[1:])
