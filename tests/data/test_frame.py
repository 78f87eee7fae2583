"""Tables of every library become the same columns, and bad ones are refused with a reason."""

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
from scipy import sparse

from driftquilt.data.columns import FLOAT32_MAX
from driftquilt.data.encoder import Encoder
from driftquilt.data.frame import Frame, Row, read_frame, read_row
from driftquilt.data.rows import stack
from driftquilt.errors import InputError

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")

COLUMNS = {
    "age": [31, None, 25],
    "paid": [True, False, None],
    "price": [Decimal("1.5"), None, Decimal(2)],
    "city": ["Oslo", None, "Rome"],
    "size": [0.5, 1.5, 2.5],
}
NUMBERS = {
    "age": [31, np.nan, 25],
    "paid": [1, 0, np.nan],
    "price": [1.5, np.nan, 2],
    "size": [0.5, 1.5, 2.5],
}
LIBRARIES: dict[str, Callable[[dict[str, Any]], Any]] = {
    "dict": lambda columns: columns,
    "pandas": pd.DataFrame,
    "pandas objects": lambda columns: pd.DataFrame(columns, dtype=object),
    "pandas nullable": lambda columns: pd.DataFrame(columns).convert_dtypes(),
    "polars": pl.DataFrame,
    "arrow": pa.table,
    "arrow batch": pa.RecordBatch.from_pydict,
    "series": lambda columns: {name: pl.Series(values) for name, values in columns.items()},
}


def same(first: np.ndarray[Any, Any], second: np.ndarray[Any, Any]) -> bool:
    if first.dtype == object:
        return second.dtype == object and bool(first.tolist() == second.tolist())
    return second.dtype == np.float64 and bool(np.array_equal(first, second, equal_nan=True))


def column(values: Any, name: str = "a") -> np.ndarray[Any, Any]:
    return read_frame({name: values}).column(name)


@pytest.mark.parametrize("make", LIBRARIES.values(), ids=LIBRARIES.keys())
def test_every_library_gives_the_same_columns(make: Callable[[dict[str, Any]], Any]) -> None:
    table = read_frame(make(COLUMNS))
    assert table.columns == tuple(COLUMNS)
    assert table.named
    assert len(table) == 3
    for name in table.columns:
        values = table.column(name)
        if name == "city":
            assert values.dtype == object
            assert values.tolist() == ["Oslo", None, "Rome"]
        else:
            np.testing.assert_array_equal(values, np.array(NUMBERS[name], dtype=np.float64))


def test_rows_as_lists_or_object_arrays_give_the_same_columns_without_names() -> None:
    rows = list(zip(*COLUMNS.values(), strict=True))
    loaded = read_frame(COLUMNS)
    expected = [loaded.column(name) for name in loaded.columns]
    for X in (rows, [list(row) for row in rows], np.array(rows, dtype=object)):
        table = read_frame(X)
        assert table.columns == ("x0", "x1", "x2", "x3", "x4")
        assert not table.named
        assert all(map(same, map(table.column, table.columns), expected))


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "g", "i1", "u8", "i8", "?"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_numeric_arrays_keep_their_values(dtype: str, order: Any) -> None:
    X = np.array([[0, 1, 1], [1, 0, 1]], dtype=dtype, order=order)
    table = read_frame(X)
    np.testing.assert_array_equal(table.numbers, X.astype(np.float64))
    assert table.numbers.dtype == np.float64


def test_an_array_is_not_changed_by_reading_it() -> None:
    X = np.array([[1.0, np.nan], [3.0, 4.0]])
    before = X.copy()
    read_frame(X)
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize(
    "values",
    [
        pd.Series(pd.Categorical(["a", None, "b"])),
        pd.Series(["a", np.nan, "b"], dtype=object),
        pd.Series(["a", pd.NA, "b"], dtype="string"),
        pl.Series(["a", None, "b"], dtype=pl.Categorical),
        pl.Series(["a", None, "b"], dtype=pl.Enum(["b", "a"])),
        pa.chunked_array([pa.array(["a", None, "b"]).dictionary_encode()]),
        np.array(["a", None, "b"], dtype=object),
        [np.str_("a"), float("nan"), "b"],
    ],
)
def test_text_of_any_kind_is_str_with_none_for_missing(values: Any) -> None:
    read = column(values)
    assert read.tolist() == ["a", None, "b"]
    assert all(type(value) in (str, type(None)) for value in read)


def test_categories_that_are_numbers_become_text() -> None:
    assert column(pd.Series(pd.Categorical([1, None, 2]))).tolist() == ["1", None, "2"]


