"""CVDTE: which rows and which tree it keeps."""

from __future__ import annotations

import numpy as np
import pytest

from driftquilt.core.segment import Segment, folds
from driftquilt.errors import InputError
from driftquilt.paper.baselines.cvdte import CVDTE, agreeing
from tests.segments import accuracy, make_segment

FOUR = ["new", "new+agreeing", "old", "old+new"]


CURRENT = make_segment("june", 60)
ASKED = make_segment("june", 500, seed=5)


def test_rows_that_agree_are_kept_and_rows_in_conflict_dropped() -> None:
    tree = CVDTE().adapt([], make_segment("june", 400)).tree
    same, contrary = make_segment("april", 300), make_segment("may", 300, flip=True)
    assert agreeing(same, tree).mean() > 0.9
    assert agreeing(contrary, tree).mean() < 0.1


def test_a_row_is_kept_only_if_every_tree_gets_it_right() -> None:
    one, other = CVDTE().adapt([], make_segment("may", 80)).tree, CVDTE().adapt([], CURRENT).tree
    both = agreeing(ASKED, one, other)
    assert np.array_equal(both, agreeing(ASKED, one) & agreeing(ASKED, other))
    assert 0 < both.sum() < len(ASKED)


def test_a_concept_that_returns_is_found_again() -> None:
    april, may = make_segment("april", 600), make_segment("may", 600, flip=True)
    model = CVDTE().adapt([april, may], CURRENT)
    assert model.old == "april"
    assert accuracy(model, ASKED) > accuracy(CVDTE().adapt([], CURRENT), ASKED)


def test_a_contrary_past_does_not_mislead() -> None:
    past = [make_segment("april", 600, flip=True), make_segment("may", 600, flip=True)]
    model = CVDTE().adapt(past, CURRENT)
    assert model.chosen in ("new", "new+agreeing")
    assert accuracy(model, ASKED) > 0.8


def test_of_four_trees_the_best_on_the_validation_part_wins() -> None:
    model = CVDTE().adapt(
        [make_segment("april", 300), make_segment("may", 300, flip=True)], CURRENT
    )
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


@pytest.mark.parametrize("past", [[], [make_segment("may", 5)]])
def test_two_rows_are_enough(past: list[Segment]) -> None:
    answer = CVDTE().adapt(past, CURRENT.take(slice(2))).predict_proba(ASKED.X)
    np.testing.assert_allclose(answer.sum(axis=1), 1, atol=1e-6)


def test_a_single_row_is_refused() -> None:
    with pytest.raises(InputError, match="has 1 row"):
        CVDTE().adapt([], CURRENT.take(slice(1)))
