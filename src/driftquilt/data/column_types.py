"""Columns of Arrow tables: types, which of them a model can learn from, and facts of each.

Two types have a narrowest one that holds the values of both:

    int8 + int32     -> int32            uint32 + int8     -> int64
    float32 + double -> double           any int + float   -> double (above 2⁵³ it rounds)
    text + text      -> large_string     date + timestamp  -> timestamp, unless it has a time zone
    null + anything  -> that type        anything else     -> None

Booleans go with numbers only where the caller says so: in a file, true and 5 in one column are a
mistake; in a stream, a flag that becomes a count is not.

>>> common_type(pa.int64(), pa.float64()), common_type(pa.date32(), pa.timestamp("us"))
(DataType(double), TimestampType(timestamp[us]))
>>> common_type(pa.int64(), pa.string()) is None
True

Numbers, text, booleans, dates and times can be learned from. Lists and the like are left out and
noted, and so is a column with no value. Columns are read block by block, so a mapped file stays
one.

>>> table = pa.table({"age": [31, None, None, None, 7], "city": ["Oslo"] * 5})
>>> [(facts.name, facts.kind, facts.missing, facts.note) for facts in describe(table)]
[('age', 'number', 0.6, 'more than half is missing'), ('city', 'text', 0.0, 'always the same')]
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyarrow import types

from driftquilt.data.arrow import note_read
from driftquilt.errors import InputError
from driftquilt.text import listing, one_line, suggest

BLOCK = 65_536  # rows looked at at a time
OURS = "driftquilt_"  # begins the names of the columns that a selection adds

#: What a model can learn from.
KINDS = ("number", "text", "boolean", "date", "time of day", "time span")

_SIGNED = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}
_HALF, _NEARLY = 0.5, 0.9
_FEW = 20  # rows, too few to judge
_NAMED = 4  # columns in a warning
_LOOKED_AT = 200  # texts
_LEFT_OUT = "left out: "
ID_NOTE = "left out: nearly every row has a text of its own, an id or prose"
AMOUNT_NOTE = "text that looks like numbers, such as {}; turn it into numbers"
# As people write them; what has digits alone may be a code.
_AMOUNT = re.compile(
    r"^\s*[-+(]?\s*([$€£¥₹]|[A-Z]{3})?\s*[-+]?(\d{1,3}([,.']\d{3})+|\d+)([.,]\d+)?"
    r"\s*([$€£¥₹%]|[A-Z]{3})?\s*\)?\s*$"
)
_MARKED = re.compile(r"[^\d\s]")
CONSTANT_NOTE = "always the same"
_CALENDAR = "learned as time of day, weekday and day of the year; drop it if it only says when"


def common_type(first: Any, second: Any, *, booleans_are_numbers: bool = False) -> Any:
    """Return the narrowest type that holds the values of both, None if there is none."""
    if first == second or types.is_null(second):
        return first
    if types.is_null(first):
        return second
    if booleans_are_numbers and types.is_boolean(first) != types.is_boolean(second):
        number = second if types.is_boolean(first) else first
        holds_both = pa.float32() if types.is_float16(number) else number  # Arrow casts no float16
        return holds_both if is_number(number) else None
    for belongs, join in (
        (is_number, _wider_number),
        (is_text, lambda *_: pa.large_string()),
        (_is_date, _finer_date),
    ):
        if belongs(first) and belongs(second):
            return join(first, second)
    return None


def plain_type(kind: Any) -> Any:
    """Return the type that a converted column has: no categories, decimals or string views."""
    if types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if types.is_decimal(kind):
        return pa.float64()
    if is_view(kind):
        return pa.string() if types.is_string_view(kind) else pa.binary()
    return kind


def cast(column: Any, kind: Any) -> Any:
    """Return the column in another type; large integers lose their last digits as floats."""
    if column.type == kind:
        return column
    if types.is_null(column.type):  # which Arrow casts to some types only
        return pa.nulls(len(column), kind)
    return column.cast(kind, safe=not types.is_floating(kind))


def fit_columns(rows: pa.Table | pa.RecordBatch, schema: pa.Schema) -> list[Any]:
    """Return the columns of a schema, in their types; null where the rows lack one."""
    present = dict(zip(rows.schema.names, rows.columns, strict=True))
    fitted = []
    for name, kind in zip(schema.names, schema.types, strict=True):
        try:
            column = cast(present[name], kind) if name in present else pa.nulls(len(rows), kind)
        except pa.ArrowInvalid as error:
            raise InputError(
                f"column {name!r} cannot be read as {kind}: {one_line(error)}"
            ) from error
        fitted.append(column)
    return fitted


def join_batches(
    batches: Iterable[pa.RecordBatch], max_bytes: int, max_rows: int | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the same rows in few batches, of about so many bytes or rows."""
    waiting, n_bytes, n_rows = list[pa.RecordBatch](), 0, 0
    for batch in batches:
        waiting.append(batch)
        n_bytes, n_rows = n_bytes + batch.nbytes, n_rows + batch.num_rows
        if n_bytes >= max_bytes or (max_rows is not None and n_rows >= max_rows):
            yield from _join(waiting)
            waiting, n_bytes, n_rows = [], 0, 0
    if waiting:
        yield from _join(waiting)


