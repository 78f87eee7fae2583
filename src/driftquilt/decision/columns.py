"""The columns of a table: which a model can learn from, and what to know of each.

Numbers, text, booleans, dates and times can be used. Lists and the like are left out and noted,
and so is a column with no value. Columns are looked at block by block, so a mapped file stays one.

>>> table = pa.table({"age": [31, None, None, None, 7], "city": ["Oslo"] * 5})
>>> [(facts.name, facts.kind, facts.missing, facts.note) for facts in describe(table)]
[('age', 'number', 0.6, 'more than half is missing'), ('city', 'text', 0.0, 'always the same')]
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from driftquilt.data.mapped_memory import note_read
from driftquilt.decision.sentences import name_some
from driftquilt.errors import InputError
from driftquilt.text import suggest

__all__ = [
    "BLOCK",
    "KINDS",
    "OURS",
    "ColumnFacts",
    "blocks",
    "check_table",
    "describe",
    "features",
    "find_column",
    "is_text_kind",
    "leave_out",
    "present",
    "unfit_warning",
]

BLOCK = 65_536  # rows looked at at a time
OURS = "driftquilt_"  # begins the names of the columns that a selection adds

#: What a model can learn from.
KINDS = ("number", "text", "boolean", "date", "time of day", "time span")

_HALF, _NEARLY = 0.5, 0.9
_FEW = 20  # rows, of which nothing is said
_ID = "left out: nearly every row has a text of its own, an id or prose"
_CALENDAR = "learned as time of day, weekday and day of the year; drop it if it only says when"


@dataclass(frozen=True)
class ColumnFacts:
    """A column: what it was read as, the share that is missing, what to know, whether it is used.

    `kind` is one of `KINDS`, or Arrow's name for a kind that cannot be used.
    """

    name: str
    kind: str
    missing: float
    note: str = ""
    used: bool = True


def check_table(table: Any) -> None:
    """Refuse what is no `pyarrow.Table`, has no rows, or has two columns of one name."""
    if not isinstance(table, pa.Table):
        raise InputError(f"the table is a {type(table).__name__}; give a pyarrow.Table")
    if table.num_rows == 0:
        raise InputError("the table has no rows; give one that has")
    names = table.column_names
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"the table has several columns named {twice}; rename or drop them")


def find_column(table: pa.Table, name: str, what: str = "column") -> pa.ChunkedArray:
    """The column of this name; an error names the closest."""
    if name in table.column_names:
        return table[name]
    raise InputError(
        f"there is no {what} {name!r} in the table; {suggest(name, table.column_names, None)}"
    )


def features(
    table: pa.Table, label: str, drop: Iterable[str] = (), *, facts: Sequence[ColumnFacts]
) -> pa.Table:
    """The columns to learn from: usable by `facts`, neither the label nor dropped."""
    left_out = {label, *drop}
    for name in left_out:
        find_column(table, name)
    names = [f.name for f in facts if f.used and f.name not in left_out]
    if not names:
        raise InputError(
            f"no column is left to learn from beside the label {label!r}: the others are dropped, "
            "empty, or neither numbers nor text nor dates; give the table some that are"
        )
    return pa.table({name: _castable(table[name]) for name in names})


def describe(table: pa.Table) -> tuple[ColumnFacts, ...]:
    """What there is to know of every column."""
    return tuple(_look(name, table[name]) for name in table.column_names)


def leave_out(
    facts: Iterable[ColumnFacts], label: str, drop: Iterable[str]
) -> tuple[ColumnFacts, ...]:
    """The same, where the label and the columns dropped are not used, with a word why."""
    why = {**dict.fromkeys(drop, "not to be learned from"), label: "label"}
    return tuple(
        replace(fact, used=False, note=why[fact.name]) if fact.name in why else fact
        for fact in facts
    )


def unfit_warning(facts: Iterable[ColumnFacts]) -> list[str]:
    """Return a warning about the columns that are not used, if there are any."""
    names = [fact.name for fact in facts if not fact.used]
    return [f"columns that cannot be learned from are left out: {name_some(names)}"] * bool(names)


def blocks(column: pa.ChunkedArray) -> Iterator[pa.Array]:
    """The column, some rows at a time; codes as what they stand for, which chunks may not share."""
    for first in range(0, len(column), BLOCK):
        part = column.slice(first, BLOCK)
        if pa.types.is_dictionary(column.type):
            values = [chunk.dictionary_decode() for chunk in part.chunks]
            part = pa.chunked_array(values, column.type.value_type)
        part = part.combine_chunks()
        yield from part.chunks if isinstance(part, pa.ChunkedArray) else [part]
        note_read(part.nbytes)


def present(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Which rows have a value, neither null nor NaN, shape (n,)."""
    found = np.ones(len(column), dtype=bool)
    start = 0
    for block in blocks(column):
        if block.null_count or pa.types.is_floating(block.type):
            missing = block.is_null(nan_is_null=True)
            found[start : start + len(block)] = ~missing.to_numpy(zero_copy_only=False)
        start += len(block)
    return found


def is_text_kind(kind: pa.DataType) -> bool:
    """Whether values of the kind are strings, in any of Arrow's ways."""
    if pa.types.is_dictionary(kind):
        return is_text_kind(kind.value_type)
    tests = ("is_string", "is_large_string", "is_string_view")
    return any(getattr(pa.types, test, lambda _: False)(kind) for test in tests)


def _kind(kind: pa.DataType) -> str:
    types = pa.types
    if types.is_boolean(kind):
        return "boolean"
    if is_text_kind(kind) or types.is_dictionary(kind):
        return "text"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_date(kind) or types.is_timestamp(kind):
        return "date"
    if types.is_time(kind):
        return "time of day"
    return "time span" if types.is_duration(kind) else str(kind)


def _castable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column in a kind that is read in place; decimals and views of strings are cast."""
    if pa.types.is_decimal(column.type):
        return column.cast(pa.float64())
    if is_text_kind(column.type) and "view" in str(column.type):
        return column.cast(pa.large_string())
    return column


def _look(name: str, column: pa.ChunkedArray) -> ColumnFacts:
    kind = _kind(column.type)
    n_missing = sum(int(pc.sum(b.is_null(nan_is_null=True)).as_py() or 0) for b in blocks(column))
    missing = n_missing / len(column)
    if name.startswith(OURS):
        return ColumnFacts(name, kind, missing, "left out: from an earlier selection", used=False)
    if n_missing == len(column):
        return ColumnFacts(name, kind, missing, "left out: it has no value", used=False)
    if kind not in KINDS:
        advice = "left out: neither numbers nor text nor dates; turn it into such columns"
        return ColumnFacts(name, kind, missing, advice, used=False)
    note = _note(_castable(column), kind, missing, len(column) - n_missing)
    return ColumnFacts(name, kind, missing, note, used=note != _ID)


def _note(column: pa.ChunkedArray, kind: str, missing: float, n_present: int) -> str:
    values, n_distinct = set[Any](), 0
    for block in blocks(column):
        found = block.filter(pc.invert(block.is_null(nan_is_null=True))).unique()
        n_distinct += len(found)
        values.update(found.slice(0, 2).to_pylist())
        if len(values) > 1 and kind != "text":
            break
    if len(values) == 1:
        return "always the same" if missing == 0 else "always the same where it is present"
    if kind == "text" and n_present > _FEW and n_distinct > _NEARLY * n_present:
        return _ID
    if missing > _HALF:
        return "more than half is missing"
    return _CALENDAR if kind == "date" else ""
