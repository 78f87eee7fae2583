"""Names of columns and files: their natural order, and columns without a name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from driftquilt.errors import InputError
from driftquilt.text import listing

__all__ = ["check_names", "natural", "unnamed"]


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
            f"{where} has several columns named {listing(twice)}; rename or drop all but one"
        )
    return named


def unnamed(where: str, names: Sequence[str]) -> list[str]:
    """A note for each column without a name: how `check_names` calls it."""
    pairs = zip(names, check_names(where, names), strict=True)
    made = [name for given, name in pairs if not given]
    return [f"{where}: the column without a name is called {name!r}" for name in made]
