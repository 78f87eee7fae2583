"""A blended model: what it is made of, when it falls back on all data, and that it stays one."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from driftquilt import QuiltClassifier
from driftquilt.core.segment import Segment, cut, folds
from driftquilt.learners.mlp import MLP
from driftquilt.quilt.blending import blend_weights, borrow_rows, choose_candidate
from driftquilt.quilt.executor import Threads
from driftquilt.quilt.method import DEFAULT, PAPER, Quilt, QuiltModel
from driftquilt.search.shared import Shared

QUILT = replace(DEFAULT, learner=MLP(hidden_units=16, learning_rate=0.02), executor=Threads(1))
ANY = replace(QUILT.rule, use_disparity=False, use_gain=False)  # all data
ONES = np.ones(80)


def likelihood(*levels: float, n_rows: int = 80, noise: float = 0.05) -> NDArray[np.float64]:
    """What models that are this sure on average give to the true class of each row."""
    rng = np.random.default_rng(0)
    return np.clip(np.array(levels)[:, None] + noise * rng.normal(size=(3, n_rows)), 0.01, 0.99)


def segments(turned: tuple[int, ...], n_rows: int = 240) -> tuple[list[Segment], Segment, Segment]:
    """Six months, in some of which the concept is turned round; the rest of the last one."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(6 * n_rows, 3)).astype(np.float32)
    month = np.repeat(np.arange(6), n_rows)
    y = ((X[:, 0] + 0.5 * X[:, 1] > 0) ^ np.isin(month, turned)).astype(np.int64)
    noisy = rng.random(len(y)) < 0.1
    history, last = cut(X, np.where(noisy, 1 - y, y), month, list("abcdef"))
    return history, last.take(slice(None, 40)), last.take(slice(40, None))


def loss(model: Any, rows: Segment) -> float:
    chances = model.predict_proba(rows.X)[np.arange(len(rows)), rows.y]
    return float(-np.log(np.maximum(chances, 1e-6)).mean())


def test_the_model_that_is_surely_right_gets_the_weight() -> None:
    assert blend_weights(likelihood(0.5, 0.9, 0.5), ONES).argmax() == 1
    assert blend_weights(likelihood(0.5, 0.5, 0.95), ONES).argmax() == 2


def test_models_that_are_alike_leave_it_to_all_data() -> None:
    assert blend_weights(likelihood(0.7, 0.7, 0.5), ONES)[0] > 0.5


def test_few_rows_move_less_than_many() -> None:
    many, few = likelihood(0.6, 0.66, 0.5, noise=0.25), slice(None, 12)
    assert blend_weights(many[:, few], ONES[few])[0] > blend_weights(many, ONES)[0]


def test_blocks_that_contradict_each_other_move_less_than_blocks_that_agree() -> None:
    agree = likelihood(0.6, 0.7, 0.3, noise=0.0)
    contradict = agree.copy()
    contradict[1] = np.where(np.arange(80) < 20, 0.98, 0.62)  # all of the gain is in one quarter
    assert blend_weights(contradict, ONES)[0] > blend_weights(agree, ONES)[0]


def test_rows_that_lack_classes_count_by_the_share_of_the_past_that_they_cover() -> None:
    sure = likelihood(0.5, 0.9, 0.5)
    assert blend_weights(sure, ONES, coverage=0.5)[0] == pytest.approx(0.5, abs=0.02)
    assert blend_weights(sure, ONES, coverage=0.0).tolist() == [1, 0, 0]


@pytest.mark.parametrize("n_rows", [1, 2, 7, 80])
def test_weights_add_up_to_one_and_leave_out_what_hardly_counts(n_rows: int) -> None:
    weights = blend_weights(likelihood(0.5, 0.8, 0.6, n_rows=n_rows), np.ones(n_rows))
    assert weights.sum() == pytest.approx(1)
    assert ((weights == 0) | (weights >= 0.01)).all()


def test_rows_count_by_their_weight() -> None:
    mixed = np.hstack([likelihood(0.5, 0.9, 0.5), likelihood(0.9, 0.1, 0.5)])
    first = np.concatenate([ONES, 1e-6 * ONES])
    assert blend_weights(mixed, first).argmax() == 1
    assert blend_weights(mixed, first[::-1]).argmax() == 0


def test_of_candidates_that_are_as_good_the_one_with_most_of_the_past_is_chosen() -> None:
    assert choose_candidate(likelihood(0.3, 0.7, 0.7), ONES) == 2
    assert choose_candidate(likelihood(0.3, 0.9, 0.5), ONES) == 1


def test_a_class_borrows_past_rows_the_more_the_fewer_it_has() -> None:
    history, current, _ = segments(turned=())
    assert np.bincount(current.y).min() < 20
    lacking = current.take(current.y == 1)
    borrowed = borrow_rows(history, lacking)
    together = np.bincount(borrowed.y, borrowed.weight, minlength=2)
    assert together[0] == pytest.approx(1.0)
    assert together[1] == pytest.approx(1 / (1 + len(lacking)) if len(lacking) < 20 else 0)
    plenty = Segment("now", np.zeros((60, 3)), np.repeat([0, 1], 30), np.ones(60, np.float32))
    assert len(borrow_rows(history, plenty)) == 0


