"""Kinds of columns: what two of them have in common, and in which kind a column is kept.

Kinds are Arrow's types. Whole numbers and fractions go together as fractions, dates and time
stamps as time stamps, and a column of which nothing is known goes with anything. Text goes with
nothing but text.

>>> join(pa.int64(), pa.float64()), join(pa.date32(), pa.timestamp("us"))
(DataType(double), TimestampType(timestamp[us]))
>>> join(pa.int64(), pa.string()) is None
True
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

__all__ = ["cast", "is_nested", "is_view", "join", "kept"]


def join(first: Any, second: Any) -> Any:
    """The narrowest kind that holds the values of both; None if there is none."""
    if pa.types.is_null(first) or pa.types.is_null(second):
        return second if pa.types.is_null(first) else first
    if _family(first) != _family(second):
        return None
    if pa.types.is_date(first) != pa.types.is_date(second):
        stamp = second if pa.types.is_date(first) else first
        return stamp if stamp.tz is None else None
    try:
        fields = [pa.schema([("", kind)]) for kind in (first, second)]
        return pa.unify_schemas(fields, promote_options="permissive").field(0).type
    except (pa.ArrowTypeError, pa.ArrowInvalid):
        return None


def kept(kind: Any) -> Any:
    """What a converted column becomes: codes their values, decimals floats, views plain text."""
    if pa.types.is_dictionary(kind):
        return kept(kind.value_type)
    if pa.types.is_decimal(kind):
        return pa.float64()
    if is_view(kind):
        return pa.string() if kind == pa.string_view() else pa.binary()
    return kind


def cast(column: Any, kind: Any) -> Any:
    """The column in another kind; large whole numbers lose their last digits as floats."""
    if column.type == kind:
        return column
    return column.cast(kind, safe=not pa.types.is_floating(kind))


def is_nested(kind: Any) -> bool:
    """Whether a value is made of several."""
    return bool(pa.types.is_nested(kind))


def is_view(kind: Any) -> bool:
    """Whether it is text or bytes in Arrow's newer layout, which is not read in place."""
    return bool(kind == pa.string_view() or kind == pa.binary_view())


def _family(kind: Any) -> str:
    families = {
        "number": (pa.types.is_integer, pa.types.is_floating),
        "text": (pa.types.is_string, pa.types.is_large_string),
        "time": (pa.types.is_date, pa.types.is_timestamp),
    }
    for family, tests in families.items():
        if any(test(kind) for test in tests):
            return family
    return str(kind)
