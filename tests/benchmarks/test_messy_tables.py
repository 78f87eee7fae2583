"""Messy tables are repeatable, have the share of positives asked for, drift, and are messy."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.messy_tables import messy_table

from driftquilt.data import Encoder, read_frame


@pytest.mark.parametrize("positives", [0.25, 0.10, 0.03, 0.01])
def test_the_share_of_positives_is_that_asked_for(positives: float) -> None:
    table, y, month = messy_table(positives=positives)
    assert abs(y.mean() - positives) < 0.1 * positives
    assert month[-1] == 23
    assert (np.diff(month) >= 0).all()
    assert len(table) == len(y) == len(month)


def test_a_seed_makes_the_same_table_and_another_seed_another() -> None:
    (one, y, _), (twin, y_twin, _), (other, y_other, _) = (
        messy_table(seed, months=4, rows=300) for seed in (1, 1, 2)
    )
    assert one.equals(twin)
    assert np.array_equal(y, y_twin)
    assert not one["amount"].equals(other["amount"])
    assert not np.array_equal(y[:200], y_other[:200])


def test_it_has_gaps_sentinels_outliers_and_thousands_of_categories() -> None:
    columns, _, _ = messy_table()
    assert {999, -1} <= set(columns["age"].tolist())
    assert np.isnan(columns["income"]).any()
    assert np.isnan(columns["risk"]).mean() > 0.4
    assert columns["amount"].max() > 1000 * np.median(columns["amount"])
    assert len(set(columns["city"].tolist())) > 1_500
    lines = Encoder.fit(read_frame(columns)).describe()
    by_rank = {name for name, line in lines.items() if line.endswith("by rank")}
    assert {"amount", "balance", "age"} <= by_rank
    assert not {"score", "ratio", "noise_0", "constant"} & by_rank


def test_without_mess_the_same_rows_have_the_same_labels() -> None:
    _, y, _ = messy_table(months=3, rows=300)
    clean, y_clean, _ = messy_table(
        months=3, rows=300, heavy_tails=False, gaps=False, sentinels=False
    )
    assert np.array_equal(y, y_clean)
    numbers = clean.select_dtypes("number")
    assert np.isfinite(numbers).all(axis=None)
    assert numbers["age"].max() <= 95
    assert numbers["amount"].max() < 10


def test_only_with_drift_does_a_month_differ_from_the_next_season() -> None:
    """The tie of score and label by month, as correlations."""

    def spread(drift: bool) -> float:
        table, y, month = messy_table(1, drift=drift)
        score = np.nan_to_num(table["score"])
        ties = [np.corrcoef(score[month == m], y[month == m])[0, 1] for m in range(24)]
        return float(np.std(ties))

    assert spread(drift=True) > 3 * spread(drift=False)
