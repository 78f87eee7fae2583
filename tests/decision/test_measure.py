"""Intervals and tests agree with scipy's, which were not written for this."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from driftquilt.decision.measure import interval, p_value, verdict

counts = st.integers(0, 3000)


@given(counts, counts)
def test_an_interval_is_wilsons(n_right: int, n_wrong: int) -> None:
    n_rows = n_right + n_wrong
    if n_rows == 0:
        assert interval(0, 0) == (0.0, 1.0)
        return
    expected = binomtest(n_right, n_rows).proportion_ci(method="wilson")
    assert interval(n_right, n_rows) == pytest.approx((expected.low, expected.high), abs=1e-9)


@given(counts, counts)
def test_the_test_is_the_exact_one(wins: int, losses: int) -> None:
    expected = binomtest(wins, wins + losses).pvalue if wins + losses else 1.0
    assert p_value(wins, losses) == pytest.approx(expected, abs=1e-8)


@given(counts, counts)
def test_a_verdict_turns_round_with_its_counts(wins: int, losses: int) -> None:
    opposite = {"better": "worse", "worse": "better", "no clear difference": "no clear difference"}
    assert verdict(losses, wins) == opposite[verdict(wins, losses)]


def test_a_hundred_thousand_rows_take_no_time() -> None:
    assert verdict(50_300, 49_700) == "no clear difference"
    assert verdict(50_700, 49_300) == "better"
