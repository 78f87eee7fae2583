"""Rows that have nothing to do with those before: a file with other names, another feed.

A row without any column that rows so far have had would be learned as one large gap, and nobody
would notice. It is refused, with some names of both and the closest of them. Before the first
column is known anything goes.

>>> refuse_stranger({"price": 3.0, "Visit": 1.0}, {"Price", "visits"})
Traceback (most recent call last):
driftquilt.errors.InputError: the row has the columns 'Visit', 'price', but the rows so far had \
none of them, they had 'Price', 'visits' (close: 'Visit' and 'visits', 'price' and 'Price'); \
rename its columns, or give another feed a stream of its own
"""

from __future__ import annotations

import reprlib
from collections.abc import Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from difflib import get_close_matches

from driftquilt.data.row import Row
from driftquilt.errors import InputError

__all__ = ["refuse_stranger"]

_MOST = 4  # names to show
_MOST_COMPARED = 1_000  # names to look for close ones among


def refuse_stranger(
    row: Row, known: AbstractSet[str], just_now: AbstractSet[str] = frozenset()
) -> None:
    """`InputError` for a row with no column that is known, or came just now in the same batch."""
    if not (known.isdisjoint(row) and just_now.isdisjoint(row)):
        return
    there = sorted(known | just_now)
    if not there:
        return
    if not row:
        raise InputError(
            f"the row is empty, but the rows so far had the columns {_listed(there)}; leave it "
            "out, or give what is known of it"
        )
    near = ", ".join(_closest(sorted(row), there))
    raise InputError(
        f"the row has the columns {_listed(sorted(row))}, but the rows so far had none of them, "
        f"they had {_listed(there)}{f' (close: {near})' if near else ''}; rename its columns, or "
        "give another feed a stream of its own"
    )


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(map(reprlib.repr, names[:_MOST]))
    return shown if len(names) <= _MOST else f"{shown} and {len(names) - _MOST} more"


def _closest(names: Collection[str], known: Sequence[str]) -> Iterator[str]:
    """Pairs of a name and the one that it may stand for; case plays no part."""
    by_word = {_word(name): name for name in known[:_MOST_COMPARED]}
    n_found = 0
    for name in names:
        for word in get_close_matches(_word(name), by_word, n=1):
            yield f"{reprlib.repr(name)} and {reprlib.repr(by_word[word])}"
            n_found += 1
        if n_found == _MOST:
            return


def _word(name: str) -> str:
    return name.casefold().strip()
