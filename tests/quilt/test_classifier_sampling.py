"""The classifier's sampling and cores: what they change and what they leave alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from driftquilt import QuiltClassifier
from driftquilt.core.sampling import EVERY_ROW, Sampling
from driftquilt.quilt.method import Quilt

rng = np.random.default_rng(0)
X = rng.normal(size=(300, 3))
MONTH = np.repeat(["April", "May", "June"], 100)
Y = ((X[:, 0] > 0) ^ (MONTH == "April")).astype(np.int64)  # April was the other way round
SAMPLED: dict[str, Any] = {"score_rows": 25, "score_every": 2, "epoch_rows": 90, "averaging": 0.6}


def quilt(**settings: Any) -> QuiltClassifier:
    small = {"hidden_units": 8, "learning_rate": 0.02, "max_epochs": 12, "random_state": 0}
    return QuiltClassifier(**{**small, **settings})


def answer(**settings: Any) -> bytes:
    probabilities = quilt(**settings).fit(X, Y, segments=MONTH).predict_proba(X)
    return probabilities.tobytes()


def method_of(clf: QuiltClassifier) -> Quilt:
    return clf._quilt(clf.make_learner(), (), 2)


@pytest.mark.parametrize("search", ["shared", "bayes"])
def test_the_number_of_cores_changes_no_byte(search: str) -> None:
    one, two, default = (answer(**SAMPLED, search=search, n_jobs=n) for n in (1, 2, None))
    assert one == two == default


def test_no_number_of_cores_means_all_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert QuiltClassifier().choose_executor(0).n_workers == 7
    assert QuiltClassifier(n_jobs=3).choose_executor(0).n_workers == 3
    monkeypatch.setattr(os, "cpu_count", lambda: None)  # Python may not know
    assert QuiltClassifier().choose_executor(0).n_workers == 1


def test_settings_make_up_the_sampling() -> None:
    assert method_of(quilt(**SAMPLED)).sampling == Sampling(25, 2, 90, 0.6)
    full = quilt(score_rows=None, score_every=1, epoch_rows=None, averaging=0)
    assert method_of(full).sampling == EVERY_ROW


@pytest.mark.parametrize("name", SAMPLED)
def test_each_part_of_the_sampling_makes_a_difference(name: str) -> None:
    full: dict[str, Any] = {
        "score_rows": None, "score_every": 1, "epoch_rows": None, "averaging": 0,
        "disparity_max": 0.25, "n_folds": 4,
    }  # fmt: skip
    assert answer(**{**full, name: SAMPLED[name]}) != answer(**full)


def test_none_looks_at_every_row() -> None:
    rest = {"score_every": 2, "averaging": 0.6}
    all_rows = answer(**rest, score_rows=None, epoch_rows=None)
    assert answer(**rest, score_rows=300, epoch_rows=300) == all_rows
    assert answer(**SAMPLED) != all_rows


@pytest.mark.parametrize(
    "settings", [SAMPLED, {}, {"score_rows": None, "epoch_rows": None}], ids=str
)
def test_the_opposite_month_is_dropped_and_the_same_one_kept(settings: dict[str, Any]) -> None:
    clf = quilt(**settings, max_epochs=40).fit(X, Y, segments=MONTH)
    assert {use.name: use.used for use in clf.selection_} == {"April": False, "May": True}


def test_a_saved_model_keeps_its_pace_and_answers_alike(tmp_path: Path) -> None:
    clf = quilt(**SAMPLED, n_jobs=2).fit(X, Y, segments=MONTH)
    clf.save(tmp_path / "model")
    loaded = QuiltClassifier.load(tmp_path / "model")
    assert {**SAMPLED, "n_jobs": 2}.items() <= loaded.get_params().items()
    assert np.array_equal(loaded.predict_proba(X), clf.predict_proba(X))
    loaded.fit(X, Y, segments=MONTH)
    assert np.array_equal(loaded.predict_proba(X), clf.predict_proba(X))


def test_a_clone_has_the_same_pace_and_trains_alike() -> None:
    clf = quilt(**SAMPLED, n_jobs=2).fit(X, Y, segments=MONTH)
    twin = clone(clf)
    assert twin.get_params() == clf.get_params()
    twin.fit(X, Y, segments=MONTH)
    assert np.array_equal(twin.predict_proba(X), clf.predict_proba(X))


def test_the_paper_looks_at_every_row_but_can_be_told_otherwise() -> None:
    assert method_of(QuiltClassifier.paper()).sampling == EVERY_ROW
    assert method_of(QuiltClassifier.paper(**SAMPLED)).sampling == Sampling(25, 2, 90, 0.6)