def test_a_rare_class_that_no_labelled_row_has_is_not_forgotten() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(2400, 3)).astype(np.float32)
    y = (X[:, 0] + 0.3 * rng.normal(size=2400) > 2.2).astype(np.int64)  # 1 to 2 % of the rows
    history, last = cut(X, y, np.repeat(np.arange(6), 400), list("abcdef"))
    common, rest = np.flatnonzero(last.y == 0)[:60], np.arange(60, 400)
    model = QUILT.adapt(history, last.take(common))
    plain = replace(QUILT, blend=False, rule=ANY)
    assert loss(model, last.take(rest)) < 1.1 * loss(
        plain.adapt(history, last.take(common)), last.take(rest)
    )


def test_where_concepts_return_the_selection_makes_the_model_and_beats_both() -> None:
    history, current, rest = segments(turned=(0, 2, 4))
    model = QUILT.adapt(history, current)
    alone, selected = (
        loss(replace(QUILT, blend=False, search=Shared((bound,))).adapt(history, current), rest)
        for bound in (0.0, 0.5)
    )
    everything = loss(replace(QUILT, blend=False, rule=ANY).adapt(history, current), rest)
    assert model.selection.blend[1] > 0.5
    assert [use.used for use in model.selection] == [False, True, False, True, False]
    assert loss(model, rest) < min(alone, everything)
    assert loss(model, rest) < 1.1 * selected


def test_where_nothing_drifted_all_data_makes_most_of_the_model() -> None:
    history, current, _ = segments(turned=())
    selection = QUILT.adapt(history, current).selection
    assert selection.blend[0] > 0.5
    assert all(use.used for use in selection)
    assert all(use.weight >= selection.blend[0] for use in selection)


def test_current_rows_of_one_class_leave_it_to_all_data() -> None:
    history, current, _ = segments(turned=(0, 2, 4))
    one_class = current.take(current.y == 1)
    assert QUILT.adapt(history, one_class).selection.blend[0] > 0.4


def test_the_same_rows_and_seed_give_the_same_model_on_one_thread_or_two() -> None:
    history, current, rest = segments(turned=(0, 2, 4))
    answers = {
        replace(QUILT, executor=Threads(n)).adapt(history, current).predict_proba(rest.X).tobytes()
        for n in (1, 1, 2)
    }
    assert len(answers) == 1


def test_a_search_without_the_empty_choice_is_joined_by_a_training_on_the_present() -> None:
    history, current, _ = segments(turned=(0, 2, 4))
    searched = replace(QUILT, search=Shared((0.5, 1.0)))
    parts = [t.part for t in searched.adapt(history, current).trials]
    assert parts.count("current") == parts.count("all") == QUILT.n_folds
    assert searched.count_trials(history) == len(parts) == 4 * QUILT.n_folds
    assert "current" not in [t.part for t in QUILT.adapt(history, current).trials]


def test_the_model_of_a_fold_has_not_seen_the_fold_and_all_together_are_the_model() -> None:
    history, current, rest = segments(turned=(0, 2, 4))
    model = QUILT.adapt(history, current)
    mean = np.mean([fold.predict_proba(rest.X) for fold in model.by_fold()], axis=0)
    np.testing.assert_allclose(mean, model.predict_proba(rest.X), atol=1e-6)


def test_without_a_past_there_is_nothing_to_blend() -> None:
    _, current, rest = segments(turned=())
    plain = replace(QUILT, blend=False)
    assert answers_alike(QUILT.adapt([], current), plain.adapt([], current), rest)


def answers_alike(one: QuiltModel, other: QuiltModel, rows: Segment) -> bool:
    return one.predict_proba(rows.X).tobytes() == other.predict_proba(rows.X).tobytes()


def test_the_paper_does_not_blend_and_the_default_does() -> None:
    assert [DEFAULT.blend, PAPER.blend, Quilt().blend] == [True, False, False]
    assert [QuiltClassifier().blend, QuiltClassifier.paper().blend] == [True, False]


def test_blocks_are_neighbours_in_time_and_every_row_validates_once() -> None:
    _, current, _ = segments(turned=())
    numbered = Segment("now", np.arange(40)[:, None], current.y, current.weight)
    validated = [rows.X[:, 0] for _, rows in folds(numbered, 3, in_blocks=True)]
    assert np.concatenate(validated).tolist() == list(range(40))
    for train, validation in folds(numbered, 3, in_blocks=True):
        assert np.intersect1d(train.X, validation.X).size == 0
        assert len(train) + len(validation) == 40


def test_a_blended_model_is_saved_and_read_as_one(tmp_path: Path) -> None:
    history, current, rest = segments(turned=(0, 2, 4))
    rows = [*history, current]
    X, y = np.concatenate([s.X for s in rows]), np.concatenate([s.y for s in rows])
    month = np.repeat([s.name for s in rows], [len(s) for s in rows])
    clf = QuiltClassifier(hidden_units=16, random_state=0).fit(X, y, segments=month)
    assert len(clf.model_.shares) == len(clf.model_.models) > clf.n_folds
    clf.save(tmp_path / "model.safetensors")
    read = QuiltClassifier.load(os.fspath(tmp_path / "model.safetensors"))
    assert read.predict_proba(rest.X).tobytes() == clf.predict_proba(rest.X).tobytes()
    assert read.selection_.explain() == clf.selection_.explain()
    assert read.selection_.blend == clf.selection_.blend
