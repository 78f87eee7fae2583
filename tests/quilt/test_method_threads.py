"""Folds side by side give the same bytes; the settings shipped as default find the same past."""

from __future__ import annotations

import json
import threading
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray
from torch import nn

from driftquilt import QuiltClassifier
from driftquilt.core.sampling import Sampling
from driftquilt.core.segment import Segment, cut
from driftquilt.learners.base import Learner
from driftquilt.learners.mlp import MLP, MLPModel
from driftquilt.learners.torch_module import TorchLearner
from driftquilt.quilt.executor import Processes, Threads
from driftquilt.quilt.method import CANDIDATES, DEFAULT, PAPER, Quilt
from driftquilt.search.base import Search
from driftquilt.search.bayes import Bayes
from driftquilt.search.shared import Shared

SAMPLING = Sampling(score_rows=30, score_every=2, epoch_rows=90, averaging=0.6)
QUILT = Quilt(
    MLP(hidden_units=8, learning_rate=0.02),
    n_folds=3,
    max_epochs=12,
    patience=4,
    sampling=SAMPLING,
    search=Shared((0.2, 0.5, 1.0), drop_by=0.1),
)


def stream(n_rows: int = 60) -> tuple[list[Segment], Segment]:
    """Three months; April is the other way round."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3 * n_rows, 2)).astype(np.float32)
    month = np.repeat([0, 1, 2], n_rows)
    y = ((X[:, 0] > 0) ^ (month == 0)).astype(np.int64)
    return cut(X, y, month, ["April", "May", "June"])


HISTORY, CURRENT = stream()


def outcome(quilt: Quilt) -> tuple[bytes, str, list[tuple[int, float, float, bool]]]:
    model = quilt.adapt(HISTORY, CURRENT)
    trials = [(k, t.disparity_max, t.validation_loss, t.finished) for k, t, _ in model.trials]
    return (
        model.predict_proba(CURRENT.X).tobytes(), json.dumps(model.selection.to_json()), trials
    )  # fmt: skip


@pytest.mark.parametrize("search", [QUILT.search, Bayes(2, 1)], ids=["shared", "bayes"])
def test_the_number_of_threads_changes_no_byte(search: Search) -> None:
    quilt = replace(QUILT, search=search)
    expected = outcome(replace(quilt, executor=Threads(1)))
    assert [fold for fold, *_ in expected[2]] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    for executor in (Threads(2), Threads(5)):
        assert outcome(replace(quilt, executor=executor)) == expected


def test_processes_change_no_byte_and_neither_do_bounds_on_their_own() -> None:
    quilt = replace(QUILT, n_folds=1, search=Shared((0.2, 0.5, 1.0, 1.5)))
    expected = outcome(quilt)
    for executor in (Processes(2), Threads(3)):
        assert outcome(replace(quilt, executor=executor)) == expected


class Watched(MLP):
    """A net that notes the threads on which it is started."""

    threads: ClassVar[set[int]] = set()

    def start(self, X: NDArray[Any], n_classes: int, seed: int) -> MLPModel:
        self.threads.add(threading.get_ident())
        return super().start(X, n_classes, seed)


def test_the_default_learner_trains_on_threads_when_it_may() -> None:
    for n_threads, stays in ((1, True), (2, False)):
        Watched.threads.clear()
        replace(QUILT, learner=Watched(4), executor=Threads(n_threads)).adapt(HISTORY, CURRENT)
        assert (threading.get_ident() in Watched.threads) is stays
        assert len(Watched.threads) <= n_threads


def test_a_torch_net_stays_on_the_calling_thread() -> None:
    threads: set[int] = set()

    def net(n_features: int, n_classes: int) -> nn.Module:
        threads.add(threading.get_ident())
        return nn.Sequential(nn.Linear(n_features, 3), nn.Tanh(), nn.Linear(3, n_classes))

    learner: Learner = TorchLearner(net)
    clf = QuiltClassifier(learner=learner, max_epochs=2, n_folds=3, n_jobs=4)
    clf.fit(CURRENT.X, CURRENT.y)
    assert threads == {threading.get_ident()}


@pytest.mark.parametrize("n_threads", [1, 3])
def test_no_thread_outlives_the_training(n_threads: int) -> None:
    before = threading.active_count()
    replace(QUILT, executor=Threads(n_threads)).adapt(HISTORY, CURRENT)
    assert threading.active_count() == before


def test_the_default_is_the_paper_with_folds_samples_averaged_weights_and_a_blend() -> None:
    assert DEFAULT.search == Shared(CANDIDATES, relative=True)
    assert DEFAULT.blend
    assert not PAPER.blend
    assert DEFAULT.n_folds > 1
    assert DEFAULT.sampling.averaging > 0
    assert Sampling() == PAPER.sampling
    assert DEFAULT.executor == PAPER.executor == Threads(1)
    assert (DEFAULT.rule, DEFAULT.max_epochs) == (PAPER.rule, PAPER.max_epochs)


@pytest.mark.parametrize("quilt", [DEFAULT, PAPER], ids=["default", "paper"])
def test_segments_longer_than_a_sample_are_told_apart(quilt: Quilt) -> None:
    history, current = stream(n_rows=600)
    small = replace(quilt, learner=MLP(hidden_units=8, learning_rate=0.02), max_epochs=40)
    model = small.adapt(history, current.take(slice(None, 100)))
    assert [(use.name, use.used) for use in model.selection] == [("April", False), ("May", True)]
    answers = model.predict_proba(current.X[100:]).argmax(axis=1)
    assert (answers == current.y[100:]).mean() > 0.95
