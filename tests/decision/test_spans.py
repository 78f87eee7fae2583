"""Every moment lies in its span, and spans are named after where they begin."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftquilt.decision.spans import Span
from driftquilt.errors import InputError

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


@pytest.mark.parametrize("every", ["", "mo", "0d", "1month", "-1d", "1.5h", "30 days", "9999999d"])
def test_what_is_no_span_is_refused_with_examples(every: str) -> None:
    with pytest.raises(InputError, match="is no span of time; give a number and a unit, such as"):
        Span.parse(every)


@pytest.mark.parametrize("every", ["1m", "1 m", "1M"])
def test_a_lone_m_may_be_minutes_or_months(every: str) -> None:
    with pytest.raises(InputError, match=r"such as 1min \(minutes\) or 1mo \(months\)$"):
        Span.parse(every)


def test_the_units_are_told() -> None:
    with pytest.raises(InputError, match=r"min \(minutes\), h \(hours\), d .* and y \(years\)$"):
        Span.parse("1month")
