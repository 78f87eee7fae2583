"""Names that were meant: what to say when a column or a file is not there.

>>> "no column 'lable'; " + suggest("lable", ["age", "label"])
"no column 'lable'; did you mean 'label'? there are 'age', 'label'"
>>> suggest("zzz", [f"x{j}" for j in range(20)])
"there are 'x0', 'x1', 'x2', 'x3', 'x4', 'x5', 'x6', 'x7' and 12 more"
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher

from driftquilt.errors import InputError

__all__ = ["check_names", "listed", "natural", "suggest", "unnamed"]

_SHOWN = 8  # names that a message lists
_ALIKE = 0.75  # from here on a name is taken for a slip; outcome and income have 0.62


def suggest(name: str, names: Sequence[str]) -> str:
    """The end of a message: the closest of the names, and which there are."""
    near = max(names, key=lambda known: _likeness(name, known), default=None)
    meant = near is not None and _likeness(name, near) >= _ALIKE
    hint = f"did you mean {near!r}? " if meant else ""
    return f"{hint}there are {listed(names)}" if names else f"{hint}there are none"


def _likeness(name: str, known: str) -> float:
    """How alike two names are, from 0 to 1.

    A suffix that both have says nothing, and neither do names whose numbers differ: `x12` is no
    slip for `x11`, nor `june.csv` for `july.csv`.
    """
    one, other = name.lower(), known.lower()
    ending = one[one.rfind(".") :] if "." in one else ""
    one, other = one.removesuffix(ending), other.removesuffix(ending)
    if one == other:
        return 1.0
    if re.findall(r"[0-9]+", one) != re.findall(r"[0-9]+", other):
        return 0.0
    return SequenceMatcher(None, one, other).ratio()


def listed(names: Sequence[str]) -> str:
    """The first names, quoted, and how many more there are."""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(map(repr, names[:_SHOWN])) + more


def natural(name: str) -> list[tuple[bool, int, str]]:
    """A key that sorts numbers inside names by value.

    >>> sorted(["day10", "day9", "Day1"], key=natural)
    ['Day1', 'day9', 'day10']
    """
    parts = [part for part in re.split(r"([0-9]+)", name) if part]
    return [(False, int(p), p) if p.isdecimal() else (True, 0, p.lower()) for p in parts]


def check_names(where: str, names: Sequence[str]) -> list[str]:
    """Names of columns: one without a name is called after its position, from 1 on.

    >>> check_names("a.csv", ["", "age"])
    ['column_1', 'age']
    """
    named = [name or f"column_{number}" for number, name in enumerate(names, start=1)]
    twice = [name for name, count in Counter(named).items() if count > 1]
    if twice:
        raise InputError(
            f"{where} has several columns named {listed(twice)}; rename or drop all but one"
        )
    return named


def unnamed(where: str, names: Sequence[str]) -> list[str]:
    """A note for each column without a name: how `check_names` calls it."""
    pairs = zip(names, check_names(where, names), strict=True)
    made = [name for given, name in pairs if not given]
    return [f"{where}: the column without a name is called {name!r}" for name in made]
