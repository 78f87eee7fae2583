"""Which rows a replay is of: what its file begins with, and what differs when others are given.

>>> table = pa.table({"a": [1, 2], "sold": [True, False]})
>>> found = replay_header(table, "sold", [], name="may.csv", count=200)
>>> expect_same("events.jsonl", found, found)
>>> other = replay_header(table.slice(1), "a", [], name="june.csv", count=200)
>>> expect_same("events.jsonl", found, other)
Traceback (most recent call last):
driftquilt.errors.InputError: events.jsonl tells of other rows: it was begun with may.csv (2 \
rows), and this is june.csv (1 row). The label was 'sold' and is 'a'; the first row is another. \
Give the same data and settings to go on, or another folder and a new store (--out, --store) to \
begin anew
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pyarrow as pa

from driftquilt.errors import InputError
from driftquilt.text import listing, plural

__all__ = ["FORMAT", "Line", "expect_same", "fingerprint", "replay_header"]

#: Raised when files of the version before can no longer be read.
FORMAT = 1

Line = dict[str, Any]


def replay_header(
    table: pa.Table, label: str, drop: Sequence[str], *, name: str, count: int
) -> Line:
    """The first line of a file; a table may grow meanwhile, and be called otherwise."""
    return {
        "record": "replay", "row": 0, "format": FORMAT, "label": label, "drop": list(drop),
        "count": count, "name": name, "n_rows": table.num_rows,
        "columns": {field.name: str(field.type) for field in table.schema},
        "first": fingerprint(table, 0),
    }  # fmt: skip


def fingerprint(table: pa.Table, row: int) -> str:
    """Tells the values of one row from others."""
    values = repr(table.slice(row, 1).to_pylist())
    return hashlib.sha256(values.encode()).hexdigest()[:16]


def expect_same(
    path: str | os.PathLike[str], found: Mapping[str, Any], wanted: Mapping[str, Any]
) -> None:
    """Refuse a table and settings that a file was not begun with; the message says what differs."""
    differences = list(_differences(found, wanted))
    if not differences:
        return
    told = "; ".join(differences)
    raise InputError(
        f"{path} tells of other rows: it was begun with {_what(found)}, and this is "
        f"{_what(wanted)}. {told[0].upper()}{told[1:]}. Give the same data and settings to go on, "
        "or another folder and a new store (--out, --store) to begin anew"
    )


def _what(header: Mapping[str, Any]) -> str:
    return f"{header.get('name', 'a table')} ({plural(header.get('n_rows', 0), 'row')})"


def _differences(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> Iterator[str]:
    for key in ("format", "label", "count"):
        if found.get(key) != wanted[key]:
            yield f"the {key} was {found.get(key)!r} and is {wanted[key]!r}"
    if found.get("drop") != wanted["drop"]:
        before, now = (listing(header.get("drop", [])) or "none" for header in (found, wanted))
        yield f"the columns dropped were {before} and are {now}"
    before, now = found.get("columns", {}), wanted["columns"]
    yield from _columns(before, now)
    if before == now and found.get("first") != wanted["first"]:
        yield "the first row is another"


def _columns(before: Mapping[str, str], now: Mapping[str, str]) -> Iterator[str]:
    gone, new = [n for n in before if n not in now], [n for n in now if n not in before]
    if gone:
        yield f"columns gone: {listing(gone)}"
    if new:
        yield f"columns new: {listing(new)}"
    for name, kind in before.items():
        if now.get(name, kind) != kind:
            yield f"column {name!r} was {kind} and is {now[name]}"
    if list(before) != list(now) and sorted(before) == sorted(now):
        yield "the columns stand in another order"
