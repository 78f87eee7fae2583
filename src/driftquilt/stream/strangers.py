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

from collections.abc import Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from itertools import islice

from driftquilt.data.row import Row
from driftquilt.errors import InputError
from driftquilt.text import closest, listing

__all__ = ["refuse_stranger"]

_LISTED = 4  # names in a message


def refuse_stranger(
    row: Row, known: AbstractSet[str], just_now: AbstractSet[str] = frozenset()
) -> None:
    """`InputError` for a row with no column that is known, or came just now in the same batch."""
    if not (known.isdisjoint(row) and just_now.isdisjoint(row)):
        return
    there = sorted(known | just_now)
    if not there:
        return
    names, columns = listing(there, _LISTED), sorted(row)
    if not row:
        raise InputError(
            f"the row is empty, but the rows so far had the columns {names}; leave it out, or give "
            "what is known of it"
        )
    near = ", ".join(_closest(columns, there))
    raise InputError(
        f"the row has the columns {listing(columns, _LISTED)}, but the rows so far had none of "
        f"them, they had {names}{f' (close: {near})' if near else ''}; rename its columns, or give "
        "another feed a stream of its own"
    )


def _closest(names: Collection[str], known: Sequence[str]) -> Iterator[str]:
    """Pairs of a name and the one that it may stand for; case plays no part."""
    pairs = ((name, near) for name in names for near in closest(name, known))
    for name, near in islice(pairs, _LISTED):
        yield f"{listing([name])} and {listing([near])}"
