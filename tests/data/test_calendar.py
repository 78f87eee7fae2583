"""Dates and times become the same numbers wherever they come from, and only what comes back."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftquilt.data import calendar
from driftquilt.data.arrow import read_in_place, stack_in_place
from driftquilt.data.calendar import (
    CLOCK_PARTS,
    PARTS,
    Moments,
    find_columns,
    from_datetime64,
    group,
    line_up,
    read_times,
    source,
    sources,
)
from driftquilt.data.encoder import Encoder
from driftquilt.data.frame import Frame, read_frame, read_row
from driftquilt.data.rows import stack
from driftquilt.errors import InputError

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

NAMES = tuple(f"when ({part})" for part in PARTS)
OSLO = ZoneInfo("Europe/Oslo")
STAMPS = [dt.datetime(2024, 7, 1, 6), None, dt.datetime(1969, 12, 31, 23, 59, 59, 999_999)]
AWARE = [stamp and stamp.replace(tzinfo=OSLO) for stamp in STAMPS]
DAYS = [dt.date(2024, 7, 1), None, dt.date(1900, 2, 28)]
TIMES = [dt.time(6), None, dt.time(23, 59, 59, 999_999)]
Make = Callable[[list[Any]], Any]
LIBRARIES: dict[str, Make] = {
    "list": lambda values: {"when": values},
    "numpy": lambda values: {"when": np.array(values, dtype="M8[us]")},
    "numpy objects": lambda values: {"when": np.array(values, dtype=object)},
    "pandas": lambda values: pd.DataFrame({"when": pd.to_datetime(pd.Series(values))}),
    "pandas index": lambda values: {"when": pd.DatetimeIndex(values)},
    "pandas objects": lambda values: pd.DataFrame({"when": values}, dtype=object),
    "pandas arrow": lambda values: pa.table({"when": values}).to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda values: pl.DataFrame({"when": values}),
    "arrow": lambda values: pa.table({"when": values}),
    "arrow batch": lambda values: pa.RecordBatch.from_pydict({"when": values}),
    "row by row": lambda values: [[value] for value in values],
}


def expected(stamp: dt.datetime | None) -> list[float]:
    """By the calendar of Python's library."""
    if stamp is None:
        return [math.nan] * 6
    start = dt.datetime(stamp.year, 1, 1)
    year = (dt.datetime(stamp.year + 1, 1, 1) - start).days
    day = (stamp - dt.datetime.combine(stamp, dt.time())) / dt.timedelta(1)
    phases = (day, stamp.weekday() / 7, (stamp - start).days / year)
    return [wave(2 * math.pi * x) for x in phases for wave in (math.sin, math.cos)]


def matrix(table: Frame) -> np.ndarray[Any, Any]:
    return table.numbers.copy(order="C")


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize("values", [STAMPS, AWARE], ids=["naive", "zone"])
def test_a_time_stamp_is_its_place_in_day_week_and_year(library: str, values: list[Any]) -> None:
    if library == "numpy":
        values = STAMPS  # has no zones
    table = read_frame(LIBRARIES[library](values))
    assert [name.replace("x0", "when") for name in table.columns] == list(NAMES)
    np.testing.assert_allclose(matrix(table), np.array(list(map(expected, STAMPS))), atol=1e-12)
    assert matrix(table).tobytes() == matrix(read_frame({"when": STAMPS})).tobytes()


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_date_is_its_midnight(library: str) -> None:
    midnights = [None if day is None else dt.datetime.combine(day, dt.time()) for day in DAYS]
    found = matrix(read_frame(LIBRARIES[library](DAYS)))
    np.testing.assert_allclose(found, np.array(list(map(expected, midnights))), atol=1e-12)


@pytest.mark.parametrize("library", ["list", "pandas objects", "pandas arrow", "polars", "arrow"])
def test_a_time_of_day_has_no_day(library: str) -> None:
    table = read_frame(LIBRARIES[library](TIMES))
    assert table.columns == tuple(f"when ({part})" for part in CLOCK_PARTS)
    stamps = read_frame({"when": STAMPS})
    assert matrix(table).tobytes() == matrix(stamps)[:, :2].tobytes()


@pytest.mark.parametrize("unit", ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "7m"])
def test_no_unit_of_numpy_changes_the_numbers(unit: str) -> None:
    step = 1000 if unit == "ns" else 1  # a microsecond
    values = np.array([-3 * step, "NaT", 0, 11 * step], dtype=f"M8[{unit}]")
    found = from_datetime64(values).columns("when")
    finer = from_datetime64(values.astype("M8[us]")).columns("when")
    if unit != "ps":  # below a microsecond
        assert [x.tobytes() for x in found.values()] == [x.tobytes() for x in finer.values()]
    assert all(np.isnan(x).tolist() == [False, True, False, False] for x in found.values())


