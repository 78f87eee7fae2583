"""SEGA: which windows it takes to be like the newest, and what they answer."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from driftquilt.core.segment import Segment
from driftquilt.errors import InputError
from driftquilt.paper.baselines.sega import SEGA, SegaModel, discrepancies


def rows(name: str, n: int, *, flip: bool = False, shift: float = 0.0, seed: int = 0) -> Segment:
    rng = np.random.default_rng((seed, n, len(name)))
    X = rng.normal(size=(n, 2)).astype(np.float32)
    y = ((X[:, 0] > 0) ^ flip).astype(np.int64)
    return Segment(name, X + np.float32(shift), y, np.ones(n, np.float32))


CURRENT = rows("june", 100)
ASKED = rows("june", 400, seed=5)


def accuracy(model: SegaModel) -> float:
    return float((model.predict_proba(ASKED.X).argmax(axis=1) == ASKED.y).mean())


@pytest.mark.parametrize("other", [{"flip": True}, {"shift": 3.0}])
def test_windows_of_the_same_distribution_are_chosen(other: dict[str, float]) -> None:
    past = [rows("april", 300), rows("may", 300, **other)]  # type: ignore[arg-type]
    model = SEGA(n_chosen=4).adapt(past, CURRENT)
    assert [window.name for window in model.windows] == ["april", "april", "april", "june"]
    assert accuracy(model) > 0.93


def test_the_discrepancy_is_about_nothing_within_a_concept_and_large_across() -> None:
    stored = [rows("a", 200, seed=1), rows("b", 200, flip=True, seed=2), rows("c", 200, seed=3)]
    same, contrary, newest = discrepancies(stored, 50, 2)
    assert newest == 0
    assert contrary > same + 0.1


def test_the_newest_window_is_always_in_unless_it_is_left_out() -> None:
    past = [rows("april", 300), rows("may", 300)]
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
    past = [rows("april", 300), rows("may", 500)]
    one, other = SEGA(n_windows=4).adapt(past, CURRENT), SEGA(n_windows=4).adapt(past[1:], CURRENT)
    assert len(one.discrepancies) == 4
    assert one.predict_proba(ASKED.X).tobytes() == other.predict_proba(ASKED.X).tobytes()


def test_spread_undoes_a_scaling() -> None:
    factors = np.array([0.01, 50.0])
    past = [rows("may", 300)]

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


def test_adapting_repeats_bit_for_bit_and_leaves_segments_alone() -> None:
    past = [rows("may", 250)]
    before = past[0].X.tobytes() + CURRENT.X.tobytes()
    answers = [SEGA().adapt(past, CURRENT).predict_proba(ASKED.X) for _ in range(2)]
    assert answers[0].tobytes() == answers[1].tobytes()
    assert before == past[0].X.tobytes() + CURRENT.X.tobytes()


def test_a_class_that_only_the_past_has_keeps_its_column() -> None:
    old = Segment("march", CURRENT.X, np.full(100, 2), CURRENT.weight)
    answer = SEGA().adapt([old], CURRENT).predict_proba(ASKED.X)
    assert answer.shape == (400, 3)
    assert answer.dtype == np.float32
    np.testing.assert_allclose(answer.sum(axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("past", [[], [rows("may", 7)]])
@pytest.mark.parametrize("n", [1, 2])
def test_a_row_or_two_are_enough(past: list[Segment], n: int) -> None:
    answer = SEGA().adapt(past, CURRENT.take(slice(n))).predict_proba(ASKED.X)
    np.testing.assert_allclose(answer.sum(axis=1), 1, atol=1e-6)


def test_a_feature_that_never_varies_does_no_harm() -> None:
    still = Segment("june", np.ones((60, 2), np.float32), CURRENT.y[:60], CURRENT.weight[:60])
    assert np.isfinite(SEGA().adapt([still], still).predict_proba(ASKED.X)).all()


def test_no_rows_asked_are_no_rows_answered() -> None:
    answer = SEGA().adapt([rows("may", 90)], CURRENT).predict_proba(ASKED.X[:0])
    assert answer.shape == (0, 2)
    assert answer.dtype == np.float32