def _join(batches: list[pa.RecordBatch]) -> list[pa.RecordBatch]:
    """Return one batch, or several where Arrow cannot hold a column in one piece."""
    if len(batches) == 1:
        return batches
    joined: list[pa.RecordBatch] = pa.Table.from_batches(batches).combine_chunks().to_batches()
    return joined


def is_number(kind: Any) -> bool:
    """Return whether values are integers or floats."""
    return bool(types.is_integer(kind) or types.is_floating(kind))


def is_text(kind: Any) -> bool:
    """Return whether values are strings, in any of Arrow's layouts but categories."""
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


def is_category(kind: Any) -> bool:
    """Return whether values are strings with codes, Arrow's dictionaries of text."""
    return bool(types.is_dictionary(kind)) and is_text(kind.value_type)


def is_view(kind: Any) -> bool:
    """Return whether it is text or bytes in Arrow's newer layout, which is not read in place."""
    return bool(types.is_string_view(kind) or types.is_binary_view(kind))


def _is_date(kind: Any) -> bool:
    return bool(types.is_date(kind) or types.is_timestamp(kind))


def _finer_date(first: Any, second: Any) -> Any:
    if types.is_date(first) != types.is_date(second):
        stamp = second if types.is_date(first) else first
        return stamp if stamp.tz is None else None
    if types.is_date(first):
        return pa.date64()
    if first.tz != second.tz:
        return None
    return pa.timestamp(max(first.unit, second.unit, key=("s", "ms", "us", "ns").index), first.tz)


def _wider_number(first: Any, second: Any) -> Any:
    if types.is_floating(first) != types.is_floating(second):
        return pa.float64()
    same_sign = types.is_signed_integer(first) == types.is_signed_integer(second)
    if types.is_floating(first) or same_sign:
        return first if first.bit_width >= second.bit_width else second
    signed, unsigned = (first, second) if types.is_signed_integer(first) else (second, first)
    return _SIGNED.get(max(signed.bit_width, 2 * unsigned.bit_width), pa.float64())


@dataclass(frozen=True)
class ColumnFacts:
    """What is known of a column: its kind, the share missing, a note, and whether it is used.

    `kind` is one of `KINDS`, or Arrow's name for a kind that cannot be used.
    """

    name: str
    kind: str
    missing: float
    note: str = ""
    used: bool = True


def check_table(table: Any) -> None:
    """Refuse what is not a `pyarrow.Table`, has no rows, or has two columns of one name."""
    if not isinstance(table, pa.Table):
        raise InputError(f"the table is a {type(table).__name__}; give a pyarrow.Table")
    if table.num_rows == 0:
        raise InputError("the table has no rows; give one that has")
    names = table.column_names
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(f"the table has several columns named {twice}; rename or drop them")


def find_column(table: pa.Table, name: str, what: str = "column") -> pa.ChunkedArray:
    """Return the column of this name; an error suggests the closest."""
    if name in table.column_names:
        return table[name]
    raise InputError(
        f"there is no {what} {name!r} in the table; {suggest(name, table.column_names, None)}"
    )


