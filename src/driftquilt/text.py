"""Words that every part of the package needs: counts, lists of names, suggestions, JSON values.

>>> plural(1, "row"), plural(0, "row"), plural(1200, "past segment")
('1 row', '0 rows', '1,200 past segments')
>>> listing(["age", "city", "label"], limit=2)
"'age', 'city' and 1 more"
>>> "no column 'lable'; " + suggest("lable", ["age", "label"])
"no column 'lable'; did you mean 'label'? There are 'age', 'label'"
>>> import datetime
>>> json_safe({"loss": float("nan"), "names": ("may", datetime.date(2024, 6, 1))})
{'loss': None, 'names': ['may', '2024-06-01']}
"""

from __future__ import annotations

import math
import re
import reprlib
from collections.abc import Collection, Mapping
from difflib import SequenceMatcher
from itertools import islice
from typing import Any

__all__ = [
    "closest",
    "is_numeral",
    "json_safe",
    "listing",
    "one_line",
    "plural",
    "quote_name",
    "shown",
    "suggest",
]

_LISTED = 8  # names in a message
_SHOWN = 60  # characters of a value in a message
_COMPARED = 1_000  # names that a misspelt one is compared with
_SIMILAR = 0.65  # the least similarity of a misspelling; outcome and income have 0.62
_PUNCTUATED = re.compile(r"[,;:.](\s|$)")
_NAME = reprlib.Repr()
_NAME.maxstring = _NAME.maxother = 80  # characters of a name


def plural(number: int, noun: str) -> str:
    """Return the number and the noun, with an s for any number but one."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listing(names: Collection[Any], limit: int | None = _LISTED) -> str:
    """Return the first names, quoted, and how many more there are; `limit=None` lists all."""
    quoted = ", ".join(_NAME.repr(name) for name in islice(names, limit))
    n_more = 0 if limit is None else max(len(names) - limit, 0)
    return f"{quoted} and {n_more} more" if n_more else quoted


def quote_name(name: object) -> str:
    """Return a name for a sentence, quoted where it would read as a count or end the clause.

    >>> quote_name("may"), quote_name(18), quote_name("2024-05"), quote_name("north, 2024")
    ('may', "'18'", '2024-05', "'north, 2024'")
    """
    text = str(name)
    is_plain = not is_numeral(text) and text.strip() == text and not _PUNCTUATED.search(text)
    return text if text and is_plain else f"'{text}'"


def one_line(message: object) -> str:
    """Return a message, such as an error, without line breaks."""
    return " ".join(str(message).split())


def shown(value: object) -> str:
    """Return the repr of a value, cut short, for a message.

    >>> shown("x" * 100) == "'" + "x" * 56 + "..."
    True
    """
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def suggest(
    name: object,
    names: Collection[str],
    limit: int | None = _LISTED,
    *,
    taken: Collection[object] = (),
) -> str:
    """Return the end of a message about an unknown name: the closest ones, and which exist.

    Names that are `taken`, since something else goes by them, are not meant.

    >>> suggest("zzz", ["x", "y"]), suggest("zzz", [])
    ("there are 'x', 'y'", 'there are none')
    """
    near = closest(name, [known for known in names if known not in taken], n=2)
    start = f"did you mean {' or '.join(map(_NAME.repr, near))}? There" if near else "there"
    return f"{start} are {listing(names, limit) if names else 'none'}"


def closest(name: object, names: Collection[str], n: int = 1) -> list[str]:
    """Return up to `n` names of which `name` may be a misspelling, the most similar first.

    Case does not count, and neither does a file suffix that both have. Names with different
    numbers are never similar: `x12` is not meant to be `x11`.

    >>> closest("Prize", ["price", "size"]), closest("june.csv", ["july.csv"])
    (['price'], [])
    """
    ranked = [(_similarity(str(name), known), known) for known in islice(names, _COMPARED)]
    similar = [pair for pair in ranked if pair[0] >= _SIMILAR]
    similar.sort(key=lambda pair: -pair[0])  # stable: the first of equals stays the first
    return [known for _, known in similar[:n]]


def _similarity(name: str, known: str) -> float:
    one, other = name.casefold().strip(), known.casefold().strip()
    suffix = one[one.rfind(".") :] if "." in one else ""
    one, other = one.removesuffix(suffix), other.removesuffix(suffix)
    if one == other:
        return 1.0
    if re.findall(r"[0-9]+", one) != re.findall(r"[0-9]+", other):
        return 0.0
    return SequenceMatcher(None, one, other).ratio()


def json_safe(value: Any, digits: int | None = None) -> Any:
    """Return the value as strict JSON can express it, so that any reader accepts it.

    Values of numpy become Python's, tuples and arrays lists, keys and unknown objects text, and
    numbers that are not finite None. Floats are rounded to `digits` significant digits.

    >>> json_safe({1: [1 / 3, True, None]}, digits=4)
    {'1': [0.3333, True, None]}
    """
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return _json_float(float(value), digits)
    if isinstance(value, Mapping):
        return {str(name): json_safe(part, digits) for name, part in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [json_safe(part, digits) for part in value]
    kind = getattr(getattr(value, "dtype", None), "kind", None)
    if kind is None or kind in "mM":  # of numpy's dates `tolist` may make nanoseconds
        return str(value) if getattr(value, "ndim", 0) == 0 else [str(part) for part in value]
    return json_safe(value.tolist(), digits)


def _json_float(value: float, digits: int | None) -> float | None:
    if not math.isfinite(value):
        return None
    return value if digits is None else float(f"{value:.{digits}g}")


def is_numeral(text: str) -> bool:
    """Return whether text reads as a number.

    >>> is_numeral(" 1e3 "), is_numeral("?")
    (True, False)
    """
    try:
        float(text)
    except ValueError:
        return False
    return True
