"""The naive methods: what they train on, what they answer, and that they are Quilt's limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from driftquilt.core.segment import folds, join
from driftquilt.errors import InputError
from driftquilt.learners.mlp import MLP, MLPModel
from driftquilt.paper.baselines.naive import CurrentSegment, FullData
from tests.segments import accuracy, make_segment

LEARNER = MLP(hidden_units=8, learning_rate=0.02)


HISTORY = [make_segment("april", 80, flip=True), make_segment("may", 90, flip=True)]
CURRENT = make_segment("june", 60)
ASKED = make_segment("june", 200, seed=5)


@pytest.mark.parametrize("n_folds", [1, 2, 3])
def test_the_present_alone_is_learnt_and_the_contrary_past_misleads(n_folds: int) -> None:
    settings: dict[str, Any] = {"learner": LEARNER, "n_folds": n_folds, "max_epochs": 60}
    assert accuracy(CurrentSegment(**settings).adapt(HISTORY, CURRENT), ASKED) > 0.9
    assert accuracy(FullData(**settings).adapt(HISTORY, CURRENT), ASKED) < 0.6


@pytest.mark.parametrize("n_folds", [1, 2])
def test_full_data_is_the_current_segment_method_where_there_is_no_past(n_folds: int) -> None:
    answers = [
        method(LEARNER, n_folds=n_folds, max_epochs=20).adapt([], CURRENT).predict_proba(ASKED.X)
        for method in (FullData, CurrentSegment)
    ]
    assert answers[0].tobytes() == answers[1].tobytes()


def test_the_past_has_no_influence_on_the_current_segment_method() -> None:
    method = CurrentSegment(LEARNER, max_epochs=20)
    one, other = method.adapt(HISTORY, CURRENT), method.adapt(HISTORY[:1], CURRENT)
    assert one.predict_proba(ASKED.X).tobytes() == other.predict_proba(ASKED.X).tobytes()


def test_full_data_trains_on_every_row_but_those_that_validate() -> None:
    seen: list[int] = []

    class Watched(MLP):
        def start(self, X: NDArray[Any], n_classes: int, seed: int) -> MLPModel:
            seen.append(len(X))
            return super().start(X, n_classes, seed)

    FullData(Watched(hidden_units=4), n_folds=3, max_epochs=1).adapt(HISTORY, CURRENT)
    parts = [train for train, _ in folds(CURRENT, 3)]
    assert seen == [len(join([*HISTORY, part])) for part in parts]


def test_folds_are_answered_with_the_mean_of_their_models() -> None:
    answer = CurrentSegment(LEARNER, n_folds=3, max_epochs=10).adapt(HISTORY, CURRENT)
    assert len(answer.models) == 3
    mean = np.mean([model.predict_proba(ASKED.X) for model in answer.models], axis=0)
    np.testing.assert_allclose(answer.predict_proba(ASKED.X), mean, atol=1e-6)
    np.testing.assert_allclose(answer.predict_proba(ASKED.X).sum(axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("method", [FullData, CurrentSegment])
def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(
    method: type[FullData] | type[CurrentSegment],
) -> None:
    answers = [
        method(LEARNER, max_epochs=10, seed=seed).adapt(HISTORY, CURRENT).predict_proba(ASKED.X)
        for seed in (1, 1, 2)
    ]
    assert answers[0].tobytes() == answers[1].tobytes()
    assert answers[0].tobytes() != answers[2].tobytes()


def test_a_class_no_row_has_gets_a_column_when_it_is_announced() -> None:
    answer = CurrentSegment(LEARNER, max_epochs=3, n_classes=4).adapt(HISTORY, CURRENT)
    assert answer.predict_proba(ASKED.X).shape == (200, 4)


def test_fewer_classes_than_the_rows_have_are_refused() -> None:
    with pytest.raises(InputError, match="n_classes is 1"):
        FullData(LEARNER, n_classes=1).adapt(HISTORY, CURRENT)