def test_strings_that_look_like_numbers_stay_text() -> None:
    assert column(["1", "2"]).tolist() == ["1", "2"]
    assert read_frame(np.array([["1", "2"]])).column("x1").tolist() == ["2"]
    assert read_frame([["1", 2]]).column("x1").tolist() == [2.0]


def test_masked_cells_are_missing() -> None:
    masked: Any = np.ma.array([[1.0, 2.0]], mask=[[False, True]])
    table = read_frame(masked)
    assert table.column("x0").tolist() == [1.0]
    assert np.isnan(table.column("x1")).all()


def test_wide_integers_of_polars_and_arrow_are_numbers() -> None:
    assert column(pl.Series([1, None], dtype=pl.Int128))[0] == 1.0
    assert column(pa.chunked_array([pa.array([2**63, None], pa.uint64())]))[0] == 2.0**63


def test_column_names_that_are_not_text_become_text() -> None:
    assert read_frame(pd.DataFrame({0: [1], ("a", 1): [2]})).names == ("0", "('a', 1)")


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (sparse.csr_matrix(np.eye(2)), r"sparse csr_matrix; pass the dense X\.toarray\(\)"),
        (sparse.coo_array(np.eye(2)), r"sparse coo_array"),
        (np.arange(3.0), r"shape \(3,\) instead\. Reshape your data"),
        (np.float64(3), r"shape \(\) instead\. Reshape your data"),
        (None, "Reshape your data"),
        (pd.Series([1, 2]), "Reshape your data"),
        (["a", "b"], "Reshape your data"),
        (np.zeros((2, 2, 2)), r"dim 3 \(shape=\(2, 2, 2\)\).*X\.reshape\(len\(X\), -1\)"),
        (np.ones((2, 1)) * 1j, "Complex data not supported: column 'x0', row 0"),
        ({"a": [1, 2j]}, "Complex data not supported: column 'a', row 1"),
        (pd.DataFrame({"a": [1j]}), "Complex data not supported: column 'a', row 0"),
        (
            np.empty((0, 3)),
            r"Found array with 0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is required\.",
        ),
        (
            np.empty((5, 0)),
            r"0 feature\(s\) \(shape=\(5, 0\)\) while a minimum of 1 is required\.",
        ),
        (pl.DataFrame({"a": []}), r"0 sample\(s\) \(shape=\(0, 1\)\)"),
        (pd.DataFrame(index=range(5)), r"0 feature\(s\) \(shape=\(5, 0\)\)"),
        (pl.LazyFrame({"a": [1]}), r"lazy frame.*pass X\.collect\(\)"),
        (pd.DataFrame({1: [1], "1": [2]}), r"several columns named \['1'\]"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "columns of the same name.*'a' 2 times"),
        ([[1, 2], [3]], "rows of X differ in length"),
        ({"a": [1], "b": [1, 2]}, r"different lengths: \{'a': 1, 'b': 2\}"),
        ({"a": 1}, "column 'a' is a single value"),
        ({"a": np.ones((2, 2))}, "column 'a' has 2 dimensions"),
        ({"a": [0, 1, "x"]}, "'a' mixes numbers and text: row 0 holds 0, row 2 holds 'x'"),
        ([["x", "y"], ["z", 1]], "'x1' mixes numbers and text: row 1 holds 1, row 0 holds 'y'"),
        ({"a": [1.0, np.inf]}, "column 'a', row 1 holds inf"),
        (np.array([[1, 2], [-np.inf, 3]]), "column 'x0', row 1 holds -inf"),
        (np.array([[1, 2], [3, np.inf]], dtype=np.float32), "column 'x1', row 1 holds inf"),
        (pl.DataFrame({"a": [0.0, -1e300]}), r"column 'a', row 1 holds -1e\+300, beyond float32"),
        ({"a": [None, 10**400]}, "column 'a', row 1 holds inf"),
        ({"a": [None, Decimal("1e50")]}, r"column 'a', row 1 holds 1e\+50, beyond float32"),
        (np.array([[np.longdouble("1e400")]]), "column 'x0', row 0 holds inf"),
    ],
)
def test_what_cannot_be_used_is_refused_with_the_reason(X: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_frame(X)


@pytest.mark.parametrize(
    ("values", "what"),
    [
        (pd.Series(pd.period_range("2024-05", periods=1, freq="M")), "Period"),
        (pl.Series([[1, 2]]), "list"),
        (pl.Series([{"k": 1}]), "dict"),
        (pa.chunked_array([[b"x"]]), "bytes"),
        (np.array([b"x"]), "bytes"),
        ([{"foo": "bar"}], "dict"),
    ],
)
def test_periods_lists_bytes_and_objects_are_refused_with_advice(values: Any, what: str) -> None:
    message = f"column 'when', row 0 holds a {what} .*; turn it into one of these, or drop the"
    with pytest.raises(InputError, match=message):
        column(values, name="when")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([None, "x", dt.date(2024, 5, 1)], r"mixes text and dates: row 1 .*'x', row 2 holds date"),
        ([dt.datetime(2024, 5, 1), 1], r"mixes numbers and dates: row 1 holds 1, row 0 holds date"),
        ([dt.time(1), dt.date(2024, 5, 1)], "mixes dates and times of day: row 1 .*, row 0 holds"),
        ([dt.timedelta(1), 5], "mixes time spans and numbers: row 0 .*, row 1 holds 5; make all"),
    ],
)
def test_a_mix_of_kinds_is_refused_with_the_first_row_of_each(values: Any, message: str) -> None:
    with pytest.raises(InputError, match=f"column 'a' {message}"):
        column(values)


