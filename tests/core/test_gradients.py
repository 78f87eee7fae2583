"""Means over long segments are put together from shards, and short ones are untouched."""

from __future__ import annotations

import numpy as np
import pytest

from driftquilt.core import gradients as module
from driftquilt.core.gradients import mean_gradients, merge, runs, shards
from driftquilt.core.segment import Segment
from driftquilt.learners.mlp import MLP


def segment(n_rows: int, seed: int = 0) -> Segment:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3)).astype(np.float32)
    weight = rng.uniform(0.5, 2, n_rows).astype(np.float32)
    return Segment(seed, X, (X[:, 0] > 0).astype(np.int64), weight)


def test_short_segments_are_looked_at_whole() -> None:
    segments = [segment(300, 1), segment(200, 2)]
    model = MLP(8).start(segments[0].X, 2, seed=0)
    expected = model.head_gradients(segments)[0]
    assert mean_gradients(model, segments).tobytes() == expected.tobytes()


def test_long_ones_are_the_weighted_mean_of_their_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SHARD_ROWS", 128)
    segments = [segment(300, 1), segment(100, 2)]
    assert [len(shards(len(one))) for one in segments] == [3, 1]
    model = MLP(8).start(segments[0].X, 2, seed=0)
    found, whole = mean_gradients(model, segments), model.head_gradients(segments)[0]
    np.testing.assert_allclose(found[0], whole[0], rtol=1e-5)
    assert found[1].tobytes() == whole[1].tobytes()
    parts = [segments[0].take(part) for part in shards(300)]
    weights = np.array([part.weight.sum(dtype=np.float64) for part in parts])
    alone = merge(np.concatenate([model.head_gradients([p])[0] for p in parts]), weights)
    assert alone.tobytes() == found[0].tobytes()


def test_four_shards_are_added_up_before_the_next_four(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SHARD_ROWS", 10)
    one = segment(95)
    assert [len(run) for run in runs(95)] == [4, 4, 2]
    model = MLP(8).start(one.X, 2, seed=0)
    means, weights = [], []
    for run in runs(95):
        parts = [one.take(part) for part in run]
        sums = np.array([part.weight.sum(dtype=np.float64) for part in parts])
        means.append(merge(model.head_gradients(parts)[0], sums))
        weights.append(sums.sum())
    expected = merge(np.stack(means), np.array(weights))
    assert mean_gradients(model, [one])[0].tobytes() == expected.tobytes()


def test_shards_cover_every_row_once() -> None:
    for n_rows in (1, module.SHARD_ROWS, module.SHARD_ROWS + 1, 3 * module.SHARD_ROWS):
        covered = [row for part in shards(n_rows) for row in (part.start, part.stop)]
        assert covered == sorted(covered)
        assert (covered[0], covered[-1]) == (0, n_rows)
