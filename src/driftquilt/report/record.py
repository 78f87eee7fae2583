"""Values taken out of a record that may be damaged, each checked where it is taken.

>>> take({"title": "Churn"}, "title", str, "a report")
'Churn'
>>> take({"title": 3}, "title", str, "a report")
Traceback (most recent call last):
driftquilt.errors.InputError: a report has 3 as its 'title', which should be text; write it anew
"""

from __future__ import annotations

from typing import Any, TypeVar

from driftquilt.errors import InputError

__all__ = ["damaged", "take", "take_list", "take_map"]

T = TypeVar("T")

_WORDS: dict[Any, str] = {
    str: "text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "a record",
}


def take(record: Any, key: str, kind: type[T], where: str) -> T:
    """The value at a key; whole numbers count as numbers, true and false do not."""
    if not isinstance(record, dict):
        raise damaged(where, f"is {_shown(record)}, which should be a record")
    if key not in record:
        raise damaged(where, f"has no {key!r}")
    if not _is(record[key], kind):
        raise damaged(where, _wrong(record[key], f"as its {key!r}", kind))
    value: T = record[key]
    return value


def take_list(record: Any, key: str, kind: type[T], where: str) -> tuple[T, ...]:
    """The values of a list, all of one kind."""
    values = take(record, key, list, where)
    for value in values:
        if not _is(value, kind):
            raise damaged(where, _wrong(value, f"in its {key!r}", kind))
    return tuple(values)


def take_map(record: Any, key: str, kind: type[T], where: str) -> dict[str, T]:
    """Values of one kind by name."""
    values = take(record, key, dict, where)
    for name, value in values.items():
        if not isinstance(name, str) or not _is(value, kind):
            raise damaged(where, _wrong(value, f"as {name!r} of its {key!r}", kind))
    return values


def damaged(where: str, what: str) -> InputError:
    """The error for a record that cannot be read."""
    return InputError(f"{where} {what}; write it anew")


def _is(value: Any, kind: Any) -> bool:
    if isinstance(value, bool):
        return kind is bool
    return isinstance(value, int | float if kind is float else kind)


def _wrong(value: Any, place: str, kind: Any) -> str:
    return f"has {_shown(value)} {place}, which should be {_WORDS[kind]}"


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:39]}…"  # noqa: PLR2004
