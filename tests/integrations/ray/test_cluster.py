"""A cluster of several nodes loses one in the middle, and finishes with the right result."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ray
from numpy.typing import NDArray
from ray.cluster_utils import Cluster

from driftquilt import QuiltClassifier
from driftquilt.core.gradients import Scorable
from driftquilt.integrations.ray import shards as module
from driftquilt.integrations.ray.executor import Ray
from driftquilt.integrations.ray.files import fit_files
from tests.integrations.ray.histories import quilt, write
from tests.integrations.ray.processes import FAST_HEALTH_CHECKS


@pytest.fixture
def nodes() -> Iterator[Cluster]:
    """A head that does no work, and two nodes with a worker each."""
    memory: dict[str, Any] = {"object_store_memory": 100_000_000}
    made = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 0, "_system_config": FAST_HEALTH_CHECKS, **memory},
    )
    for _ in range(2):
        made.add_node(num_cpus=1, **memory)
    ray.init(address=made.address, log_to_driver=False)
    yield made
    ray.shutdown()
    made.shutdown()  # type: ignore[no-untyped-call]


def outcome(clf: QuiltClassifier) -> str:
    return json.dumps(clf.selection_.to_json())


def test_a_node_that_dies_with_its_shards_changes_nothing(
    nodes: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "CHUNK_ROWS", 20_000)
    paths = write(tmp_path, n_rows=60_000)
    settings = {"score_rows": None, "score_every": 1, "n_folds": 1}
    expected = outcome(fit_files(quilt(**settings), paths, "buys"))
    n_scorings, score = 0, module.Scorer.__call__

    def lose_a_node(scorer: module.Scorer, model: Scorable) -> NDArray[np.float64]:
        nonlocal n_scorings
        n_scorings += 1
        if n_scorings == 3:
            nodes.remove_node(nodes.worker_nodes.copy().pop(), allow_graceful=False)
        return score(scorer, model)

    monkeypatch.setattr(module.Scorer, "__call__", lose_a_node)
    assert Ray().n_workers == 2
    assert outcome(fit_files(quilt(engine=Ray(), **settings), paths, "buys")) == expected
    assert n_scorings > 3
    assert Ray().n_workers == 1
