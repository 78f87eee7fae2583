"""HAT and ARF: what they learn from, in which order, and what they answer."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from driftquilt.core.segment import Segment, join
from driftquilt.paper.baselines.trees import ARF, HAT
from tests.segments import accuracy, make_segment

METHODS = [HAT(), ARF(n_trees=3)]

each_method = pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)


CURRENT = make_segment("june", 200)
ASKED = make_segment("june", 300, seed=5)


@each_method
def test_the_past_is_learnt_where_the_present_is_short(method: HAT | ARF) -> None:
    short = CURRENT.take(slice(8))
    alone, both = method.adapt([], short), method.adapt([make_segment("may", 600)], short)
    assert accuracy(both, ASKED) > 0.93
    assert accuracy(both, ASKED) > accuracy(alone, ASKED)


@each_method
def test_the_trees_recover_from_a_past_that_was_the_other_way_round(method: HAT | ARF) -> None:
    past = [make_segment("may", 600, flip=True)]
    assert accuracy(method.adapt(past, make_segment("june", 1200)), ASKED) > 0.8


@each_method
def test_the_present_comes_last(method: HAT | ARF) -> None:
    past = make_segment("may", 300, flip=True)
    one, other = method.adapt([past], CURRENT), method.adapt([CURRENT], past)
    assert one.predict_proba(ASKED.X).tobytes() != other.predict_proba(ASKED.X).tobytes()


@each_method
def test_where_the_past_is_cut_makes_no_difference(method: HAT | ARF) -> None:
    past = [make_segment("april", 150), make_segment("may", 170, flip=True)]
    one, other = method.adapt(past, CURRENT), method.adapt([join(past)], CURRENT)
    assert one.predict_proba(ASKED.X).tobytes() == other.predict_proba(ASKED.X).tobytes()


@each_method
def test_a_leaf_is_examined_every_so_many_rows_as_the_present_has(method: HAT | ARF) -> None:
    trained: Any = method.adapt([], CURRENT).trained
    assert trained.grace_period == 200


@pytest.mark.parametrize("kind", [HAT, ARF])
def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(
    kind: type[HAT] | type[ARF],
) -> None:
    def answer(seed: int) -> NDArray[np.float32]:
        return kind(seed=seed).adapt([make_segment("may", 90)], CURRENT).predict_proba(ASKED.X)

    assert answer(1).tobytes() == answer(1).tobytes()
    assert answer(1).tobytes() != answer(2).tobytes()


@each_method
def test_a_class_that_only_the_past_has_keeps_its_column(method: HAT | ARF) -> None:
    old = Segment("march", CURRENT.X + 8, np.full(200, 3), CURRENT.weight)
    model = method.adapt([old], CURRENT)
    answer = model.predict_proba(ASKED.X)
    assert answer.shape == (300, 4)
    assert answer.dtype == np.float32
    assert model.predict_proba(ASKED.X + 8)[:, 3].mean() > 0.3  # a replaced tree forgot it
    np.testing.assert_allclose(answer.sum(axis=1), 1, atol=1e-5)


@each_method
@pytest.mark.parametrize("n", [1, 2])
def test_a_row_or_two_are_enough(method: HAT | ARF, n: int) -> None:
    answer = method.adapt([], CURRENT.take(slice(n))).predict_proba(ASKED.X)
    np.testing.assert_allclose(answer.sum(axis=1), 1, atol=1e-5)
    assert np.isfinite(answer).all()


@each_method
def test_a_model_survives_pickling(method: HAT | ARF) -> None:
    model = method.adapt([], CURRENT)
    copied = pickle.loads(pickle.dumps(model))  # noqa: S301  # our own bytes
    assert copied.predict_proba(ASKED.X).tobytes() == model.predict_proba(ASKED.X).tobytes()


def test_a_value_that_a_class_never_showed_speaks_against_it() -> None:
    """Ten 0/1 columns; each class has five that it never sets."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    mine = np.arange(10) // 5 == y[:, None]
    X = ((rng.random((400, 10)) < 0.3) & mine).astype(np.float32)
    weight = np.ones(400, np.float32)
    seen, asked = Segment("seen", X[:60], y[:60], weight[:60]), Segment("asked", X, y, weight)
    telling = asked.take(X.any(axis=1))
    assert accuracy(HAT().adapt([], seen), telling) > 0.95


def test_other_baselines_do_not_import_river() -> None:
    code = (
        "import sys; from driftquilt.paper.baselines import FullData, Glister; "
        "assert 'river' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
