"""Histories in files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from driftquilt import QuiltClassifier

COLUMNS = ["a", "b", "c", "city"]


def month(seed: int, n_rows: int, *, turned: bool = False) -> pa.Table:
    """Rows of one month; in one that is turned, the answer is the other one."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, 3))
    answer = (X[:, 0] + X[:, 1] * X[:, 2] > 0) ^ turned
    return pa.table(
        {
            **dict(zip(COLUMNS, X.T, strict=False)),
            "city": pa.array(rng.choice(["Oslo", "Rome", "Bonn"], n_rows)).dictionary_encode(),
            "buys": np.where(answer, "yes", "no"),
        }
    )


def write(folder: Path, n_rows: int, n_months: int = 6, n_current: int = 300) -> list[str]:
    """Months, every other one turned round; the last, of few rows, is not."""
    paths = []
    for number in range(n_months):
        is_last = number == n_months - 1
        table = month(number, n_current if is_last else n_rows, turned=number % 2 == n_months % 2)
        paths.append(str(folder / f"month {number}.parquet"))
        pq.write_table(table, paths[-1], row_group_size=max(n_rows // 3, 1))
    return paths


def quilt(**settings: Any) -> QuiltClassifier:
    """A small classifier."""
    given: dict[str, Any] = {
        "hidden_units": 16,
        "max_epochs": 12,
        "n_folds": 2,
        "random_state": 0,
        **settings,
    }
    return QuiltClassifier(**given)
