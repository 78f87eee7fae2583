"""Two types of columns have at most one that holds the values of both."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftquilt.data import column_types as columns
from driftquilt.data.column_types import (
    ID_NOTE,
    cast,
    common_type,
    describe,
    features,
    plain_type,
)
from driftquilt.decision.labels import read_labels
from driftquilt.errors import InputError
from tests.decision.tables import shop_table

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


def test_a_shop_is_described_column_by_column() -> None:
    found = {facts.name: facts for facts in describe(shop_table())}
    assert [name for name, facts in found.items() if not facts.used] == ["order"]
    assert found["when"].kind == "date"
    assert found["order"].note.startswith("left out: nearly every row has a text of its own")
    assert found["country"].note == "always the same"
    assert (found["visits"].kind, found["visits"].missing) == ("number", 0.1)
    assert (found["member"].kind, found["channel"].kind) == ("boolean", "text")
    assert found["price"].note == found["channel"].note == ""


@given(st.lists(st.none() | st.sampled_from([1.0, 2.0, float("nan")]), min_size=1, max_size=40))
def test_blocks_do_not_change_what_is_said(values: list[float | None]) -> None:
    table = pa.table({"x": pa.array(values, pa.float64())})
    whole = describe(table)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "BLOCK", 3)
        assert describe(table) == whole
    present = [v for v in values if v is not None and v == v]  # noqa: PLR0124
    assert whole[0].missing == pytest.approx(1 - len(present) / len(values))
    assert whole[0].used == bool(present)


def test_columns_of_an_earlier_selection_and_empty_ones_are_left_out() -> None:
    table = pa.table(
        {"x": [1, 2], "none": [None, None], "driftquilt_share": [1.0, 1.0], "y": [0, 1]}
    )
    facts = describe(table)
    assert features(table, "y", facts=facts).column_names == ["x"]
    with pytest.raises(InputError, match=r"no column is left .* 'y'"):
        features(table, "y", ["x"], facts=facts)
    with pytest.raises(InputError, match="there is no column 'z'"):
        features(table, "y", ["z"], facts=facts)


def test_decimals_and_views_become_kinds_that_are_read_in_place() -> None:
    table = pa.table(
        {"d": [Decimal("1.5"), None], "v": pa.array(["a", "b"], pa.string_view()), "y": [0, 1]}
    )
    taken = features(table, "y", facts=describe(table))
    assert [str(kind) for kind in taken.schema.types] == ["double", "large_string"]


@pytest.mark.parametrize(
    ("values", "classes", "codes"),
    [
        (["b", None, "a"], ["a", "b"], [1, -1, 0]),
        ([True, None, False], [False, True], [1, -1, 0]),
        ([5, None, 3], [3, 5], [1, -1, 0]),
        ([1.0, float("nan"), 0.0, None], [0, 1], [1, -1, 0, -1]),
        (pa.array(["b", None, "a"]).dictionary_encode(), ["a", "b"], [1, -1, 0]),
        (pa.array([5, None, 3]).dictionary_encode(), [3, 5], [1, -1, 0]),
        (pa.array(["b", None, "a"], pa.string_view()), ["a", "b"], [1, -1, 0]),
    ],
)
def test_labels_of_any_kind_are_classes(values: Any, classes: list[Any], codes: list[int]) -> None:
    labels = read_labels(pa.table({"y": values}), "y")
    assert labels.classes.tolist() == classes
    assert labels.codes.tolist() == codes


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.linspace(0, 1, 50), r"looks like an amount \(regression\).*bin it"),
        ([0.5, 1.0, 0.5], "holds 0.5, which is not a whole number"),
        ([float("inf"), 1.0], "holds inf, which is not a whole number"),
        (pa.array([None, None], pa.int64()), "missing in all 2 rows"),
        ([float("nan")] * 3, "missing in all 3 rows"),
        (["yes", None, "yes"], "is yes in every row that has one"),
        ([f"user {k}" for k in range(80)], "80 different values in the first 80 rows"),
        (list(range(80)), "looks like an id or an amount"),
        (list(range(60)) * 19, r"60 different values .* an amount \(regression\).*bin it"),
        (pa.array([1, 2], pa.date32()), "holds date32"),
        ([[1], [2]], "a label is text, a whole number or a boolean"),
    ],
)
def test_labels_that_are_no_classes_say_what_to_do(values: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_labels(pa.table({"y": values}), "y")


@pytest.mark.parametrize(
    ("texts", "example"),
    [
        ([f"{k},{k:03}.50" for k in range(1, 60)], "'1,001.50'"),
        ([f"${k}" for k in range(60)], "'$0'"),
        ([f"({k}.20)" for k in range(60)], "'(0.20)'"),
        ([f"{k % 5}.5 %" for k in range(60)], "'0.5 %'"),
        ([f"{k}.25" if k else None for k in range(60)], "'1.25'"),
    ],
)
@pytest.mark.parametrize("kind", [pa.string(), pa.dictionary(pa.int8(), pa.string())])
def test_text_that_looks_like_numbers_is_described_as_such(
    texts: list[str | None], example: str, kind: pa.DataType
) -> None:
    (facts,) = describe(pa.table({"paid": pa.array(texts, pa.string()).cast(kind)}))
    assert f"text that looks like numbers, such as {example}" in facts.note
    assert facts.used is (len(set(texts)) < 10)
    assert facts.note.startswith("left out: ") is not facts.used


@pytest.mark.parametrize(
    "texts",
    [
        [f"{k:05}" for k in range(60)],
        [f"{k % 28 + 1}.05.{2000 + k}" for k in range(60)],
        [f"order {k}" for k in range(60)],
        [f"{k}.5" for k in range(59)] + ["n/a"],
    ],
)
def test_codes_dates_and_mixtures_are_no_amounts(texts: list[str]) -> None:
    (facts,) = describe(pa.table({"text": texts}))
    assert (facts.note, facts.used) == (ID_NOTE, False)
