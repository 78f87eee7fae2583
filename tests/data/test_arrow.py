"""Rows that are read where they lie are those that reading the whole table gives."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftquilt.data import arrow
from driftquilt.data import encoder as encoder_module
from driftquilt.data.arrow import ArrowFrame, Fixed, Loaded, read_in_place, stack_in_place
from driftquilt.data.encoder import Encoder
from driftquilt.data.frame import read_frame
from driftquilt.errors import InputError

N = 40
RNG = np.random.default_rng(0)


def gaps(values: list[Any]) -> list[Any]:
    return [None if row % 7 == 3 else value for row, value in enumerate(values)]


numbers = RNG.normal(size=N).tolist()
words = [("Oslo", "Rome", "Bonn")[k] for k in RNG.integers(3, size=N)]
counts = [int(x * 1e13) for x in numbers]
stamps = [dt.datetime(2024, 5, 1) + dt.timedelta(seconds=round(x * 1e7)) for x in numbers]
days = [stamp.date() for stamp in stamps]
COLUMNS = {
    "float32": pa.array(numbers, pa.float32()),
    "float64 with gaps": pa.array(gaps(numbers)),
    "float with NaN": pa.array([float("nan") if i % 5 == 0 else x for i, x in enumerate(numbers)]),
    "float16": pa.array(gaps([round(x, 1) for x in numbers]), pa.float16()),
    "int64": pa.array([2**60 + int(x * 1e3) for x in numbers]),
    "int8 with gaps": pa.array(gaps([int(x) for x in numbers]), pa.int8()),
    "uint64": pa.array(gaps([2**63 + int(abs(x) * 1e3) for x in numbers]), pa.uint64()),
    "bool": pa.array(gaps([x > 0 for x in numbers])),
    "decimal": pa.array(gaps([Decimal(f"{x:.2f}") for x in numbers])),
    "text": pa.array(gaps(words)),
    "large text": pa.array(words, pa.large_string()),
    "text view": pa.array(gaps(words), pa.string_view()),
    "date": pa.array(gaps(days), pa.date32()),
    "date in milliseconds": pa.array(days, pa.date64()),
    "time stamp": pa.array(gaps(stamps), pa.timestamp("us")),
    "time stamp in nanoseconds": pa.array([x * 1009 for x in counts], pa.timestamp("ns")),
    "time stamp of a zone": pa.array(gaps(stamps), pa.timestamp("ms", "Europe/Oslo")),
    "time of day": pa.array(gaps([int(abs(x) * 1e4) for x in numbers]), pa.time32("s")),
    "time of day in nanoseconds": pa.array([abs(x) for x in counts], pa.time64("ns")),
    "time span": pa.array(gaps(counts), pa.duration("us")),
    "coded": pa.array(gaps(words)).dictionary_encode(),
    "coded numbers": pa.array(gaps([int(x * 2) for x in numbers])).dictionary_encode(),
}
#: The same rows in one chunk, in several, and as a part of more rows.
LAYOUTS = {
    "whole": pa.table(COLUMNS),
    "chunks": pa.concat_tables(
        [pa.table(COLUMNS)[:11], pa.table(COLUMNS)[11:11], pa.table(COLUMNS)[11:]]
    ),
    "slice": pa.concat_tables([pa.table(COLUMNS)[-5:], pa.table(COLUMNS)]).combine_chunks()[5:],
}


@pytest.fixture(autouse=True)
def _keep_small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that small tables have pieces as large ones do."""
    monkeypatch.setattr(arrow, "SMALLEST_PIECE", 1)


def same_rows(found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> bool:
    return found.dtype == expected.dtype and found.tobytes() == expected.tobytes()


@pytest.mark.parametrize("table", LAYOUTS.values(), ids=LAYOUTS.keys())
@pytest.mark.parametrize("name", COLUMNS)
def test_a_column_read_in_place_is_the_column_that_is_loaded(table: Any, name: str) -> None:
    table = table.select([name])
    lazy, loaded = read_in_place(table), read_frame(table)
    for rows in (slice(0, N), slice(3, 17), slice(5, 5), np.array([39, 0, 12, 12]), np.arange(0)):
        some = lazy.take(rows)
        assert lazy.columns == some.columns == loaded.columns
        for column in some.columns:
            found, expected = some.column(column), loaded.column(column)
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected[rows])


