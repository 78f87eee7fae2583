"""The numbers of the paper's result tables, to stand beside ours.

>>> published("accuracy_f1_runtime", "sea", "quilt", "accuracy")
0.888
>>> published("accuracy_f1_runtime", "sea", "quilt", "usage") is None
True
"""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files

__all__ = ["published"]


def published(table: str, dataset: str, method: str, metric: str) -> float | None:
    """A mean as printed, or None where the paper has no such number."""
    return _numbers().get((table, dataset, method, metric))


@cache
def _numbers() -> dict[tuple[str, str, str, str], float]:
    text = files("driftquilt.paper").joinpath("published.csv").read_text()
    return {
        (row["table"], row["dataset"], row["method"], row["metric"]): float(row["mean"])
        for row in csv.DictReader(text.splitlines())
    }
