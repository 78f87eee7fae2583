"""Columns are matched, and spoken of, as the caller knows them."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from driftquilt.data.arrow import read_in_place, stack_in_place
from driftquilt.data.calendar import CLOCK_PARTS, PARTS, find_columns, group, line_up, sources
from driftquilt.data.encoder import Encoder
from driftquilt.data.frame import Frame, read_frame, read_row
from driftquilt.data.rows import stack
from driftquilt.errors import InputError

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
        with pytest.raises(InputError, match="column 'when' has no value in any of the 2 rows"):
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
