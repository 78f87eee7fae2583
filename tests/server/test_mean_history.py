"""The history counts every right answer and every error once, wherever a stream was cut."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from statistics import mean
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftquilt.server.view import BUCKET, MAX_BUCKETS, MeanHistory


def totals(n_buckets: int, seed: int) -> list[int]:
    """Right answers in all, at the end of each small bucket."""
    rng, n_right = Random(seed), [0]  # noqa: S311
    for _ in range(n_buckets):
        n_right.append(n_right[-1] + rng.randint(0, BUCKET))
    return n_right


def restart(history: MeanHistory, n_rows: int, n_right: int) -> MeanHistory:
    again = MeanHistory(history.state())
    again.add(n_rows, n_right)
    return again


@given(
    st.integers(0, 3 * MAX_BUCKETS), st.integers(0, 10**6), st.sets(st.integers(0, 3 * MAX_BUCKETS))
)
def test_counts_equal_the_truth_whenever_it_was_restarted(
    n_buckets: int, seed: int, restarts: set[int]
) -> None:
    right, history = totals(n_buckets, seed), MeanHistory()
    for end, n_right in enumerate(right):
        history.add(end * BUCKET, n_right)
        if end in restarts:
            history = restart(history, end * BUCKET, n_right)
    size, first_row, accuracy = history.buckets()
    ends = [right[at] for at in range(0, n_buckets + 1, size // BUCKET)]
    assert accuracy == [(b - a) / size for a, b in pairwise(ends)]
    assert first_row == 0
    assert len(accuracy) <= MAX_BUCKETS


@given(st.integers(0, 40), st.integers(0, 99), st.integers(0, 10**6), st.sets(st.integers(0, 40)))
def test_recent_is_the_share_of_the_last_thousand_rows_or_a_few_more(
    n_buckets: int, n_more: int, seed: int, restarts: set[int]
) -> None:
    right, history = totals(n_buckets, seed), MeanHistory()
    for end, n_right in enumerate(right):
        history.add(end * BUCKET, n_right)
        if end in restarts:
            history = restart(history, end * BUCKET, n_right)
    n_rows, n_right = n_buckets * BUCKET + n_more, right[-1] + n_more // 2
    history.add(n_rows, n_right)
    first = max(0, n_buckets - 10)
    expected = (n_right - right[first]) / (n_rows - first * BUCKET) if n_rows else None
    assert history.recent == expected


def test_a_bucket_that_a_crash_has_forgotten_shares_with_the_next() -> None:
    right, history = totals(MAX_BUCKETS + 8, seed=3), MeanHistory()
    kept: dict[str, Any] = {}
    for end, n_right in enumerate(right):
        history.add(end * BUCKET, n_right)
        if end == MAX_BUCKETS + 2:
            kept = history.state()
    after = MeanHistory(kept)
    after.add((MAX_BUCKETS + 8) * BUCKET - 30, right[-1] - 10)
    after.add((MAX_BUCKETS + 8) * BUCKET, right[-1])
    _, first_row, accuracy = after.buckets()
    assert len(accuracy) == (MAX_BUCKETS + 8) // 2
    assert first_row == 0
    assert max(accuracy) <= 1
    assert sum(after._totals) == right[-1]


def test_the_errors_of_numbers_add_up_and_the_first_row_has_none() -> None:
    rng = Random(0)  # noqa: S311
    errors = [0.0, *(rng.expovariate(0.01) for _ in range(1_549))]
    history, total = MeanHistory(n_unanswered=1), 0.0
    for n_rows, error in enumerate(errors, start=1):
        total += error
        history.add(n_rows, total)
        if n_rows in (1, 50, 730):
            history = MeanHistory(history.state(), n_unanswered=1)
            history.add(n_rows, total)
            assert (history.recent is None) == (n_rows == 1)
        if n_rows == 730:
            assert history.recent == pytest.approx(mean(errors[1:730]))
    size, first_row, means = history.buckets()
    assert (size, first_row, len(means)) == (BUCKET, 0, 15)
    assert means[0] == pytest.approx(mean(errors[1:100]))
    assert means[14] == pytest.approx(mean(errors[1_400:1_500]))
    assert history.recent == pytest.approx(mean(errors[500:]))
