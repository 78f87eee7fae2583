"""SEGA: which windows it takes to be like the newest, and what they answer."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from driftquilt.core.segment import Segment
from driftquilt.errors import InputError
from driftquilt.paper.baselines.sega import SEGA, discrepancies
from tests.segments import accuracy, make_segment

CURRENT = make_segment("june", 100)
ASKED = make_segment("june", 400, seed=5)


@pytest.mark.parametrize("other", [{"flip": True}, {"shift": 3.0}])
def test_windows_of_the_same_distribution_are_chosen(other: dict[str, float]) -> None:
    past = [make_segment("april", 300), make_segment("may", 300, **other)]  # type: ignore[arg-type]
    model = SEGA(n_chosen=4).adapt(past, CURRENT)
    assert [window.name for window in model.windows] == ["april", "april", "april", "june"]
    assert accuracy(model, ASKED) > 0.93


def test_the_discrepancy_is_about_nothing_within_a_concept_and_large_across() -> None:
    stored = [
        make_segment("a", 200, seed=1),
        make_segment("b", 200, flip=True, seed=2),
        make_segment("c", 200, seed=3),
    ]
    same, contrary, newest = discrepancies(stored, 50, 2)
    assert newest == 0
    assert contrary > same + 0.1


def test_the_newest_window_is_always_in_unless_it_is_left_out() -> None:
    past = [make_segment("april", 300), make_segment("may", 300)]
    assert [w.name for w in SEGA().adapt(past, CURRENT).windows][-1] == "june"
    without = SEGA(with_newest=False).adapt(past, CURRENT)
    assert "june" not in [window.name for window in without.windows]
    assert len(without.windows) == 2


@pytest.mark.parametrize("with_newest", [True, False])
def test_without_a_past_the_newest_window_answers(with_newest: bool) -> None:
    model = SEGA(with_newest=with_newest).adapt([], CURRENT)
    near = KNeighborsClassifier(5, weights="distance").fit(CURRENT.X, CURRENT.y)
    np.testing.assert_allclose(model.predict_proba(ASKED.X), near.predict_proba(ASKED.X), atol=1e-4)


def test_only_the_last_windows_are_remembered() -> None:
    past = [make_segment("april", 300), make_segment("may", 500)]
    one, other = SEGA(n_windows=4).adapt(past, CURRENT), SEGA(n_windows=4).adapt(past[1:], CURRENT)
    assert len(one.discrepancies) == 4
    assert one.predict_proba(ASKED.X).tobytes() == other.predict_proba(ASKED.X).tobytes()


def test_spread_undoes_a_scaling() -> None:
    factors = np.array([0.01, 50.0])
    past = [make_segment("may", 300)]

    def scaled(segment: Segment) -> Segment:
        return Segment(segment.name, segment.X / factors, segment.y, segment.weight)

    raw = SEGA().adapt(past, CURRENT)
    undone = SEGA(spread=tuple(factors)).adapt([scaled(s) for s in past], scaled(CURRENT))
    np.testing.assert_allclose(
        undone.predict_proba(scaled(ASKED).X), raw.predict_proba(ASKED.X), atol=1e-4
    )


def test_a_spread_of_another_length_is_refused() -> None:
    with pytest.raises(InputError, match="spread has 3 number"):
        SEGA(spread=(1.0, 1.0, 1.0)).adapt([], CURRENT)


@pytest.mark.parametrize("past", [[], [make_segment("may", 7)]])
@pytest.mark.parametrize("n", [1, 2])
def test_a_row_or_two_are_enough(past: list[Segment], n: int) -> None:
    answer = SEGA().adapt(past, CURRENT.take(slice(n))).predict_proba(ASKED.X)
    np.testing.assert_allclose(answer.sum(axis=1), 1, atol=1e-6)


def test_a_feature_that_never_varies_does_no_harm() -> None:
    still = Segment("june", np.ones((60, 2), np.float32), CURRENT.y[:60], CURRENT.weight[:60])
    assert np.isfinite(SEGA().adapt([still], still).predict_proba(ASKED.X)).all()
