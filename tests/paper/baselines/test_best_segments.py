"""Best Segments: every subset is tried, and the gold set is the one that was planted."""

from __future__ import annotations

from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from driftquilt.core.segment import Segment
from driftquilt.errors import InputError, LearnerError
from driftquilt.learners.mlp import MLP
from driftquilt.paper.baselines import best_segments
from driftquilt.paper.baselines.best_segments import BestSegments, TriedSubset
from driftquilt.paper.baselines.naive import CurrentSegment, FullData
from driftquilt.quilt.method import Fitted, Method
from tests.segments import make_segment

SMALL: dict[str, Any] = {
    "learner": MLP(hidden_units=8, learning_rate=0.02),
    "max_epochs": 40,
}


rows = partial(make_segment, n_features=30)  # all but one mean nothing
CURRENT = rows("june", 80)
ASKED = rows("june", 400, seed=5)
HISTORY = [
    rows("february", 150, flip=True, seed=1),
    rows("march", 150, seed=2),
    rows("april", 150, flip=True, seed=3),
    rows("may", 150, seed=4),
]


def answer(model: Fitted) -> bytes:
    return model.predict_proba(ASKED.X).tobytes()


@pytest.mark.parametrize("n_folds", [1, 2])
def test_the_planted_subset_is_found(n_folds: int) -> None:
    model = BestSegments(**SMALL, n_folds=n_folds).adapt(HISTORY, CURRENT)
    assert model.gold == ("march", "may")
    assert len(model.models) == n_folds


def test_every_subset_is_tried_once() -> None:
    model = BestSegments(MLP(hidden_units=4), max_epochs=1).adapt(HISTORY, CURRENT)
    names = [segment.name for segment in HISTORY]
    wanted = [subset for size in range(5) for subset in combinations(names, size)]
    assert [tried.names for tried in model.tried_subsets] == wanted


def test_the_gold_set_has_the_best_accuracy_then_loss_then_size() -> None:
    model = BestSegments(MLP(hidden_units=4), max_epochs=3).adapt(HISTORY, CURRENT)
    best = max(model.tried_subsets, key=lambda t: (t.validation_accuracy, -t.validation_loss))
    assert model.gold == best.names
    as_good = {t.names for t in model.tried_subsets if t.validation_accuracy == best[1]}
    assert set(model.equals) == as_good


@pytest.mark.parametrize(
    ("outcomes", "gold"),
    [
        ([(0.5, 0.1), (0.9, 0.9), (0.8, 0.1), (0.8, 0.1)], ("march",)),
        ([(0.9, 0.3), (0.9, 0.2), (0.9, 0.1), (0.8, 0.0)], ("may",)),
        ([(0.8, 0.3), (0.9, 0.2), (0.8, 0.3), (0.9, 0.2)], ("march",)),
        ([(0.9, 0.2), (0.9, 0.2), (0.9, 0.2), (0.9, 0.2)], ()),
        ([(0.8, 0.2), (0.9, 0.2), (0.9, 0.2), (0.8, 0.2)], ("march",)),
        ([(1.0, np.inf), (0.9, 0.2), (1.0, np.inf), (0.8, 0.2)], ("march",)),
    ],
    ids=["accuracy", "loss", "fewer", "none", "older", "diverged"],
)
def test_ties_are_broken_by_loss_then_size_then_age(
    outcomes: list[tuple[float, float]], gold: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = iter(outcomes)

    def judge(subset: tuple[Segment, ...], _: object) -> TriedSubset:
        return TriedSubset(tuple(segment.name for segment in subset), *next(planned))

    monkeypatch.setattr(best_segments, "_judge", judge)
    history = [rows("march", 20), rows("may", 20)]
    method = BestSegments(MLP(hidden_units=4), max_epochs=1)
    assert method.adapt(history, CURRENT).gold == gold


@pytest.mark.parametrize("n_folds", [1, 3])
def test_the_empty_and_the_full_subset_are_the_naive_methods(
    n_folds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = SMALL | {"n_folds": n_folds, "max_epochs": 8}
    naives: list[tuple[Method, int]] = [
        (CurrentSegment(**settings), 0),
        (FullData(**settings), len(HISTORY)),
    ]
    for naive, size in naives:
        monkeypatch.setattr(best_segments, "_rank", lambda t, n=size: (abs(len(t.names) - n), 0, 0))
        monkeypatch.setattr(best_segments, "_UNTRIED", TriedSubset(tuple(range(99)), 0.0, np.inf))
        model = BestSegments(**settings).adapt(HISTORY, CURRENT)
        assert answer(model) == answer(naive.adapt(HISTORY, CURRENT))


def test_accuracy_is_that_of_the_model_on_the_validation_part() -> None:
    model = BestSegments(**SMALL).adapt([], CURRENT)
    validation = CURRENT.take(slice(40, None))
    right = model.predict_proba(validation.X).argmax(axis=1) == validation.y
    assert model.tried_subsets[0].validation_accuracy == pytest.approx(right.mean())


def test_without_history_the_only_subset_is_the_empty_one() -> None:
    model = BestSegments(**SMALL).adapt([], CURRENT)
    assert model.gold == ()
    assert answer(model) == answer(CurrentSegment(**SMALL).adapt([], CURRENT))


def test_the_same_seed_gives_the_same_bytes_and_another_does_not() -> None:
    def adapt(seed: int) -> bytes:
        return answer(BestSegments(**SMALL, seed=seed).adapt(HISTORY[:2], CURRENT))

    assert adapt(3) == adapt(3) != adapt(4)


def test_too_many_segments_are_refused_with_the_number_of_trainings() -> None:
    with pytest.raises(InputError, match=r"15 past segments .* 65,536 trainings.*max_segments=14"):
        BestSegments(n_folds=2).adapt([rows(str(k), 4) for k in range(15)], CURRENT)


def test_training_that_always_diverges_is_a_learner_error() -> None:
    broken = Segment("june", np.full_like(CURRENT.X, np.nan), CURRENT.y, CURRENT.weight)
    with pytest.raises(LearnerError, match="not a finite number"):
        BestSegments(MLP(hidden_units=4), max_epochs=2).adapt([], broken)