@pytest.mark.parametrize(
    "values",
    [
        [dt.timedelta(minutes=2), None, dt.timedelta(days=-200, microseconds=3)],
        pd.Series([pd.Timedelta(120, "s"), None, pd.Timedelta(days=-200, microseconds=3)]),
        pl.Series([dt.timedelta(minutes=2), None, dt.timedelta(days=-200, microseconds=3)]),
        pa.chunked_array(
            [[dt.timedelta(minutes=2), None, dt.timedelta(days=-200, microseconds=3)]]
        ),
        np.array([120 * 10**9, "NaT", -17_280_000 * 10**9 + 3000], dtype="m8[ns]"),
        [np.timedelta64(2, "m"), np.timedelta64("NaT"), dt.timedelta(days=-200, microseconds=3)],
    ],
    ids=lambda values: type(values).__module__,
)
def test_time_spans_are_seconds(values: Any) -> None:
    assert same(column(values), np.array([120, np.nan, -17_279_999.999997]))


def test_a_largest_float32_may_pass() -> None:
    largest = float(np.finfo(np.float32).max)
    assert column([largest, -largest]).tolist() == [largest, -largest]


def test_a_copy_does_not_follow_the_array_it_was_read_from() -> None:
    X = np.ones((2, 2), order="F")
    shared, copied = read_frame(X), read_frame(X).copy()
    X[:] = 5
    assert shared.column("x0").tolist() == [5, 5]
    assert copied.column("x0").tolist() == [1, 1]


def rows(**columns: Any) -> Frame:
    return read_frame(columns)


def test_stack_appends_rows_by_name_whatever_the_order() -> None:
    both = stack(rows(a=[1, 2], b=["x", None]), rows(b=["y"], a=[None]))
    assert both.columns == ("a", "b")
    np.testing.assert_array_equal(both.column("a"), [1, 2, np.nan])
    assert both.column("b").tolist() == ["x", None, "y"]


def test_stack_takes_an_all_missing_column_as_either_kind() -> None:
    empty, text = rows(a=[None, None]), rows(a=["x"])
    assert stack(empty, text).column("a").tolist() == [None, None, "x"]
    assert stack(text, empty).column("a").tolist() == ["x", None, None]


def test_stack_names_the_columns_that_do_not_match() -> None:
    with pytest.raises(InputError, match=r"the rows before have not: \['c', 'd'\]"):
        stack(rows(a=[1], b=[1]), rows(c=[1], a=[1], d=[1]))
    with pytest.raises(InputError, match=r"'a' is numbers .* and text"):
        stack(rows(a=[1]), rows(a=["x"]))
    with pytest.raises(InputError, match=r"'a' is text .* and numbers"):
        stack(rows(a=["x"]), rows(a=[1]))


@pytest.mark.parametrize("rows", [[{"age": 31}], ({"age": 31}, {"age": 7})])
def test_rows_as_dicts_are_refused_with_how_to_make_a_table_of_them(rows: Any) -> None:
    with pytest.raises(InputError, match=r"of dicts, one per row; .* pandas.DataFrame\(rows\) or "):
        read_frame(rows)
    read_frame(pd.DataFrame(rows))
    read_frame(pa.Table.from_pylist(list(rows)))


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
    with pytest.raises(InputError, match="'n' holds the text 'x'"):
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
    with pytest.raises(InputError, match="same name"):
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
    with pytest.raises(InputError, match="a row is a dictionary"):
        read_row(row)
