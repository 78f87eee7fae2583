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
from driftquilt.core.segment import Segment, cut, folds, join
from driftquilt.learners.mlp import MLP
from driftquilt.quilt.blending import Openings, blend_weights, borrow_rows, choose_candidate
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


def segments(
    turned: tuple[int, ...], n_rows: int = 240, seed: int = 2
) -> tuple[list[Segment], Segment, Segment]:
    """Six months, in some of which the concept is turned round; the rest of the last one."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(6 * n_rows, 3)).astype(np.float32)
    month = np.repeat(np.arange(6), n_rows)
    y = ((X[:, 0] + 0.5 * X[:, 1] > 0) ^ np.isin(month, turned)).astype(np.int64)
    noisy = rng.random(len(y)) < 0.1
    history, last = cut(X, np.where(noisy, 1 - y, y), month, list("abcdef"))
    return history, last.take(slice(None, 40)), last.take(slice(40, None))


def clustered(seed: int) -> tuple[list[Segment], Segment, Segment]:
    """Six months of rows of three kinds, one after the other; each has a rule of its own."""
    rng = np.random.default_rng(seed)
    n_rows, n_kinds = 600, 3
    order = np.concatenate([rng.permutation(n_kinds) for _ in range(6)])
    kind = np.repeat(order, n_rows // n_kinds)
    centre, rule = 2 * rng.normal(size=(n_kinds, 4)), rng.normal(size=(n_kinds, 4))
    noise = rng.normal(size=(len(kind), 4))
    y = ((noise * rule[kind]).sum(axis=1) + 0.5 * rng.normal(size=len(kind)) > 0).astype(np.int64)
    X = (centre[kind] + noise).astype(np.float32)
    history, last = cut(X, y, np.repeat(np.arange(6), n_rows), list("abcdef"))
    return history, last.take(slice(None, 90)), last.take(slice(90, None))


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


def gains(openings: Openings, first: float, rest: float, noise: float = 0.0) -> Any:
    """What a model gains over another in the openings of segments and in the rest of them."""
    part = np.searchsorted(openings.starts, np.arange(len(openings.rows)), side="right") - 1
    by_chance = noise * np.random.default_rng(1).normal(size=len(part))
    return np.where(part % 2 == 0, first, rest) + by_chance


def test_gains_that_openings_have_and_the_rest_has_not_leave_the_present_open() -> None:
    history, current, _ = segments(turned=(), seed=3)
    openings = Openings.of(history, join([current, current]))
    assert (openings.n_current >= 20).all()
    assert openings.variance(gains(openings, 0.3, 0.0)) == pytest.approx(0.09)
    assert openings.variance(gains(openings, 0.0, 0.3)) == pytest.approx(0.09)
    assert openings.variance(gains(openings, 0.3, 0.3)) == pytest.approx(0.0, abs=1e-9)
    by_chance = openings.variance(gains(openings, 0.3, 0.3, noise=1.0))
    assert by_chance < 1 / len(current)  # what blocks of rows show is not counted twice


def test_a_class_of_few_labelled_rows_leaves_the_present_open_by_its_past_rows() -> None:
    history, current, _ = segments(turned=(), seed=3)
    for code in (0, 1):
        openings = Openings.of(history, current.take(current.y == code))
        of_other = np.where(openings.rows.y == code, 0.0, 1.0)
        assert openings.variance(of_other) > 0.05
        assert openings.variance(np.zeros(len(of_other))) == 0


def test_the_blend_goes_back_to_all_data_as_far_as_the_present_is_open() -> None:
    sure = likelihood(0.5, 0.9, 0.5)
    history, current, _ = segments(turned=(), seed=3)
    openings = Openings.of(history, join([current, current]))
    chances = 0.5 * np.exp(gains(openings, 0.0, -0.6))
    even = np.full(len(chances), 0.5)
    open_variance = openings.open_variance(np.stack([even, chances, even]))
    assert blend_weights(sure, ONES)[0] < 0.1
    assert blend_weights(sure, ONES, open_variance=open_variance)[0] > 0.3


def test_short_segments_and_none_have_openings_too() -> None:
    history, current, _ = segments(turned=())
    short = [history[0].take(slice(0, n)) for n in (1, 2, 5)]
    assert len(Openings.of(short, current).rows) == 7  # a single row has no rest
    assert Openings.of(short[:1], current).variance(np.zeros(0)) == 0


def test_two_folds_share_a_training_on_all_data_that_saw_the_rows_of_neither() -> None:
    history, current, _ = segments(turned=())
    numbered = replace(current, X=np.arange(40)[:, None])
    own = [rows.X for _, rows in folds(numbered, 4, in_blocks=True)]
    for fold in range(4):
        task = QUILT.task(history, numbered, fold, "all")
        assert not np.isin(own[fold], task.current.X).any()
        assert np.isin(own[fold], task.validation.X).all()
        assert len(task.current) + len(task.validation) == 40
    for n_folds, n_trainings in ((2, 2), (3, 3), (4, 2), (5, 3)):
        trials = replace(QUILT, n_folds=n_folds).adapt(history, current).trials
        everything = [t for t in trials if t.part == "all"]
        assert [t.fold for t in everything] == list(range(n_folds))
        assert len({id(t.trial) for t in everything}) == n_trainings


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
    shares = []
    for seed in range(12):
        history, current, _ = segments(turned=(), seed=seed)
        selection = QUILT.adapt(history, current).selection
        assert all(use.weight >= selection.blend[0] for use in selection)
        assert all(use.used for use in selection) or selection.blend[0] < 0.5
        shares.append(selection.blend[0])
    assert np.mean(shares) > 0.5


def test_a_few_current_rows_do_not_end_the_training_on_all_data_early() -> None:
    ratios = []
    for seed in range(8):
        history, current, rest = segments(turned=(), n_rows=600, seed=seed)
        trials = QUILT.adapt(history, current).trials
        everything = [loss(t.trial.model, rest) for t in trials if t.part == "all"]
        known = replace(QUILT, blend=False, n_folds=1, rule=ANY)
        task = replace(known.tasks(history, current)[0], validation=rest)  # the best end there is
        *_, trial = known.search.trials(task, known.start(task, 0, 2))
        ratios.append(np.mean(everything) / loss(trial.model, rest))
    assert np.mean(ratios) < 1.05


@pytest.mark.parametrize("seed", range(3))
def test_first_rows_that_do_not_stand_for_the_rest_move_little(seed: int) -> None:
    history, current, rest = clustered(seed)
    model = QUILT.adapt(history, current)
    everything = [loss(t.trial.model, rest) for t in model.trials if t.part == "all"]
    assert loss(model, rest) < 1.05 * np.mean(everything)
    trusting = replace(QUILT, checks_openings=False).adapt(history, current)
    assert trusting.selection.blend[0] < model.selection.blend[0]


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
