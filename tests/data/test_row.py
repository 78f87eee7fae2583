"""A row alone is encoded as the table of that one row would be, and refused for the same things."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from driftquilt.data.columns import FLOAT32_MAX
from driftquilt.data.encoder import Encoder
from driftquilt.data.frame import Frame, Row, read_frame, read_row
from driftquilt.errors import InputError

pd = pytest.importorskip("pandas")

Columns = dict[str, list[Any]]
numbers = st.none() | st.floats(min_value=-FLOAT32_MAX, max_value=FLOAT32_MAX, allow_nan=False)
texts = st.none() | st.sampled_from(["", "Oslo", "Rome", "7", "Москва"])


@st.composite
def tables(draw: st.DrawFn) -> tuple[Columns, Columns]:
    """Rows to fit on, none of their columns empty, and other rows with new categories."""
    kinds = {"n": numbers, "c": texts, "m": numbers, "d": texts, "k": st.just(2.5)}
    sizes = draw(st.integers(1, 8)), draw(st.integers(1, 5))
    seen, new = (
        {name: draw(st.lists(kind, min_size=n, max_size=n)) for name, kind in kinds.items()}
        for n in sizes
    )
    assume(all(any(value is not None for value in column) for column in seen.values()))
    new["d"] = [value and f"{value}{draw(st.sampled_from(['', '!']))}" for value in new["d"]]
    return seen, new


def one_by_one(seen: Columns) -> Callable[[Row], Any]:
    """An encoder of one row at a time, fitted to a table."""
    encoder = Encoder.fit(read_frame(seen))
    return lambda row: encoder.encode(Frame.of_row(row))[0]


@given(tables())
def test_a_row_alone_equals_the_table_of_that_row(given_as: tuple[Columns, Columns]) -> None:
    seen, new = given_as
    encoder = Encoder.fit(read_frame(seen))
    for columns in (seen, new):
        for at in range(len(columns["n"])):
            row = {name: values[at] for name, values in columns.items()}
            typed = {
                name: np.array([value], dtype=object if name in "cd" else float)
                for name, value in row.items()
            }
            expected = encoder.transform(read_frame(typed))[0]
            found = encoder.encode(Frame.of_row(read_row(row)))[0]
            assert found.dtype == np.float32
            assert found.tobytes() == expected.tobytes()
            assert np.isfinite(found).all()


def test_a_column_that_a_row_lacks_is_missing_and_one_too_many_is_left_out() -> None:
    encode = one_by_one({"n": [1.0, None, 3.0], "c": ["x", "y", None]})
    assert encode({}).tolist() == encode({"n": None, "c": None}).tolist() == [0, 1, 0, 0, 1]
    assert encode({"z": 5.0, "c": "x", "n": 3.0}).tolist() == [1, 0, 1, 0, 0]


def test_the_order_of_keys_plays_no_part() -> None:
    encode = one_by_one({"n": [1.0, 3.0], "c": ["x", "y"]})
    one, other = encode({"n": 1.0, "c": "y"}), encode({"c": "y", "n": 1.0})
    assert one.tobytes() == other.tobytes()


def test_text_where_there_were_numbers_is_refused() -> None:
    encode = one_by_one({"n": [1.0, 3.0]})
    with pytest.raises(InputError, match="column 'n' holds the text 'x', but it has held numbers"):
        encode({"n": "x"})


class Name(str):
    """A string of another class, as enums and libraries have."""

    __slots__ = ()


@pytest.mark.parametrize(
    ("value", "plain"),
    [
        (3, 3.0),
        (True, 1.0),
        (np.bool_(False), 0.0),
        (np.float32(0.5), 0.5),
        (np.int8(-3), -3.0),
        (Decimal("2.5"), 2.5),
        (Decimal("NaN"), None),
        (math.nan, None),
        (np.float64("nan"), None),
        (None, None),
        (pd.NA, None),
        (pd.NaT, None),
        (np.datetime64("NaT"), None),
        (np.timedelta64("NaT"), None),
        (dt.timedelta(minutes=1, microseconds=1), 60.000001),
        (np.timedelta64(2, "m"), 120.0),
        (pd.Timedelta(1, "ns"), 1e-9),
        ("7", "7"),
        (Name("Oslo"), "Oslo"),
        (np.str_("Oslo"), "Oslo"),
        (FLOAT32_MAX, FLOAT32_MAX),
    ],
    ids=repr,
)
def test_values_become_plain(value: Any, plain: Any) -> None:
    (found,) = read_row({"a": value}).values()
    assert found == plain
    assert type(found) is type(plain)


def test_names_become_strings() -> None:
    (name,) = read_row({Name("a"): 1.0})
    assert type(name) is str
    assert read_row({1: 2.0}) == {"1": 2.0}
    with pytest.raises(InputError, match="two columns of a row have the same name"):
        read_row({1: 2.0, "1": 3.0})


@pytest.mark.parametrize(
    "value",
    [
        math.inf,
        -math.inf,
        1e39,
        10**400,
        Decimal("1e60"),
        b"bytes",
        [1.0],
        {"a": 1},
        1j,
        object(),
        pd.Period("2026-05"),
        np.array([1.0]),
    ],
)
def test_what_a_table_refuses_a_row_refuses_with_its_column(value: Any) -> None:
    holder = np.empty(1, dtype=object)
    holder[0] = value
    with pytest.raises(InputError):
        read_frame({"a": holder})
    with pytest.raises(InputError, match="column 'a' holds"):
        read_row({"a": value})


@pytest.mark.parametrize("row", [[1.0, 2.0], "a", None, 5, np.zeros(3), pd.DataFrame({"a": [1]})])
def test_a_row_is_a_dictionary(row: Any) -> None:
    with pytest.raises(InputError, match="a row is a dictionary of column and value, but got a"):
        read_row(row)
