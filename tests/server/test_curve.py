"""The curve counts every right answer once, however long the stream and wherever it was cut."""

from __future__ import annotations

from itertools import pairwise
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from driftquilt.server.curve import BUCKET, MOST, Curve


def totals(n_buckets: int, seed: int) -> list[int]:
    """Right answers in all, at the end of each small bucket."""
    rng, n_right = Random(seed), [0]  # noqa: S311
    for _ in range(n_buckets):
        n_right.append(n_right[-1] + rng.randint(0, BUCKET))
    return n_right


def restart(curve: Curve, n_rows: int, n_right: int) -> Curve:
    again = Curve(curve.state())
    again.add(n_rows, n_right)
    return again


@given(st.integers(0, 3 * MOST), st.integers(0, 10**6), st.sets(st.integers(0, 3 * MOST)))
def test_counts_equal_the_truth_whenever_it_was_restarted(
    n_buckets: int, seed: int, restarts: set[int]
) -> None:
    right, curve = totals(n_buckets, seed), Curve()
    for end, n_right in enumerate(right):
        curve.add(end * BUCKET, n_right)
        if end in restarts:
            curve = restart(curve, end * BUCKET, n_right)
    told = curve.to_json()
    size = told["size"]
    ends = [right[at] for at in range(0, n_buckets + 1, size // BUCKET)]
    assert told["accuracy"] == [round((b - a) / size, 4) for a, b in pairwise(ends)]
    assert told["first_row"] == 0
    assert len(told["accuracy"]) <= MOST


@given(st.integers(0, 40), st.integers(0, 99), st.integers(0, 10**6), st.sets(st.integers(0, 40)))
def test_recent_is_the_share_of_the_last_thousand_rows_or_a_few_more(
    n_buckets: int, n_more: int, seed: int, restarts: set[int]
) -> None:
    right, curve = totals(n_buckets, seed), Curve()
    for end, n_right in enumerate(right):
        curve.add(end * BUCKET, n_right)
        if end in restarts:
            curve = restart(curve, end * BUCKET, n_right)
    n_rows, n_right = n_buckets * BUCKET + n_more, right[-1] + n_more // 2
    curve.add(n_rows, n_right)
    first = max(0, n_buckets - 10)
    expected = (n_right - right[first]) / (n_rows - first * BUCKET) if n_rows else None
    assert curve.recent == expected


def test_a_bucket_that_a_crash_has_forgotten_shares_with_the_next() -> None:
    right, curve = totals(MOST + 8, seed=3), Curve()
    kept: dict[str, Any] = {}
    for end, n_right in enumerate(right):
        curve.add(end * BUCKET, n_right)
        if end == MOST + 2:
            kept = curve.state()
    after = Curve(kept)
    after.add((MOST + 8) * BUCKET - 30, right[-1] - 10)
    after.add((MOST + 8) * BUCKET, right[-1])
    told = after.to_json()
    assert len(told["accuracy"]) == (MOST + 8) // 2
    assert told["first_row"] == 0
    assert max(told["accuracy"]) <= 1
    assert sum(after._right) == right[-1]
