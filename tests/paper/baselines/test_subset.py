"""What GLISTER and GRAD-MATCH share: the loop over budgets, and its limits."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar

import numpy as np
import pytest

from driftquilt.core.segment import Segment
from driftquilt.core.training import Time
from driftquilt.errors import InputError, LearnerError
from driftquilt.learners.base import Model
from driftquilt.learners.mlp import MLP
from driftquilt.paper.baselines.glister import Glister
from driftquilt.paper.baselines.grad_match import GradMatch
from driftquilt.paper.baselines.naive import CurrentSegment, FullData
from driftquilt.paper.baselines.subset import BUDGETS
from driftquilt.quilt.method import Fitted
from tests.segments import accuracy, make_segment

SMALL: dict[str, Any] = {"learner": MLP(8, learning_rate=0.02), "max_epochs": 60}
BRIEF: dict[str, Any] = SMALL | {"max_epochs": 4}
rows = partial(make_segment, n_features=3)
HISTORY = [rows("april", 150, flip=True, seed=1), rows("may", 150, seed=2)]
CURRENT = rows("june", 60)
ASKED = rows("june", 400, seed=5)

both = pytest.mark.parametrize("method", [Glister, partial(GradMatch, batch_size=16)])
# With one batch of everything, GRAD-MATCH has nothing to weigh.
whole = pytest.mark.parametrize("method", [Glister, partial(GradMatch, batch_size=1000)])


def answer(model: Fitted) -> bytes:
    return model.predict_proba(ASKED.X).tobytes()


@whole
@pytest.mark.parametrize("n_folds", [1, 2])
def test_with_the_whole_budget_it_is_full_data(method: Any, n_folds: int) -> None:
    settings = BRIEF | {"n_folds": n_folds}
    model = method(**settings, budgets=(1.0,)).adapt(HISTORY, CURRENT)
    assert answer(model) == answer(FullData(**settings).adapt(HISTORY, CURRENT))
    assert model.budgets == (1.0,) * n_folds


@whole
def test_without_history_and_with_the_whole_budget_the_present_is_all(method: Any) -> None:
    model = method(**BRIEF, budgets=(1.0,)).adapt([], CURRENT)
    assert answer(model) == answer(CurrentSegment(**BRIEF).adapt([], CURRENT))


@pytest.mark.parametrize(
    ("method", "better"), [(Glister, 0.3), (partial(GradMatch, batch_size=8), 0.2)]
)
def test_a_contrary_past_misleads_it_less_than_full_data(method: Any, better: float) -> None:
    history = [rows("march", 150, flip=True, seed=7), *HISTORY]
    full, chosen = (
        [accuracy(one(**SMALL, seed=seed).adapt(history, CURRENT), ASKED) for seed in range(4)]
        for one in (FullData, method)
    )
    assert np.mean(chosen) > np.mean(full) + better


def test_the_budget_with_the_lowest_loss_wins_and_all_are_listed() -> None:
    model = Glister(**BRIEF, n_folds=2).adapt(HISTORY, CURRENT)
    for fold in (0, 1):
        tried = [line for line in model.tried_budgets if line.fold == fold]
        assert tuple(line.budget for line in tried) == BUDGETS
        assert min(tried, key=lambda line: line.validation_loss).budget == model.budgets[fold]
        assert {line.n_epochs for line in tried} == {4}


class Watched(Glister):
    """Notes how many rows it is asked for; a choice takes 5 seconds on the clock `now`."""

    asked: ClassVar[list[int]] = []
    now: ClassVar[list[float]] = [0.0]

    def choose(
        self,
        model: Model,
        rows: Segment,
        validation: Segment,
        n_rows: int,
        rng: np.random.Generator,
    ) -> Segment:
        self.asked.append(n_rows)
        self.now[0] += 5
        return super().choose(model, rows, validation, n_rows, rng)


def test_rows_are_chosen_again_every_so_many_epochs() -> None:
    Watched.asked.clear()
    settings = BRIEF | {"max_epochs": 9, "patience": 9}
    Watched(**settings, budgets=(0.1, 0.5), every=4).adapt(HISTORY, CURRENT)
    assert Watched.asked == [33] * 3 + [165] * 3


def test_the_time_of_a_choice_counts_as_training_time() -> None:
    method = Watched(**BRIEF, clock=lambda: Time(Watched.now[0]), budgets=(0.5,), every=2)
    epochs = method.adapt(HISTORY, CURRENT).trainings[0]
    assert [epoch.time.wall for epoch in epochs] == [5, 0, 5, 0]


@both
def test_the_same_seed_gives_the_same_bytes_and_another_does_not(method: Any) -> None:
    def adapt(seed: int) -> bytes:
        return answer(method(**BRIEF, seed=seed).adapt(HISTORY, CURRENT))

    assert adapt(3) == adapt(3) != adapt(4)


@pytest.mark.parametrize(
    ("method", "name", "value"),
    [
        (Glister, "budgets", ()),
        (Glister, "budgets", (0.0, 0.5)),
        (GradMatch, "budgets", (1.1,)),
        (Glister, "every", 0),
        (Glister, "n_rounds", 0),
        (GradMatch, "regulariser", 0.0),
        (GradMatch, "tolerance", -0.1),
        (GradMatch, "batch_size", 0),
    ],
)
def test_invalid_settings_are_refused(method: Any, name: str, value: Any) -> None:
    with pytest.raises(InputError, match=name):
        method(**{name: value})


@both
def test_training_that_always_diverges_is_a_learner_error(method: Any) -> None:
    broken = Segment("june", np.full_like(CURRENT.X, np.nan), CURRENT.y, CURRENT.weight)
    with pytest.raises(LearnerError, match="not a finite number"):
        method(**BRIEF).adapt([], broken)
