"""CVDTE: which rows and which tree it keeps."""

from __future__ import annotations

import numpy as np
import pytest

from driftquilt.core.segment import Segment, folds
from driftquilt.errors import InputError
from driftquilt.paper.baselines.cvdte import CVDTE, ChosenTree, agreeing

FOUR = ["new", "new+agreeing", "old", "old+new"]


def rows(name: str, n: int, *, flip: bool = False, seed: int = 0) -> Segment:
    rng = np.random.default_rng((seed, n, len(name)))
    X = rng.normal(size=(n, 2)).astype(np.float32)
    y = ((X.sum(axis=1) > 0) ^ flip).astype(np.int64)
    return Segment(name, X, y, np.ones(n, np.float32))


CURRENT = rows("june", 60)
ASKED = rows("june", 500, seed=5)


def accuracy(model: ChosenTree) -> float:
    return float((model.predict_proba(ASKED.X).argmax(axis=1) == ASKED.y).mean())


def test_rows_that_agree_are_kept_and_rows_in_conflict_dropped() -> None:
    tree = CVDTE().adapt([], rows("june", 400)).tree
    same, contrary = rows("april", 300), rows("may", 300, flip=True)
    assert agreeing(same, tree).mean() > 0.9
    assert agreeing(contrary, tree).mean() < 0.1


def test_a_row_is_kept_only_if_every_tree_gets_it_right() -> None:
    one, other = CVDTE().adapt([], rows("may", 80)).tree, CVDTE().adapt([], CURRENT).tree
    both = agreeing(ASKED, one, other)
    assert np.array_equal(both, agreeing(ASKED, one) & agreeing(ASKED, other))
    assert 0 < both.sum() < len(ASKED)


def test_a_concept_that_returns_is_found_again() -> None:
    april, may = rows("april", 600), rows("may", 600, flip=True)
    model = CVDTE().adapt([april, may], CURRENT)
    assert model.old == "april"
    assert accuracy(model) > accuracy(CVDTE().adapt([], CURRENT))


def test_a_contrary_past_does_not_mislead() -> None:
    past = [rows("april", 600, flip=True), rows("may", 600, flip=True)]
    model = CVDTE().adapt(past, CURRENT)
    assert model.chosen in ("new", "new+agreeing")
    assert accuracy(model) > 0.8


def test_of_four_trees_the_best_on_the_validation_part_wins() -> None:
    model = CVDTE().adapt([rows("april", 300), rows("may", 300, flip=True)], CURRENT)
    assert list(model.accuracies) == FOUR
    assert model.accuracies[model.chosen] == max(model.accuracies.values())
    [(_, validation)] = folds(CURRENT, 1)
    right = model.predict_proba(validation.X).argmax(axis=1) == validation.y
    assert model.accuracies[model.chosen] == pytest.approx(right.mean())


def test_without_a_past_the_training_part_is_all_there_is() -> None:
    model = CVDTE().adapt([], CURRENT)
    [(train, _)] = folds(CURRENT, 1)
    assert list(model.accuracies) == ["new"]
    assert model.old is None
    assert agreeing(train, model.tree).all()


def test_adapting_repeats_bit_for_bit_and_leaves_segments_alone() -> None:
    past = [rows("may", 250)]
    before = past[0].X.tobytes() + CURRENT.X.tobytes()
    answers = [CVDTE(seed=1).adapt(past, CURRENT).predict_proba(ASKED.X) for _ in range(2)]
    assert answers[0].tobytes() == answers[1].tobytes()
    assert before == past[0].X.tobytes() + CURRENT.X.tobytes()


def test_a_class_that_only_the_past_has_keeps_its_column() -> None:
    old = Segment("march", CURRENT.X, np.full(60, 3), CURRENT.weight)
    answer = CVDTE().adapt([old], CURRENT).predict_proba(ASKED.X)
    assert answer.shape == (500, 4)
    assert answer.dtype == np.float32
    np.testing.assert_allclose(answer.sum(axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("past", [[], [rows("may", 5)]])
def test_two_rows_are_enough(past: list[Segment]) -> None:
    answer = CVDTE().adapt(past, CURRENT.take(slice(2))).predict_proba(ASKED.X)
    np.testing.assert_allclose(answer.sum(axis=1), 1, atol=1e-6)


def test_a_single_row_is_refused() -> None:
    with pytest.raises(InputError, match="has 1 row"):
        CVDTE().adapt([], CURRENT.take(slice(1)))


def test_no_rows_asked_are_no_rows_answered() -> None:
    answer = CVDTE().adapt([rows("may", 90)], CURRENT).predict_proba(ASKED.X[:0])
    assert answer.shape == (0, 2)
    assert answer.dtype == np.float32
