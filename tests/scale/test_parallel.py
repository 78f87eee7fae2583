"""A training on two ranks is that of one machine, up to the rounding of sums."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from torch import nn

from driftquilt import QuiltClassifier, TorchLearner
from driftquilt.errors import InputError, LearnerError
from driftquilt.scale import shards as module
from driftquilt.scale.files import fit_files
from driftquilt.scale.parallel import fit_parallel
from tests.scale.histories import COLUMNS, month, quilt, write

pytestmark = [
    pytest.mark.usefixtures("cluster"),
    pytest.mark.filterwarnings("ignore"),  # Ray Train's own
]


def deep(n_features: int, n_classes: int) -> nn.Module:
    layers = [nn.Linear(n_features, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh()]
    return nn.Sequential(*layers, nn.Linear(24, n_classes))


def with_batch_norm(n_features: int, n_classes: int) -> nn.Module:
    return nn.Sequential(nn.Linear(n_features, 8), nn.BatchNorm1d(8), nn.Linear(8, n_classes))


def test_two_ranks_come_to_the_result_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LUMP_ROWS", 1_000)
    paths = write(tmp_path, n_rows=1_500, n_months=4)
    clf = quilt(learner=TorchLearner(deep), score_rows=None, epoch_rows=512, n_folds=1)
    expected = fit_files(QuiltClassifier(**clf.get_params(deep=False)), paths, "buys")
    found = fit_parallel(clf, paths, "buys", n_workers=2)
    asked = month(9, 1_000).select(COLUMNS)
    np.testing.assert_allclose(found.predict_proba(asked), expected.predict_proba(asked), atol=1e-4)
    assert found.disparity_max_ == expected.disparity_max_
    for use, other in zip(found.selection_, expected.selection_, strict=True):
        assert (use.name, use.kept) == (other.name, other.kept)
        np.testing.assert_allclose(use.disparity.median, other.disparity.median, rtol=1e-3)


def test_what_one_rank_refuses_all_refuse(tmp_path: Path) -> None:
    clf = quilt(learner=TorchLearner(deep), random_state=None)
    with pytest.raises(InputError, match="cannot be read"):
        fit_parallel(clf, [str(tmp_path / "nothing.parquet")], "buys", n_workers=2)
    for n_workers in (0, 3, "2"):
        with pytest.raises(InputError, match="from 1 to 2"):
            fit_parallel(clf, ["x"], "buys", n_workers=n_workers)  # type: ignore[arg-type]


def test_batch_norm_and_other_learners_are_refused(tmp_path: Path) -> None:
    paths = write(tmp_path, n_rows=200, n_months=2)
    with pytest.raises(InputError, match="takes a learner of torch"):
        fit_parallel(quilt(), paths, "buys", n_workers=2)
    clf = quilt(learner=TorchLearner(with_batch_norm))
    with pytest.raises(LearnerError, match="the net has batch norm"):
        fit_parallel(clf, paths, "buys", n_workers=1)