stamps = st.datetimes(dt.datetime(1700, 1, 1), dt.datetime(2250, 1, 1))
KINDS: dict[str, Callable[[dt.datetime], Any]] = {
    "datetime": lambda value: value,
    "with a zone": lambda value: value.replace(tzinfo=OSLO),
    "date": lambda value: value.date(),
    "time": lambda value: value.time(),
    "numpy": np.datetime64,
    "numpy, in nanoseconds": lambda value: np.datetime64(value, "ns") + np.timedelta64(7, "ns"),
    "pandas": pd.Timestamp,
    "pandas, in nanoseconds": lambda value: (
        pd.Timestamp(value).as_unit("ns") + pd.Timedelta(7, "ns")
    ),
    "time span": lambda value: value - dt.datetime(1970, 1, 1),
}


@given(st.lists(st.none() | stamps, min_size=1, max_size=20), st.sampled_from(sorted(KINDS)))
def test_a_row_alone_has_the_names_and_bits_of_the_table(given_as: list[Any], kind: str) -> None:
    values = [None if value is None else KINDS[kind](value) for value in given_as]
    whole = read_frame({"n": [0.0] * len(values), "when": values})
    for at, value in enumerate(values):
        row = read_row({"n": 0.0, "when": value})
        if value is None:
            assert row == {"n": 0.0, "when": None}
            continue
        assert list(row) == list(whole.columns)
        assert list(row.values()) == whole.numbers[at].tolist()


@given(st.lists(stamps, min_size=1, max_size=9))
def test_every_library_gives_the_same_bits(values: list[dt.datetime]) -> None:
    first = matrix(read_frame({"when": values}))
    for library in ("numpy", "pandas", "polars", "arrow", "row by row"):
        assert matrix(read_frame(LIBRARIES[library](values))).tobytes() == first.tobytes()


def test_moments_far_from_today_are_taken() -> None:
    edges = np.array([np.iinfo(np.int64).min + 1, np.iinfo(np.int64).max]).astype("M8[ns]")
    for values in (edges, edges.astype("M8[s]"), np.array([10**11, -(10**11)], dtype="M8[s]")):
        columns = from_datetime64(values).columns("when").values()
        assert all((np.abs(column) <= 1).all() for column in columns)


def test_text_that_looks_like_a_date_stays_text() -> None:
    assert read_frame({"when": ["2024-05-01"]}).texts["when"].tolist() == ["2024-05-01"]
    assert read_row({"when": "2024-05-01"}) == {"when": "2024-05-01"}


def test_masked_dates_are_missing() -> None:
    values: Any = np.ma.array(
        np.array([["2024-05-01"], ["2024-05-02"]], "M8[D]"), mask=[[False], [True]]
    )
    assert np.isnan(matrix(read_frame(values))).any(axis=1).tolist() == [False, True]


def test_the_source_of_a_part_is_the_column_and_other_names_are_their_own() -> None:
    assert {source(name) for name in NAMES} == {"when"}
    for name in ("when", "a (b)", "time of day, sin", " (time of day)", "a (time of day, sin"):
        assert source(name) == name


def test_parts_of_a_block_are_parts_of_the_whole() -> None:
    values = np.arange(0, 10**10, 10**7 + 3).astype("M8[s]")
    whole = from_datetime64(values)
    for part in PARTS:
        blocks = [
            from_datetime64(values[at : at + 7]).part(part) for at in range(0, len(values), 7)
        ]
        assert np.concatenate(blocks).tobytes() == whole.part(part).tobytes()
    assert isinstance(whole, Moments)
    assert list(whole.columns("when")) == [calendar.part_name("when", part) for part in PARTS]


MAY, JUNE = dt.datetime(2024, 5, 1, 12), dt.datetime(2024, 6, 1, 18)
FIRST, CLOCK = [f"a ({part})" for part in PARTS], [f"a ({part})" for part in CLOCK_PARTS]
SEEN = {"n": [1.0, 2.0], "when": [MAY, JUNE]}


def rows(**columns: Any) -> Frame:
    return read_frame(columns)


