"""Which columns of one table are those of another: by name, or by position.

A table's columns may be several to one of the caller's (see `calendar`), so they are matched as
the caller knows them, and messages speak of those. `group` finds which belong together, from
the names alone:

>>> group(["age", "at (time of day, sin)", "at (time of day, cos)"])
{'age': [0], 'at': [1, 2]}
>>> sources(["age", "at (time of day, sin)", "at (time of day, cos)"])
('age', 'at')

A column that holds nothing goes with any kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from driftquilt.data.calendar import CLOCK_PARTS, PARTS, part_name, source
from driftquilt.errors import InputError
from driftquilt.text import closest

__all__ = ["Header", "check_columns", "find_columns", "flatten", "group", "line_up", "sources"]

_OWNER = "QuiltClassifier"  # whom scikit-learn's messages speak of
_KINDS = {len(PARTS): "dates", len(CLOCK_PARTS): "times of day"}

T = TypeVar("T")


class Header(Protocol):
    """What `Frame` and `ArrowFrame` have in common."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns."""

    @property
    def named(self) -> bool:
        """Whether the names are the caller's."""

    def kind(self, name: str) -> str:
        """What the column holds: "numbers", "text" or "nothing"."""


def check_columns(names: Iterable[Any], shape: tuple[int, ...]) -> tuple[str, ...]:
    """The names as text, if a table can have them and this shape."""
    names = tuple(str(name) for name in names)
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise InputError(f"X has several columns named {twice} (as text); rename or drop them")
    shape = tuple(map(int, shape))
    for count, unit in zip(shape, ("sample(s)", "feature(s)"), strict=True):
        if count == 0:
            raise InputError(
                f"Found array with 0 {unit} (shape={shape}) while a minimum of 1 is required."
            )
    return names


def flatten(columns: Iterable[Mapping[str, T]]) -> dict[str, T]:
    """Columns by name, given what each column of the caller's became."""
    flat: dict[str, T] = {}
    for made in columns:
        for name, values in made.items():
            if name in flat:
                raise InputError(
                    f"column {source(name)!r} holds dates, which become columns such as {name!r}, "
                    "but there is a column of that name; rename one of them"
                )
            flat[name] = values
    return flat


def group(names: Sequence[str]) -> dict[str, list[int]]:
    """The caller's columns, and the places of what each became; parts in the order of `PARTS`."""
    places: dict[str, dict[str, int]] = {}
    for place, name in enumerate(names):
        places.setdefault(source(name), {})[name] = place
    groups: dict[str, list[int]] = {}
    for name, members in places.items():
        parts = _find_parts(name, members)
        groups.update({name: parts} if parts else {one: [at] for one, at in members.items()})
    return dict(sorted(groups.items(), key=lambda item: min(item[1])))


def sources(names: Sequence[str]) -> tuple[str, ...]:
    """The caller's columns."""
    return tuple(group(names))


def find_columns(table: Header, names: Sequence[str], *, named: bool) -> list[int]:
    """Where in `table` the columns of these names stand.

    They are found by position where they or this table's are made up.
    """
    if tuple(names) == table.columns:
        return list(range(len(names)))
    place: dict[int, int] = {}
    for name, wanted, there in _pair(table, group(names), named=named):
        place.update(zip(wanted, _match(table, name, wanted, there), strict=True))
    return [place[at] for at in range(len(names))]


def line_up(first: Header, second: Header) -> list[int]:
    """Where in `second`, whose rows are to go below `first`, the columns of `first` stand."""
    known = sources(first.columns)
    extra = [name for name in sources(second.columns) if name not in known]
    if extra and first.named and second.named:
        raise InputError(
            f"the new rows have columns that the rows before have not: {extra}; drop them, or "
            "fit again on all rows"
        )
    return find_columns(second, first.columns, named=first.named)


def _pair(
    table: Header, wanted: dict[str, list[int]], *, named: bool
) -> list[tuple[str, list[int], list[int]]]:
    """Each of the caller's columns, the places of its parts, and their places in `table`."""
    there = group(table.columns)
    if named and table.named:
        lacking = [name for name in wanted if name not in there]
        if lacking:
            raise _lacking(lacking, tuple(there))
        return [(name, places, there[name]) for name, places in wanted.items()]
    if len(wanted) != len(there):
        raise InputError(
            f"X has {len(there)} features, but {_OWNER} is expecting {len(wanted)} features as "
            "input"
        )
    return list(zip(wanted, wanted.values(), there.values(), strict=True))


def _find_parts(name: str, members: Mapping[str, int]) -> list[int]:
    """The places of a date's parts; none if these are columns of the caller's own."""
    for parts in (PARTS, CLOCK_PARTS):
        if len(members) == len(parts):
            made = [part_name(name, part) for part in parts]
            return [members[part] for part in made] if set(made) == set(members) else []
    return []


def _match(table: Header, name: str, wanted: list[int], there: list[int]) -> list[int]:
    if len(wanted) == len(there):
        return there
    now = table.kind(table.columns[there[0]])
    if now == "nothing":
        return there[:1] * len(wanted)
    now = _KINDS.get(len(there), now)
    before = _KINDS.get(len(wanted), f"not {now}")
    raise InputError(
        f"column {name!r} was {before} at fit and is {now} now; make it the same in both"
    )


def _lacking(lacking: list[str], names: tuple[str, ...]) -> InputError:
    pairs = [(name, closest(name, names)) for name in lacking]
    parts = [
        f"{name!r} (did you mean {near[0]!r}?)" if near else repr(name) for name, near in pairs
    ]
    return InputError(f"X lacks columns that were there at fit: {', '.join(parts)}; add them")
