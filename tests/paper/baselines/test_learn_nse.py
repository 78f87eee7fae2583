"""Learn++.NSE: windows, errors and the weights of the votes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from driftquilt.core.segment import Segment, join
from driftquilt.paper.baselines.learn_nse import LearnNSE, windows
from tests.segments import accuracy, make_segment

CURRENT = make_segment("june", 100)
ASKED = make_segment("june", 500, seed=5)


def test_votes_return_with_the_concept() -> None:
    april, may = make_segment("april", 300), make_segment("may", 300, flip=True)
    june = make_segment("june", 300)
    windows_of_june = [june.take(slice(start, start + 100)) for start in (0, 100, 200)]
    gone = LearnNSE().adapt([april, may.take(slice(200))], may.take(slice(200, 300))).weights
    back = LearnNSE().adapt([april, may, *windows_of_june[:2]], windows_of_june[2]).weights
    assert (back[:3] > 2 * gone[:3]).all()
    assert back[:3].min() > back[3:6].max()


def test_older_trees_help_once_no_tree_counts_as_flawless() -> None:
    past = [make_segment("april", 500, noise=0.2), make_segment("may", 500, noise=0.2)]
    noisy = make_segment("june", 100, noise=0.2)
    alone = accuracy(LearnNSE().adapt(past, noisy), ASKED)
    together = accuracy(LearnNSE(error_min=0.05).adapt(past, noisy), ASKED)
    assert together > alone + 0.02


def test_a_flawless_newest_tree_decides_alone() -> None:
    past = [make_segment("may", 1500, flip=True)]
    one, other = LearnNSE().adapt(past, CURRENT), LearnNSE().adapt([], CURRENT)
    assert one.predict_proba(ASKED.X).argmax(1).tolist() == (
        other.predict_proba(ASKED.X).argmax(1).tolist()
    )


def test_a_newest_tree_that_errs_is_outvoted_by_good_old_ones() -> None:
    """Rows that are equal but for the label, so that no tree can learn them."""
    label = np.arange(100) % 2
    X = np.repeat(CURRENT.X[:50], 2, axis=0)
    useless = Segment("june", X, label, CURRENT.weight)
    assert accuracy(LearnNSE().adapt([make_segment("may", 300)], useless), ASKED) > 0.9
    assert np.isfinite(LearnNSE().adapt([], useless).predict_proba(ASKED.X)).all()


def plain_weights(method: LearnNSE, parts: list[Segment]) -> NDArray[np.float64]:
    """The paper's formulas in loops."""
    trees = [method.adapt([], part) for part in parts]
    answers = [[tree.predict_proba(p.X).argmax(axis=1) for p in parts] for tree in trees]
    betas: list[list[float]] = []
    weights: list[float] = []
    for t, part in enumerate(parts):
        share = [1.0 / len(part)] * len(part)
        if weights:
            right = []
            for i, label in enumerate(part.y):
                votes = [0.0, 0.0]
                for k, weight in enumerate(weights):
                    votes[answers[k][t][i]] += weight
                right.append(int(np.argmax(votes)) == label)
            error = 1 - sum(right) / len(right)
            share = [error if ok else 1.0 for ok in right]
            share = [s / sum(share) for s in share]
        betas.append([])
        weights = []
        for k in range(t + 1):
            wrong = answers[k][t] != part.y
            epsilon = sum(s for s, bad in zip(share, wrong, strict=True) if bad)
            epsilon = min(max(epsilon, method.error_min), 0.5)
            betas[k].append(epsilon / (1 - epsilon))
            ages = [1 / (1 + np.exp(-0.5 * (age - 10))) for age in range(len(betas[k]))]
            mean = sum(a * b for a, b in zip(ages, betas[k], strict=True)) / sum(ages)
            weights.append(float(np.log(1 / mean)))
    return np.array(weights)


def test_the_weights_are_those_of_a_plain_loop() -> None:
    parts = [make_segment("w" * i, 60, flip=i in (3, 4), noise=0.1, seed=i) for i in range(1, 7)]
    method = LearnNSE(error_min=0.01)
    got = method.adapt(parts[:-1], parts[-1]).weights
    np.testing.assert_allclose(got, plain_weights(method, parts), rtol=1e-9)


@given(
    st.lists(st.tuples(st.booleans(), st.sampled_from([0.0, 0.3, 0.5])), max_size=5),
    st.sampled_from([0.0, 0.01]),
)
def test_no_vote_counts_against_its_class_and_one_counts(
    past: list[tuple[bool, float]], error_min: float
) -> None:
    history = [
        make_segment(str(i), 30, flip=flip, noise=noise, seed=i)
        for i, (flip, noise) in enumerate(past)
    ]
    current = make_segment("june", 30, noise=0.3, seed=9)
    weights = LearnNSE(error_min=error_min).adapt(history, current).weights
    assert weights.min() >= 0
    assert weights[-1] > 0


@given(st.lists(st.integers(1, 40), max_size=4), st.integers(1, 15))
def test_windows_hold_every_row_once_in_order(sizes: list[int], size: int) -> None:
    past = [make_segment(str(i), n) for i, n in enumerate(sizes)]
    current = make_segment("june", size)
    found = windows(past, current)
    assert np.array_equal(join(found).X, join([*past, current]).X)
    assert all(len(window) == size for window in found[1:])
    assert np.array_equal(found[-1].X, current.X)
    assert found[-1].name == "june"


def test_a_window_is_named_after_its_last_row() -> None:
    names = [
        w.name
        for w in windows(
            [make_segment("april", 5), make_segment("may", 8)], make_segment("june", 4)
        )
    ]
    assert names == ["april", "april", "may", "may", "june"]


@pytest.mark.parametrize("past", [[], [make_segment("may", 7)]])
def test_one_row_is_enough(past: list[Segment]) -> None:
    answer = LearnNSE().adapt(past, CURRENT.take(slice(1))).predict_proba(ASKED.X)
    np.testing.assert_allclose(answer.sum(axis=1), 1, atol=1e-6)


def test_a_heavy_row_counts_as_often_as_its_weight_says() -> None:
    noisy = make_segment("may", 300, noise=0.3)
    copies = np.random.default_rng(0).integers(1, 4, 100)
    heavy = Segment("june", CURRENT.X, CURRENT.y, copies.astype(np.float32))
    weighted = LearnNSE(error_min=0.01).adapt([noisy], heavy)
    plain = LearnNSE(error_min=0.01).adapt([noisy], CURRENT)
    assert weighted.weights.tobytes() != plain.weights.tobytes()
