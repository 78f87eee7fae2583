"""Two types of columns have at most one that holds the values of both."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from driftquilt.data.column_types import cast, common_type, plain_type

INT, FLOAT, TEXT, DAY, AT = pa.int64(), pa.float64(), pa.string(), pa.date32(), pa.timestamp("us")


@pytest.mark.parametrize(
    ("first", "second", "both"),
    [
        (INT, INT, INT),
        (pa.null(), TEXT, TEXT),
        (INT, FLOAT, FLOAT),
        (pa.int32(), pa.float32(), FLOAT),
        (pa.int8(), pa.uint8(), pa.int16()),
        (pa.int64(), pa.uint64(), FLOAT),
        (TEXT, pa.large_string(), pa.large_string()),
        (DAY, AT, AT),
        (DAY, pa.date64(), pa.date64()),
        (pa.timestamp("s"), pa.timestamp("ns"), pa.timestamp("ns")),
        (INT, TEXT, None),
        (INT, AT, None),
        (INT, pa.bool_(), None),
        (TEXT, pa.bool_(), None),
        (DAY, pa.timestamp("us", "UTC"), None),
        (AT, pa.timestamp("us", "UTC"), None),
        (TEXT, pa.binary(), None),
    ],
)
def test_types_meet_in_the_narrowest_that_holds_both(first: Any, second: Any, both: Any) -> None:
    assert common_type(first, second) == common_type(second, first) == both


def test_booleans_are_numbers_only_where_the_caller_says_so() -> None:
    assert common_type(pa.bool_(), INT, booleans_are_numbers=True) == INT
    assert common_type(pa.float16(), pa.bool_(), booleans_are_numbers=True) == pa.float32()
    assert common_type(pa.bool_(), TEXT, booleans_are_numbers=True) is None


def test_categories_decimals_and_views_have_a_plain_type() -> None:
    assert plain_type(pa.dictionary(pa.int8(), pa.string_view())) == TEXT
    assert plain_type(pa.decimal128(9, 2)) == FLOAT
    assert plain_type(pa.binary_view()) == pa.binary()


def test_only_floats_may_lose_digits() -> None:
    assert cast(pa.array([2**60 + 1]), FLOAT).to_pylist() == [2.0**60]
    with pytest.raises(pa.ArrowInvalid):
        cast(pa.array([1.5]), INT)