@pytest.mark.parametrize(
    ("names", "groups"),
    [
        (["b", *FIRST, "c"], {"b": [0], "a": [1, 2, 3, 4, 5, 6], "c": [7]}),
        ([*CLOCK, "b"], {"a": [0, 1], "b": [2]}),
        (["b", *sorted(FIRST)], {"b": [0], "a": [6, 5, 2, 1, 4, 3]}),
        (["b", CLOCK[1], "c", CLOCK[0]], {"b": [0], "a": [3, 1], "c": [2]}),
        ([FIRST[3], "b", FIRST[2]], {FIRST[3]: [0], "b": [1], FIRST[2]: [2]}),
        (FIRST[1:], {name: [at] for at, name in enumerate(FIRST[1:])}),
        (FIRST[:1], {FIRST[0]: [0]}),
        ([*CLOCK, "a"], {CLOCK[0]: [0], CLOCK[1]: [1], "a": [2]}),
        ([], {}),
    ],
)
def test_parts_belong_together_only_if_all_are_there(names: list[str], groups: Any) -> None:
    assert group(names) == groups
    assert sources(names) == tuple(groups)


@pytest.mark.parametrize(
    ("new", "message"),
    [
        ({"n": [1.0]}, "X lacks columns that were there at fit: 'when'; add them"),
        ({"n": [1.0], "wenn": [MAY]}, r"'when' \(did you mean 'wenn'\?\)"),
        ({"n": [1.0], "when": ["may"]}, "column 'when' was dates at fit and is text now; make it"),
        ({"n": [1.0], "when": [5.0]}, "column 'when' was dates at fit and is numbers now"),
        ({"n": [1.0], "when": [dt.time(5)]}, "was dates at fit and is times of day now"),
        ({"n": [MAY], "when": [MAY]}, "column 'n' was not dates at fit and is dates now"),
        ([[1.0]], "X has 1 features, but QuiltClassifier is expecting 2 features as input"),
        ([[1.0] * 7], "X has 7 features, but QuiltClassifier is expecting 2 features"),
        ([[1.0, "may"]], "column 'when' was dates at fit and is text now"),
    ],
)
def test_messages_name_the_column_of_the_caller(new: Any, message: str) -> None:
    encoder = Encoder.fit(read_frame(SEEN))
    with pytest.raises(InputError, match=message):
        encoder.transform(read_frame(new))


def test_a_date_without_any_value_is_refused_by_the_callers_name() -> None:
    empty = np.array(["NaT", "NaT"], dtype="M8[s]")
    for table in (rows(n=[1, 2], when=empty), read_in_place(pa.table({"when": pa.array(empty)}))):
        with pytest.raises(InputError, match="'when' has no value"):
            Encoder.fit(table)


def test_a_column_that_is_named_like_a_part_is_refused_beside_the_date() -> None:
    both: dict[str, list[Any]] = {"when": [MAY], "when (day of week, cos)": [0.5]}
    message = r"column 'when' holds dates, .* such as 'when \(day of week, cos\)', but there is a"
    for read in (read_frame, lambda X: read_in_place(pa.table(X))):
        with pytest.raises(InputError, match=message):
            read(both)
    with pytest.raises(InputError, match=message):
        read_row({name: values[0] for name, values in both.items()})


@pytest.mark.parametrize(
    "nothing",
    [
        [None],
        [float("nan")],
        np.array(["NaT"], dtype="M8[s]"),
        pa.chunked_array([pa.array([None])]),
    ],
    ids=["None", "NaN", "NaT", "null"],
)
def test_a_column_that_holds_nothing_goes_with_any_kind(nothing: Any) -> None:
    seen = {"when": [MAY, None], "city": ["Oslo", None], "n": [1.0, None]}
    encoder = Encoder.fit(read_frame(seen))
    missing = encoder.transform(read_frame(seen))[1]
    found = encoder.transform(read_frame(dict.fromkeys(seen, nothing)))[0]
    assert found.tobytes() == missing.tobytes()
    assert (
        encoder.encode(Frame.of_row(read_row(dict.fromkeys(seen)))).tobytes() == missing.tobytes()
    )


def test_tables_without_names_are_matched_by_the_callers_columns() -> None:
    encoder = Encoder.fit(read_frame([[MAY, 1.0], [JUNE, 2.0]]))
    assert encoder.names_in == ("x0", "x1")
    named = encoder.transform(rows(when=[MAY], n=[2.0]))
    assert named.tobytes() == encoder.transform(read_frame([[MAY, 2.0]])).tobytes()
    assert np.isfinite(encoder.transform(read_frame([[None, 2.0]]))).all()


def test_an_encoder_knows_the_callers_columns_after_it_was_written_down() -> None:
    encoder = Encoder.fit(rows(n=[1.0], when=[MAY], city=["Oslo"], at=[dt.time(5)]))
    assert Encoder.from_json(encoder.to_json()).names_in == ("n", "when", "city", "at")


