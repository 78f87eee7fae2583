"""Clustered tables are repeatable, have neighbours that are alike, and drift where they should."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.clustered_tables import CLUSTERED, clustered_table


@pytest.mark.parametrize("kind", CLUSTERED)
def test_a_seed_makes_the_same_table_and_another_seed_another(kind: str) -> None:
    (one, y, _), (twin, y_twin, segment), (other, _, _) = (
        clustered_table(seed, kind, drift=True) for seed in (1, 1, 2)
    )
    assert one.equals(twin)
    assert np.array_equal(y, y_twin)
    assert not one.equals(other)
    assert np.bincount(segment).tolist() == [1600] * 10


@pytest.mark.parametrize("kind", CLUSTERED)
def test_the_first_rows_of_a_segment_do_not_stand_for_the_rest(kind: str) -> None:
    table, y, segment = clustered_table(0, kind, drift=False)
    n_first, distances = 240, []
    for number in range(10):
        rows = table[segment == number].assign(y=y[segment == number]).to_numpy()
        first, rest = rows[:n_first].mean(axis=0), rows[n_first:].mean(axis=0)
        distances.append(np.abs(first - rest) / rows.std(axis=0) * np.sqrt(n_first))
    assert np.mean(np.max(distances, axis=1)) > 4  # standard errors, of rows drawn alike about 2


@pytest.mark.parametrize("kind", CLUSTERED)
def test_the_rule_changes_with_drift_only(kind: str) -> None:
    (table, y, _), (same, y_drift, segment) = (
        clustered_table(0, kind, drift=drift) for drift in (False, True)
    )
    assert table.equals(same)
    changed = [np.mean((y != y_drift)[segment == number]) for number in range(10)]
    assert min(changed[number] for number in (1, 3, 4, 6, 7, 9)) > 0.25
