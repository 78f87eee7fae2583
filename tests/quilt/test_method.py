"""Quilt as a whole: its limits are the naive methods, and between them it beats both."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from driftquilt.core.segment import Segment, cut
from driftquilt.core.training import Rule
from driftquilt.errors import InputError
from driftquilt.learners.mlp import MLP
from driftquilt.paper.baselines.naive import CurrentSegment, FullData
from driftquilt.paper.datasets.synthetic import sine
from driftquilt.quilt.method import CANDIDATES, Method, Quilt
from driftquilt.search.bayes import Bayes
from driftquilt.search.shared import Shared

LEARNER = MLP(hidden_units=16, learning_rate=0.01)
SHORT: dict[str, Any] = {"learner": LEARNER, "max_epochs": 25, "patience": 6, "seed": 4}
FEW = Shared((0.2, 0.5, 1.0))


def sine_segments(n_segments: int = 5, n_rows: int = 120) -> list[Segment]:
    stream = sine(n_segments, n_rows)
    X = ((stream.features - 0.5) * 3).astype(np.float32)
    names = [f"s{k}" for k in range(n_segments)]
    history, current = cut(X, stream.labels, stream.segments, names)
    return [*history, current]


*HISTORY, WHOLE = sine_segments()
CURRENT, REST = WHOLE.take(slice(None, 50)), WHOLE.take(slice(50, None))


def answer(method: Method, history: Sequence[Segment] = HISTORY) -> bytes:
    return method.adapt(history, CURRENT).predict_proba(REST.X).tobytes()


@pytest.mark.parametrize("n_folds", [1, 2])
def test_with_a_bound_of_zero_quilt_is_the_current_segment_method(n_folds: int) -> None:
    quilt = Quilt(**SHORT, n_folds=n_folds, search=Shared((0.0,)))
    assert answer(quilt) == answer(CurrentSegment(**SHORT, n_folds=n_folds))


@pytest.mark.parametrize("n_folds", [1, 2])
def test_with_an_infinite_bound_and_without_gain_quilt_is_full_data(n_folds: int) -> None:
    quilt = Quilt(**SHORT, n_folds=n_folds, search=Shared((math.inf,)), rule=Rule(use_gain=False))
    assert answer(quilt) == answer(FullData(**SHORT, n_folds=n_folds))


def test_without_both_tests_quilt_is_full_data() -> None:
    quilt = Quilt(**SHORT, rule=Rule(use_disparity=False, use_gain=False))
    assert answer(quilt) == answer(FullData(**SHORT))


def test_quilt_beats_both_naive_methods_on_a_stream_of_four_concepts() -> None:
    segments = sine_segments(n_segments=8, n_rows=300)
    methods: list[Method] = [
        Quilt(LEARNER, max_epochs=80), FullData(LEARNER, max_epochs=80),
        CurrentSegment(LEARNER, max_epochs=80),
    ]  # fmt: skip
    accuracies = np.zeros((4, 3))
    for row, k in enumerate(range(4, 8)):
        current, rest = segments[k].take(slice(None, 30)), segments[k].take(slice(30, None))
        for column, method in enumerate(methods):
            p = method.adapt(segments[:k], current).predict_proba(rest.X)
            accuracies[row, column] = (p.argmax(axis=1) == rest.y).mean()
    quilt, full, alone = accuracies.mean(axis=0)
    assert quilt > full + 0.05
    assert quilt > alone + 0.01


def test_without_history_quilt_is_the_current_segment_method() -> None:
    model = Quilt(**SHORT).adapt([], CURRENT)
    assert model.predict_proba(REST.X).tobytes() == answer(CurrentSegment(**SHORT), [])
    assert len(model.selection) == 0
    assert len(model.trials) == 1


def test_a_class_that_only_an_old_segment_has_keeps_its_column() -> None:
    odd = replace(HISTORY[0], y=np.full(len(HISTORY[0]), 2))
    probabilities = (
        Quilt(**SHORT, search=FEW).adapt([odd, HISTORY[1]], CURRENT).predict_proba(REST.X)
    )
    assert probabilities.shape == (len(REST), 3)
    assert probabilities.argmax(axis=1).max() < 2


def test_a_class_that_only_the_current_segment_has_is_learnt() -> None:
    far = replace(CURRENT, X=np.where(np.arange(50)[:, None] % 2, CURRENT.X, 4.0), y=CURRENT.y)
    fresh = Segment(
        "now", far.X.astype(np.float32), np.where(np.arange(50) % 2, far.y, 2), far.weight
    )
    model = Quilt(LEARNER, max_epochs=80, search=FEW).adapt(HISTORY, fresh)
    probabilities = model.predict_proba(np.full((1, 4), 4.0, np.float32))
    assert probabilities.shape == (1, 3)
    assert probabilities.argmax() == 2


@pytest.mark.parametrize("n_folds", [1, 2])
def test_training_can_start_from_the_previous_models(n_folds: int) -> None:
    settings = {**SHORT, "max_epochs": 200, "n_folds": n_folds}
    first = Quilt(**settings, search=FEW).adapt(HISTORY, CURRENT)
    again = Quilt(**settings, search=FEW, previous=first.models).adapt(HISTORY, CURRENT)
    for old, new in zip(first.selection.folds, again.selection.folds, strict=True):
        assert new.validation_loss[0] < old.validation_loss[0]
    assert len(again.models) == n_folds


def test_previous_models_are_left_as_they_were() -> None:
    [previous] = Quilt(**SHORT, search=FEW).adapt(HISTORY, CURRENT).models
    before = previous.predict_proba(REST.X).tobytes()
    Quilt(**SHORT, search=FEW, previous=[previous]).adapt(HISTORY, CURRENT)
    assert previous.predict_proba(REST.X).tobytes() == before


def test_one_previous_model_serves_all_folds() -> None:
    previous = Quilt(**SHORT, search=FEW).adapt(HISTORY, CURRENT).models
    model = Quilt(**SHORT, n_folds=3, search=FEW, previous=previous).adapt(HISTORY, CURRENT)
    assert len(model.models) == 3


@pytest.mark.parametrize("search", [FEW, Bayes(2, 1)], ids=["shared", "bayes"])
def test_the_same_seed_gives_the_same_bytes(search: Shared | Bayes) -> None:
    one, other = (Quilt(**SHORT, search=search).adapt(HISTORY, CURRENT) for _ in range(2))
    assert one.predict_proba(REST.X).tobytes() == other.predict_proba(REST.X).tobytes()
    assert json.dumps(one.selection.to_json()) == json.dumps(other.selection.to_json())


def test_another_seed_gives_another_model() -> None:
    other = {**SHORT, "seed": 5}
    assert answer(Quilt(**SHORT, search=FEW)) != answer(Quilt(**other, search=FEW))


def test_the_winner_of_each_fold_is_its_trial_with_the_lowest_loss() -> None:
    model = Quilt(**SHORT, n_folds=2, search=FEW).adapt(HISTORY, CURRENT)
    tried = model.tried_bounds()
    assert [(line.fold, line.disparity_max) for line in tried] == [
        (fold, bound) for fold in range(2) for bound in FEW.candidates
    ]
    for fold in range(2):
        mine = [line for line in tried if line.fold == fold]
        [winner] = [line for line in mine if line.won]
        assert winner.validation_loss == min(line.validation_loss for line in mine)
        assert model.selection.folds[fold].validation_loss.min() == winner.validation_loss


def test_trials_are_counted_before_they_are_made() -> None:
    quilt = Quilt(**SHORT, n_folds=2, search=FEW)
    assert quilt.count_trials(HISTORY) == 6 == len(list(quilt.trials(HISTORY, CURRENT)))
    assert quilt.count_trials([]) == 2 == len(list(quilt.trials([], CURRENT)))
    assert replace(quilt, rule=Rule(use_disparity=False)).count_trials(HISTORY) == 2


def test_default_bounds_go_from_nothing_of_the_past_to_all_of_it() -> None:
    assert CANDIDATES[0] == 0.0
    assert list(CANDIDATES) == sorted(CANDIDATES)
    assert CANDIDATES[-1] > 1.0  # of the largest disparity before training


def test_a_current_segment_of_one_row_is_an_input_error() -> None:
    with pytest.raises(InputError, match="'s4' has 1 row"):
        Quilt(**SHORT).adapt(HISTORY, CURRENT.take(slice(None, 1)))


def test_segments_are_read_and_never_changed() -> None:
    segments = [*HISTORY, CURRENT]
    before = [s.X.tobytes() + s.y.tobytes() + s.weight.tobytes() for s in segments]
    Quilt(**SHORT, search=FEW).adapt(HISTORY, CURRENT)
    assert before == [s.X.tobytes() + s.y.tobytes() + s.weight.tobytes() for s in segments]


def test_a_row_weight_changes_the_model() -> None:
    heavy = replace(CURRENT, weight=np.where(CURRENT.y == 1, 5.0, 1.0).astype(np.float32))
    weighted = Quilt(**SHORT, search=FEW).adapt(HISTORY, heavy).predict_proba(REST.X)
    plain = Quilt(**SHORT, search=FEW).adapt(HISTORY, CURRENT).predict_proba(REST.X)
    assert weighted[:, 1].mean() > plain[:, 1].mean()