def test_rows_with_dates_are_stacked_loaded_and_in_place() -> None:
    above, below = read_frame(SEEN), rows(when=[None], n=[3.0])
    both = stack(above, below)
    assert sources(both.columns) == ("n", "when")
    assert np.isnan(both.numbers[:, 1]).tolist() == [False, False, True]
    lazy = [
        read_in_place(pa.table({**SEEN})),
        read_in_place(pa.table({"when": [None], "n": [3.0]})),
    ]
    stacked = stack_in_place(*lazy)
    assert stacked is not None
    assert stacked.columns == both.columns
    np.testing.assert_array_equal(stacked.load().numbers, both.numbers)


def test_new_rows_with_another_date_column_are_refused_by_its_name() -> None:
    with pytest.raises(InputError, match=r"the rows before have not: \['then'\]"):
        line_up(read_frame(SEEN), rows(n=[1.0], when=[MAY], then=[MAY]))


def test_parts_are_found_in_whatever_order_they_stand() -> None:
    table = read_frame(SEEN)
    order = sorted(range(7), key=lambda place: table.columns[place])
    names = [table.columns[place] for place in order]
    assert find_columns(table, names, named=True) == order
    assert list(group(names)) == ["n", "when"]


def test_the_same_names_are_found_where_they_stand() -> None:
    table = read_frame(SEEN)
    assert find_columns(table, table.columns, named=True) == list(range(7))
    assert find_columns(rows(when=[MAY], n=[1.0]), table.columns, named=True) == [6, *range(6)]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"when": "may"}, "column 'when' has held dates or times so far; give it as these"),
        ({"when": 5}, "column 'when' has held dates or times so far"),
        ({"n": MAY}, "column 'n' holds a date or a time, but has held none so far"),
        ({"n": dt.time(5)}, "column 'n' holds a date or a time, but has held none so far"),
    ],
)
def test_a_row_whose_column_is_of_another_kind_is_refused(row: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Encoder.fit(read_frame(SEEN)).encode(Frame.of_row(read_row(row)))


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["2024-03", "2023-12", None], ["2024-03-01", "2023-12-01", None]),
        (["2024/3/5", "2024/12/31 14:30"], ["2024-03-05", "2024-12-31T14:30"]),
        (["26/04/2016", "1/5/2016 7:05:09"], ["2016-04-26", "2016-05-01T07:05:09"]),
        (["04/26/2016", "5/1/2016"], ["2016-04-26", "2016-05-01"]),
        (
            ["04/26/2016 2:30:15 PM", "5/1/2016 12:05 am", "5/1/2016 12:05 pm"],
            ["2016-04-26T14:30:15", "2016-05-01T00:05", "2016-05-01T12:05"],
        ),
        (["17.05.2021", " 1.2.2021 "], ["2021-05-17", "2021-02-01"]),
        (["29-02-2024", "01-03-2024"], ["2024-02-29", "2024-03-01"]),
        (["2024-03-05", "2024-03-05 14:30:01.5"], ["2024-03-05", "2024-03-05T14:30:01.5"]),
        (["2024-03-05T23:30:00-02:00"], ["2024-03-06T01:30"]),
    ],
)
@pytest.mark.parametrize("kind", [pa.string(), pa.dictionary(pa.int8(), pa.string())])
def test_times_are_read_from_text(
    texts: list[str | None], expected: list[str | None], kind: pa.DataType
) -> None:
    column = pa.chunked_array([texts[:1], texts[1:]], pa.string()).cast(kind)
    times = read_times("when", column).to_pylist()
    assert [time and time.replace(tzinfo=None) for time in times] == [
        text and dt.datetime.fromisoformat(text) for text in expected
    ]


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["04/05/2016", "11/12/2016"], "'04/05/2016', and none tells whether the day or the month"),
        (["26/04/2016", "04/26/2016"], "'26/04/2016', where the day comes first, and '04/26/2016'"),
        (["2024-03", "2024-13"], "'2024-13', which is not a date"),
        (["31/01/2024", "30/02/2024"], "'30/02/2024', which is not a date"),
        (["31/01/2024", "n/a"], "'n/a', which is not a date"),
        (["31/01/2024", "2024-03"], "'2024-03', which is not a date, or not written as the others"),
        (["31/01/2024 24:00"], "'31/01/2024 24:00', which is not a date"),
        (["31/01/2024 14:00 PM"], "14:00 PM', which is not a date"),
        (["may"], "'may', which is not a date"),
        (["26/04/16"], "'26/04/16', which is not a date"),
    ],
)
def test_text_that_is_no_clear_time_is_refused(texts: list[str], message: str) -> None:
    with pytest.raises(InputError, match=f"column 'when' holds .*{message}"):
        read_times("when", pa.chunked_array([texts]))
