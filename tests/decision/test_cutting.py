"""Rows are cut where the column, the clock or the detector says, and bad cuts say why."""

from __future__ import annotations

import tracemalloc
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftquilt.data import column_types as columns
from driftquilt.data.labels import read_segments
from driftquilt.decision import cutting
from driftquilt.decision.cutting import CutBy, Span, by_column, by_time, cut, sort_by_time
from driftquilt.decision.streaming import by_detector
from driftquilt.errors import InputError
from driftquilt.quilt.classifier import QuiltClassifier
from driftquilt.stream import QuiltStream
from driftquilt.stream.events import DriftFound
from tests.decision.tables import shop_table, sine_table, tiny

DAY = datetime(2024, 3, 5, 10, 30)
KINDS = {
    "ints": pa.array([3, 3, 1, 1]),
    "text": pa.array(["b", "b", "a", "a"]),
    "long text": pa.array(["b", "b", "a", "a"], pa.large_string()),
    "views": pa.array(["b", "b", "a", "a"], pa.string_view()),
    "codes of text": pa.array(["b", "b", "a", "a"]).dictionary_encode(),
    "codes of ints": pa.array([3, 3, 1, 1]).dictionary_encode(),
    "dates": pa.array([date(2024, 1, 2)] * 2 + [date(2024, 1, 1)] * 2),
    "nanoseconds": pa.array([2, 2, 1, 1], pa.timestamp("ns")),
    "booleans": pa.array([True, True, False, False]),
    "floats": pa.array([0.5, 0.5, 0.25, 0.25]),
    "half floats": pa.array(np.array([0.5, 0.5, 0.25, 0.25], dtype=np.float16)),
}


def codes(segments: Any) -> list[int]:
    found: list[int] = read_segments(segments, len(segments))[1].tolist()
    return found


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "nanoseconds"])
def test_a_column_of_any_kind_cuts_in_order_of_first_appearance(kind: str) -> None:
    assert codes(by_column(pa.table({"s": KINDS[kind]}), "s")) == [0, 0, 1, 1]


@given(st.lists(st.sampled_from("abc"), min_size=2, max_size=60))
def test_a_cut_by_column_is_the_column(values: list[str]) -> None:
    table = pa.table({"s": pa.chunked_array([values[:5], values[5:]], pa.string())})
    if len(set(values)) == 1:
        with pytest.raises(InputError, match="only one segment"):
            by_column(table, "s")
        return
    names, found = read_segments(by_column(table, "s"), len(values))
    assert [names[code] for code in found] == values