@pytest.mark.parametrize("layout", LAYOUTS)
def test_rows_that_are_encoded_in_place_are_those_of_the_loaded_table(
    layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoder_module, "BLOCK", 7)
    lazy, loaded = read_in_place(LAYOUTS[layout]), read_frame(LAYOUTS[layout])
    encoder = Encoder.fit(loaded)
    assert Encoder.fit(lazy) == encoder
    whole = encoder.transform(loaded)
    assert same_rows(encoder.transform(lazy), whole)

    @given(st.lists(st.integers(0, N - 1), max_size=60))
    def holds(rows: list[int]) -> None:
        numbers = np.array(rows, dtype=np.intp)
        assert same_rows(encoder.transform(lazy, numbers), whole[numbers])

    holds()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_picked_table_is_encoded_as_the_rows_picked(layout: str) -> None:
    mask = np.arange(N) % 3 != 1
    lazy = read_in_place(LAYOUTS[layout]).pick(mask)
    loaded = read_frame(LAYOUTS[layout]).take(mask)
    encoder = Encoder.fit(loaded)
    assert Encoder.fit(lazy) == encoder
    assert same_rows(encoder.transform(lazy), encoder.transform(loaded))
    again = lazy.pick(np.arange(len(lazy)) % 2 == 0)
    assert same_rows(encoder.transform(again), encoder.transform(loaded)[::2].copy())


def test_numbers_are_seen_through_arrows_own_memory() -> None:
    values = np.arange(5000, dtype=np.float32)
    table = read_in_place(pa.table({"a": values, "b": pa.array(["x", "y"] * 2500)}))
    [piece] = table.parts["a"].pieces
    assert isinstance(piece, Fixed)
    assert np.shares_memory(piece.values, values)


def test_many_small_chunks_become_one_piece(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "SMALLEST_PIECE", 4096)
    chunks = pa.chunked_array([[float(i)] for i in range(50)])
    parts = read_in_place(pa.table({"a": chunks, "b": chunks.dictionary_encode()})).parts
    assert [len(part.pieces) for part in parts.values()] == [1, 1]
    assert parts["a"].read(slice(0, 50)).tolist() == list(range(50))
    assert parts["b"].read(np.array([7])).tolist() == ["7.0"]


@pytest.mark.parametrize(
    "columns",
    [
        {"a": [1.0, float("inf")]},
        {"a": [0.0, None, -1e300]},
        {"a": pa.array([1.0, float("-inf"), None], pa.float32())},
        {"a": pa.array([1.0, float("inf")], pa.float16())},
        {"a": [1.0], "b": [dt.date(2024, 5, 1)], "b (time of day, sin)": [1.0]},
        {"a": [b"x"]},
        {"a": [[1]]},
        {"a": [{"k": 1}]},
        {"a": [Decimal("1e39"), None]},
        {"a": pa.array([], pa.int8())},
        {},
    ],
)
def test_what_cannot_be_used_is_refused_as_when_it_is_loaded(columns: dict[str, Any]) -> None:
    with pytest.raises(InputError) as loading:
        read_frame(pa.table(columns))
    with pytest.raises(InputError) as in_place_:
        read_in_place(pa.table(columns))
    assert str(in_place_.value) == str(loading.value)


def test_columns_of_the_same_name_are_refused_as_when_they_are_loaded() -> None:
    table = pa.table([pa.array([1]), pa.array([2])], names=["a", "a"])
    for read in (read_frame, read_in_place):
        with pytest.raises(InputError, match=r"columns of the same name.*'a' 2 times"):
            read(table)


def test_an_extreme_value_is_told_with_its_row_in_the_whole_table() -> None:
    values = np.zeros(200_000)
    values[[150_001, 170_000]] = np.inf
    with pytest.raises(InputError, match="column 'a', row 150001 holds inf"):
        read_in_place(pa.table({"a": pa.chunked_array([values[:90_000], values[90_000:]])}))


@pytest.mark.parametrize(
    "values", [[None, None], pa.array([None, None], pa.string()), [float("nan")] * 2]
)
def test_a_column_without_a_value_is_refused_at_fit(values: Any) -> None:
    table = pa.table({"a": [1, 2], "b": values})
    with pytest.raises(InputError, match="'b' has no value"):
        Encoder.fit(read_in_place(table))


def rows(**columns: Any) -> ArrowFrame:
    return read_in_place(pa.table(columns))


def test_stacked_tables_are_read_as_one_by_name_and_whatever_the_type() -> None:
    stacked = stack_in_place(
        rows(a=[1, 2], b=["x", None]), rows(b=pa.array(["y"]).dictionary_encode(), a=[0.5])
    )
    assert stacked is not None
    assert stacked.columns == ("a", "b")
    table = stacked.take(np.array([2, 0, 1]))
    assert table.column("a").tolist() == [0.5, 1, 2]
    assert table.column("b").tolist() == ["y", "x", None]
    assert stack_in_place(rows(a=[1]), rows(a=["x"])) is None
    with pytest.raises(InputError, match=r"the rows before have not: \['c'\]"):
        stack_in_place(rows(a=[1]), rows(a=[1], c=[1]))


def test_small_batches_are_put_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrow, "SMALLEST_PIECE", 10)
    table = rows(a=[0.0])
    for number in range(1, 35):
        stacked = stack_in_place(table, rows(a=[float(number)]))
        assert stacked is not None
        table = stacked
    pieces = table.parts["a"].pieces
    assert [len(piece) for piece in pieces] == [10, 10, 10, 5]
    assert all(isinstance(piece, Loaded) for piece in pieces)
    assert table.load().column("a").tolist() == list(range(35))
