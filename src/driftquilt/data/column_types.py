"""Arrow types of columns: the narrowest type that holds the values of two, and plain types.

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
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyarrow import types

__all__ = ["cast", "common_type", "is_number", "is_text", "is_view", "plain_type"]

_SIGNED = {8: pa.int8(), 16: pa.int16(), 32: pa.int32(), 64: pa.int64()}


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
    return column.cast(kind, safe=not types.is_floating(kind))


def is_number(kind: Any) -> bool:
    """Return whether values are integers or floats."""
    return bool(types.is_integer(kind) or types.is_floating(kind))


def is_text(kind: Any) -> bool:
    """Return whether values are strings, in any of Arrow's layouts but categories."""
    return bool(types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind))


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
