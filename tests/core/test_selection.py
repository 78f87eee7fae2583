"""Algorithm 1, steps 5 to 11: which segments stay, and that both tests are strict."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from driftquilt.core.training import Rule, Scores

score = st.floats(-3, 3) | st.just(0.0)
pairs = st.lists(st.tuples(score.map(abs), score), max_size=12)
bounds = st.floats(0, 3)


def scores(of: list[tuple[float, float]]) -> Scores:
    table = np.array(of, dtype=np.float64).reshape(-1, 2)
    return Scores(table[:, 0], table[:, 1])


@given(pairs, bounds)
def test_a_segment_stays_when_it_is_near_and_helps(
    of: list[tuple[float, float]], bound: float
) -> None:
    kept = Rule().keep(scores(of), bound)
    assert kept.tolist() == [far < bound and gain > 0 for far, gain in of]


@given(pairs, bounds)
def test_each_test_can_be_switched_off(of: list[tuple[float, float]], bound: float) -> None:
    near = Rule(use_gain=False).keep(scores(of), bound)
    helps = Rule(use_disparity=False).keep(scores(of), bound)
    everything = Rule(use_disparity=False, use_gain=False).keep(scores(of), bound)
    assert np.array_equal(near & helps, Rule().keep(scores(of), bound))
    assert everything.all()


@given(pairs, bounds, bounds)
def test_a_larger_bound_selects_no_less(
    of: list[tuple[float, float]], one: float, other: float
) -> None:
    few, many = (Rule().keep(scores(of), bound) for bound in sorted((one, other)))
    assert not np.any(few & ~many)


@pytest.mark.parametrize("rule", [Rule(), Rule(use_disparity=False)])
def test_a_gain_of_exactly_zero_is_not_enough(rule: Rule) -> None:
    assert rule.keep(scores([(0.0, 0.0)]), 1.0).tolist() == [False]


def test_a_disparity_equal_to_the_bound_is_too_much() -> None:
    assert Rule().keep(scores([(0.5, 1.0)]), 0.5).tolist() == [False]


def test_a_bound_of_zero_keeps_no_segment_even_a_perfect_one() -> None:
    assert Rule().keep(scores([(0.0, 1.0)]), 0.0).tolist() == [False]


def test_a_bound_of_infinity_leaves_the_decision_to_the_gain() -> None:
    assert Rule().keep(scores([(9e9, 1.0), (0.0, -1.0)]), math.inf).tolist() == [True, False]


def test_a_segment_whose_scores_are_not_numbers_goes() -> None:
    assert Rule().keep(scores([(math.nan, math.nan)]), 1.0).tolist() == [False]


def test_no_segments_give_an_empty_mask() -> None:
    kept = Rule().keep(scores([]), 1.0)
    assert kept.shape == (0,)
    assert kept.dtype == bool
