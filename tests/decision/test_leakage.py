"""Columns that reveal the segment are found, and columns that are only columns are not."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from driftquilt.decision import leakage
from driftquilt.decision.cutting import by_column
from driftquilt.decision.deciding import decide
from driftquilt.decision.labels import Labels
from driftquilt.decision.layout import Layout, lay_out
from driftquilt.decision.leakage import (
    find_leaking_columns,
    find_leaking_columns_in_stream,
    leakage_warning,
)
from tests.decision.tables import sine_table, tiny

N, PER_SEGMENT = 400, 100
SEGMENT = np.repeat(np.arange(4), PER_SEGMENT)


def layout(segments: Any = SEGMENT) -> Layout:
    codes = np.tile(np.array([0, 1], dtype=np.int32), len(segments) // 2)
    return lay_out(Labels("y", np.array([0, 1]), codes), pa.array(segments))


def leaks(values: Any, segments: Any = SEGMENT) -> bool:
    return find_leaking_columns(pa.table({"x": values}), layout(segments)) == ["x"]


def days(first: date, n: int = N, step: int = 1) -> pa.Array:
    return pa.array([first + timedelta(days=step * k) for k in range(n)])


@pytest.mark.parametrize(
    "values",
    [
        pa.array(np.arange(N)),
        pa.array(SEGMENT + 1),
        pa.array(SEGMENT.astype(str)),
        pa.array([f"2024-0{s + 1}-{k % 28 + 1:02d}" for k, s in enumerate(SEGMENT)]),
        pa.array(SEGMENT.astype(str)).dictionary_encode(),
        pa.array([f"{v:.1f}" for v in np.arange(N) // 7]).cast(pa.large_string()),
        pa.array([date(2024, 3 * s + 1, k % 28 + 1) for k, s in enumerate(SEGMENT.tolist())]),
        pa.array([datetime(2024, 1, 1) + timedelta(hours=20 * k) for k in range(N)]),
        pa.array([timedelta(seconds=k) for k in range(N)]),
        pa.array([None if k % 3 else float(k) for k in range(N)]),
    ],
    ids=[
        "running number", "number of the month", "text of the month", "date as text", "category",
        "number as text", "dates", "moments", "time spans", "with gaps",
    ],
)  # fmt: skip
def test_a_column_with_values_of_its_own_in_every_segment_is_found(values: pa.Array) -> None:
    assert leaks(values)


def test_a_few_strays_do_not_hide_it() -> None:
    number, month = np.arange(N, dtype=float), SEGMENT.astype(str)
    number[[5, 205]], month[[5, 205]] = (399, 1), ("3", "0")
    number[[17, 117]] = np.nan, np.inf
    assert leaks(number)
    assert leaks(month)


@pytest.mark.parametrize(
    "values",
    [
        np.random.default_rng(0).normal(size=N) + SEGMENT,
        np.full(N, 3),
        np.arange(N) % PER_SEGMENT,
        np.minimum(SEGMENT, 2),
        np.where(SEGMENT == 3, "new", "old"),
        np.random.default_rng(0).choice(["web", "shop"], N),
        np.random.default_rng(0).random(N) < 0.5,
        pa.array([float(k) if s == 3 else None for k, s in enumerate(SEGMENT)]),
        pa.array([float(k) if s < 3 else None for k, s in enumerate(SEGMENT)]),
        pa.array(["app" if s == 3 else None for s in SEGMENT]),
    ],
    ids=[
        "a number that shifts", "a constant", "a day of the month", "a value of two segments",
        "old and new", "few texts", "a boolean", "only in the last", "not in the last",
        "a text only in the last",
    ],
)  # fmt: skip
def test_a_column_whose_values_come_back_is_not_found(values: Any) -> None:
    assert not leaks(values)


def test_a_date_tells_until_most_days_have_come_back() -> None:
    quarters = np.repeat(np.arange(8), 90)
    assert leaks(days(date(2023, 1, 1), 360), quarters[:360])
    assert leaks(days(date(2023, 1, 1), 450), quarters[:450])
    assert not leaks(days(date(2023, 1, 1), 720), quarters)


def test_customers_who_come_back_now_and_then_do_not_tell_the_segment() -> None:
    rng = np.random.default_rng(0)
    names = [f"customer {k}" for k in rng.integers(500, size=4000)]
    assert not leaks(names, np.repeat(np.arange(4), 1000))


def test_of_a_segment_with_few_rows_nothing_is_said() -> None:
    assert not leaks(np.arange(24), np.repeat([0, 1], [20, 4]))
    assert leaks(np.arange(44), np.repeat([0, 1, 2], [20, 4, 20]))


def test_texts_that_are_too_many_to_remember_are_not_judged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(leakage, "_MAX_VALUES", 100)
    assert not leaks([f"code {k // 2}" for k in range(N)])


def test_a_long_table_is_looked_at_block_by_block() -> None:
    segments = np.repeat(np.arange(4), 50_000)
    chunks = pa.chunked_array([segments[:70_000], segments[70_000:]])
    assert leaks(chunks, segments)
    assert leaks(chunks.cast(pa.string()), segments)


def test_in_a_stream_the_segments_are_counted_in_rows_that_have_a_label() -> None:
    labels = ["yes", None, "no", None] * 100
    table = pa.table({"y": labels, "part": SEGMENT // 2, "half": np.arange(N) % 2, "id": range(N)})
    assert find_leaking_columns_in_stream(table, "y", [100]) == ["part", "id"]
    assert find_leaking_columns_in_stream(table, "y", [100], drop=["id"]) == ["part"]
    assert find_leaking_columns_in_stream(table, "y", [150]) == ["id"]
    assert find_leaking_columns_in_stream(table, "y", []) == []


def test_the_warning_has_an_option_that_can_be_typed() -> None:
    assert leakage_warning(["month"]) == (
        "column 'month' reveals the segment: hardly any value occurs in two segments, so what is "
        "learned from it does not carry over; leave it out with --drop month"
    )
    assert leakage_warning(["a", "b c"]).endswith("leave them out with --drop 'a,b c'")


def test_a_decision_warns_and_notes_it_at_the_column_until_it_is_dropped() -> None:
    table = sine_table(3, 100).append_column("id", pa.array(range(300)))
    segments = by_column(table, "segment")
    with_id = decide(table, "label", segments, drop=["segment"], estimator=tiny())
    assert [finding.sentence for finding in with_id.checks or ()] == [leakage_warning(["id"])]
    notes = {column.name: column.note for column in with_id.columns}
    assert notes["id"].startswith("reveals the segment")
    without = decide(table, "label", segments, drop=["segment", "id"], estimator=tiny())
    assert without.checks == ()