def test_no_python_object_is_made_per_row() -> None:
    n_rows = 500_000
    table = pa.table({"s": pa.array(np.arange(n_rows) // 1000).cast(pa.string())})
    tracemalloc.start()
    by_column(table, "s")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * n_rows  # bytes; a list of pointers alone would take twice that


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (KINDS["nanoseconds"], "only one segment"),
        ([f"order {k}" for k in range(600)], "600 different values in 600 rows: it looks like an"),
        (["a", "b", None], "'s' is missing in row 2"),
        ([0.5, float("nan"), 1.0], "'s' is missing in row 1"),
        ([[1], [2]], "cannot name a segment"),
        (pa.array([], pa.int64()), "no rows"),
    ],
)
def test_a_column_that_cannot_cut_is_refused(values: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        by_column(pa.table({"s": values}), "s")


@pytest.mark.parametrize(
    ("table", "every", "message"),
    [
        (pa.table({"month": [1]}), "1d", "no time column 'when' in the table; there are"),
        (pa.table({"when": ["new year"]}), "1d", "'new year', which is not a date"),
        (pa.table({"when": [2024.5]}), "1d", "holds double, neither dates nor timestamps"),
        (shop_table(), "15min", "spans of 15min have hardly a row each"),
    ],
)
def test_a_time_that_cannot_cut_is_refused(table: pa.Table, every: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        by_time(table, "when", every)


@pytest.mark.parametrize(
    "times",
    [
        ["2024-03", "2024-01", "2024-01", "2023-12"],
        ["26/3/2024", "2/1/2024", "30/1/2024", "1/12/2023"],
    ],
)
def test_rows_are_sorted_and_cut_by_times_written_as_text(times: list[str]) -> None:
    table = pa.table({"when": times, "x": [3, 1, 2, 0], "y": [0, 1, 0, 1]})
    found = cut(table, "y", CutBy(time="when", every="1mo"))
    assert found.table["x"].to_pylist() == [0, 1, 2, 3]
    assert found.table["when"].to_pylist() == [times[k] for k in (3, 1, 2, 0)]
    assert found.segments.to_pylist() == ["2023-12", "2024-01", "2024-01", "2024-03"]
    assert found.notes == ("the rows were not in order of 'when' and have been sorted",)


def test_what_is_no_table_of_distinct_names_is_refused() -> None:
    with pytest.raises(InputError, match=r"no segment column 'mnth'.*did you mean 'month'"):
        by_column(pa.table({"month": [1, 2]}), "mnth")
    twice = pa.Table.from_arrays([pa.array([1, 2])] * 2, names=["s", "s"])
    with pytest.raises(InputError, match=r"several columns named \['s'\]"):
        by_column(twice, "s")
    with pytest.raises(InputError, match="is a dict; give a pyarrow"):
        by_column({"s": [1]}, "s")


@given(
    st.lists(st.integers(0, 200_000), min_size=1, max_size=80),
    st.sampled_from(["1d", "6h", "1mo", "1w"]),
    st.sampled_from(["s", "ms", "us", "ns"]),
)
def test_rows_of_one_span_are_neighbours_and_share_a_name(
    minutes: list[int], every: str, unit: str
) -> None:
    moments = [DAY + timedelta(minutes=m) for m in sorted(minutes)]
    moments += [moments[-1] + timedelta(40)] * 80  # a second span, and rows enough for all
    table = pa.table({"t": pa.array(moments, pa.timestamp(unit))})
    segments = by_time(table, "t", every)
    found = codes(segments)
    assert found == sorted(found)
    assert len(segments) == len(moments)
    if every == "1mo":
        assert segments.to_pylist() == [f"{moment:%Y-%m}" for moment in moments]


def test_blocks_do_not_change_the_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    table = shop_table()
    whole = by_time(table, "when", "1w").to_pylist()
    monkeypatch.setattr(columns, "BLOCK", 7)
    assert by_time(table, "when", "1w").to_pylist() == whole
    assert whole[0] == "2024-05-01"


def test_days_are_those_of_the_columns_own_time_zone() -> None:
    moments = pa.array([datetime(2024, 3, 5, 22), datetime(2024, 3, 5, 23, 30)], pa.timestamp("us"))
    table = pa.table(
        {"t": moments.cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us", "Europe/Oslo"))}
    )
    assert by_time(table, "t", "1d").to_pylist() == ["2024-03-05", "2024-03-06"]


def test_dates_can_be_cut_too() -> None:
    table = pa.table({"t": pa.array([date(2024, 3, 31), date(2024, 4, 1)])})
    assert by_time(table, "t", "1q").to_pylist() == ["2024-Q1", "2024-Q2"]


def test_rows_out_of_order_are_refused_at_their_row_and_can_be_sorted() -> None:
    table = pa.table(
        {"t": pa.array([DAY, DAY + timedelta(40), DAY - timedelta(40)]), "x": [1, 2, 3]}
    )
    with pytest.raises(InputError, match=r"column 't', row 2 is 2024-01-25.* after 2024-04-14"):
        by_time(table, "t", "1mo")
    ordered = sort_by_time(table, "t")
    assert ordered["x"].to_pylist() == [3, 1, 2]
    assert by_time(ordered, "t", "1mo").to_pylist() == ["2024-01", "2024-03", "2024-04"]


@given(st.lists(st.integers(0, 5), min_size=1, max_size=40))
def test_sorting_keeps_the_order_of_equal_moments(days: list[int]) -> None:
    moments = pa.array([DAY + timedelta(day) for day in days])
    table = pa.table({"t": moments, "n": list(range(len(days)))})
    expected = sorted(range(len(days)), key=days.__getitem__)
    assert sort_by_time(table, "t")["n"].to_pylist() == expected


def test_numbers_tell_an_order_too() -> None:
    for times in ([3, 1, 2], [3.5, 1.0, 2.0]):
        table = pa.table({"t": times, "n": [0, 1, 2]})
        assert sort_by_time(table, "t")["n"].to_pylist() == [1, 2, 0]
    with pytest.raises(InputError, match="'t' holds 'b', which is not a date"):
        sort_by_time(pa.table({"t": ["b", "a"]}), "t")


@pytest.mark.parametrize("gap", [pa.array([3, None, 2]), pa.array([3.0, float("nan"), 2.0])])
def test_a_row_without_a_time_is_named_by_its_place_in_the_table(gap: pa.Array) -> None:
    with pytest.raises(InputError, match="'t' is missing in row 1"):
        sort_by_time(pa.table({"t": gap}), "t")


def test_a_table_too_long_to_sort_is_refused_with_the_row_that_goes_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cutting, "_MAX_SORTED", 3)
    monkeypatch.setattr(columns, "BLOCK", 2)
    with pytest.raises(InputError, match=r"'t': row 2 is 1, after 3; .* 4 rows"):
        sort_by_time(pa.table({"t": [2, 3, 1, 4]}), "t")
    long = pa.table({"t": [1, 2, 3, 4]})
    assert sort_by_time(long, "t") is long  # in order it may be of any length


def test_where_a_detector_cuts_a_column_of_times_is_named() -> None:
    table = sine_table(2, 300).drop_columns(["segment"])
    by = CutBy(detector="adwin")
    assert cut(table, "label", by).notes == ()
    days = [DAY + timedelta(hours=row) for row in range(len(table))]
    [note] = cut(table.append_column("paid on", pa.array(days)), "label", by).notes
    assert "--time 'paid on'" in note


def test_a_detector_cuts_where_a_stream_finds_its_drifts() -> None:
    table = sine_table(3, 500)
    segments = by_detector(table, "label", drop=["segment"])
    begins = [int(name.split()[1].split("-")[0]) for name in segments.dictionary.to_pylist()]
    # A stream that never trains has the online net alone, as the cut has.
    stream = QuiltStream(
        QuiltClassifier(random_state=0), "adwin", n_wait=20_000, segment_rows=20_000, panel="rows"
    )
    stream._engine.learning.online._seed = 0
    rows = table.drop_columns(["segment", "label"]).to_pylist()
    stream.learn_many(rows, table["label"].to_pylist())
    drifts = [event.row for event in stream.events if isinstance(event, DriftFound)]
    assert begins == [0, *drifts]
    assert len(begins) >= 3
    sizes = [b - a for a, b in zip(begins, [*begins[1:], 1500], strict=True)]
    assert np.bincount(codes(segments)).tolist() == sizes


def test_known_drifts_name_the_rows_and_progress_is_told() -> None:
    table, told = sine_table(2, 1500), list[tuple[int, int]]()
    known = {"kind": "known", "points": [999]}
    segments = by_detector(
        table, "label", known, drop=["segment"], watch=lambda *at: told.append(at)
    )
    assert segments.dictionary.to_pylist() == ["rows 0-999", "rows 1000-2999"]
    assert told == [(0, 3000), (1000, 3000), (2000, 3000)]


def test_rows_without_a_label_belong_where_they_lie() -> None:
    table = shop_table(400)
    known = {"kind": "known", "points": [195]}  # of 196 rows learned
    segments = by_detector(table, "bought", known)
    assert np.bincount(codes(segments)).tolist() == [200, 200]


def test_a_stream_without_drift_is_one_segment_only() -> None:
    with pytest.raises(InputError, match=r"only one segment: .* 300 rows"):
        by_detector(sine_table(1, 300), "label", "never", drop=["segment"])


@pytest.mark.filterwarnings("ignore:segments appear in the order")
@pytest.mark.parametrize("kind", [k for k in KINDS if k != "nanoseconds"])
def test_a_classifier_takes_every_cut(kind: str) -> None:
    table = pa.table({"s": pa.chunked_array([KINDS[kind][:2]] * 10 + [KINDS[kind][2:]] * 10)})
    x = np.random.default_rng(0).normal(size=(40, 1))
    clf = tiny().fit(x, x[:, 0] > 0, segments=by_column(table, "s"))
    assert len(clf.selection_) == 1


moments = st.datetimes(datetime(1950, 1, 1), datetime(2100, 1, 1))
spans = st.sampled_from(["15min", "7min", "12h", "1d", "30d", "1w", "1mo", "6mo", "1q", "1y"])


def number(span: Span, moment: datetime, first: datetime) -> int:
    return int(span.numbers(np.array([moment], dtype="M8[us]"), np.datetime64(first))[0])


@given(spans, moments, st.lists(moments, min_size=1, max_size=20))
def test_later_moments_are_in_later_spans_with_later_names(
    every: str, first: datetime, later: list[datetime]
) -> None:
    span, rising = Span.parse(every), sorted([first, *later])
    numbers = [number(span, moment, rising[0]) for moment in rising]
    names = [span.name(n, np.datetime64(rising[0])) for n in numbers]
    assert numbers == sorted(numbers)
    assert names == sorted(names)
    assert len(set(names)) == len(set(numbers))


@given(moments, moments)
def test_months_quarters_and_years_are_the_calendars(first: datetime, moment: datetime) -> None:
    def name(every: str) -> str:
        span = Span.parse(every)
        return span.name(number(span, moment, first), np.datetime64(first))

    assert name("1mo") == f"{moment:%Y-%m}"
    assert name("1q") == f"{moment:%Y}-Q{(moment.month + 2) // 3}"
    assert name("1y") == f"{moment:%Y}"
    assert name("1d") == f"{moment:%Y-%m-%d}"
    assert name("6mo") == f"{moment:%Y}-{'01' if moment.month < 7 else '07'}"


@given(moments, st.integers(0, 10**6))
def test_spans_of_hours_begin_at_the_first_days_midnight(first: datetime, minutes: int) -> None:
    span = Span.parse("12h")
    moment = np.datetime64(first) + np.timedelta64(minutes, "m")
    at = int(span.numbers(np.array([moment]), np.datetime64(first))[0])
    begin = np.datetime64(span.name(at, np.datetime64(first)).replace(" ", "T"))
    assert begin <= moment < begin + np.timedelta64(12, "h")
    assert (begin - np.datetime64(first, "D")) % np.timedelta64(12, "h") == np.timedelta64(0, "m")


@pytest.mark.parametrize("every", ["", "mo", "0d", "-1d", "1.5h", "30 days", "9999999d", "1month"])
def test_what_is_no_span_is_refused_with_the_units(every: str) -> None:
    message = r"is not a span of time.* min \(minutes\), h \(hours\), d .* and y \(years\)$"
    with pytest.raises(InputError, match=message):
        Span.parse(every)


@pytest.mark.parametrize("every", ["1m", "1 m", "1M"])
def test_a_lone_m_may_be_minutes_or_months(every: str) -> None:
    with pytest.raises(InputError, match=r"such as 1min \(minutes\) or 1mo \(months\)$"):
        Span.parse(every)