def features(
    table: pa.Table, label: str, drop: Iterable[str] = (), *, facts: Sequence[ColumnFacts]
) -> pa.Table:
    """Return the columns to learn from: usable by `facts`, neither the label nor dropped."""
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
    """Return the facts of every column."""
    return tuple(_look(name, table[name]) for name in table.column_names)


def leave_out(
    facts: Iterable[ColumnFacts], label: str, drop: Iterable[str]
) -> tuple[ColumnFacts, ...]:
    """Return the same facts, with the label and the columns dropped as not used."""
    reasons = {**dict.fromkeys(drop, "not to be learned from"), label: "label"}
    return tuple(
        replace(fact, used=False, note=reasons[fact.name]) if fact.name in reasons else fact
        for fact in facts
    )


def unused_warning(facts: Iterable[ColumnFacts]) -> list[str]:
    """Return a warning about the columns that are not used, if there are any."""
    names = [fact.name for fact in facts if not fact.used]
    warning = f"columns that cannot be learned from are left out: {listing(names, _NAMED)}"
    return [warning] if names else []


def blocks(column: pa.ChunkedArray) -> Iterator[pa.Array]:
    """Yield the column block by block; categories as values, which chunks may code differently."""
    for first in range(0, len(column), BLOCK):
        part = column.slice(first, BLOCK)
        if types.is_dictionary(column.type):
            values = [chunk.dictionary_decode() for chunk in part.chunks]
            part = pa.chunked_array(values, column.type.value_type)
        part = part.combine_chunks()
        yield from part.chunks if isinstance(part, pa.ChunkedArray) else [part]
        note_read(part.nbytes)


def present(column: pa.ChunkedArray) -> NDArray[np.bool_]:
    """Return which rows have a value, neither null nor NaN, shape (n,)."""
    is_present = np.ones(len(column), dtype=bool)
    start = 0
    for block in blocks(column):
        if block.null_count or types.is_floating(block.type):
            missing = block.is_null(nan_is_null=True)
            is_present[start : start + len(block)] = ~missing.to_numpy(zero_copy_only=False)
        start += len(block)
    return is_present


def _kind(kind: pa.DataType) -> str:
    if types.is_boolean(kind):
        return "boolean"
    if is_text(kind) or types.is_dictionary(kind):
        return "text"
    if is_number(kind) or types.is_decimal(kind):
        return "number"
    if _is_date(kind):
        return "date"
    if types.is_time(kind):
        return "time of day"
    return "time span" if types.is_duration(kind) else str(kind)


def _castable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return the column in a type that is read in place; decimals and views of strings are cast."""
    if types.is_decimal(column.type):
        return column.cast(pa.float64())
    if (is_text(column.type) or is_category(column.type)) and "view" in str(column.type):
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
    return ColumnFacts(name, kind, missing, note, used=not note.startswith(_LEFT_OUT))


def _note(column: pa.ChunkedArray, kind: str, missing: float, n_present: int) -> str:
    values, n_distinct = set[Any](), 0
    for block in blocks(column):
        distinct = block.filter(pc.invert(block.is_null(nan_is_null=True))).unique()
        n_distinct += len(distinct)
        values.update(distinct.slice(0, 2).to_pylist())
        if len(values) > 1 and kind != "text":
            break
    if len(values) == 1:
        return CONSTANT_NOTE if missing == 0 else f"{CONSTANT_NOTE} where it is present"
    example = None
    if kind == "text":
        first = next(blocks(column.slice(0, BLOCK)))
        example = find_amount(first.drop_null().unique().slice(0, _LOOKED_AT).to_pylist())
    described = ID_NOTE if example is None else f"{_LEFT_OUT}{AMOUNT_NOTE.format(repr(example))}"
    if kind == "text" and n_present > _FEW and n_distinct > _NEARLY * n_present:
        return described
    if example is not None:
        return described.removeprefix(_LEFT_OUT)
    if missing > _HALF:
        return "more than half is missing"
    return _CALENDAR if kind == "date" else ""


def find_amount(texts: Sequence[str]) -> str | None:
    """Return one of these texts if all are amounts, and some marked as such.

    >>> find_amount(["7", "$1,234.50"]), find_amount(["7", "08"])
    ('$1,234.50', None)
    """
    if not texts or not all(map(_AMOUNT.search, texts)):
        return None
    return next(filter(_MARKED.search, texts), None)
